/* SPDX-License-Identifier: MIT */
/*
 * The input is a line table behind a byte: 0 for 64-bit, 1 for 32-bit addresses. It is the table of
 * a unit that has nothing else.
 */
#include <stdlib.h>

#include "../unit/dwarf_maker.h"

static const uint8_t abbrevs[] = {
	1, 0x11, 0, 0x10, 0x17, 0x1b, 0x08, 0, 0, 0}; /* stmt_list, comp_dir */

static void put_unit(struct buf *b, bool is_32)
{
	buf_put_u32(b, 2 + 4 + 1 + 1 + 4 + 5);
	buf_put_u16(b, 4);
	buf_put_u32(b, 0);
	buf_put_u8(b, is_32 ? 4 : 8);
	buf_put_u8(b, 1);
	buf_put_u32(b, 0);
	buf_put(b, "/dir", 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dwarf_maker m = {.is_32 = n && data[0] & 1};
	struct dwarf_unit_map map = {0};
	struct err err;

	if (n < 2)
		return 0;
	put_unit(&m.of[MAKER_INFO], m.is_32);
	buf_put(&m.of[MAKER_ABBREV], abbrevs, sizeof(abbrevs));
	buf_put(&m.of[MAKER_STR], "a\0b.c\0", 7);
	buf_put(&m.of[MAKER_LINE_STR], "/d\0c.c\0", 8);
	buf_put(&m.of[MAKER_LINE], data + 1, n - 1);
	if (dwarf_maker_open(&m, NULL, &err) < 0 || dwarf_unit_map_init(&map, m.debug, 0, &err) < 0)
		abort();
	for (size_t i = 0; i < map.rows.n; i++) {
		const struct dwarf_row *r = &map.rows.v[i];

		if ((i && r[-1].addr >= r->addr) || r->file >= map.files.n || r->addr < CODE_ADDR ||
			r->addr > CODE_ADDR + CODE_BYTES)
			abort();
	}
	if (map.rows.n && !map.rows.v[map.rows.n - 1].is_hole)
		abort();
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
	return 0;
}
