/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/arena.h"
#include "check.h"
#include "probe/points/point.h"

static struct arena *arena;
static struct sources sources;
static struct diags diags;

/* As a script has it behind two blanks, so that places do not begin at 0. */
static bool parse(const char *text, struct point_spec *spec)
{
	struct point_text point = {.text = text, .place = {0, 2, 2 + (uint32_t)strlen(text)}};

	diags_release(&diags);
	diags_init(&diags, &sources);
	return point_parse(&point, arena, spec, &diags);
}

static void test_long_forms(void)
{
	static const struct {
		const char *text;
		enum point_kind kind;
		const char *long_form;
	} cases[] = {
		{"BEGIN", POINT_BEGIN, "begin"},
		{"begin", POINT_BEGIN, "begin"},
		{"END", POINT_END, "end"},
		{"error", POINT_ERROR, "error"},
		{"i:s:1", POINT_INTERVAL, "interval:s:1"},
		{"interval:500ms", POINT_INTERVAL, "interval:ms:500"},
		{"p:99", POINT_PROFILE, "profile:hz:99"},
		{"profile:250000", POINT_PROFILE, "profile:ns:250000"},
		{"interval:1e9", POINT_INTERVAL, "interval:ns:1000000000"},
		{"interval:us:2e3", POINT_INTERVAL, "interval:us:2000"},
		{"self:signal:SIGUSR1", POINT_SELF, "self:signal:SIGUSR1"},
		{"bench:one", POINT_BENCH, "bench:one"},
		{"w:0x7000:4:wr", POINT_WATCHPOINT, "watchpoint:0x7000:4:rw"},
		{"watchpoint:4096:1:x", POINT_WATCHPOINT, "watchpoint:0x1000:1:x"},
		{"it:task_vma", POINT_ITER, "iter:task_vma"},
		{"profile:us:250", POINT_PROFILE, "profile:us:250"},
		{"u:libc:malloc", POINT_UPROBE, "uprobe:libc:malloc"},
		{"ur:/bin/sh:main", POINT_URETPROBE, "uretprobe:/bin/sh:main"},
		{"uprobe::f", POINT_UPROBE, "uprobe::f"},
		{"uprobe:./a:cpp:ns::f", POINT_UPROBE, "uprobe:./a:ns::f"},
		{"U:./a:p:n", POINT_USDT, "usdt:./a:p:n"},
		{"usdt:./a::n", POINT_USDT, "usdt:./a:n"},
		{"syscall:read", POINT_SYSCALL_ENTRY, "syscall:read:entry"},
		{"syscall::read:return", POINT_SYSCALL_RETURN, "syscall:read:return"},
		{"t:sched:sched_switch", POINT_TRACEPOINT, "tracepoint:sched:sched_switch"},
		{"t:syscalls:sys_enter_openat", POINT_SYSCALL_ENTRY,
			"tracepoint:syscalls:sys_enter_openat"},
		{"t:syscalls:sys_exit_*", POINT_SYSCALL_RETURN, "tracepoint:syscalls:sys_exit_*"},
		{"t:raw_syscalls:sys_enter", POINT_TRACEPOINT, "tracepoint:raw_syscalls:sys_enter"},
		{"rt:sys_enter", POINT_RAW_TRACEPOINT, "rawtracepoint:sys_enter"},
		{"s:faults:10", POINT_SOFTWARE, "software:faults:10"},
		{"h:cycles", POINT_HARDWARE, "hardware:cycles:1000000"},
		{"k:vfs_read+8", POINT_KPROBE, "kprobe:vfs_read+8"},
		{"kr:vfs_read", POINT_KRETPROBE, "kretprobe:vfs_read"},
		{"kfunc:ext4:f", POINT_FENTRY, "fentry:ext4:f"},
		{"fr:f", POINT_FEXIT, "fexit:f"},
		{"kretfunc:f", POINT_FEXIT, "fexit:f"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct point_spec spec = {0};

		CHECK(parse(cases[i].text, &spec));
		CHECK_EQ(spec.kind, cases[i].kind);
		CHECK_STR(spec.text, cases[i].long_form);
		CHECK_EQ(spec.place.from, 2);
		CHECK_EQ(diags.n_errors, 0);
	}
}

static void test_parts(void)
{
	struct point_spec s;

	CHECK(parse("uprobe:libc:mall*", &s));
	CHECK_STR(s.file, "libc");
	CHECK_STR(s.name, "mall*");
	CHECK(s.is_glob && !s.has_address);
	CHECK(parse("uprobe:/lib/x.so:f+0x10", &s));
	CHECK_STR(s.name, "f");
	CHECK_EQ(s.offset, 16);
	CHECK(!s.is_glob);
	CHECK(parse("uprobe:./a:0x1234", &s));
	CHECK(s.has_address);
	CHECK_EQ(s.address, 0x1234);
	CHECK(parse("uprobe:./a:ns::f(char *)", &s));
	CHECK_STR(s.name, "ns::f(char *)");
	CHECK(!s.is_glob);
	CHECK(parse("uprobe:./a:operator+", &s));
	CHECK_STR(s.name, "operator+");
	CHECK_EQ(s.offset, 0);
	CHECK(parse("usdt:./a:prov*:n", &s));
	CHECK_STR(s.provider, "prov*");
	CHECK(s.is_glob);
	CHECK(parse("t:syscalls:sys_enter_open*", &s));
	CHECK_STR(s.name, "open*");
	CHECK(!s.provider && s.is_glob);
	CHECK(parse("kprobe:mod:f", &s));
	CHECK_STR(s.provider, "mod");
	CHECK(parse("profile:hz:100", &s));
	CHECK_EQ(s.period_ns, 10000000);
	CHECK(parse("interval:2s", &s));
	CHECK_EQ(s.period_ns, 2000000000);
	CHECK(parse("s:cs", &s));
	CHECK_EQ(s.count, 1000);
}

/* Columns count from 0 in the script, where the point begins at 2. */
static void test_errors(void)
{
	static const struct {
		const char *text, *tag;
		uint32_t from, to;
	} cases[] = {
		{"uprob:libc:f", "point-unknown", 2, 7},
		{"asyncwatchpoint:0x1:8:w", "point-unknown", 2, 17},
		{"malloc", "point-unknown", 2, 8},
		{"", "point-unknown", 2, 2},
		{"begin:1", "point", 2, 9},
		{"uprobe", "point", 2, 8},
		{"uprobe:libc", "point", 2, 13},
		{"uprobe:libc:", "point", 2, 14},
		{"uprobe:libc:f+12z", "point", 16, 19},
		{"uprobe:libc:0x12g", "point", 14, 19},
		{"uprobe:libc:a:b", "point", 2, 17},
		{"uretprobe:libc:f+4", "point", 17, 20},
		{"usdt:/a:b:c:d", "point", 2, 15},
		{"interval:5", "range", 11, 12},
		{"self:signal:SIGHUP", "point", 14, 20},
		{"self:SIGUSR1", "point", 2, 14},
		{"watchpoint:f+arg0:8:w", "point", 13, 19},
		{"watchpoint:0x1000:3:w", "range", 20, 21},
		{"watchpoint:0x1004:8:w", "range", 13, 19},
		{"w:0x1000:8:r", "point", 13, 14},
		{"w:0x1000:8:wx", "point", 13, 15},
		{"w:0x1000:8:ww", "point", 13, 15},
		{"iter:tsk", "point", 7, 10},
		{"iter:task:pin", "point", 2, 15},
		{"interval:s:x", "point", 13, 14},
		{"interval:fortnight:1", "point", 11, 20},
		{"interval:s:0", "range", 13, 14},
		{"profile:hz:99999999999", "range", 13, 24},
		{"interval:h:99999999999999999999", "point", 13, 33},
		{"syscall:read:middle", "point", 15, 21},
		{"syscall:", "point", 2, 10},
		{"t:sched", "point", 2, 9},
		{"t:../../etc:x", "point", 2, 15},
		{"software:cycle", "point", 11, 16},
		{"hardware:cycles:0", "point", 18, 19},
		{"fentry:f+4", "point", 2, 12},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct point_spec spec;
		int before = check_failures;

		CHECK(!parse(cases[i].text, &spec));
		CHECK_EQ(diags.n_errors, 1);
		CHECK_STR(diags.v.v[0].tag, cases[i].tag);
		CHECK_EQ(diags.v.v[0].place.from, cases[i].from);
		CHECK_EQ(diags.v.v[0].place.to, cases[i].to);
		if (check_failures > before)
			printf("  in '%s'\n", cases[i].text);
	}
}

static void test_quoted_place(void)
{
	struct point_text quoted = {.text = "uprobe:x:0z", .place = {0, 5, 17}};
	struct point_spec spec;

	diags_release(&diags);
	diags_init(&diags, &sources);
	CHECK(!point_parse(&quoted, arena, &spec, &diags));
	CHECK_EQ(diags.v.v[0].place.from, 5);
	CHECK_EQ(diags.v.v[0].place.to, 17);
}

int main(void)
{
	static const struct test tests[] = {
		{"every word of the language gives its kind and long form", test_long_forms},
		{"files, names, offsets, periods and counts are taken apart", test_parts},
		{"wrong points have a tag and the place of the wrong part", test_errors},
		{"a quoted point is reported as a whole", test_quoted_place},
	};
	int rc;

	arena = arena_new();
	sources_add(&sources, "t", (struct span){(const uint8_t *)"", 0});
	diags_init(&diags, &sources);
	rc = RUN_TESTS(tests);
	diags_release(&diags);
	sources_release(&sources);
	arena_free(arena);
	return rc;
}
