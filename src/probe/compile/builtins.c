/* SPDX-License-Identifier: MIT */
/*
 * The two tables of the language: names and functions. A name or function is added here; what it
 * means at a trace point is in check_name.c and check_call.c, its code in the lowering.
 */
#include "probe/compile/check.h"
#include "probe/points/point_kind.h"

#define EVERYWHERE 0

#define ARG_ROW(n)                                                                                 \
	{                                                                                          \
		"arg" #n, BUILTIN_ARG, POINT_HAS_ARGUMENTS, "argument " #n " as a number"          \
	}
#define SARG_ROW(n)                                                                                \
	{                                                                                          \
		"sarg" #n, BUILTIN_SARG, POINT_HAS_STACK_WORDS, "word " #n " of the stack"         \
	}

const struct builtin builtins[] = {
	{"pid", BUILTIN_PID, EVERYWHERE, "process"},
	{"tid", BUILTIN_TID, EVERYWHERE, "thread"},
	{"uid", BUILTIN_UID, EVERYWHERE, "user"},
	{"gid", BUILTIN_GID, EVERYWHERE, "group"},
	{"ppid", BUILTIN_PPID, EVERYWHERE, "parent process"},
	{"comm", BUILTIN_COMM, EVERYWHERE, "name of the thread"},
	{"execname", BUILTIN_COMM, EVERYWHERE, "the same as comm"},
	{"nsecs", BUILTIN_NSECS, EVERYWHERE, "nanoseconds since boot"},
	{"timestamp", BUILTIN_NSECS, EVERYWHERE, "the same as nsecs"},
	{"elapsed", BUILTIN_ELAPSED, EVERYWHERE, "nanoseconds since begin"},
	{"cpu", BUILTIN_CPU, EVERYWHERE, "number of the processor"},
	{"ncpus", BUILTIN_NCPUS, EVERYWHERE, "processors of the machine that compiles"},
	{"rand", BUILTIN_RAND, EVERYWHERE, "a random number of 32 bits"},
	{"cgroup", BUILTIN_CGROUP, EVERYWHERE, "id of the control group"},
	{"probe", BUILTIN_PROBE, EVERYWHERE, "the trace point"},
	{"func", BUILTIN_FUNC, POINT_IN_FILES | POINT_IS_FUNCTION, "the function"},
	{"bits", BUILTIN_BITS, EVERYWHERE, "32 or 64: the kind of the program"},
	{"ustack", BUILTIN_USTACK, POINT_HAS_STACK, "stack of the program"},
	{"kstack", BUILTIN_KSTACK, POINT_HAS_STACK, "stack of the kernel"},
	{"stack", BUILTIN_KSTACK, POINT_HAS_STACK, "the same as kstack"},
	{"curtask", BUILTIN_CURTASK, EVERYWHERE, "the kernel's struct task_struct of the thread"},
	ARG_ROW(0),
	ARG_ROW(1),
	ARG_ROW(2),
	ARG_ROW(3),
	ARG_ROW(4),
	ARG_ROW(5),
	ARG_ROW(6),
	ARG_ROW(7),
	ARG_ROW(8),
	ARG_ROW(9),
	SARG_ROW(0),
	SARG_ROW(1),
	SARG_ROW(2),
	SARG_ROW(3),
	SARG_ROW(4),
	SARG_ROW(5),
	SARG_ROW(6),
	SARG_ROW(7),
	SARG_ROW(8),
	SARG_ROW(9),
	{"retval", BUILTIN_RETVAL, POINT_HAS_RESULT, "what the function or call returned"},
	{"args", BUILTIN_ARGS, POINT_HAS_FIELDS, "arguments by name: args.NAME"},
	{"ctx", BUILTIN_CTX, EVERYWHERE, "address of the kernel's record"},
	{"errno", BUILTIN_ERRNO, POINT_HAS_ERROR, "number of the error"},
	{"erraddr", BUILTIN_ERRADDR, POINT_HAS_ERROR, "address that could not be read"},
	{"errline", BUILTIN_ERRLINE, POINT_HAS_ERROR, "line of the script that failed"},
	{NULL, 0, 0, NULL},
};

const struct function_def function_defs[] = {
	{"printf", FUNCTION_PRINTF, 1, 64, EVERYWHERE, "printf(FORMAT, VALUE, ...)"},
	{"print", FUNCTION_PRINT, 1, 3, EVERYWHERE, "print(@MAP [, TOP [, DIV]]) or print(VALUE)"},
	{"clear", FUNCTION_CLEAR, 1, 1, EVERYWHERE, "clear(@MAP)"},
	{"zero", FUNCTION_ZERO, 1, 1, EVERYWHERE, "zero(@MAP)"},
	{"delete", FUNCTION_DELETE, 1, 2, EVERYWHERE, "delete(@MAP[KEY]) or delete(@MAP, KEY)"},
	{"has_key", FUNCTION_HAS_KEY, 2, 2, EVERYWHERE, "has_key(@MAP, KEY)"},
	{"len", FUNCTION_LEN, 1, 1, EVERYWHERE, "len(@MAP)"},
	{"exit", FUNCTION_EXIT, 0, 1, EVERYWHERE, "exit([STATUS])"},
	{"time", FUNCTION_TIME, 0, 1, EVERYWHERE, "time([FORMAT])"},
	{"strftime", FUNCTION_STRFTIME, 2, 2, EVERYWHERE, "strftime(FORMAT, NANOSECONDS)"},
	{"cat", FUNCTION_CAT, 1, 64, EVERYWHERE, "cat(FORMAT, VALUE, ...)"},
	{"system", FUNCTION_SYSTEM, 1, 64, EVERYWHERE, "system(FORMAT, VALUE, ...)"},
	{"join", FUNCTION_JOIN, 1, 2, EVERYWHERE, "join(POINTER [, TEXT])"},
	{"str", FUNCTION_STR, 1, 2, EVERYWHERE, "str(POINTER [, BYTES])"},
	{"copyinstr", FUNCTION_STR, 1, 2, EVERYWHERE, "copyinstr(POINTER [, BYTES])"},
	{"buf", FUNCTION_BUF, 1, 2, EVERYWHERE, "buf(POINTER, BYTES)"},
	{"kstr", FUNCTION_KSTR, 1, 2, EVERYWHERE, "kstr(POINTER [, BYTES])"},
	{"kptr", FUNCTION_KPTR, 1, 1, EVERYWHERE, "kptr(POINTER)"},
	{"uptr", FUNCTION_UPTR, 1, 1, EVERYWHERE, "uptr(POINTER)"},
	{"usym", FUNCTION_USYM, 1, 1, EVERYWHERE, "usym(ADDRESS)"},
	{"ksym", FUNCTION_KSYM, 1, 1, EVERYWHERE, "ksym(ADDRESS)"},
	{"uaddr", FUNCTION_UADDR, 1, 1, POINT_IN_FILES, "uaddr(\"NAME\")"},
	{"kaddr", FUNCTION_KADDR, 1, 1, EVERYWHERE, "kaddr(\"NAME\")"},
	{"reg", FUNCTION_REG, 1, 1, POINT_AT_CODE, "reg(\"NAME\")"},
	{"ustack", FUNCTION_USTACK, 0, 2, POINT_HAS_STACK, "ustack([FRAMES])"},
	{"kstack", FUNCTION_KSTACK, 0, 2, POINT_HAS_STACK, "kstack([FRAMES])"},
	{"stack", FUNCTION_KSTACK, 0, 2, POINT_HAS_STACK, "stack([FRAMES])"},
	{"strlen", FUNCTION_STRLEN, 1, 1, EVERYWHERE, "strlen(STRING)"},
	{"strncmp", FUNCTION_STRNCMP, 3, 3, EVERYWHERE, "strncmp(STRING, STRING, BYTES)"},
	{"strcmp", FUNCTION_STRCMP, 2, 2, EVERYWHERE, "strcmp(STRING, STRING)"},
	{"strcontains", FUNCTION_STRCONTAINS, 2, 2, EVERYWHERE, "strcontains(STRING, \"TEXT\")"},
	{"ntop", FUNCTION_NTOP, 1, 2, EVERYWHERE, "ntop([AF_INET | AF_INET6,] ADDRESS)"},
	{"bswap", FUNCTION_BSWAP, 1, 1, EVERYWHERE, "bswap(INTEGER)"},
	{"signal", FUNCTION_SIGNAL, 1, 1, POINT_HAS_STACK, "signal(NUMBER)"},
	{"nsecs", FUNCTION_NSECS, 0, 1, EVERYWHERE, "nsecs([boot])"},
	{"count", FUNCTION_COUNT, 0, 0, EVERYWHERE, "count()"},
	{"sum", FUNCTION_SUM, 1, 1, EVERYWHERE, "sum(INTEGER)"},
	{"min", FUNCTION_MIN, 1, 1, EVERYWHERE, "min(INTEGER)"},
	{"max", FUNCTION_MAX, 1, 1, EVERYWHERE, "max(INTEGER)"},
	{"avg", FUNCTION_AVG, 1, 1, EVERYWHERE, "avg(INTEGER)"},
	{"stats", FUNCTION_STATS, 1, 1, EVERYWHERE, "stats(INTEGER)"},
	{"hist", FUNCTION_HIST, 1, 1, EVERYWHERE, "hist(INTEGER)"},
	{"quantize", FUNCTION_HIST, 1, 1, EVERYWHERE, "quantize(INTEGER)"},
	{"lhist", FUNCTION_LHIST, 4, 4, EVERYWHERE, "lhist(INTEGER, MIN, MAX, STEP)"},
	{"lquantize", FUNCTION_LHIST, 4, 4, EVERYWHERE, "lquantize(INTEGER, MIN, MAX, STEP)"},
	{"enable", FUNCTION_ENABLE, 1, 1, EVERYWHERE, "enable(CLAUSE)"},
	{"disable", FUNCTION_DISABLE, 1, 1, EVERYWHERE, "disable(CLAUSE)"},
	{NULL, 0, 0, 0, 0, NULL},
};
