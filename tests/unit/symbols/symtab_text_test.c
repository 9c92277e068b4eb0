/* SPDX-License-Identifier: MIT */
/* kallsyms and perf maps. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "check.h"
#include "symbols/symtab_build.h"

static struct span span_of(const char *text)
{
	return (struct span){(const uint8_t *)text, strlen(text)};
}

static const char *name_at(const struct symtab *t, uint64_t addr)
{
	const struct symbol *s = symtab_find(t, addr);

	return s ? s->name : "-";
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f != NULL);
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void test_kallsyms(void)
{
	struct symtab *t =
		symtab_new_kallsyms_bytes(span_of("0000000000000000 A fixed_percpu_data\n"
						  "ffffffff81000000 T _stext\n"
						  "ffffffff81000000 T startup\n"
						  "ffffffff81000000 t local\n"
						  "ffffffff81000100 t do_one\n"
						  "ffffffff81000180 W weak_one\n"
						  "ffffffff81000200 D data\n"
						  "ffffffffc0100000 t in_module\t[ext4]\n"
						  "ffffffffc0000000 T out_of_order\t[bpf]\n"
						  "not a line\n"
						  "ffffffff81000300\n"
						  "11112222333344445 T too_many_digits\n"
						  "ffffffff81000200 T\n"));

	CHECK_EQ(symtab_n(t), 5);
	CHECK_EQ(t->n_skipped, 4);
	CHECK_STR(name_at(t, 0xffffffff81000000), "startup");
	CHECK_STR(name_at(t, 0xffffffff810000ff), "startup");
	CHECK_STR(name_at(t, 0xffffffff81000100), "do_one");
	CHECK_STR(name_at(t, 0xffffffff810001ff), "weak_one");
	CHECK_STR(name_at(t, 0xffffffff81000200), "-"); /* data */
	CHECK_STR(name_at(t, 0xffffffffc0000010), "out_of_order [bpf]");
	CHECK_STR(name_at(t, 0xffffffffc00fffff), "out_of_order [bpf]");
	CHECK_STR(name_at(t, 0xffffffffc01fffff), "in_module [ext4]");
	CHECK_STR(name_at(t, 0xffffffffc0200000), "-"); /* no function is that long */
	CHECK_STR(symtab_sources(t), "kallsyms");
	symtab_free(t);
}

static void test_kallsyms_hidden(void)
{
	struct symtab *t = NULL;
	struct err err = {0};

	write_file("hidden", "0000000000000000 T _stext\n0000000000000000 t do_one\n");
	CHECK_EQ(symtab_new_kallsyms(&t, "hidden", &err), ERR_PERMISSION);
	CHECK(strstr(err.text, "kernel.kptr_restrict=0") && strstr(err.text, "'hidden'"));
	write_file("hidden", "nonsense\n");
	CHECK_EQ(symtab_new_kallsyms(&t, "hidden", &err), ERR_FORMAT);
	CHECK_EQ(symtab_new_kallsyms(&t, "/nonexistent/kallsyms", &err), ERR_NOT_FOUND);
	CHECK(t == NULL);
	write_file("hidden", "0000000000000010 T f\n");
	CHECK_EQ(symtab_new_kallsyms(&t, "hidden", &err), 0);
	CHECK_STR(name_at(t, 0x10), "f");
	symtab_free(t);
	remove("hidden");
}

static void test_perf_map(void)
{
	struct symtab *t = symtab_new_perf_map_bytes(
		span_of("7f0000001000 100 LazyCompile:~foo bar file.js:1\n"
			"0x7f0000002000 0x40 with prefix\r\n"
			"7f0000003000 40 _Z3foov\n"
			"no number\n"
			"7f0000004000 xx name\n"
			"7f0000004000 10\n"
			"7f0000004000 10 \n"
			"7f0000004000 0 empty\n"
			"\n"
			"7f0000005000 10 last without newline"));

	CHECK_EQ(symtab_n(t), 4);
	CHECK_EQ(t->n_skipped, 5);
	CHECK_STR(name_at(t, 0x7f0000001000), "LazyCompile:~foo bar file.js:1");
	CHECK_STR(name_at(t, 0x7f00000010ff), "LazyCompile:~foo bar file.js:1");
	CHECK_STR(name_at(t, 0x7f0000001100), "-");
	CHECK_STR(name_at(t, 0x7f0000002000), "with prefix");
	CHECK_STR(name_at(t, 0x7f0000003000), "_Z3foov"); /* the compiler's own words */
	CHECK_STR(name_at(t, 0x7f000000500f), "last without newline");
	symtab_free(t);
}

static void test_perf_map_reuse(void)
{
	struct symtab *t = symtab_new_perf_map_bytes(span_of("1000 100 old\n"
							     "3000 10 gone\n"
							     "1040 20 new\n"
							     "1080 100 newer\n"
							     "2ff0 40 over it\n"));

	CHECK_EQ(symtab_n(t), 4);
	CHECK_STR(name_at(t, 0x1000), "old");
	CHECK_STR(name_at(t, 0x1040), "new");
	CHECK_STR(name_at(t, 0x105f), "new");
	CHECK_STR(name_at(t, 0x1060), "old");
	CHECK_STR(name_at(t, 0x1080), "newer");
	CHECK_STR(name_at(t, 0x117f), "newer");
	CHECK_STR(name_at(t, 0x3000), "over it");
	for (size_t i = 1; i < symtab_n(t); i++)
		CHECK(symtab_get(t, i - 1)->start <= symtab_get(t, i)->start);
	symtab_free(t);
	/* The same memory, the other way round: the second line hides all of the first. */
	t = symtab_new_perf_map_bytes(span_of("1000 10 small\n0 2000 large\n"));
	CHECK_EQ(symtab_n(t), 1);
	CHECK_STR(name_at(t, 0x1008), "large");
	symtab_free(t);
}

static void test_perf_map_file(void)
{
	struct symtab *t = NULL;
	struct err err = {0};
	char *line = mem_alloc(20010);

	memset(line, 'x', 20000);
	memcpy(line, "1000 10 ", 8);
	strcpy(line + 20000, "\n10 10 f\n");
	write_file("perf-1.map", line);
	CHECK_EQ(symtab_new_perf_map(&t, "perf-1.map", &err), 0);
	CHECK_EQ(symtab_n(t), 1);
	CHECK_EQ(t->n_skipped, 1);
	symtab_free(t);
	free(line);
	remove("perf-1.map");
	CHECK_EQ(mkfifo("perf-1.map", 0600), 0);
	CHECK_EQ(symtab_new_perf_map(&t, "perf-1.map", &err), ERR_FAILED);
	CHECK_STR(err.text, "'perf-1.map': is not a regular file");
	remove("perf-1.map");
	CHECK_EQ(symtab_new_perf_map(&t, "perf-1.map", &err), ERR_NOT_FOUND);
}

int main(void)
{
	static const struct test tests[] = {
		{"reads kallsyms: functions end at the next symbol, modules are named",
			test_kallsyms},
		{"says how to get hidden kernel addresses", test_kallsyms_hidden},
		{"reads a perf map, and counts malformed lines", test_perf_map},
		{"lets the later line of a perf map win", test_perf_map_reuse},
		{"skips overlong lines and refuses a pipe in place of a perf map",
			test_perf_map_file},
	};

	return RUN_TESTS(tests);
}
