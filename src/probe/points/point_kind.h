/* SPDX-License-Identifier: MIT */
/*
 * Kinds of trace points: a row of probe/kinds/point_kinds.c for each, with all that is done differently
 * from kind to kind. Whoever has a kind in hand asks its row; only what belongs to one kind alone (the
 * timer of intervals, the operands of USDT) names it.
 */
#ifndef WEIR_PROBE_POINTS_POINT_KIND_H
#define WEIR_PROBE_POINTS_POINT_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "probe/points/point.h"

/* What several kinds have in common. */
enum point_trait {
	POINT_IS_OURS = 1 << 0,		 /* runs in weir's own process: no mode, no filter */
	POINT_IN_FILES = 1 << 1,	 /* has targets: the mode is that of the file */
	POINT_OF_CALLS = 1 << 2,	 /* has numbers of system calls */
	POINT_OF_NAMES = 1 << 3,	 /* has names, each with code of its own */
	POINT_AT_RETURN = 1 << 4,	 /* of a function or system call */
	POINT_OF_KERNEL = 1 << 5,	 /* plain addresses are those of the kernel */
	POINT_AT_CODE = 1 << 6,		 /* at an instruction, whose registers are the context */
	POINT_ON_CPUS = 1 << 7,		 /* a perf event of every CPU; registers are the context */
	POINT_BY_BTF = 1 << 8,		 /* functions by their number in the kernel's BTF */
	POINT_IS_PERIODIC = 1 << 9,	 /* has a period */
	POINT_IS_FUNCTION = 1 << 10,	 /* a whole one, or a place in it */
	POINT_HAS_STACK_WORDS = 1 << 11, /* sargN */
	POINT_HAS_ERROR = 1 << 12,	 /* errno, erraddr, errline */
	POINT_IS_ONCE = 1 << 17,	 /* needs nothing that happens: it runs once and is over */
	/* These follow from the rest of the row: see point_traits(). */
	POINT_HAS_ARGUMENTS = 1 << 13, /* argN */
	POINT_HAS_FIELDS = 1 << 14,    /* args.NAME */
	POINT_HAS_RESULT = 1 << 15,    /* retval */
	POINT_HAS_STACK = 1 << 16      /* a traced program is what runs */
};

struct point_parse;
struct point_listing;
struct types;
struct type;
struct expr;
struct check_clause;
struct point_types;
struct probe_session;
struct run_program;

typedef bool point_parse_fn(struct point_parse *p);
typedef bool point_find_fn(struct point *out, const struct find_options *options,
	struct arena *arena, struct diags *d);
/* `rest` is the pattern behind the kind's word; details are those of a point listed as `name`. */
typedef int point_list_fn(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err);
typedef void point_detail_fn(struct point_listing *l, const char *name, const char *about);
typedef void point_types_fn(
	struct point_types *p, struct types *types, struct check_clause *clause);
typedef const struct type *point_argument_fn(struct check_clause *c, struct expr *e, uint32_t i);
typedef const struct type *point_value_fn(struct check_clause *c, struct expr *e);
typedef int point_attach_fn(
	struct probe_session *s, struct run_program *p, const char *name, struct err *err);

struct point_kind_def {
	const char *name;  /* "uprobe" */
	const char *alias; /* "u", or NULL */
	const char *older; /* another name: the first one is printed; or NULL */
	const char *form;  /* "uprobe:FILE:FUNCTION[+OFFSET]", for messages and -l */
	uint32_t traits;

	point_parse_fn *parse;	 /* the text; says what is wrong with it */
	point_find_fn *find;	 /* where it is on this machine; NULL: everywhere */
	point_list_fn *list;	 /* -l */
	point_detail_fn *detail; /* -l -v: its arguments, or NULL */

	point_types_fn *set_types;   /* where types are from, or NULL */
	point_argument_fn *argument; /* argN; NULL: there are none */
	point_value_fn *field;	     /* args.NAME: the EXPR_MEMBER; NULL: there are none */
	point_value_fn *result;	     /* retval, or NULL */

	uint32_t program_type, attach_type; /* enum bpf_prog_type, enum bpf_attach_type */
	point_attach_fn *attach; /* where there are names each of them; NULL: nothing is attached */
};
extern const struct point_kind_def point_kinds[N_POINT_KINDS];

static inline uint32_t point_traits(enum point_kind kind)
{
	const struct point_kind_def *def = &point_kinds[kind];

	return def->traits | (def->argument ? POINT_HAS_ARGUMENTS : 0) |
	       (def->field ? POINT_HAS_FIELDS : 0) | (def->result ? POINT_HAS_RESULT : 0) |
	       (def->traits & POINT_IS_OURS ? 0 : POINT_HAS_STACK);
}

/* Whether it has one of the traits. */
static inline bool point_has(enum point_kind kind, uint32_t traits)
{
	return point_traits(kind) & traits;
}

/* What the rows have, by the folder that it is in: points/, */
point_parse_fn point_parse_word_only, point_parse_period, point_parse_function, point_parse_usdt,
	point_parse_syscall, point_parse_tracepoint, point_parse_kernel, point_parse_count,
	point_parse_signal, point_parse_bench, point_parse_watchpoint, point_parse_iter;
point_find_fn find_functions, find_usdt, find_syscalls, find_tracepoints, find_kernel_functions;
point_list_fn points_list_form, points_list_names, points_list_files, points_list_tracepoints,
	points_list_syscalls, points_list_counts, points_list_iters, points_list_periods;
point_detail_fn points_detail_function, points_detail_kernel, points_detail_raw, points_detail_iter,
	points_detail_syscall, points_detail_tracepoint, points_detail_usdt;
/* compile/ (point_types.c and check_args.c), */
point_types_fn point_types_function, point_types_raw, point_types_tracepoint, point_types_usdt,
	point_types_syscall;
point_argument_fn check_register_argument, check_kprobe_argument, check_kernel_argument,
	check_usdt_argument, check_syscall_argument;
point_value_fn check_function_field, check_syscall_field, check_syscall_return_field,
	check_record_field, check_function_result, check_kprobe_result, check_fexit_result,
	check_syscall_result;
/* and run/. */
point_attach_fn attach_uprobe, attach_tracepoint, attach_raw, attach_kprobe, attach_function,
	attach_syscall, attach_profile, attach_counter, attach_watchpoint, attach_iter;

/* The kind of a word of the language, as `n` bytes. */
bool point_kind_find(const char *text, size_t n, enum point_kind *out);

#endif
