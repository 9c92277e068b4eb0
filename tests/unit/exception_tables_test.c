/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <stdlib.h>

#include "check.h"
#include "insert/exception_tables.h"

/*
 * An object of this shape, its relocations made by hand:
 *	1 .text, 2 .eh_frame, 3 .gcc_except_table, 4 .text.unlikely, 5 .debug_frame
 * The symbols have the numbers of their sections; 6 is not defined; 7 is "middle", .text + 8.
 */
enum { TEXT = 1, EH = 2, LSDA = 3, COLD = 4, DEBUG = 5, OUTSIDE = 6, MIDDLE = 7 };
#define TEXT_BYTES 0x40

struct world {
	struct elf_object o;
	struct buf bytes[6];
	struct moved m;
	struct err err;
};

static void world_init(struct world *w)
{
	static const char *const names[] = {
		"", ".text", ".eh_frame", ".gcc_except_table", ".text.unlikely", ".debug_frame"};

	*w = (struct world){0};
	for (uint32_t i = 0; i < 6; i++) {
		struct object_section s = {
			.name = names[i], .type = i ? SHT_PROGBITS : SHT_NULL, .align = 8};

		if (i == TEXT || i == COLD)
			s.flags = SHF_ALLOC | SHF_EXECINSTR;
		vec_push(&w->o.sections, s);
		vec_push(&w->o.symbols,
			((struct object_symbol){.name = "", .type = STT_SECTION, .section = i}));
	}
	vec_push(&w->o.symbols, ((struct object_symbol){.name = "outside"}));
	vec_push(&w->o.symbols,
		((struct object_symbol){.name = "middle", .section = TEXT, .value = 8}));
	for (int i = 0; i < TEXT_BYTES; i++) {
		buf_put_u8(&w->bytes[TEXT], 0x90);
		buf_put_u8(&w->bytes[COLD], 0x90);
	}
	moved_init(&w->m, 6);
}

static void world_release(struct world *w)
{
	for (size_t i = 0; i < w->o.sections.n; i++) {
		buf_release(&w->o.sections.v[i].owned);
		vec_release(&w->o.sections.v[i].relocs);
		buf_release(&w->bytes[i]);
	}
	vec_release(&w->o.sections);
	vec_release(&w->o.symbols);
	moved_release(&w->m);
}

static void reloc(struct world *w, uint32_t section, uint32_t type, uint32_t symbol, int64_t addend)
{
	vec_push(&w->o.sections.v[section].relocs,
		((struct object_reloc){w->bytes[section].n, type, symbol, addend}));
}

/* Bytes as hexadecimal digits; blanks are for the eye. */
static void put(struct buf *b, const char *hex)
{
	unsigned byte;
	int n;

	while (sscanf(hex, " %2x%n", &byte, &n) == 1) {
		buf_put_u8(b, (uint8_t)byte);
		hex += n;
	}
}

static void world_close(struct world *w)
{
	for (size_t i = 1; i < w->o.sections.n; i++) {
		w->o.sections.v[i].data = buf_span(&w->bytes[i]);
		w->o.sections.v[i].size = w->bytes[i].n;
	}
}

static bool bytes_are(struct span have, const char *hex)
{
	struct buf want = {0};
	bool same;

	put(&want, hex);
	same = want.n == have.n && !memcmp(want.p, have.p, have.n);
	for (size_t i = 0; !same && i < have.n; i++)
		printf("%02x%s", have.p[i], i % 4 == 3 ? " " : "");
	if (!same)
		printf("\n");
	buf_release(&want);
	return same;
}

#define CHECK_SECTION(w, section, hex) CHECK(bytes_are((w)->o.sections.v[section].data, hex))

/* Augmentation "zR", pcrel sdata4: 24 bytes. With "zLR" it takes 24 too. */
#define CIE	 "14000000 00000000 01 7a5200 01 78 10 01 1b 0c0708 9001 0000"
#define CIE_LSDA "14000000 00000000 01 7a4c5200 01 78 10 02 1b 1b 0c0708 9001"

/* An FDE whose CIE lies at 0; `rest` is what follows the size of the range. */
static void put_fde(struct world *w, uint32_t text, int64_t start, uint32_t size, const char *rest)
{
	struct buf *b = &w->bytes[EH];
	size_t at = b->n;

	buf_put_u32(b, 0);
	buf_put_u32(b, (uint32_t)b->n);
	reloc(w, EH, R_X86_64_PC32, text, start);
	buf_put_u32(b, 0);
	buf_put_u32(b, size);
	put(b, rest);
	while (b->n % 4)
		buf_put_u8(b, 0);
	memcpy(b->p + at, &(uint32_t){(uint32_t)(b->n - at - 4)}, 4);
}

/* An FDE with an LSDA; needs CIE_LSDA. */
static void put_fde_lsda(struct world *w, uint32_t text, int64_t start, uint32_t size, int64_t lsda)
{
	struct buf *b = &w->bytes[EH];

	buf_put_u32(b, 20);
	buf_put_u32(b, (uint32_t)b->n);
	reloc(w, EH, R_X86_64_PC32, text, start);
	buf_put_u32(b, 0);
	buf_put_u32(b, size);
	buf_put_u8(b, 4);
	reloc(w, EH, R_X86_64_PC32, LSDA, lsda);
	buf_put_u32(b, 0);
	put(b, "000000");
}

/* `bytes` are put in front of the instruction at `old`; calls for a section come in rising order.
 */
static void grow(struct world *w, uint32_t section, uint64_t old, uint64_t bytes)
{
	uint64_t label = moved_label(&w->m, section, old);

	moved_add(&w->m, section, old, label, label + bytes);
}

static int move(struct world *w)
{
	w->err = (struct err){0};
	return exception_tables_move(&w->o, &w->m, &w->err);
}

static uint64_t reloc_at(const struct world *w, uint32_t section, size_t i)
{
	return w->o.sections.v[section].relocs.v[i].offset;
}

/* ---- frames ---- */

static void test_identity(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 0);
	put(&w.bytes[LSDA], "ff ff 01 04 01020300");
	world_close(&w);
	CHECK_EQ(move(&w), 0);
	CHECK(w.o.sections.v[EH].data.p == w.bytes[EH].p);
	CHECK(w.o.sections.v[LSDA].data.p == w.bytes[LSDA].p);
	CHECK(!moved_has(&w.m, EH) && !moved_has(&w.m, LSDA));
	world_release(&w);
}

static void test_moved_as_a_whole(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE);
	put_fde(&w, TEXT, 0x10, 0x20, "00 41 0e10 0204 0e18");
	world_close(&w);
	grow(&w, TEXT, 4, 1000);
	CHECK_EQ(move(&w), 0);
	CHECK(w.o.sections.v[EH].data.p == w.bytes[EH].p);
	CHECK(!moved_has(&w.m, EH));
	world_release(&w);
}

static void test_forms(void)
{
	static const struct {
		uint64_t bytes;
		const char *program; /* up to 8-byte alignment */
	} cases[] = {
		{61, "00 41 0e10 7f 0e18 00"},
		{62, "00 41 0e10 0240 0e18"},
		{253, "00 41 0e10 02ff 0e18"},
		{254, "00 41 0e10 030001 0e18 00000000000000"},
		{0xfffd, "00 41 0e10 03ffff 0e18 00000000000000"},
		{0xfffe, "00 41 0e10 0400000100 0e18 0000000000"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w, want;

		world_init(&w);
		world_init(&want);
		put(&w.bytes[EH], CIE);
		put_fde(&w, TEXT, 0, 0x20, "00 41 0e10 42 0e18");
		put(&want.bytes[EH], CIE);
		put_fde(&want, TEXT, 0, (uint32_t)(0x20 + cases[i].bytes), cases[i].program);
		world_close(&w);
		grow(&w, TEXT, 1, cases[i].bytes);
		CHECK_EQ(move(&w), 0);
		CHECK_EQ(w.o.sections.v[EH].size, want.bytes[EH].n);
		CHECK(!memcmp(w.o.sections.v[EH].data.p, want.bytes[EH].p, want.bytes[EH].n));
		world_release(&w);
		world_release(&want);
	}
}

/* 2 is written as DW_CFA_advance_loc4, which stays, for it stays 2; 3 is written so too and grows.
 */
static void test_forms_kept(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE);
	put_fde(&w, TEXT, 0, 0x20, "00 0402000000 0e10 0403000000 0e18 00");
	world_close(&w);
	grow(&w, TEXT, 4, 7);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, EH,
		CIE "1c000000 1c000000 00000000 27000000 00 0402000000 0e10 4a 0e18 0000000000");
	world_release(&w);
}

static void test_ranges(void)
{
	struct world w;

	/* Code inserted at the end of a range belongs to what follows it, code at its start to it.
	 */
	world_init(&w);
	put(&w.bytes[EH], CIE);
	put_fde(&w, TEXT, 0, 0x10, "00 000000");
	put_fde(&w, TEXT, 0x10, 0x10, "00 000000");
	put_fde(&w, MIDDLE, 0x18, 0x20, "00 000000");
	world_close(&w);
	grow(&w, TEXT, 0x10, 5);
	grow(&w, TEXT, 0x3f, 3);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, EH,
		CIE "10000000 1c000000 00000000 10000000 00000000"
		    "10000000 30000000 00000000 15000000 00000000"
		    "10000000 44000000 00000000 23000000 00000000");
	world_release(&w);
}

static void test_growing_entries(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE);
	put_fde(&w, TEXT, 0, 0x10, "00 42 0e10");
	put_fde(&w, TEXT, 0x10, 0x10, "00 41 0e10");
	put(&w.bytes[EH], "00000000");
	world_close(&w);
	grow(&w, TEXT, 1, 300);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, EH,
		CIE "14000000 1c000000 00000000 3c010000 00 032e01 0e10 0000"
		    "14000000 34000000 00000000 10000000 00 41 0e10 00000000 00000000");
	CHECK_EQ(reloc_at(&w, EH, 0), 0x20);
	CHECK_EQ(reloc_at(&w, EH, 1), 0x38);
	CHECK_EQ(moved_label(&w.m, EH, 0x2c), 0x30);
	CHECK_EQ(moved_label(&w.m, EH, 0x44), 0x4c);
	world_release(&w);
}

static void test_wide_length(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE);
	put(&w.bytes[EH], "ffffffff 1400000000000000 24000000");
	reloc(&w, EH, R_X86_64_PC32, TEXT, 0);
	put(&w.bytes[EH], "00000000 20000000 00 42 0e10 00000000");
	world_close(&w);
	grow(&w, TEXT, 1, 70000);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, EH,
		CIE "ffffffff 1400000000000000 24000000 00000000 90110100 00 0472110100 0e10");
	world_release(&w);
}

static void test_set_loc(void)
{
	struct world w;

	/* advance 3, rule; set_loc 8, rule; advance 2, rule */
	world_init(&w);
	put(&w.bytes[EH], CIE);
	put(&w.bytes[EH], "1c000000 1c000000");
	reloc(&w, EH, R_X86_64_PC32, TEXT, 0);
	put(&w.bytes[EH], "00000000 20000000 00 43 0e10 01");
	reloc(&w, EH, R_X86_64_PC32, MIDDLE, 0);
	put(&w.bytes[EH], "00000000 0e18 42 0e20 0000");
	world_close(&w);
	grow(&w, TEXT, 1, 300);
	grow(&w, TEXT, 9, 100);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, EH,
		CIE "24000000 1c000000 00000000 b0010000 00 032f01 0e10 01 00000000 0e18 0266 0e20"
		    "00000000000000");
	CHECK_EQ(reloc_at(&w, EH, 1), 0x18 + 16 + 1 + 3 + 2 + 1);
	world_release(&w);
}

/* Advances count units of 4 bytes here. */
static void test_code_alignment(void)
{
	for (uint64_t bytes = 2; bytes <= 4; bytes += 2) {
		struct world w;

		world_init(&w);
		put(&w.bytes[EH], "14000000 00000000 01 7a5200 04 78 10 01 1b 0c0708 9001 0000");
		put_fde(&w, TEXT, 0, 0x20, "00 42 0e10");
		world_close(&w);
		grow(&w, TEXT, 4, bytes);
		if (bytes == 4) {
			CHECK_EQ(move(&w), 0);
			CHECK_EQ(w.o.sections.v[EH].data.p[0x18 + 17], 0x43);
		} else {
			CHECK_EQ(move(&w), ERR_UNSUPPORTED);
			CHECK_STR(w.err.text,
				".eh_frame+0x29: a frame rule begins at a place that its "
				"alignment cannot say");
		}
		world_release(&w);
	}
}

static void test_debug_frame(void)
{
	for (int has_reloc = 0; has_reloc < 2; has_reloc++) {
		struct buf *b;
		struct world w;

		world_init(&w);
		b = &w.bytes[DEBUG];
		/* CIE at 0; FDE; CIE at 0x38; FDE of the second. */
		put(b, "14000000 ffffffff 01 00 01 78 10 0c0708 9001 000000000000");
		put(b, "1c000000");
		if (has_reloc)
			reloc(&w, DEBUG, R_X86_64_32, DEBUG, 0);
		put(b, "00000000");
		reloc(&w, DEBUG, R_X86_64_64, TEXT, 0);
		put(b, "0000000000000000 2000000000000000 42 0e10 42 0e18 0000");
		put(b, "14000000 ffffffff 01 00 01 78 10 0c0708 9001 000000000000");
		put(b, "1c000000");
		if (has_reloc)
			reloc(&w, DEBUG, R_X86_64_32, DEBUG, 0x38);
		put(b, has_reloc ? "00000000" : "38000000");
		reloc(&w, DEBUG, R_X86_64_64, COLD, 0);
		put(b, "0000000000000000 2000000000000000 42 0e10 42 0e18 0000");
		world_close(&w);
		grow(&w, TEXT, 1, 70000);
		CHECK_EQ(move(&w), 0);
		CHECK_EQ(w.o.sections.v[DEBUG].size, 0x70 + 8);
		CHECK(bytes_are(span_sub(w.o.sections.v[DEBUG].data, 0x18, 0x28),
			"24000000 00000000 0000000000000000 9011010000000000 0472110100 0e10 42"
			"0e18 000000000000"));
		CHECK(bytes_are(span_sub(w.o.sections.v[DEBUG].data, 0x58, 8),
			has_reloc ? "1c000000 00000000" : "1c000000 40000000"));
		CHECK_EQ(moved_label(&w.m, DEBUG, 0x38), 0x40);
		CHECK_EQ(reloc_at(&w, DEBUG, has_reloc ? 3 : 1), 0x60);
		world_release(&w);
	}
}

static void test_two_sections(void)
{
	struct world w;

	/* Section 5 plays a second .eh_frame: its only FDE is about code that has not moved. */
	world_init(&w);
	w.o.sections.v[DEBUG].name = ".eh_frame";
	w.o.sections.v[DEBUG].type = SHT_X86_64_UNWIND;
	put(&w.bytes[EH], CIE);
	put_fde(&w, TEXT, 0, 0x20, "00 42 0e10");
	put(&w.bytes[DEBUG], CIE "10000000 1c000000");
	reloc(&w, DEBUG, R_X86_64_PC32, COLD, 0x10);
	put(&w.bytes[DEBUG], "00000000 10000000 00 42 0e10");
	world_close(&w);
	grow(&w, TEXT, 1, 2);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, EH, CIE "10000000 1c000000 00000000 22000000 00 44 0e10");
	CHECK(w.o.sections.v[DEBUG].data.p == w.bytes[DEBUG].p);
	world_release(&w);
}

/* FDEs of other objects' code, and of code that a linker threw away, are nobody's business. */
static void test_not_here(void)
{
	struct exception_tables t;
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE);
	put_fde(&w, OUTSIDE, 0, 0x20, "00 3f 0e10");
	put(&w.bytes[EH], "10000000 30000000 00000000 10000000 00 3f 0e10");
	put_fde(&w, TEXT, 8, 0x20, "00 42 0e10");
	world_close(&w);
	CHECK_EQ(exception_tables_read(&t, &w.o, &w.err), 0);
	CHECK_EQ(t.ranges.n, 1);
	CHECK_EQ(t.ranges.v[0].section, TEXT);
	CHECK_EQ(t.ranges.v[0].start, 8);
	CHECK_EQ(t.ranges.v[0].size, 0x20);
	exception_tables_release(&t);
	grow(&w, TEXT, 9, 1);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, EH,
		CIE "10000000 1c000000 00000000 20000000 00 3f 0e10"
		    "10000000 30000000 00000000 10000000 00 3f 0e10"
		    "10000000 44000000 00000000 21000000 00 43 0e10");
	world_release(&w);
}

/* ---- LSDAs ---- */

/* Two call sites, the first without a landing pad, two types; the table begins at 4. */
#define LSDA_HEAD "cccccccc ff 9b 19 01 08"
static void put_lsda(struct world *w)
{
	put(&w->bytes[LSDA], LSDA_HEAD "00040000 08041003 0200017d 000000");
	reloc(w, LSDA, R_X86_64_PC32, OUTSIDE, 0);
	put(&w->bytes[LSDA], "00000000");
	reloc(w, LSDA, R_X86_64_PC32, OUTSIDE, 0);
	put(&w->bytes[LSDA], "00000000");
}

static void test_call_sites(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 4);
	put_lsda(&w);
	world_close(&w);
	CHECK_EQ(w.bytes[LSDA].n, 32);
	grow(&w, TEXT, 0, 1);
	grow(&w, TEXT, 8, 1);
	grow(&w, TEXT, 12, 10);
	CHECK_EQ(move(&w), 0);
	/* [0, 4) and [8, 12), landing pad at 16. What is put in front of 12 is behind the range. */
	CHECK_SECTION(&w, LSDA, LSDA_HEAD "00050000 09051c03 0200017d 000000 00000000 00000000");
	CHECK(!moved_has(&w.m, LSDA));
	world_release(&w);
}

static void test_call_sites_grow(void)
{
	struct exception_tables t;
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 4);
	put_lsda(&w);
	world_close(&w);
	CHECK_EQ(exception_tables_read(&t, &w.o, &w.err), 0);
	CHECK_EQ(t.landing_pads.n, 1);
	CHECK_EQ(t.landing_pads.v[0].section, TEXT);
	CHECK_EQ(t.landing_pads.v[0].offset, 16);
	exception_tables_release(&t);
	grow(&w, TEXT, 4, 300);
	CHECK_EQ(move(&w), 0);
	/* Two numbers take a byte more each; for the types to stay aligned, the length of the call
	 * sites takes two more. */
	CHECK_SECTION(&w, LSDA,
		"cccccccc ff 9b 1d 01 8a8000 00040000 b40204bc0203 0200017d 000000 00000000 00000000");
	CHECK_EQ(reloc_at(&w, LSDA, 0), 28);
	CHECK_EQ(reloc_at(&w, LSDA, 1), 32);
	CHECK_EQ(moved_label(&w.m, LSDA, 4), 4);
	CHECK_EQ(moved_label(&w.m, LSDA, 32), 36);
	world_release(&w);
}

/* The LSDA behind one that grows moves, and the FDE's relocation can follow. */
static void test_lsda_behind(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 0);
	put_fde_lsda(&w, TEXT, 0x20, 0x20, 8);
	put(&w.bytes[LSDA], "ff ff 01 04 01020300");
	put(&w.bytes[LSDA], "ff 03 0d 01 04 01020301 0100 00");
	reloc(&w, LSDA, R_X86_64_32, OUTSIDE, 0);
	put(&w.bytes[LSDA], "00000000");
	world_close(&w);
	grow(&w, TEXT, 1, 200);
	CHECK_EQ(move(&w), 0);
	/* The second is as it was, 4 bytes further for the alignment of its types. */
	CHECK_SECTION(
		&w, LSDA, "ff ff 01 06 01ca01cb0100 0000 ff 03 0d 01 04 01020301 0100 00 00000000");
	CHECK_EQ(moved_label(&w.m, LSDA, 8), 12);
	CHECK_EQ(reloc_at(&w, LSDA, 0), 24);
	world_release(&w);
}

static void test_call_site_formats(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 0);
	put(&w.bytes[LSDA], "ff ff 03 0d 01000000 02000000 03000000 00");
	world_close(&w);
	grow(&w, TEXT, 2, 70000);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, LSDA, "ff ff 03 0d 01000000 72110100 73110100 00");
	world_release(&w);

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 0);
	put(&w.bytes[LSDA], "ff ff 02 07 0100 0200 0300 00");
	world_close(&w);
	grow(&w, TEXT, 2, 70000);
	CHECK_EQ(move(&w), ERR_LIMIT);
	CHECK_STR(w.err.text,
		".gcc_except_table+0x4: a function has become too long for its call-site table");
	/* Nothing has been changed, not the frames either. */
	CHECK(w.o.sections.v[EH].data.p == w.bytes[EH].p);
	CHECK(!moved_has(&w.m, EH) && !moved_has(&w.m, LSDA));
	world_release(&w);
}

/* Landing pads in another section: they count from its base, which has a relocation. */
static void test_pad_base(void)
{
	struct exception_tables t;
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 0);
	put(&w.bytes[LSDA], "10");
	reloc(&w, LSDA, R_X86_64_PC64, COLD, 4);
	put(&w.bytes[LSDA], "0000000000000000 ff 01 08 01020300 03020100");
	world_close(&w);
	CHECK_EQ(exception_tables_read(&t, &w.o, &w.err), 0);
	CHECK_EQ(t.landing_pads.n, 2);
	CHECK_EQ(t.landing_pads.v[0].section, COLD);
	CHECK_EQ(t.landing_pads.v[0].offset, 5); /* the second call site's */
	CHECK_EQ(t.landing_pads.v[1].offset, 7);
	exception_tables_release(&t);
	grow(&w, TEXT, 2, 5);
	grow(&w, COLD, 1, 100); /* moves the base, too */
	grow(&w, COLD, 6, 20);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, LSDA, "10 0000000000000000 ff 01 08 01071700 08020100");
	world_release(&w);
}

/*
 * A function in two sections as clang writes it: two LSDAs, the call sites of the first are said to
 * reach to the actions behind the second, and both mean the same types.
 */
static void test_group(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 0);
	put_fde_lsda(&w, COLD, 0, 0x20, 12);
	put(&w.bytes[LSDA], "ff 03 1d 01 14 01020301 000000");
	put(&w.bytes[LSDA], "ff 03 11 01 08 01020300 03020300 0100 00");
	reloc(&w, LSDA, R_X86_64_32, OUTSIDE, 0);
	put(&w.bytes[LSDA], "00000000");
	world_close(&w);
	grow(&w, TEXT, 2, 200);
	grow(&w, COLD, 1, 200);
	CHECK_EQ(move(&w), 0);
	CHECK_SECTION(&w, LSDA,
		"ff 03 21 01 18 01ca01cb0101 00"
		"ff 03 15 01 0c 01ca01cb0100 cb0102cb0100 0100 00 00000000");
	CHECK_EQ(moved_label(&w.m, LSDA, 12), 12);
	CHECK_EQ(reloc_at(&w, LSDA, 0), 32);
	world_release(&w);
}

/* With one byte for the distance to the types it is 128, with two it is 127: it takes two. */
static void test_no_smallest_form(void)
{
	struct buf want = {0};
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 1);
	put(&w.bytes[LSDA], "cc ff 03 78 01 70");
	put(&want, "cc ff 03 ff00 01 f600");
	for (int i = 0; i < 25; i++) {
		put(&w.bytes[LSDA], "00010000");
		put(&want, "00010000");
	}
	put(&w.bytes[LSDA], "01020301 01020301 01020301 0100 00000000");
	put(&want, "01ca01cb0101 01ca01cb0101 01ca01cb0101 0100 00000000");
	world_close(&w);
	grow(&w, TEXT, 2, 200);
	CHECK_EQ(move(&w), 0);
	CHECK_EQ(w.o.sections.v[LSDA].size, want.n);
	CHECK(!memcmp(w.o.sections.v[LSDA].data.p, want.p, want.n));
	buf_release(&want);
	world_release(&w);
}

static void test_landing_pads(void)
{
	struct exception_tables t;
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, COLD, 0, 0x20, 0);
	put_fde_lsda(&w, TEXT, 8, 0x20, 12);
	put(&w.bytes[LSDA], "ff ff 01 08 01020300 03020900");
	put(&w.bytes[LSDA], "ff ff 01 0c 01020900 03020500 05020900");
	world_close(&w);
	CHECK_EQ(exception_tables_read(&t, &w.o, &w.err), 0);
	CHECK_EQ(t.ranges.n, 2);
	CHECK_EQ(t.ranges.v[0].section, COLD);
	CHECK_EQ(t.ranges.v[1].section, TEXT);
	CHECK_EQ(t.landing_pads.n, 4);
	CHECK_EQ(t.landing_pads.v[0].offset, 13);
	CHECK_EQ(t.landing_pads.v[1].offset, 17);
	CHECK_EQ(t.landing_pads.v[1].section, TEXT);
	CHECK_EQ(t.landing_pads.v[2].section, COLD);
	CHECK_EQ(t.landing_pads.v[2].offset, 3);
	CHECK_EQ(t.landing_pads.v[3].offset, 9);
	exception_tables_release(&t);
	world_release(&w);
}

/* ---- what is refused ---- */

static void check_refused(struct world *w, const char *sentence)
{
	struct exception_tables t;

	world_close(w);
	CHECK(exception_tables_read(&t, &w->o, &w->err) < 0);
	CHECK_STR(w->err.text, sentence);
	grow(w, TEXT, 1, 5);
	CHECK(move(w) < 0);
	CHECK_STR(w->err.text, sentence);
	CHECK(w->o.sections.v[EH].data.p == w->bytes[EH].p && !moved_has(&w->m, EH));
}

static void test_refused_frames(void)
{
	static const struct {
		const char *bytes, *sentence;
	} cases[] = {
		{CIE "14000000 1c000000 00000000 10000000 00 420e10",
			".eh_frame+0x18: an entry leaves the section"},
		{CIE "02000000 1c00", ".eh_frame+0x18: an entry is too short"},
		{CIE "04000000 1c000000", ".eh_frame+0x20: an FDE is too short"},
		{"14000000 00000000 02 7a5200 01 78 10 01 1b 0c0708 9001 0000",
			".eh_frame+0x0: the version of a CIE is not known"},
		{"14000000 00000000 01 7a5800 01 78 10 01 1b 0c0708 9001 0000",
			".eh_frame+0x0: the augmentation of a CIE is not known"},
		{"14000000 00000000 01 7a5200 00 78 10 01 1b 0c0708 9001 0000",
			".eh_frame+0x0: a CIE is damaged"},
		{"14000000 00000000 01 7a5200 01 78 10 01 01 0c0708 9001 0000",
			".eh_frame+0x0: addresses are written in a way that is not known"},
		{CIE "10000000 18000000 00000000 10000000 00 420e10",
			".eh_frame+0x18: an FDE names a CIE that is not there"},
		{CIE "10000000 1c000000 00000000 10000000 00 3f0e10",
			".eh_frame+0x29: a frame instruction that is not known"},
		{CIE "10000000 1c000000 00000000 10000000 00 0e8080",
			".eh_frame+0x29: a frame instruction that is not known"},
		{CIE "10000000 1c000000 00000000 10000000 00 510e10",
			".eh_frame+0x29: a frame program leaves its range"},
		{CIE "10000000 1c000000 00000000 41000000 00 420e10",
			".eh_frame+0x20: a range leaves its section"},
		{CIE "10000000 1c000000 00000000 10000000 04 420e10",
			".eh_frame+0x24: the augmentation of an FDE leaves it"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		world_init(&w);
		put(&w.bytes[EH], cases[i].bytes);
		vec_push(&w.o.sections.v[EH].relocs,
			((struct object_reloc){0x20, R_X86_64_PC32, TEXT, 0}));
		check_refused(&w, cases[i].sentence);
		world_release(&w);
	}
}

static void test_refused_relocations(void)
{
	static const struct {
		uint64_t at;
		uint32_t type;
		const char *sentence;
	} cases[] = {
		{0x1c, R_X86_64_PC32,
			".eh_frame+0x1c: a relocation where the distance to a CIE is expected"},
		{0x20, R_X86_64_64,
			".eh_frame+0x20: the start of a range has a relocation that is not known"},
		{0x24, R_X86_64_PC32, ".eh_frame+0x24: the length of a range has a relocation"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		world_init(&w);
		put(&w.bytes[EH], CIE "10000000 1c000000 00000000 10000000 00 420e10");
		if (cases[i].at > 0x20)
			vec_push(&w.o.sections.v[EH].relocs,
				((struct object_reloc){0x20, R_X86_64_PC32, TEXT, 0}));
		vec_push(&w.o.sections.v[EH].relocs,
			((struct object_reloc){cases[i].at, cases[i].type, TEXT, 0}));
		check_refused(&w, cases[i].sentence);
		world_release(&w);
	}
}

static void test_refused_lsdas(void)
{
	static const struct {
		const char *bytes, *sentence;
	} cases[] = {
		{"", ".gcc_except_table+0x0: an LSDA outside its section"},
		{"ff ff", ".gcc_except_table+0x0: the call sites leave the section"},
		{"ff ff 01 05 01020300", ".gcc_except_table+0x0: the call sites leave the section"},
		{"ff ff 01 03 010203", ".gcc_except_table+0x4: a call site is damaged"},
		{"ff ff 1b 04 01020300",
			".gcc_except_table+0x0: call sites are written in a way that is not known"},
		{"ff ff 01 04 1f020300", ".gcc_except_table+0x4: a call site outside its function"},
		{"ff ff 01 04 01024000",
			".gcc_except_table+0x4: a landing pad outside its section"},
		{"ff 03 07 01 04 01020300", ".gcc_except_table+0x0: the types leave the section"},
		{"ff 03 03 01 04 01020300",
			".gcc_except_table+0x0: the types begin within the call sites"},
		{"03 00000000 ff 01 00",
			".gcc_except_table+0x0: the base of the landing pads is not known"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		world_init(&w);
		put(&w.bytes[EH], CIE_LSDA);
		put_fde_lsda(&w, TEXT, 0, 0x20, 0);
		put(&w.bytes[LSDA], cases[i].bytes);
		check_refused(&w, cases[i].sentence);
		world_release(&w);
	}
}

static void test_refused_overlaps(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x10, 0);
	put_fde_lsda(&w, TEXT, 0x10, 0x10, 0);
	put(&w.bytes[LSDA], "ff ff 01 04 01020300");
	check_refused(&w, ".gcc_except_table+0x0: an LSDA of two functions");
	world_release(&w);

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x10, 0);
	put_fde_lsda(&w, TEXT, 0x10, 0x10, 8);
	put(&w.bytes[LSDA], "ff ff 01 06 01020300 ff ff 01 00");
	check_refused(
		&w, ".gcc_except_table+0x0: the call sites reach into another function's tables");
	world_release(&w);

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x10, 0);
	put_fde_lsda(&w, TEXT, 0x10, 0x10, 12);
	put(&w.bytes[LSDA], "ff 03 0b 01 04 01020300 000000 ff ff 01 00");
	check_refused(&w, ".gcc_except_table+0x0: the types reach into another function's tables");
	world_release(&w);

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x10, 0);
	w.o.sections.v[LSDA].flags = SHF_ALLOC | SHF_EXECINSTR;
	put(&w.bytes[LSDA], "ff ff 01 04 01020300");
	check_refused(&w, ".gcc_except_table: LSDAs among other things");
	world_release(&w);
}

/* A call site with a relocation is found when it would have to change. */
static void test_refused_site_relocation(void)
{
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE_LSDA);
	put_fde_lsda(&w, TEXT, 0, 0x20, 0);
	put(&w.bytes[LSDA], "ff ff 03 0d");
	reloc(&w, LSDA, R_X86_64_32, TEXT, 1);
	put(&w.bytes[LSDA], "00000000 02000000 03000000 00");
	world_close(&w);
	grow(&w, TEXT, 1, 5);
	CHECK_EQ(move(&w), ERR_UNSUPPORTED);
	CHECK_STR(w.err.text, ".gcc_except_table+0x4: a relocation where a length "
			      "or distance is expected");
	world_release(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"tables of code that has not moved stay as they are", test_identity},
		{"a function that moves as a whole keeps its FDE", test_moved_as_a_whole},
		{"an advance takes the smallest form that holds it", test_forms},
		{"an advance that stays the same keeps its form", test_forms_kept},
		{"ranges end where the label of their end went", test_ranges},
		{"an FDE that grows moves what is behind it, and a terminator stays last",
			test_growing_entries},
		{"a 64-bit length is written anew", test_wide_length},
		{"DW_CFA_set_loc keeps its relocation", test_set_loc},
		{"advances count units of the code alignment", test_code_alignment},
		{".debug_frame moves as .eh_frame does, its CIEs named by offset",
			test_debug_frame},
		{"each of several .eh_frame sections moves for itself", test_two_sections},
		{"FDEs of code that is not in the object are left alone", test_not_here},
		{"call sites and landing pads follow labels", test_call_sites},
		{"types stay aligned when call sites take more bytes", test_call_sites_grow},
		{"an LSDA behind one that grows moves", test_lsda_behind},
		{"call sites of fixed width are written anew or refused", test_call_site_formats},
		{"landing pads count from their base", test_pad_base},
		{"LSDAs that share actions and types are laid out together", test_group},
		{"a distance that fits no form exactly takes the larger one",
			test_no_smallest_form},
		{"landing pads are sorted, each once", test_landing_pads},
		{"frames that are not understood are refused with the place", test_refused_frames},
		{"relocations where none belong are refused", test_refused_relocations},
		{"LSDAs that are not understood are refused with the place", test_refused_lsdas},
		{"LSDAs that overlap are refused", test_refused_overlaps},
		{"call sites with relocations are refused when they move",
			test_refused_site_relocation},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
