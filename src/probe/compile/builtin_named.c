/* SPDX-License-Identifier: MIT */
/* Functions that give the name of a number, which is looked up when it is printed. */
#include "probe/compile/builtin.h"

#define UNIFIED_HIERARCHY UINT32_MAX

static const struct type *check_named(struct check_clause *c, struct expr *e)
{
	if (!check_integer(c, e->args, "the number"))
		return check_bad(c);
	return types_special(check_types(c), TYPE_NAME);
}

static uint32_t detail_of(struct lower *l, enum name_of what)
{
	return what == NAME_OF_SYSCALL ? l->mode == MODE_32 ? 32 : 64 : 0;
}

static void named_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	enum name_of what = (enum name_of)lower_row(l, e)->detail;

	(void)n;
	lower_name(l, lower_value(l, e->args), what, detail_of(l, what), mem, at);
}

static const struct type *check_cgroup_path(struct check_clause *c, struct expr *e)
{
	struct expr *filter = e->args->next;

	if (filter && !check_literal(c, e, filter))
		return check_bad(c);
	check_meaning(c, e)->format =
		filter ? check_stream_text(c, filter->text) : UNIFIED_HIERARCHY;
	return check_named(c, e);
}

static void cgroup_path_into(
	struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	(void)n;
	lower_name(l, lower_value(l, e->args), NAME_OF_CGROUP, meaning_of(l, e)->format, mem, at);
}

const struct builtin named_builtins[] = {
#define NAMED(what) .check = check_named, .into = named_into, .detail = NAME_OF_##what
	{"strerror", "strerror(ERRNO)", 1, 1, NAMED(ERROR)},
	{"signal_name", "signal_name(SIGNAL)", 1, 1, NAMED(SIGNAL)},
	{"syscall_name", "syscall_name(NUMBER)", 1, 1, NAMED(SYSCALL)},
	{"cgroup_path", "cgroup_path(ID [, \"HIERARCHY\"])", 1, 2, .check = check_cgroup_path,
		.into = cgroup_path_into},
	{.name = NULL},
};
