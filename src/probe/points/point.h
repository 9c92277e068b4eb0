/* SPDX-License-Identifier: MIT */
/*
 * Trace points: what a script's "uprobe:libc:mall*" means on this machine. Parsing a point needs
 * nothing but its text; finding it looks at files, symbols, notes and tracefs.
 */
#ifndef WEIR_PROBE_POINTS_POINT_H
#define WEIR_PROBE_POINTS_POINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/mem.h"
#include "probe/script/ast.h"
#include "probe/script/diag.h"

/* Each has a row in probe/kinds/point_kinds.c. Streams hold these numbers. */
enum point_kind {
	POINT_BEGIN,
	POINT_END,
	POINT_ERROR,
	POINT_INTERVAL, /* interval:s:1, interval:ms:10, interval:hz:5, interval:500ms */
	POINT_PROFILE,	/* profile:hz:99, profile:99, profile:ms:10 */
	POINT_UPROBE, /* uprobe:PATH:FUNC[+OFFSET], uprobe:PATH:0xADDRESS, uprobe:PATH@FILE:LINE */
	POINT_URETPROBE,      /* uretprobe:PATH:FUNC */
	POINT_USDT,	      /* usdt:PATH:[PROVIDER:]NAME */
	POINT_SYSCALL_ENTRY,  /* syscall:NAME:entry; tracepoint:syscalls:sys_enter_NAME */
	POINT_SYSCALL_RETURN, /* syscall:NAME:return; tracepoint:syscalls:sys_exit_NAME */
	POINT_TRACEPOINT,     /* tracepoint:CATEGORY:NAME */
	POINT_RAW_TRACEPOINT, /* rawtracepoint:NAME, rawtracepoint:CATEGORY:NAME */
	POINT_SOFTWARE,	      /* software:EVENT[:COUNT] */
	POINT_HARDWARE,	      /* hardware:EVENT[:COUNT] */
	POINT_KPROBE,	      /* kprobe:FUNC[+OFFSET] */
	POINT_KRETPROBE,
	POINT_FENTRY, /* fentry:FUNC, kfunc:FUNC, fentry:MODULE:FUNC */
	POINT_FEXIT,
	POINT_SELF,	  /* self:signal:SIGUSR1: a signal to weir */
	POINT_WATCHPOINT, /* watchpoint:ADDRESS:BYTES:rwx */
	POINT_ITER,	  /* iter:task, iter:task_file, iter:task_vma */
	POINT_BENCH,	  /* bench:NAME: again and again, with --bench */
	N_POINT_KINDS
};

/* The parts of a point's text, owned by the script's arena. */
struct point_spec {
	enum point_kind kind;
	const char
		*text; /* as the script has it, in the long form: what the builtin probe prints */
	const char *
		file; /* path, program on PATH or library name ("libc"); glob allowed; "" or NULL */
	const char *provider; /* USDT provider or NULL; tracepoint category; kernel module */
	const char *name;     /* function, probe, system call, tracepoint, event; glob allowed */
	uint64_t offset;      /* + OFFSET */
	uint64_t
		address; /* when has_address: of the linker; WATCHPOINT: of the process or kernel */
	bool has_address;
	bool is_glob;	    /* finding nothing is no error, and sites that fail are left out */
	uint64_t period_ns; /* INTERVAL, PROFILE */
	uint64_t count; /* SOFTWARE, HARDWARE: every so many; SELF: the signal; WATCHPOINT: bytes */
	struct place place;
};

/* Reports what is wrong with the text and gives false. */
bool point_parse(const struct point_text *text, struct arena *arena, struct point_spec *out,
	struct diags *d);

/* What the kernel does when a uprobe is hit here. */
enum site_cost {
	SITE_UNKNOWN,
	SITE_NOP5,	    /* a 5-byte nop (64-bit only): replaced by a call, cheapest */
	SITE_EMULATED,	    /* push, nop, jmp, call, ret, ...: the trap and nothing else */
	SITE_SINGLE_STEPPED /* executed out of line: 10 to 15 us here instead of 0.5 */
};

struct site {
	const char *function; /* or NULL */
	struct foff offset;   /* in the file */
	struct iaddr addr;
	uint32_t into_function; /* bytes from its first one */
	enum site_cost cost;
	uint64_t semaphore;	      /* USDT: its file offset, 0 = none */
	const char *operands;	      /* USDT: "-4@%eax 8@%rdi", else NULL */
	const char *provider, *probe; /* USDT */
	struct foff cheaper; /* a site in the same function, before anything changes, that is not
				single-stepped; 0 = none or not needed */
};

struct left_out {
	const char *function;
	struct foff offset;
	const char *why; /* "lock prefix: the kernel refuses it" */
};

/* One ELF file with all its sites of one point. */
struct target {
	const char *path;
	uint64_t device, inode, modified_ns;
	enum mode mode;
	struct site *sites;
	size_t n_sites;
	struct left_out *left_out;
	size_t n_left_out;
};

/* Where a point is on this machine. Owned by its arena. */
struct point {
	struct point_spec spec;
	struct target *targets; /* UPROBE, URETPROBE, USDT */
	size_t n_targets;
	const char **names; /* TRACEPOINT "sched:sched_switch", RAW.., KPROBE, FENTRY: those that
			       match */
	size_t n_names;
	uint64_t *numbers[N_MODES]; /* SYSCALL: bit set of numbers (SYSCALL_NUMBERS_MAX bits) */
	bool is_all_calls;	    /* SYSCALL: every call, so nothing has to be compared */
};

struct find_options {
	const pid_t
		*pids; /* -p: their files come first; a relative library name is looked up there */
	size_t n_pids;
	const char *command; /* -c: file that will run, or NULL */
};

/* Files, sites and names of a point. What is not there is reported (an error, unless the spec is a
 * glob: then a warning). A library's short name ("libc", "libc.so.6", "c") gives both its 64-bit
 * and its 32-bit file where the machine has both; a path gives that file. x32 files are refused. */
bool point_find(const struct point_spec *spec, const struct find_options *options,
	struct arena *arena, struct point *out, struct diags *d);

/* System calls: whether any of those that are meant exists in the mode. */
bool point_has_calls(const struct point *p, enum mode mode);

/* -l: calls `each` with the long form of every point that one of the patterns matches
 * ("uprobe:libc:str*", "syscall:*", "*sleep*"), sorted and each once, with `details` ("int fd") when
 * `verbose`; "struct NAME", "union NAME" and "enum NAME" list types of the kernel. A pattern that
 * matches nothing is a failure; what those before it have found is handed out nevertheless. */
typedef void points_list_each_fn(
	void *ctx, const char *name, const char *const *details, size_t n_details);
int points_list(const char *const *patterns, size_t n_patterns, const struct find_options *options,
	bool verbose, points_list_each_fn *each, void *ctx, struct err *err);

#endif
