/* SPDX-License-Identifier: MIT */
/* Maps of GNU ld and gold, line by line; whole real ones are in tests/oracle/text_sources.sh. */
#include <stdlib.h>

#include "base/mem.h"
#include "check.h"
#include "symbol_list.h"

/* What precedes the map proper. */
#define BEFORE                                                                                     \
	"Discarded input sections\n\n"                                                             \
	" .text.unused   0x0000000000000000        0x4 a.o\n"                                      \
	"                0x0000000000000000                unused\n"                               \
	"\nMemory Configuration\n\n"                                                               \
	"Name             Origin             Length             Attributes\n"                      \
	"*default*        0x0000000000000000 0xffffffffffffffff\n"                                 \
	".text_region     0x0000000000001000 0x0000000000001000\n"                                 \
	" .text           0x0000000000001000 0x10 b.o\n"                                           \
	"                0x0000000000001000                not_this\n"                             \
	"\nLinker script and memory map\n\n"                                                       \
	"LOAD a.o\n"

static void test_sections_and_symbols(void)
{
	CHECK_LIST(ld_map_read,
		BEFORE ".interp         0x0000000000000318       0x1c\n"
		       " *(.interp)\n"
		       " .interp        0x0000000000000318       0x1c Scrt1.o\n"
		       "\n"
		       ".text           0x0000000000001050      0x156\n"
		       " *(.text .stub .text.*)\n"
		       " .text          0x0000000000001050       0x22 crt1.o\n"
		       "                0x0000000000001050                _start\n"
		       " *fill*         0x0000000000001072        0xe \n"
		       "                0x0000000000001072                in_a_fill\n"
		       " .text          0x0000000000001080       0x20 ./lib.a(x.o)\n"
		       "                0x0000000000001080                one\n"
		       "                0x0000000000001088                two(int, char const*)\n"
		       "                0x00000000000010a0                behind_the_end\n"
		       "                                         0x30 (size before relaxing)\n",
		"1050 0 22 g _start\n"
		"1080 0 20 g one\n"
		"1088 0 18 g two(int, char const*)\n",
		0);
}

static void test_wrapped_names(void)
{
	CHECK_LIST(ld_map_read,
		BEFORE ".text.of_a_long_name\n"
		       "                0x0000000000001000       0x40\n"
		       " .text.some_long_function_name\n"
		       "                0x0000000000001000       0x10 dir with blanks/a.o\n"
		       "                0x0000000000001000                some_long_function_name\n"
		       " *(.pattern.that.is.no.section)\n"
		       "                0x0000000000001010                of_no_section\n"
		       " .text.some_local_function\n"
		       "                0x0000000000001010       0x20 a.o\n"
		       ".empty\n"
		       " *(.empty)\n"
		       "                0x0000000000001010       0x20 LONG 0x0\n",
		"1000 10 10 g some_long_function_name\n"
		"1010 20 20 l some_local_function\n",
		0);
}

static void test_assignments(void)
{
	CHECK_LIST(ld_map_read,
		BEFORE ".text           0x00001000       0x40\n"
		       "                0x00001000                _stext = .\n"
		       " .text          0x00001000       0x40 a.o\n"
		       "                0x00001000                A::operator=(A const&)\n"
		       "                0x00001010                A::operator==(A const&) const\n"
		       "                [!provide]                        PROVIDE (__etext = .)\n"
		       "                0x00001020                PROVIDE (mid = .)\n"
		       "                0x00001020                HIDDEN (mid2 = .)\n"
		       "                0x00001020                PROVIDE_something\n"
		       "                0x00001030                . = ALIGN (0x8)\n"
		       "                0x00001030                . = (. + 0x4)\n"
		       "                0x00001030                foo@@VERS_1\n"
		       "                0x00001030                (local) static_one\n"
		       "                0x00001030                .Lx\n",
		"1000 0 40 g A::operator=(A const&)\n"
		"1010 0 30 g A::operator==(A const&) const\n"
		"1020 0 20 g PROVIDE_something\n"
		"1030 0 10 g foo\n"
		"1030 0 10 g static_one\n",
		0);
}

static void test_code_only(void)
{
	CHECK_LIST(ld_map_read,
		BEFORE ".init           0x0000000000001000       0x10\n"
		       " .init          0x0000000000001000       0x10 crti.o\n"
		       "                0x0000000000001000                _init\n"
		       ".plt            0x0000000000001010       0x20\n"
		       " .plt           0x0000000000001010       0x20 crt1.o\n"
		       "                0x0000000000001020                printf@@GLIBC_2.2.5\n"
		       "mycode          0x0000000000001040       0x10\n"
		       " mycode         0x0000000000001040       0x10 a.o\n"
		       "                0x0000000000001040                in_own_section\n"
		       " .rodata        0x0000000000001044        0x4 a.o\n"
		       "                0x0000000000001044                data_in_code\n"
		       ".init_array     0x0000000000002000       0x10\n"
		       " .init_array    0x0000000000002000       0x10 a.o\n"
		       "                0x0000000000002000                entries\n"
		       "mydata          0x0000000000002010       0x10\n"
		       " mydata         0x0000000000002010       0x10 a.o\n"
		       "                0x0000000000002010                some_data\n"
		       " .text          0x0000000000002018        0x8 a.o\n"
		       "                0x0000000000002018                code_in_data\n"
		       ".debug_info     0x0000000000000000      0x100\n"
		       " .debug_info    0x0000000000000000      0x100 a.o\n"
		       "weird           0x0000000000000000      0x100\n"
		       " .text          0x0000000000000000      0x100 a.o\n"
		       "                0x0000000000000000                not_loaded\n",
		"1000 0 10 g _init\n"
		"1040 0 10 g in_own_section\n"
		"2018 0 8 g code_in_data\n",
		0);
}

static void test_function_sections(void)
{
	CHECK_LIST(ld_map_read,
		BEFORE ".text           0x0000000000001000      0x200\n"
		       " .text.unlikely 0x0000000000001000        0x8 a.o\n"
		       " .text.unlikely.foo\n"
		       "                0x0000000000001008        0x8 a.o\n"
		       " .text.unlikely.foo\n"
		       "                0x0000000000001010        0x8 b.o\n"
		       " .text.unlikely.seldom\n"
		       "                0x0000000000001018        0x8 a.o\n"
		       "                0x0000000000001018                seldom\n"
		       " .text.startup.main\n"
		       "                0x0000000000001020        0x8 a.o\n"
		       " .text.hot      0x0000000000001028        0x8 a.o\n"
		       " .text.hot.inner\n"
		       "                0x0000000000001030        0x8 a.o\n"
		       " .text.foo      0x0000000000001040       0x10 a.o\n"
		       "                0x0000000000001040                foo\n"
		       "                0x0000000000001040                alias_of_foo\n"
		       " .text.two      0x0000000000001050       0x20 a.o\n"
		       "                0x0000000000001050                two\n"
		       "                0x0000000000001058                inside_two\n"
		       " .text.sse2     0x0000000000001070       0x20 a.o\n"
		       "                0x0000000000001078                memcpy_sse2\n"
		       " .text.sorted.0012\n"
		       "                0x0000000000001090       0x10 a.o\n"
		       " .text.0.odd    0x00000000000010a0       0x10 a.o\n"
		       " .gnu.linkonce.t.old\n"
		       "                0x00000000000010b0       0x10 a.o\n"
		       " .text.outside  0x0000000000003000       0x10 a.o\n"
		       " .text.zero     0x0000000000000000       0x10 a.o\n"
		       " .text.too_long 0x00000000000011f8       0x10 a.o\n"
		       " .text.nothing  0x00000000000010c0        0x0 a.o\n",
		"1018 8 8 g seldom\n"
		"1020 8 8 l main\n"
		"1030 8 8 l inner\n"
		"1040 10 10 g foo\n"
		"1040 10 10 g alias_of_foo\n"
		"1050 0 20 g two\n"
		"1058 0 18 g inside_two\n"
		"1078 0 18 g memcpy_sse2\n"
		"10b0 10 10 l old\n"
		"1008 8 8 l foo.cold\n"
		"1010 8 8 l foo\n",
		0);
}

static void test_linkage_names(void)
{
	CHECK_LIST(ld_map_read,
		BEFORE ".text           0x0000000000001000      0x200\n"
		       " .text._ZN1D1fEv\n"
		       "                0x0000000000001000        0xb a.o\n"
		       "                0x0000000000001000                D::f()\n"
		       " .text._ZN1DD2Ev\n"
		       "                0x0000000000001010        0x8 a.o\n"
		       "                0x0000000000001010                D::~D()\n"
		       "                0x0000000000001010                D::~D()\n"
		       "                0x0000000000001010                another name of it(int)\n"
		       " .text._ZN1D1gEv\n"
		       "                0x0000000000001020        0x8 a.o\n"
		       "                0x0000000000001020                _ZN1D1gEv\n",
		"1000 b b g _ZN1D1fEv\n"
		"1010 8 8 g _ZN1DD2Ev\n"
		"1010 8 8 g another name of it(int)\n"
		"1020 8 8 g _ZN1D1gEv\n",
		0);
}

static void test_facts(void)
{
	static const char text[] = BEFORE
		".text           0x0000000000001000      0x200 load address 0x0000000000008000\n"
		".section_with_a_name_longer_than_its_field\n"
		"                0x0000000000002000       0x10\n"
		".empty          0x0000000000002010        0x0\n"
		".comment        0x0000000000000000       0x20\n"
		"OUTPUT(dir/a program elf64-x86-64)\n"
		"\nCross Reference Table\n\n"
		"Symbol                                            File\n"
		".text           0x0000000000001000      0x200\n"
		"main                                              a.o\n";
	struct buf list = {0};
	struct text_source t;
	struct err err;

	CHECK_EQ(symbol_list_read(ld_map_read, span_of(text), &list, &t, &err), 0);
	CHECK_STR(t.output, "dir/a program");
	CHECK_EQ(t.sections.n, 2);
	CHECK_STR(t.sections.v[0].name, ".text");
	CHECK_EQ(t.sections.v[0].addr, 0x1000);
	CHECK_EQ(t.sections.v[0].mem_bytes, 0x200);
	CHECK_STR(t.sections.v[1].name, ".section_with_a_name_longer_tha");
	text_source_release(&t);
	text_source_release(&t);
	buf_release(&list);
}

static void test_gold(void)
{
	CHECK_LIST(ld_map_read,
		"\nDiscarded input sections\n\n"
		" .note.GNU-stack\n"
		"                0x0000000000000000        0x0 a.o\n"
		"\nMemory map\n\n"
		" ** file header\n"
		"                0x0000000000000000       0x40\n"
		"\n.text           0x00000000000005d0      0x100\n"
		" .text          0x00000000000005d0       0x22 crt1.o\n"
		"                0x00000000000005d0                _start\n"
		" ** fill        0x00000000000005f2        0xe\n"
		"                0x00000000000005f2                in_a_fill\n",
		"5d0 0 22 g _start\n", 0);
}

static void test_refusals(void)
{
	char *line = mem_alloc(80000);

	CHECK_REFUSED(ld_map_read, "", ERR_FORMAT, "GNU ld");
	CHECK_REFUSED(ld_map_read, "nothing of that kind\n", ERR_FORMAT, "GNU ld");
	CHECK_REFUSED(ld_map_read, BEFORE, ERR_FORMAT, "GNU ld");
	/* A line beyond all limits is counted, and does not hide the next. */
	strcpy(line, BEFORE ".text           0x1000      0x200\n"
			    " .text          0x1000       0x22 a.o\n"
			    "                0x1000                ");
	memset(line + strlen(line), 'x', 70000);
	strcpy(line + 70000, "\n                0x1004                f\r\n");
	CHECK_LIST(ld_map_read, line, "1004 0 1e g f\n", 1);
	free(line);
}

int main(void)
{
	static const struct test tests[] = {
		{"reads symbols with the room of their input section, not discarded ones",
			test_sections_and_symbols},
		{"reads names that have a line of their own", test_wrapped_names},
		{"takes no assignment for a symbol", test_assignments},
		{"leaves out what is not code", test_code_only},
		{"learns local functions and sizes from names of sections", test_function_sections},
		{"prefers linkage names where the section has them", test_linkage_names},
		{"lists loaded sections and the image, and stops at the cross reference table",
			test_facts},
		{"reads gold's layout", test_gold},
		{"refuses other texts and counts lines that are too long", test_refusals},
	};

	return RUN_TESTS(tests);
}
