/* SPDX-License-Identifier: MIT */
/* Lists of ranges in both formats, and ranges laid over each other. */
#include <stdlib.h>

#include "check.h"
#include "dwarf/interval_paint.h"
#include "dwarf_maker.h"

enum {
	TAG_CU = 0x11,
	TAG_FUNCTION = 0x2e,
	AT_NAME = 0x03,
	AT_LOW_PC = 0x11,
	AT_ENTRY_PC = 0x52,
	AT_RANGES = 0x55,
	AT_ADDR_BASE = 0x73,
	AT_RNGLISTS_BASE = 0x74,
	FORM_TEXT = 0x08,
	FORM_ADDRESS = 0x01,
	FORM_OFFSET = 0x17,
	FORM_LIST = 0x23
};

/* A unit at low pc CODE_ADDR with one function "f" whose ranges are what the test wrote. */
static int read_function(
	struct dwarf_maker *m, int version, uint32_t list, struct dwarf_unit_map *map)
{
	struct buf *b = &m->of[MAKER_INFO];
	struct err err;
	size_t at;

	ABBREV(m, 1, TAG_CU, 1, AT_LOW_PC, FORM_ADDRESS, AT_ADDR_BASE, FORM_OFFSET,
		AT_RNGLISTS_BASE, FORM_OFFSET);
	ABBREV(m, 2, TAG_FUNCTION, 0, AT_NAME, FORM_TEXT, AT_RANGES,
		version == 5 && list == 0 ? FORM_LIST : FORM_OFFSET);
	buf_put_uleb(&m->of[MAKER_ABBREV], 0);
	at = dwarf_maker_unit(m, version, 0);
	buf_put_uleb(b, 1);
	buf_put_u64(b, CODE_ADDR);
	buf_put_u32(b, 8);
	buf_put_u32(b, 12);
	buf_put_uleb(b, 2);
	buf_put(b, "f", 2);
	if (version == 5 && list == 0)
		buf_put_uleb(b, 0);
	else
		buf_put_u32(b, list);
	buf_put_u8(b, 0);
	dwarf_maker_length(b, at);
	*map = (struct dwarf_unit_map){0};
	CHECK_EQ(dwarf_maker_open(m, NULL, &err), 0);
	return dwarf_unit_map_init(map, m->debug, 0, &err);
}

static void put_pair(struct buf *b, uint64_t start, uint64_t end)
{
	buf_put_u64(b, start);
	buf_put_u64(b, end);
}

static void ranges_4(void)
{
	struct dwarf_maker m = {0};
	struct buf *b = &m.of[MAKER_RANGES];
	struct dwarf_unit_map map;

	put_pair(b, 0x99, 0x99); /* another list in front */
	put_pair(b, 0x20, 0x28); /* from the unit's low pc */
	put_pair(b, 0x30, 0x30); /* empty */
	put_pair(b, UINT64_MAX, CODE_ADDR + 0x100);
	put_pair(b, 0x10, 0x18);
	put_pair(b, UINT64_MAX, 0); /* from now on addresses are absolute */
	put_pair(b, CODE_ADDR + 0x300, CODE_ADDR + 0x308);
	put_pair(b, UINT64_MAX, 1); /* what GNU ld leaves of a dropped base */
	put_pair(b, CODE_ADDR + 0x400, CODE_ADDR + 0x408);
	put_pair(b, 0, 0);
	put_pair(b, 0x50, 0x58);
	CHECK_EQ(read_function(&m, 4, 16, &map), 0);
	CHECK_EQ(map.functions.n, 3);
	CHECK(map_function_is(&map, 0, "f", 0x20, 0x28));
	CHECK(map_function_is(&map, 1, "f", 0x110, 0x118));
	CHECK(map_function_is(&map, 2, "f", 0x300, 0x308));
	CHECK(map.functions.v[0].is_entry && !map.functions.v[1].is_entry);
	CHECK_STR(dwarf_debug_notes(m.debug), "");
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

static void list_without_end(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;

	put_pair(&m.of[MAKER_RANGES], 1, 1); /* what GNU ld leaves of a dropped function */
	put_pair(&m.of[MAKER_RANGES], 0x20, 0x28);
	CHECK_EQ(read_function(&m, 4, 0, &map), 0);
	CHECK_EQ(map.functions.n, 1);
	CHECK(strstr(dwarf_debug_notes(m.debug), "ranges of the unit cannot be read"));
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

enum { BASEX = 1, STARTX_ENDX, STARTX_LENGTH, OFFSET_PAIR, BASE, START_END, START_LENGTH };

/* Every kind of entry, found by number. */
static void put_list_5(struct dwarf_maker *m)
{
	struct buf *b = &m->of[MAKER_RNGLISTS];

	buf_put(&m->of[MAKER_ADDR], "\0\0\0\0\5\0\10", 8); /* header */
	for (uint64_t i = 0; i < 4; i++)
		buf_put_u64(&m->of[MAKER_ADDR], CODE_ADDR + i * 0x100);
	buf_put(b, "\0\0\0\0\5\0\10\0\1\0\0\0", 12); /* header, one offset */
	buf_put_u32(b, 4);
	buf_put_u8(b, OFFSET_PAIR);
	buf_put_uleb(b, 0x10);
	buf_put_uleb(b, 0x18);
	buf_put_u8(b, BASEX);
	buf_put_uleb(b, 1);
	buf_put_u8(b, OFFSET_PAIR);
	buf_put_uleb(b, 0x10);
	buf_put_uleb(b, 0x18);
	buf_put_u8(b, STARTX_ENDX);
	buf_put_uleb(b, 2);
	buf_put_uleb(b, 3);
	buf_put_u8(b, STARTX_LENGTH);
	buf_put_uleb(b, 3);
	buf_put_uleb(b, 0x10);
	buf_put_u8(b, START_END);
	put_pair(b, CODE_ADDR + 0x400, CODE_ADDR + 0x410);
	buf_put_u8(b, START_LENGTH);
	buf_put_u64(b, CODE_ADDR + 0x500);
	buf_put_uleb(b, 0x20);
	buf_put_u8(b, BASE); /* dropped: what follows would else look good */
	buf_put_u64(b, 0);
	buf_put_u8(b, OFFSET_PAIR);
	buf_put_uleb(b, CODE_ADDR + 0x600);
	buf_put_uleb(b, CODE_ADDR + 0x610);
	buf_put_u8(b, BASE);
	buf_put_u64(b, CODE_ADDR + 0x700);
	buf_put_u8(b, OFFSET_PAIR);
	buf_put_uleb(b, 0);
	buf_put_uleb(b, 1);
	buf_put_u8(b, 0);
}

static void ranges_5(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;

	put_list_5(&m);
	CHECK_EQ(read_function(&m, 5, 0, &map), 0);
	CHECK_EQ(map.functions.n, 7);
	CHECK(map_function_is(&map, 0, "f", 0x10, 0x18));
	CHECK(map_function_is(&map, 1, "f", 0x110, 0x118));
	CHECK(map_function_is(&map, 2, "f", 0x200, 0x300));
	CHECK(map_function_is(&map, 3, "f", 0x300, 0x310));
	CHECK(map_function_is(&map, 4, "f", 0x400, 0x410));
	CHECK(map_function_is(&map, 5, "f", 0x500, 0x520));
	CHECK(map_function_is(&map, 6, "f", 0x700, 0x701));
	CHECK_STR(dwarf_debug_notes(m.debug), "");
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

/* A list of n ranges that n functions name: n * n ranges must not be made. */
static void shared_list(void)
{
	enum { N = 20000 };
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map = {0};
	struct buf *b = &m.of[MAKER_INFO];
	struct err err;
	size_t at;

	ABBREV(&m, 1, TAG_CU, 1, AT_LOW_PC, FORM_ADDRESS);
	ABBREV(&m, 2, TAG_FUNCTION, 0, AT_RANGES, FORM_OFFSET);
	buf_put_uleb(&m.of[MAKER_ABBREV], 0);
	at = dwarf_maker_unit(&m, 4, 0);
	buf_put_uleb(b, 1);
	buf_put_u64(b, CODE_ADDR);
	for (int i = 0; i < N; i++) {
		put_pair(&m.of[MAKER_RANGES], 2, 3);
		buf_put_uleb(b, 2);
		buf_put_u32(b, 0);
	}
	put_pair(&m.of[MAKER_RANGES], 0, 0);
	buf_put_u8(b, 0);
	dwarf_maker_length(b, at);
	CHECK_EQ(dwarf_maker_open(&m, NULL, &err), 0);
	CHECK_EQ(dwarf_unit_map_init(&map, m.debug, 0, &err), 0);
	CHECK(map.functions.n >= N && map.functions.n < 100 * N);
	CHECK(strstr(dwarf_debug_notes(m.debug), "ranges of the unit cannot be read"));
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

static void units_at_addresses(void)
{
	struct dwarf_maker m = {0};
	struct buf *b = &m.of[MAKER_INFO];
	const uint64_t addrs[] = {CODE_ADDR + 0x0f, CODE_ADDR + 0x25, CODE_ADDR + 0x40};
	bool wanted[3];
	struct err err;

	ABBREV(&m, 1, TAG_CU, 0, AT_LOW_PC, FORM_ADDRESS, 0x12, 0x0b);
	ABBREV(&m, 2, TAG_CU, 0, AT_NAME, FORM_TEXT);
	buf_put_uleb(&m.of[MAKER_ABBREV], 0);
	for (int i = 0; i < 3; i++) {
		size_t at = dwarf_maker_unit(&m, 4, 0);

		buf_put_uleb(b, i < 2 ? 1 : 2);
		if (i < 2) { /* [10, 20) has none, [20, 30) has one */
			buf_put_u64(b, CODE_ADDR + 0x10 + (uint64_t)i * 0x10);
			buf_put_u8(b, 0x10);
		} else {
			buf_put(b, "?", 2);
		}
		dwarf_maker_length(b, at);
	}
	CHECK_EQ(dwarf_maker_open(&m, NULL, &err), 0);
	dwarf_debug_units_at(m.debug, addrs, 3, wanted);
	CHECK(!wanted[0] && wanted[1] && wanted[2]);
	dwarf_debug_units_at(m.debug, addrs, 0, wanted);
	CHECK(!wanted[0] && !wanted[1] && wanted[2]);
	dwarf_maker_release(&m);
}

/* What is seen at each address, found the slow way. */
static uint32_t value_seen(const struct painter *p, const struct paint_range *ranges, uint64_t addr)
{
	uint32_t value = PAINT_NONE;

	for (size_t i = 0; i < p->ranges.n; i++)
		if (ranges[i].start <= addr && addr < ranges[i].end)
			value = ranges[i].value;
	return value;
}

static uint32_t value_painted(const struct painter *p, uint64_t addr)
{
	uint32_t value = PAINT_NONE;

	for (size_t i = 0; i < p->changes.n && p->changes.v[i].addr <= addr; i++)
		value = p->changes.v[i].value;
	return value;
}

static void paint(void)
{
	struct painter p = {0};
	uint32_t seed = 1;

	for (int round = 0; round < 200; round++) {
		struct paint_range *ranges;
		size_t n = (size_t)(round % 100) + 1;

		painter_reset(&p);
		for (size_t i = 0; i < n; i++) {
			uint64_t start, wide = round % 3 ? 0 : (uint64_t)1 << 40;

			seed = seed * 1664525 + 1013904223;
			start = seed >> 16 & 127;
			painter_add(&p, start + wide, start + wide + 1 + (seed >> 24 & 31),
				(uint32_t)i % 7);
			if (wide) /* far apart, so that all digits of the sort count */
				painter_add(&p, start, start + 3, (uint32_t)i % 5);
		}
		ranges = malloc(p.ranges.n * sizeof(*ranges));
		memcpy(ranges, p.ranges.v, p.ranges.n * sizeof(*ranges));
		painter_run(&p);
		for (uint64_t addr = 0; addr < 180; addr++) {
			uint64_t far = addr + ((uint64_t)1 << 40);

			CHECK_EQ(value_painted(&p, addr), value_seen(&p, ranges, addr));
			CHECK_EQ(value_painted(&p, far), value_seen(&p, ranges, far));
		}
		for (size_t i = 1; i < p.changes.n; i++)
			CHECK(p.changes.v[i - 1].addr < p.changes.v[i].addr &&
				p.changes.v[i - 1].value != p.changes.v[i].value);
		free(ranges);
	}
	painter_release(&p);
}

static const struct test tests[] = {
	{"a list of DWARF 4 is read with its bases", ranges_4},
	{"a list without end is noted", list_without_end},
	{"a list of DWARF 5 is read with all kinds of entries", ranges_5},
	{"a list that many entries name does not cost its length each time", shared_list},
	{"units are wanted for the addresses that their roots cover", units_at_addresses},
	{"of ranges laid over each other the last one is seen", paint},
};

int main(void)
{
	return RUN_TESTS(tests);
}
