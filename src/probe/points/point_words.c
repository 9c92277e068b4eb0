/* SPDX-License-Identifier: MIT */
/* The words that a trace point begins with: the long one is what messages and listings use. */
#include "probe/points/point.h"

const struct point_word point_words[] = {
	{"begin", "BEGIN", POINT_BEGIN, "begin"},
	{"end", "END", POINT_END, "end"},
	{"error", "ERROR", POINT_ERROR, "error"},
	{"interval", "i", POINT_INTERVAL,
		"interval:s:SECONDS, interval:ms:N, interval:us:N, interval:hz:N"},
	{"profile", "p", POINT_PROFILE, "profile:hz:N, profile:s:N, profile:ms:N, profile:us:N"},
	{"uprobe", "u", POINT_UPROBE, "uprobe:FILE:FUNCTION[+OFFSET]"},
	{"uretprobe", "ur", POINT_URETPROBE, "uretprobe:FILE:FUNCTION"},
	{"usdt", "U", POINT_USDT, "usdt:FILE:[PROVIDER:]NAME"},
	{"syscall", NULL, POINT_SYSCALL_ENTRY, "syscall:NAME:entry, syscall:NAME:return"},
	{"tracepoint", "t", POINT_TRACEPOINT, "tracepoint:CATEGORY:NAME"},
	{"rawtracepoint", "rt", POINT_RAW_TRACEPOINT, "rawtracepoint:[CATEGORY:]NAME"},
	{"software", "s", POINT_SOFTWARE, "software:EVENT[:COUNT]"},
	{"hardware", "h", POINT_HARDWARE, "hardware:EVENT[:COUNT]"},
	{"kprobe", "k", POINT_KPROBE, "kprobe:[MODULE:]FUNCTION[+OFFSET]"},
	{"kretprobe", "kr", POINT_KRETPROBE, "kretprobe:[MODULE:]FUNCTION"},
	{"fentry", "f", POINT_FENTRY, "fentry:[MODULE:]FUNCTION"},
	{"fexit", "fr", POINT_FEXIT, "fexit:[MODULE:]FUNCTION"},
	/* Older names; the first word of a kind is the one that is printed. */
	{"kfunc", NULL, POINT_FENTRY, "fentry:[MODULE:]FUNCTION"},
	{"kretfunc", NULL, POINT_FEXIT, "fexit:[MODULE:]FUNCTION"},
	{NULL, NULL, N_POINT_KINDS, NULL},
};
