/* SPDX-License-Identifier: MIT */
/*
 * The process and the thread that run, and their kin. With an argument (a struct task_struct, out of
 * curtask or an iterator) they are about another thread. Numbers of processes are those that weir
 * itself would see: where it runs in a namespace of its own, the kernel translates them.
 */
#include <errno.h>
#include <string.h>

#include "probe/compile/builtin.h"

#define COMM_BYTES 16

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

/* --- pid, tid --------------------------------------------------------------------------------- */

static const char *const namespaces[] = {"curr_ns", "init", NULL};

static const struct type *check_number(struct check_clause *c, struct expr *e)
{
	return check_word(c, e, namespaces) < 0 ? check_bad(c) : check_int(c, 4, false);
}

/* A process outside of our namespace has no number in it. */
static ir_value lower_number(struct lower *l, const struct expr *e)
{
	enum task_number which = (enum task_number)lower_row(l, e)->detail;
	ir_value number, rc;

	if (e->args && !strcmp(e->args->name, namespaces[1]))
		return lower_kernel_task_number(l, which);
	number = lower_task_number(l, which, &rc);
	if (rc)
		lower_fail_unless_ok(l, rc, false, FAILURE_OTHER, 0);
	return number;
}

/* --- the kernel's struct task_struct ---------------------------------------------------------- */

/* That of the script, when it declares one. */
static const struct type *check_curtask(struct check_clause *c, struct expr *e)
{
	struct decl_type decl = {.kind = DECL_STRUCT, .name = "task_struct", .place = e->place};
	const struct type *task =
		types_has_tag(check_types(c), decl.name)
			? check_declared(c, &decl, SPACE_KERNEL)
			: types_kernel_struct(check_types(c), decl.name, SPACE_KERNEL);

	return types_pointer(check_types(c), task ? task : check_void(c), SPACE_KERNEL);
}

/* A field of the thread that is the argument, or of the one that runs. */
static bool check_task(struct check_clause *c, struct expr *e)
{
	const struct type *type;

	if (!e->args)
		return true;
	if (!check_scalar(c, e->args, "a thread"))
		return false;
	type = e->args->type[c->mode];
	if (type->kind == TYPE_POINTER && type->space == SPACE_KERNEL)
		return true;
	check_error(c, e->args->place, "type", "%s() needs a struct task_struct, and this is a %s",
		e->name, type_text(c, type));
	check_hint(c, "curtask is that of the thread that runs");
	return false;
}

static int64_t task_offset(struct lower *l, const char *field)
{
	return point_types_kernel_offset(l->point_types, "task_struct", field);
}

/* Where `field` is of the thread's kin: its parent, the first thread of its process. */
static bool kin_field(struct lower *l, const struct expr *e, const char *kin, const char *field,
	struct object *out)
{
	int64_t kin_at = task_offset(l, kin), field_at = task_offset(l, field);

	*out = (struct object){.kind = OBJECT_ADDRESS, .space = SPACE_KERNEL, .offset = kin_at};
	if (kin_at < 0 || field_at < 0) {
		lower_fail(l, FAILURE_OTHER, EOPNOTSUPP);
		return false;
	}
	out->address = e->args ? lower_value(l, e->args)
			       : ir_call(&l->ir, BPF_FUNC_get_current_task, NULL, 0);
	out->address = lower_read(l, out, 8, false);
	out->offset = field_at;
	return true;
}

static const char *kin_of(struct lower *l, const struct expr *e)
{
	return lower_row(l, e)->detail ? "group_leader" : "real_parent";
}

static const struct type *check_kin_number(struct check_clause *c, struct expr *e)
{
	return check_task(c, e) ? check_int(c, 4, false) : check_bad(c);
}

static ir_value kin_number(struct lower *l, const struct expr *e)
{
	struct object o;

	if (!kin_field(l, e, kin_of(l, e), "tgid", &o))
		return ir_const(&l->ir, 0);
	return lower_read(l, &o, 4, false);
}

static const struct type *check_kin_name(struct check_clause *c, struct expr *e)
{
	return check_task(c, e) ? types_string(check_types(c), COMM_BYTES) : check_bad(c);
}

static void kin_name_into(
	struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	struct object o;

	ir_zero(&l->ir, mem, (int32_t)at, n);
	if (kin_field(l, e, kin_of(l, e), "comm", &o))
		lower_read_text(l, SPACE_KERNEL, lower_address(l, &o),
			n < COMM_BYTES ? n : COMM_BYTES, mem, at);
}

/* --- comm ------------------------------------------------------------------------------------- */

/* comm(PID) is looked up when it is printed. */
static const struct type *check_comm(struct check_clause *c, struct expr *e)
{
	if (!e->args)
		return types_string(check_types(c), COMM_BYTES);
	if (!check_integer(c, e->args, "the argument of comm()"))
		return check_bad(c);
	return types_special(check_types(c), TYPE_NAME);
}

static void comm_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	ir_mem name;

	if (e->args) {
		lower_name(l, lower_value(l, e->args), NAME_OF_PROCESS, 0, mem, at);
		return;
	}
	if (n >= COMM_BYTES) {
		ir_zero(&l->ir, mem, (int32_t)at, n);
		IR_CALL_(&l->ir, BPF_FUNC_get_current_comm, IR_M(mem, at), IR_I(COMM_BYTES));
		return;
	}
	name = ir_new_memory(&l->ir, COMM_BYTES);
	IR_CALL_(&l->ir, BPF_FUNC_get_current_comm, IR_M(name, 0), IR_I(COMM_BYTES));
	lower_copy_memory(l, name, 0, mem, at, n);
}

/* --- who, and what the run has started -------------------------------------------------------- */

static const struct type *check_username(struct check_clause *c, struct expr *e)
{
	(void)e;
	return types_special(check_types(c), TYPE_NAME);
}

static void username_into(
	struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	(void)n;
	lower_name(l, lower_half(l, e), NAME_OF_USER, 0, mem, at);
}

static ir_value lower_cpid(struct lower *l, const struct expr *e)
{
	(void)e;
	return lower_fact(l, FACT_COMMAND);
}

static const struct type *check_has_cpid(struct check_clause *c, struct expr *e)
{
	(void)e;
	return check_bool(c);
}

static ir_value lower_has_cpid(struct lower *l, const struct expr *e)
{
	return ir_set_imm(&l->ir, BPF_JNE, lower_cpid(l, e), 0);
}

/* --- the table -------------------------------------------------------------------------------- */

/* A number of so many bytes, out of what a helper of the kernel gives. */
#define CALL(name, phrase, n_bytes, code, helper)                                                  \
	{                                                                                          \
		name, .help = phrase, .bytes = n_bytes, .lower = code, .detail = BPF_FUNC_##helper \
	}
#define NUMBER(which) .is_name = true, .check = check_number, .lower = lower_number, .detail = which
#define KIN_NUMBER    .is_name = true, .check = check_kin_number, .lower = kin_number
#define KIN_NAME      .is_name = true, .check = check_kin_name, .into = kin_name_into
#define COMM	      .is_name = true, .check = check_comm, .into = comm_into

enum { KIN_PARENT, KIN_LEADER };

const struct builtin task_builtins[] = {
	{"pid", "pid([curr_ns | init])", 0, 1, .help = "process", NUMBER(TASK_PROCESS)},
	{"tid", "tid([curr_ns | init])", 0, 1, .help = "thread", NUMBER(TASK_THREAD)},
	CALL("uid", "user", 4, lower_half, get_current_uid_gid),
	CALL("gid", "group", 4, upper_half, get_current_uid_gid),
	{"username", .help = "name of the user", .check = check_username, .into = username_into,
		.detail = BPF_FUNC_get_current_uid_gid},
	{"comm", "comm([PROCESS])", 0, 1, .help = "name of the thread", COMM},
	{"execname", "execname([PROCESS])", 0, 1, .help = "the same as comm", COMM},
	{"ppid", "ppid([TASK])", 0, 1, .help = "parent process", KIN_NUMBER, .detail = KIN_PARENT},
	{"pcomm", "pcomm([TASK])", 0, 1, .help = "name of the parent", KIN_NAME,
		.detail = KIN_PARENT},
	{"leader_tid", "leader_tid([TASK])", 0, 1, .help = "first thread of the process",
		KIN_NUMBER, .detail = KIN_LEADER},
	{"leader_comm", "leader_comm([TASK])", 0, 1, .help = "name of that thread", KIN_NAME,
		.detail = KIN_LEADER},
	{"curtask", .help = "the kernel's struct task_struct of the thread", .check = check_curtask,
		.lower = lower_helper, .detail = BPF_FUNC_get_current_task},
	CALL("cgroup", "id of the control group", 8, lower_helper, get_current_cgroup_id),
	{"cpid", .help = "process of -c; 0: none", .bytes = 4, .lower = lower_cpid},
	{"has_cpid", .help = "whether there is one", .check = check_has_cpid,
		.lower = lower_has_cpid},
	{.name = NULL},
};
