/* SPDX-License-Identifier: MIT */
/* What is known of functions by their names. */
#include "check.h"
#include "insert/foreign_names.h"

static void check_all(bool (*is)(const char *), const char *const *names, bool expected)
{
	for (; *names; names++) {
		if (is(*names) != expected)
			printf("'%s'\n", *names);
		CHECK(is(*names) == expected);
	}
}

static void test_never_timed(void)
{
	static const char *const untimed[] = {"setjmp", "_setjmp", "__sigsetjmp", "longjmp",
		"siglongjmp", "__longjmp_chk", "vfork", "fork", "__tls_get_addr", "_Unwind_Resume",
		"_Unwind_Backtrace", "__cxa_throw", "__cxa_begin_catch", "__stack_chk_fail", "exit",
		"_exit", "abort", "swapcontext", "__morestack", "mcount", "__fentry__",
		"pthread_exit", "execve", "__asan_report_load8", "__x86_indirect_thunk_rax",
		"weir_count_enter", "__gmon_start__", NULL};
	static const char *const others[] = {
		"", "read", "memcpy", "setjmp2", "exi", "main", "zzz", NULL};

	check_all(foreign_name_is_untimed, untimed, true);
	check_all(foreign_name_is_untimed, others, false);
}

static void test_return(void)
{
	static const char *const twice[] = {
		"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "getcontext", NULL};
	static const char *const once[] = {"longjmp", "fork", "read", NULL};
	static const char *const skips[] = {"__morestack", "__morestack_non_split", NULL};

	static const char *const cuts[] = {"fork", "_Fork", "raise", "pthread_kill", NULL};
	static const char *const goes_on[] = {"longjmp", "kill", "read", NULL};

	check_all(foreign_name_cuts, twice, true);
	check_all(foreign_name_cuts, cuts, true);
	check_all(foreign_name_cuts, goes_on, false);
	check_all(foreign_name_returns_twice, twice, true);
	check_all(foreign_name_returns_twice, once, false);
	check_all(foreign_name_skips_return, skips, true);
	check_all(foreign_name_skips_return, twice, false);
}

static void test_short(void)
{
	static const char *const is_short[] = {"memcpy", "__memcpy_chk", "strlen", "malloc", "free",
		"calloc", "realloc", "_Znwm", "_ZdlPvm", "_ZnamSt11align_val_t", "sqrt", "sinf",
		"powl", "isalpha", "__ctype_b_loc", "__errno_location", "pthread_mutex_lock",
		"__pow_finite", "abs", "ynl", NULL};
	static const char *const is_long[] = {
		"read", "qsort", "regexec", "printf", "compress2", NULL};

	check_all(foreign_name_is_short, is_short, true);
	check_all(foreign_name_is_short, is_long, false);
}

static void test_waits(void)
{
	static const char *const waits[] = {"read", "write", "poll", "epoll_wait", "nanosleep",
		"fsync", "pthread_join", "pthread_cond_wait", "accept4", "__read_chk", "writev",
		"printf", "__printf_chk", "system", "waitpid", "usleep", "syscall", NULL};
	static const char *const others[] = {"memcpy", "qsort", "setjmp", "longjmp", NULL};

	check_all(foreign_name_waits, waits, true);
	check_all(foreign_name_waits, others, false);
}

int main(void)
{
	static const struct test tests[] = {
		{"functions that must not be timed are known", test_never_timed},
		{"functions that return twice or elsewhere are known", test_return},
		{"short functions are known", test_short},
		{"functions that wait are known", test_waits},
	};

	return RUN_TESTS(tests);
}
