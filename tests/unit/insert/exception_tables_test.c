/* SPDX-License-Identifier: MIT */
/* Frame sections: .eh_frame and .debug_frame. */
#include "exception_world.h"

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

/* FDEs of other objects' code, of what is no code, and of code that a linker threw away. */
static void test_not_here(void)
{
	struct exception_tables t;
	struct world w;

	world_init(&w);
	put(&w.bytes[EH], CIE);
	put_fde(&w, OUTSIDE, 0, 0x20, "00 3f 0e10");
	put_fde(&w, EH, 0, 0x20, "00 41 0e10");
	put(&w.bytes[EH], "10000000 44000000 00000000 10000000 00 3f 0e10");
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
		    "10000000 30000000 00000000 20000000 00 41 0e10"
		    "10000000 44000000 00000000 10000000 00 3f 0e10"
		    "10000000 58000000 00000000 21000000 00 43 0e10");
	world_release(&w);
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

/* A function of 32 bytes whose frame program is `before`, and what is wanted of it: `n` bytes and `after`. */
static void open_pair(
	struct world *w, struct world *want, const char *before, uint32_t n, const char *after)
{
	world_init(w);
	world_init(want);
	put(&w->bytes[EH], CIE);
	put_fde(w, TEXT, 0, 0x20, before);
	put(&want->bytes[EH], CIE);
	put_fde(want, TEXT, 0, n, after);
	world_close(w);
}

static void check_pair(struct world *w, struct world *want)
{
	CHECK_EQ(move(w), 0);
	CHECK(w->o.sections.v[EH].data.n >= want->bytes[EH].n);
	/* behind the length, which has the padding in it */
	CHECK(!memcmp(
		w->o.sections.v[EH].data.p + 28, want->bytes[EH].p + 28, want->bytes[EH].n - 28));
	world_release(w);
	world_release(want);
}

/* Five bytes in front of the return at `at`: a call. */
static void test_leaves(void)
{
	static const struct {
		uint64_t at;
		const char *before, *after;
	} cases[] = {
		/* the rule is right again behind the return */
		{0x14, "00 41 0e10 8602 43 0d06 50 0c0708",
			"00 41 0e10 8602 43 0d06 50 0c0708 0a 0806 46 0b"},
		/* at the end of the range there is no behind */
		{0x1f, "00 41 0e10 8602 43 0d06 50 0c0708",
			"00 41 0e10 8602 43 0d06 50 0c0708 4b 0806"},
		/* the program itself says what holds behind it */
		{0x14, "00 41 0e10 8602 43 0d06 0a 50 0c0708 41 0b 42 0e18",
			"00 41 0e10 8602 43 0d06 0a 50 0c0708 0806 46 0b 42 0e18"},
		/* two registers, and the rules go on changing */
		{0x14, "00 42 0e18 8302 8603 52 0e08 44 0e10",
			"00 42 0e18 8302 8603 52 0e08 0a 0803 0806 46 0b 43 0e10"},
		/* nothing is below the stack pointer: frame by rbp; slot above; another register */
		{0x14, "00 41 0e10 8602 43 0d06", "00 41 0e10 8602 43 0d06"},
		{0x14, "00 41 0e10 8602", "00 41 0e10 8602"},
		{0x14, "00 41 0e10 8a02 53 0e08", "00 41 0e10 8a02 53 0e08"},
		/* it says so itself */
		{0x14, "00 41 0e10 8602 53 c6 0e08", "00 41 0e10 8602 53 c6 0e08"},
		/* an expression that is relative to a frame that is gone */
		{0x14, "00 41 10060276 00 53 0c0708", "00 41 10060276 00 53 0c0708 0a 0806 46 0b"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w, want;

		open_pair(&w, &want, cases[i].before, 0x25, cases[i].after);
		grow(&w, TEXT, cases[i].at, 5);
		moved_add_leave(&w.m, TEXT, cases[i].at, cases[i].at + 1);
		check_pair(&w, &want);
	}
}

/* Forty bytes in front of the instruction at 0x14, in which rsp is 136 bytes lower and rax at the stack pointer, or rax
 * in r9. */
static void test_values(void)
{
	static const struct moved_value rsp = {0x14, 0x1c, 0x3c, 7, 7, 136, MOVED_SUM};
	static const struct moved_value on_stack = {0x14, 0x20, 0x34, 0, 7, 0, MOVED_AT_ADDRESS};
	static const struct moved_value in_r9 = {0x14, 0x17, 0x3c, 0, 9, 0, MOVED_SUM};
	static const struct {
		const struct moved_value *values[2];
		const char *before, *after;
	} cases[] = {
		/* by rsp: an offset that is larger for a while */
		{{&rsp, &on_stack}, "00 41 0e10 8602", "00 41 0e10 8602 5b 0c079801 60 0c0710"},
		/* and what comes behind it is in its place */
		{{&rsp, &on_stack}, "00 41 0e10 58 0e18",
			"00 41 0e10 5b 0c079801 60 0c0710 45 0e18"},
		/* by another register: nothing */
		{{&rsp, &on_stack}, "00 41 0e10 8602 43 0d06", "00 41 0e10 8602 43 0d06"},
		/* by rax: the word that it was saved in */
		{{&rsp, &on_stack}, "00 41 0c0010", "00 41 0c0010 5f 0a 0f05 7700062310 54 0b"},
		{{&in_r9}, "00 41 0c0010", "00 41 0c0010 56 0c0910 65 0c0010"},
		{{&in_r9}, "00 41 0e10", "00 41 0e10"},
		/* by an expression: rsp + 8, what is there, + 8; and one of rbp */
		{{&rsp, &on_stack}, "00 41 0f05 7708062308",
			"00 41 0f05 7708062308 5b 0a 0f06 779001062308 60 0b"},
		{{&rsp, &on_stack}, "00 41 0f05 7608062308", "00 41 0f05 7608062308"},
		{{&rsp, &on_stack}, "00 41 0f03 707806",
			"00 41 0f03 707806 5f 0a 0f07 77000611782206 54 0b"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w, want;

		open_pair(&w, &want, cases[i].before, 0x48, cases[i].after);
		grow(&w, TEXT, 0x14, 40);
		for (size_t k = 0; k < 2 && cases[i].values[k]; k++)
			moved_add_value(&w.m, TEXT, cases[i].values[k]);
		check_pair(&w, &want);
	}
}

/* Jumps within an expression would lead elsewhere; a register that the program has no more use for is overwritten. */
static void test_value_unknown(void)
{
	static const struct moved_value rsp = {0x14, 0x1c, 0x3c, 7, 7, 136, MOVED_SUM};
	static const struct moved_value rax = {0x14, 0x14, 0x3c, 0, 0, 0, MOVED_NOWHERE};
	static const struct {
		const struct moved_value *value;
		const char *program;
	} cases[] = {{&rsp, "00 41 0f05 7708 2f0000"}, {&rax, "00 41 0c0010"},
		{&rax, "00 41 0f03 707806"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		world_init(&w);
		put(&w.bytes[EH], CIE);
		put_fde(&w, TEXT, 0, 0x20, cases[i].program);
		world_close(&w);
		grow(&w, TEXT, 0x14, 40);
		moved_add_value(&w.m, TEXT, cases[i].value);
		CHECK(move(&w) < 0);
		CHECK(strstr(w.err.text, "how the frame is found there is not understood"));
		world_release(&w);
	}
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
		{"registers are in their places where a function is left by a call", test_leaves},
		{"the frame is found where inserted code keeps rsp or rax elsewhere", test_values},
		{"a frame that could not be found there is refused", test_value_unknown},
		{".debug_frame moves as .eh_frame does, its CIEs named by offset",
			test_debug_frame},
		{"each of several .eh_frame sections moves for itself", test_two_sections},
		{"FDEs of code that is not in the object are left alone", test_not_here},
		{"frames that are not understood are refused with the place", test_refused_frames},
		{"relocations where none belong are refused", test_refused_relocations},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
