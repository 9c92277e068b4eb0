/* SPDX-License-Identifier: MIT */
/* Names that stand for facts of the moment: the process, the time, the point and its arguments. */
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "probe/compile/builtin.h"
#include "probe/points/syscalls.h"

#define USER_RING 3 /* lowest bits of the code segment */

/* What the helper gives that the row names. */
static ir_value lower_helper(struct lower *l, const struct expr *e)
{
	return ir_call(&l->ir, lower_row(l, e)->detail, NULL, 0);
}

/* --- time, machine, point --------------------------------------------------------------------- */

static ir_value elapsed(struct lower *l, const struct expr *e)
{
	ir_value began = lower_fact(l, FACT_BEGIN);

	return ir_alu(&l->ir, BPF_SUB, lower_helper(l, e), began);
}

static const struct type *check_bits(struct check_clause *c, struct expr *e)
{
	return check_set_constant(c, e, check_int(c, 8, true), c->mode == MODE_32 ? 32 : 64);
}

/* A stream that is run elsewhere has the number of this machine. */
static const struct type *check_ncpus(struct check_clause *c, struct expr *e)
{
	return check_set_constant(c, e, check_int(c, 8, true), (uint64_t)get_nprocs_conf());
}

static const struct type *check_site(struct check_clause *c, struct expr *e)
{
	return types_special(check_types(c), (enum type_kind)check_row(c, e)->detail);
}

static ir_value lower_site(struct lower *l, const struct expr *e)
{
	(void)e;
	l->uses_site = true;
	return ir_word(&l->ir, STREAM_WORD_SITE);
}

static const char *kind_word(enum point_kind kind)
{
	return kind == POINT_BEGIN || kind == POINT_END ? "special" : point_kinds[kind].name;
}

static const struct type *check_probetype(struct check_clause *c, struct expr *e)
{
	(void)e;
	return types_string(check_types(c), strlen(kind_word(c->point->spec.kind)));
}

static void probetype_into(
	struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	const char *word = kind_word(l->clause->point->spec.kind);

	(void)e;
	lower_literal(l, word, strlen(word), mem, at, n);
}

#define POINT_KNOWS_RING                                                                           \
	(POINT_IS_OURS | POINT_AT_CODE | POINT_ON_CPUS | POINT_OF_CALLS | POINT_OF_NAMES)

/* Tracepoints, system calls and functions of the kernel are reached in the kernel only. */
static const struct type *check_usermode(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_int(c, 1, false);

	if (!point_has(c->point->spec.kind, POINT_AT_CODE | POINT_ON_CPUS))
		check_set_constant(c, e, type, point_has(c->point->spec.kind, POINT_IS_OURS));
	return type;
}

static ir_value lower_usermode(struct lower *l, const struct expr *e)
{
	(void)e;
	return ir_set_imm(&l->ir, BPF_JEQ,
		ir_alu_imm(&l->ir, BPF_AND, ir_context(&l->ir, PT_CS, 8, false), USER_RING),
		USER_RING);
}

/* In the kernel's memory, also where weir itself runs the clause. Of an iterator it is a structure of its
 * own: struct bpf_iter__task, ... */
static const struct type *check_context(struct check_clause *c, struct expr *e)
{
	const struct type *address = types_pointer(check_types(c), check_void(c), SPACE_KERNEL);
	const struct type *type;
	char *tag;

	(void)e;
	if (c->point->spec.kind != POINT_ITER)
		return address;
	tag = arena_printf(
		c->session->arena, "bpf_iter__%s", c->point->spec.name + strlen("bpf_iter_"));
	type = check_struct_named(check_types(c), "struct", tag);
	return type ? types_pointer(check_types(c), type, SPACE_KERNEL) : address;
}

static ir_value lower_context(struct lower *l, const struct expr *e)
{
	(void)e;
	return ir_context_address(&l->ir);
}

/* --- arguments and results (check_args.c) ----------------------------------------------------- */

static uint32_t number_behind(const struct expr *e, const char *word)
{
	return (uint32_t)strtoul(e->name + strlen(word), NULL, 10);
}

static const struct type *check_arg(struct check_clause *c, struct expr *e)
{
	return point_kinds[c->point->spec.kind].argument(c, e, number_behind(e, "arg"));
}

static void arg_elsewhere(struct check_clause *c, struct expr *e)
{
	if (c->point->spec.kind == POINT_URETPROBE)
		check_hint(c, "save it when the function is entered: self->x = %s", e->name);
	else if (c->point->spec.kind == POINT_TRACEPOINT)
		check_hint(c, "a tracepoint has fields: args.NAME");
	else if (c->point->spec.kind == POINT_SYSCALL_RETURN)
		check_hint(c, "save it at syscall:NAME:entry: self->x = %s", e->name);
}

static const struct type *check_sarg(struct check_clause *c, struct expr *e)
{
	return check_stack_word(c, e, number_behind(e, "sarg"));
}

/* The name of argument i; NULL behind the last. */
static const char *argument_name(struct check_clause *c, uint32_t i)
{
	const struct type *of = c->fields ? c->fields : c->function;
	const struct syscall_arg *args = c->syscall ? syscall_args(c->mode, c->syscall) : NULL;

	if (of)
		return i < of->n_fields ? of->fields[i].name ? of->fields[i].name : "" : NULL;
	if (point_has(c->point->spec.kind, POINT_AT_RETURN))
		return i ? NULL : "ret";
	return args && i < SYSCALL_ARGS_MAX ? args[i].name : NULL;
}

static struct expr *new_argument(struct check_clause *c, const struct expr *e, const char *name)
{
	struct arena *arena = c->session->arena;
	struct expr *member = arena_zalloc(arena, sizeof(*member)),
		    *of = arena_zalloc(arena, sizeof(*of));

	*of = (struct expr){.kind = EXPR_NAME, .place = e->place, .name = e->name};
	*member =
		(struct expr){.kind = EXPR_MEMBER, .place = e->place, .name = name, .label = name};
	member->a = of;
	return member;
}

/* args alone: the record of all that have a name; what every tracepoint has is left out. */
static const struct type *check_args(struct check_clause *c, struct expr *e)
{
	struct expr *record = arena_zalloc(c->session->arena, sizeof(*record)), **last;
	const char *name;

	*record = (struct expr){.kind = EXPR_TUPLE, .place = e->place};
	last = &record->args;
	for (uint32_t i = 0; (name = argument_name(c, i)); i++) {
		if (!*name || !strncmp(name, "common_", strlen("common_")))
			continue;
		*last = new_argument(c, e, arena_strdup(c->session->arena, name));
		last = &(*last)->next;
		record->n_args++;
	}
	if (!record->n_args) {
		check_error(c, e->place, "unknown-field", "the arguments of %s are not known",
			check_point_text(c));
		return check_hint(c, "arg0, arg1, ... may be there");
	}
	check_meaning(c, e)->record = record;
	return check_expr(c, record);
}

static void args_elsewhere(struct check_clause *c, struct expr *e)
{
	(void)e;
	if (c->point->spec.kind == POINT_URETPROBE)
		check_hint(c, "save it when the function is entered: self->x = args.NAME");
	else if (c->point->spec.kind == POINT_USDT)
		check_hint(c, "the arguments of USDT probes have no names: arg0, arg1, ...");
	else
		check_hint(c,
			"args exists where functions and system calls are entered, and at tracepoints");
}

static void retval_elsewhere(struct check_clause *c, struct expr *e)
{
	(void)e;
	check_hint(c, "retval exists at uretprobe, syscall:NAME:return, kretprobe, fexit");
}

/* --- error { } -------------------------------------------------------------------------------- */

static const struct type *check_errno(struct check_clause *c, struct expr *e)
{
	(void)e;
	return check_int(c, 4, true);
}

static ir_value lower_error(struct lower *l, const struct expr *e)
{
	return l->error[lower_row(l, e)->detail];
}

static void error_elsewhere(struct check_clause *c, struct expr *e)
{
	(void)e;
	check_hint(c, "it exists in error { } only");
}

/* --- the table -------------------------------------------------------------------------------- */

/* A number of so many bytes, out of what a helper of the kernel gives. */
#define CALL(name, phrase, n_bytes, code, helper)                                                  \
	{                                                                                          \
		name, .help = phrase, .bytes = n_bytes, .lower = code, .detail = BPF_FUNC_##helper \
	}
#define ARG(n)                                                                                     \
	{                                                                                          \
		"arg" #n, .help = "argument " #n " as a number", .points = POINT_HAS_ARGUMENTS,              \
			  .check = check_arg, .not_here = arg_elsewhere                            \
	}
#define SARG(n)                                                                                    \
	{                                                                                          \
		"sarg" #n, .help = "word " #n " of the stack", .points = POINT_HAS_STACK_WORDS,               \
			   .check = check_sarg                                                     \
	}
#define TEN(ROW, d)                                                                                \
	ROW(d##0), ROW(d##1), ROW(d##2), ROW(d##3), ROW(d##4), ROW(d##5), ROW(d##6), ROW(d##7),    \
		ROW(d##8), ROW(d##9)
#define TWENTY(ROW) TEN(ROW, ), TEN(ROW, 1)
#define IN_ERROR(fact)                                                                             \
	.points = POINT_HAS_ERROR, .not_here = error_elsewhere, .lower = lower_error, .detail = fact

const struct builtin name_builtins[] = {
	CALL("elapsed", "nanoseconds since begin", 8, elapsed, ktime_get_ns),
	CALL("cpu", "number of the processor", 4, lower_helper, get_smp_processor_id),
	{"ncpus", .help = "processors of the machine that compiles", .check = check_ncpus},
	CALL("rand", "a random number of 32 bits", 4, lower_helper, get_prandom_u32),
	CALL("numaid", "number of the NUMA node", 4, lower_helper, get_numa_node_id),
	CALL("jiffies", "the kernel's jiffies", 8, lower_helper, jiffies64),
	{"probe", .help = "the trace point", .check = check_site, .lower = lower_site,
		.detail = TYPE_PROBE},
	{"func", .help = "the function", .points = POINT_IN_FILES | POINT_IS_FUNCTION,
		.check = check_site, .lower = lower_site, .detail = TYPE_FUNC},
	{"probetype", .help = "the kind of the trace point", .check = check_probetype,
		.into = probetype_into},
	{"usermode", .help = "1 where the program itself was interrupted, 0 in the kernel",
		.points = POINT_KNOWS_RING, .check = check_usermode, .lower = lower_usermode},
	{"bits", .help = "32 or 64: the kind of the program", .check = check_bits},
	TWENTY(ARG),
	TWENTY(SARG),
	{"retval", .help = "what the function or call returned", .points = POINT_HAS_RESULT,
		.check = check_retval, .not_here = retval_elsewhere},
	{"args", .help = "arguments by name: args.NAME, and all as a record",
		.points = POINT_HAS_FIELDS, .check = check_args, .not_here = args_elsewhere},
	{"ctx", .help = "address of the kernel's record", .check = check_context,
		.lower = lower_context},
	{"errno", .help = "number of the error", IN_ERROR(ERROR_NUMBER), .check = check_errno},
	{"erraddr", .help = "address that could not be read", IN_ERROR(ERROR_ADDRESS), .bytes = 8},
	{"errline", .help = "line of the script that failed", IN_ERROR(ERROR_LINE), .bytes = 4},
	{.name = NULL},
};
