/* SPDX-License-Identifier: MIT */
/* The output of nm, and the readers of perf maps and kallsyms that share its sink. */
#include "check.h"
#include "symbol_list.h"

static void test_bsd(void)
{
	CHECK_LIST(nm_text_read,
		"0000000000004018 D data_x\n"
		"0000000000001139 t square\n"
		"000000000000113f T cube\n"
		"000000000000113f W weak_alias\n"
		"0000000000001150 i chosen_later\n"
		"                 U puts@GLIBC_2.2.5\n"
		"                 w __gmon_start__\n"
		"0000000000001160 t .L1\n"
		"0000000000001160 T\n"
		"0000000000000000 A GLIBC_2.10\n"
		"0000000000004018 W data_start\n"
		"00000000000011ae T _etext\n"
		"0000000000001170 T (anonymous namespace)::f(int) const\n"
		"0000000000001180 T with_place\t/src/a.c:12\n",
		"1139 0 6 l square\n"
		"113f 0 11 g cube\n"
		"113f 0 11 w weak_alias\n"
		"1150 0 10 g chosen_later\n"
		"1170 0 10 g (anonymous namespace)::f(int) const\n"
		"1180 0 2e g with_place\n",
		1);
}

static void test_sizes_and_widths(void)
{
	CHECK_LIST(nm_text_read,
		"0000000000001139 0000000000000006 t square\n"
		"0000000000001140 t no_size\n"
		"0000000000001139 000000000000000x t bad\n"
		"                                  U of_llvm_nm\n",
		"1139 6 7 l square\n1140 0 100000 l no_size\n", 1);
	CHECK_LIST(nm_text_read,
		"00001139 00000006 t square\n"
		"         U puts\n"
		"00001140 T f\n",
		"1139 6 7 l square\n1140 0 100000 g f\n", 0);
}

static void test_versions(void)
{
	CHECK_LIST(nm_text_read,
		"0000000000001000 T memcpy@@GLIBC_2.14\n"
		"0000000000001010 T memcpy@GLIBC_2.2.5\n"
		"0000000000001020 T printf@plt\n"
		"0000000000001030 T @odd\n",
		"1000 0 10 g memcpy\n"
		"1010 0 10 g memcpy\n"
		"1020 0 10 g printf@plt\n"
		"1030 0 100000 g @odd\n",
		0);
}

static void test_posix(void)
{
	CHECK_LIST(nm_text_read,
		"square t 1139 6\n"
		"add T 1140 \n"
		"puts@GLIBC_2.2.5 U         \n"
		"operator T t 1150 10\n"
		"operator T t 1160 \n"
		"ns::operator+(ns::box<int> const&, int) T 1170 b\n"
		"short T a b\n"
		"data D 4018 4\n"
		"nonsense\n",
		"1139 6 7 l square\n"
		"1140 0 10 g add\n"
		"1150 10 10 l operator T\n"
		"1160 0 10 l operator T\n"
		"1170 b 2ea8 g ns::operator+(ns::box<int> const&, int)\n"
		"a b 112f g short\n",
		1);
}

static void test_sysv(void)
{
	struct buf list = {0};
	struct text_source t;
	struct err err = {0};

	CHECK_EQ(
		symbol_list_read(nm_text_read,
			span_of("\n\nSymbols from dir/a.out:\n\n"
				"Name                  Value           Class        Type         Size             Line  Section\n\n"
				"square              |0000000000001139|   t  |              FUNC|0000000000000006|     |.text\n"
				"a | b               |0000000000001140|   W  |              FUNC|0000000000000006|     |.text\n"
				"puts                |                |   U  |              FUNC|                |     |*UND*\n"
				"label               |0000000000001150|   t  |            NOTYPE|                |     |.text\n"
				"data_start          |0000000000004000|   W  |            NOTYPE|                |     |.data\n"
				"thing               |0000000000004010|   W  |            OBJECT|                |     |own\n"),
			&list, &t, &err),
		0);
	CHECK_STR(buf_text(&list), "1139 6 7 l square\n"
				   "1140 6 10 w a | b\n"
				   "1150 0 2eb0 l ?label\n");
	CHECK_EQ(t.n_malformed, 0);
	CHECK_EQ(t.n_symbols, 3);
	CHECK_STR(t.output, "dir/a.out");
	text_source_release(&t);
	buf_release(&list);
}

static void test_several_images(void)
{
	CHECK_LIST(nm_text_read, "\na.o:\n0000000000000000 T f\n", "0 0 100000 g f\n", 0);
	CHECK_REFUSED(nm_text_read, "\na.o:\n0000000000000000 T f\n\nb.o:\n0000000000000000 T g\n",
		ERR_FORMAT, "must be of one: 'b.o' after 'a.o'");
	CHECK_REFUSED(nm_text_read, "0000000000000000 T f\n\nb.o:\n0000000000000000 T g\n",
		ERR_FORMAT, "must be of one: 'b.o' after ''");
	CHECK_LIST(nm_text_read, "a.o:0000000000000000 T f\na.o:                 U x::y\n",
		"0 0 100000 g f\n", 0);
	CHECK_LIST(nm_text_read,
		"lib.a:a.o:0000000000000000 T f\nlib.a:a.o:0000000000000010 T x::y\n",
		"0 0 10 g f\n10 0 100000 g x::y\n", 0);
	CHECK_REFUSED(nm_text_read, "a.o:0000000000000000 T f\nb.o:0000000000000000 T f\n",
		ERR_FORMAT, "must be of one: 'b.o' after 'a.o'");
	CHECK_REFUSED(nm_text_read, "f T 0 1\n\nb.o:\ng T 0 1\n", ERR_FORMAT, "must be of one");
}

static void test_refusals(void)
{
	CHECK_REFUSED(nm_text_read, "", ERR_FORMAT, "nm");
	CHECK_REFUSED(nm_text_read, "This is a text.\nIt has two lines.\n", ERR_FORMAT, "nm");
	CHECK_LIST(nm_text_read, "nm: a.o: no symbols\n0000000000000010 T f\r\n",
		"10 0 100000 g f\n", 1);
}

static void test_perf_map(void)
{
	CHECK_LIST(perf_map_read,
		"1000 100 LazyCompile:~foo bar.js:1\n"
		"0x1000 0x40 again\r\n"
		"nonsense\n"
		"2000 0 empty\n",
		"1000 100 0 g LazyCompile:~foo bar.js:1\n1000 40 0 g again\n", 2);
	CHECK_LIST(perf_map_read, "", "", 0); /* its writer has just begun */
	CHECK_REFUSED(perf_map_read, "nonsense\n", ERR_FORMAT, "perf map");
}

static void test_kallsyms(void)
{
	CHECK_LIST(kallsyms_read,
		"0000000000000000 A fixed_percpu_data\n"
		"ffffffff81000000 T _stext\n"
		"ffffffff81000000 T startup\n"
		"ffffffff81000100 t do_one\n"
		"ffffffff81000180 W weak_one\n"
		"ffffffff81000200 D data\n"
		"ffffffffc0100000 t in_module\t[ext4]\n"
		"ffffffff81000200 T\n",
		"ffffffff81000000 0 100 g _stext\n"
		"ffffffff81000000 0 100 g startup\n"
		"ffffffff81000100 0 80 l do_one\n"
		"ffffffff81000180 0 80 w weak_one\n"
		"ffffffffc0100000 0 100000 l in_module\t[ext4]\n",
		1);
	CHECK_REFUSED(kallsyms_read, "0000000000000000 T _stext\n", ERR_PERMISSION,
		"kernel.kptr_restrict");
	CHECK_REFUSED(kallsyms_read, "ffffffff81000200 D data\n", ERR_FORMAT, "no kernel function");
}

int main(void)
{
	static const struct test tests[] = {
		{"reads the default format: functions end at the next symbol of any kind",
			test_bsd},
		{"reads sizes, and 32-bit addresses", test_sizes_and_widths},
		{"leaves out versions", test_versions},
		{"reads the posix format from its end, since names have blanks", test_posix},
		{"reads the sysv format", test_sysv},
		{"refuses the symbols of several images", test_several_images},
		{"refuses other texts and counts malformed lines", test_refusals},
		{"reads a perf map in the order of the file", test_perf_map},
		{"reads functions of kallsyms with the room they have", test_kallsyms},
	};

	return RUN_TESTS(tests);
}
