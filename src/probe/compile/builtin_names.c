/* SPDX-License-Identifier: MIT */
/* Names that stand for facts of the moment: the process, the time, the point and its arguments. */
#include <errno.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "probe/compile/builtin.h"

#define COMM_BYTES 16

/* --- the process ------------------------------------------------------------------------------ */

/* What the helper gives that the row names. */
static ir_value lower_helper(struct lower *l, const struct expr *e)
{
	return ir_call(&l->ir, lower_row(l, e)->detail, NULL, 0);
}

static ir_value lower_half(struct lower *l, const struct expr *e)
{
	return ir_extend(&l->ir, lower_helper(l, e), 4, false);
}

static ir_value upper_half(struct lower *l, const struct expr *e)
{
	return ir_alu_imm(&l->ir, BPF_RSH, lower_helper(l, e), 32);
}

static ir_value parent(struct lower *l, const struct expr *e)
{
	struct object o = {.kind = OBJECT_ADDRESS, .space = SPACE_KERNEL};
	int64_t parent_at = point_types_kernel_offset(l->point_types, "task_struct", "real_parent"),
		tgid_at = point_types_kernel_offset(l->point_types, "task_struct", "tgid");

	if (parent_at < 0 || tgid_at < 0) {
		lower_fail(l, FAILURE_OTHER, EOPNOTSUPP);
		return ir_const(&l->ir, 0);
	}
	o.address = lower_helper(l, e);
	o.offset = parent_at;
	o.address = lower_read(l, &o, 8, false);
	o.offset = tgid_at;
	return lower_read(l, &o, 4, false);
}

static const struct type *check_comm(struct check_clause *c, struct expr *e)
{
	(void)e;
	return types_string(check_types(c), COMM_BYTES);
}

static void comm_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	ir_mem name;

	(void)e;
	if (n >= COMM_BYTES) {
		ir_zero(&l->ir, mem, (int32_t)at, n);
		IR_CALL_(&l->ir, BPF_FUNC_get_current_comm, IR_M(mem, at), IR_I(COMM_BYTES));
		return;
	}
	name = ir_new_memory(&l->ir, COMM_BYTES);
	IR_CALL_(&l->ir, BPF_FUNC_get_current_comm, IR_M(name, 0), IR_I(COMM_BYTES));
	lower_copy_memory(l, name, 0, mem, at, n);
}

static const struct type *check_curtask(struct check_clause *c, struct expr *e)
{
	const struct type *task = check_struct_named(check_types(c), "struct", "task_struct");

	(void)e;
	return types_pointer(check_types(c), task ? task : check_void(c), SPACE_KERNEL);
}

/* --- time, machine, point --------------------------------------------------------------------- */

static ir_value elapsed(struct lower *l, const struct expr *e)
{
	ir_mem key = lower_index(l, 0);
	ir_label found = ir_new_label(&l->ir);
	ir_value p, began;

	p = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_FACTS), IR_M(key, 0));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, found);
	lower_fail(l, FAILURE_OTHER, ENOENT);
	ir_place_label(&l->ir, found);
	began = ir_load_at(&l->ir, p, 0, 8, false);
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

/* Of an iterator it is a structure of its own: struct bpf_iter__task, ... */
static const struct type *check_context(struct check_clause *c, struct expr *e)
{
	const struct type *type;
	char *tag;

	(void)e;
	if (c->point->spec.kind != POINT_ITER)
		return check_int(c, 8, false);
	tag = arena_printf(
		c->session->arena, "bpf_iter__%s", c->point->spec.name + strlen("bpf_iter_"));
	type = check_struct_named(check_types(c), "struct", tag);
	return type ? types_pointer(check_types(c), type, SPACE_KERNEL) : check_int(c, 8, false);
}

static ir_value lower_context(struct lower *l, const struct expr *e)
{
	(void)e;
	return ir_context_address(&l->ir);
}

/* --- arguments and results (check_args.c) ----------------------------------------------------- */

static const struct type *check_arg(struct check_clause *c, struct expr *e)
{
	return point_kinds[c->point->spec.kind].argument(c, e, (uint32_t)(e->name[3] - '0'));
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
	return check_stack_word(c, e, (uint32_t)(e->name[4] - '0'));
}

static const struct type *check_args(struct check_clause *c, struct expr *e)
{
	check_error(c, e->place, "type", "'args' needs the name of an argument");
	return check_hint(c, "write args.NAME");
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
#define TEN(ROW) ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)
#define IN_ERROR(fact)                                                                             \
	.points = POINT_HAS_ERROR, .not_here = error_elsewhere, .lower = lower_error, .detail = fact

const struct builtin name_builtins[] = {
	CALL("pid", "process", 4, upper_half, get_current_pid_tgid),
	CALL("tid", "thread", 4, lower_half, get_current_pid_tgid),
	CALL("uid", "user", 4, lower_half, get_current_uid_gid),
	CALL("gid", "group", 4, upper_half, get_current_uid_gid),
	CALL("ppid", "parent process", 4, parent, get_current_task),
	{"comm", .help = "name of the thread", .check = check_comm, .into = comm_into},
	{"execname", .help = "the same as comm", .check = check_comm, .into = comm_into},
	CALL("nsecs", "nanoseconds since boot", 8, lower_helper, ktime_get_boot_ns),
	CALL("timestamp", "the same as nsecs", 8, lower_helper, ktime_get_boot_ns),
	CALL("elapsed", "nanoseconds since begin", 8, elapsed, ktime_get_ns),
	CALL("cpu", "number of the processor", 4, lower_helper, get_smp_processor_id),
	{"ncpus", .help = "processors of the machine that compiles", .check = check_ncpus},
	CALL("rand", "a random number of 32 bits", 4, lower_helper, get_prandom_u32),
	CALL("cgroup", "id of the control group", 8, lower_helper, get_current_cgroup_id),
	{"probe", .help = "the trace point", .check = check_site, .lower = lower_site,
		.detail = TYPE_PROBE},
	{"func", .help = "the function", .points = POINT_IN_FILES | POINT_IS_FUNCTION,
		.check = check_site, .lower = lower_site, .detail = TYPE_FUNC},
	{"bits", .help = "32 or 64: the kind of the program", .check = check_bits},
	{"curtask", .help = "the kernel's struct task_struct of the thread", .check = check_curtask,
		.lower = lower_helper, .detail = BPF_FUNC_get_current_task},
	TEN(ARG),
	TEN(SARG),
	{"retval", .help = "what the function or call returned", .points = POINT_HAS_RESULT,
		.check = check_retval, .not_here = retval_elsewhere},
	{"args", .help = "arguments by name: args.NAME", .points = POINT_HAS_FIELDS,
		.check = check_args, .not_here = args_elsewhere},
	{"ctx", .help = "address of the kernel's record", .check = check_context,
		.lower = lower_context},
	{"errno", .help = "number of the error", IN_ERROR(ERROR_NUMBER), .check = check_errno},
	{"erraddr", .help = "address that could not be read", IN_ERROR(ERROR_ADDRESS), .bytes = 8},
	{"errline", .help = "line of the script that failed", IN_ERROR(ERROR_LINE), .bytes = 4},
	{.name = NULL},
};
