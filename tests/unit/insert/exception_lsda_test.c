/* SPDX-License-Identifier: MIT */
/* Tables of call sites. */
#include "exception_world.h"

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
		{"call sites and landing pads follow labels", test_call_sites},
		{"types stay aligned when call sites take more bytes", test_call_sites_grow},
		{"an LSDA behind one that grows moves", test_lsda_behind},
		{"call sites of fixed width are written anew or refused", test_call_site_formats},
		{"landing pads count from their base", test_pad_base},
		{"LSDAs that share actions and types are laid out together", test_group},
		{"a distance that fits no form exactly takes the larger one",
			test_no_smallest_form},
		{"landing pads are sorted, each once", test_landing_pads},
		{"LSDAs that are not understood are refused with the place", test_refused_lsdas},
		{"LSDAs that overlap are refused", test_refused_overlaps},
		{"call sites with relocations are refused when they move",
			test_refused_site_relocation},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
