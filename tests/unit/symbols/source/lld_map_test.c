/* SPDX-License-Identifier: MIT */
/* Maps of lld, line by line; whole real ones are in tests/oracle/text_sources.sh. */
#include "check.h"
#include "symbol_list.h"

#define HEAD "             VMA              LMA     Size Align Out     In      Symbol\n"

static void test_levels(void)
{
	CHECK_LIST(lld_map_read,
		HEAD
		"            1040             1040      12a    32 .rodata\n"
		"            1040             1040        4     4         <internal>:(.rodata)\n"
		"            1040             1040        4     1                 constant\n"
		"            2580             2580      d9f    16 .text\n"
		"            2580             2580       22    16         dir/crt1.o:(.text)\n"
		"            2580             2580       22     1                 _start\n"
		"            25b0             25b0       b9    16         lib.a(x.o):(.text)\n"
		"            25b0             25b0        0     1                 no_size\n"
		"            25e0             25e0       10     1                 (anonymous namespace)::f(int, char const*)\n"
		"            25f0             25f0        0     1                 .Llocal\n"
		"            25f0             25f0        0     1                 $d\n"
		"            2700             2700       10     1                 outside\n"
		"            3350             3350      190    16 .plt\n"
		"            3350             3350      190    16         <internal>:(.plt)\n"
		"            4000             4000       10    16 own\n"
		"            4000             4000       10    16         a.o:(own)\n"
		"            4000             4000       10     1                 in_own\n"
		"               0                0       20     1 .comment\n"
		"               0                0       20     1         <internal>:(.text)\n"
		"               0                0       20     1                 nothing\n",
		"2580 22 22 g _start\n"
		"25b0 0 b9 g ?no_size\n"
		"25e0 10 89 g (anonymous namespace)::f(int, char const*)\n"
		"4000 10 10 g in_own\n",
		0);
}

static void test_linkage_names(void)
{
	CHECK_LIST(lld_map_read,
		HEAD
		"            2580             2580      100    16 .text\n"
		"            2580             2580        b     2         a.o:(.text._ZN1D1fEv)\n"
		"            2580             2580        b     1                 D::f()\n"
		"            2590             2590        8     2         a.o:(.text._ZN1D1gEi)\n"
		"            2590             2590        8     1                 D::g(int) as another demangler has it\n"
		"            25a0             25a0        8     2         a.o:(.text._ZN1D1hEv)\n"
		"            25a0             25a0        8     1                 _ZN1D1hEv\n",
		"2580 b b g _ZN1D1fEv\n"
		"2590 8 8 g _ZN1D1gEi\n"
		"2590 8 8 g D::g(int) as another demangler has it\n"
		"25a0 8 8 g _ZN1D1hEv\n",
		0);
}

static void test_scripts_and_old_maps(void)
{
	CHECK_LIST(lld_map_read,
		HEAD
		"               0                0     1000     1 . = 0x1000\n"
		"            1000             1000       20    16 .text\n"
		"            1000             1000        0     1         _stext = .\n"
		"            1000             1000       20    16         a:(b).o:(.text)\n"
		"            1000             1000       10     1                 f\n"
		"            1010             1010        4     1         LONG ( 1 )\n"
		"            1010             1010        4     1                 in_no_section\n",
		"1000 10 20 g f\n", 0);
	CHECK_LIST(lld_map_read,
		" Address     Size Align Out     In      Symbol\n"
		"    1000       20    16 .text\n"
		"    1000       20    16         a.o:(.text)\n"
		"    1000       10     1                 f\n",
		"1000 10 20 g f\n", 0);
}

static void test_refusals(void)
{
	CHECK_REFUSED(lld_map_read, "", ERR_FORMAT, "lld");
	CHECK_REFUSED(lld_map_read, "VMA LMA Size\n", ERR_FORMAT, "lld");
	CHECK_REFUSED(lld_map_read, "VMA Size Align Out In Symbol\n", ERR_FORMAT, "lld");
	CHECK_LIST(lld_map_read,
		HEAD
		"\n"
		"nonsense\n"
		"            1000             1000       20    16 .text\n"
		"            1000             1000       20    16    .text\n"
		"            1000             1000       zz    16 .text\n"
		"            1000             1000       20    16\n"
		"            1000             1000       20    16                         deep\n",
		"", 5);
}

static void test_sections(void)
{
	struct buf list = {0};
	struct text_source t;
	struct err err;

	CHECK_EQ(
		symbol_list_read(lld_map_read,
			span_of(HEAD "            1040             1040      12a    32 .rodata\n"
				     "            2580             2580      d9f    16 .text\n"
				     "               0                0       20     1 .comment\n"),
			&list, &t, &err),
		0);
	CHECK_EQ(t.sections.n, 2);
	CHECK_STR(t.sections.v[1].name, ".text");
	CHECK_EQ(t.sections.v[1].addr, 0x2580);
	CHECK_EQ(t.sections.v[1].mem_bytes, 0xd9f);
	text_source_release(&t);
	buf_release(&list);
}

int main(void)
{
	static const struct test tests[] = {
		{"reads symbols of code with their sizes, and names with blanks", test_levels},
		{"adds linkage names where sections have them", test_linkage_names},
		{"reads maps of linker scripts and of old versions", test_scripts_and_old_maps},
		{"refuses other texts and counts malformed lines", test_refusals},
		{"lists loaded sections", test_sections},
	};

	return RUN_TESTS(tests);
}
