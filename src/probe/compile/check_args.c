/* SPDX-License-Identifier: MIT */
/*
 * Values that a trace point gives: argN, args.NAME and retval, and where the code finds them. A
 * register of a 32-bit program is not where one of a 64-bit program is, and a system call is seen
 * by both; so the place is found anew for each point and mode.
 */
#include <string.h>

#include "probe/compile/checker.h"
#include "probe/points/point_kind.h"
#include "probe/points/syscalls.h"

static struct value_use *new_use(struct check_clause *c, struct expr *e, const struct type *type)
{
	struct value_use *u = arena_zalloc(c->session->arena, sizeof(*u));

	u->type = type;
	check_mean(c, e, MEANING_VALUE)->value = u;
	return u;
}

/* A value in a vector register: it can be named, and every time it is read counts as a failure. */
static void mark_unreadable(struct check_clause *c, struct expr *e, struct value_use *u)
{
	u->kind = USE_UNREADABLE;
	check_warning(c, e->place, "unreadable",
		"'%s' is in a floating-point register of %s programs, which BPF cannot read",
		e->name, check_mode_text(c->mode));
}

/* One of several at a kind of place. */
static const struct type *use_index(struct check_clause *c, struct expr *e, const struct type *type,
	enum value_use_kind kind, uint32_t i)
{
	struct value_use *u = new_use(c, e, type);

	u->kind = kind;
	u->index = i;
	return type;
}

static const struct type *use_place(struct check_clause *c, struct expr *e, struct value_use *u)
{
	u->kind = USE_PLACE;
	if (u->place.kind == VALUE_IN_VECTOR)
		mark_unreadable(c, e, u);
	return u->type;
}

static const struct type *unsigned_long(struct check_clause *c)
{
	return types_long(check_types(c), false);
}

/* --- kernel functions ------------------------------------------------------------------------- */

/* fentry: words of the context, one for each argument. */
static const struct type *context_word(
	struct check_clause *c, struct expr *e, uint32_t i, const struct type *type)
{
	if (!type_is_scalar(type))
		return check_refuse(c, e->place, "type",
			"'%s' is a %s: only integers and pointers can be read", e->name,
			type_text(c, type));
	return use_index(c, e, type, USE_CONTEXT_WORD, i);
}

const struct type *check_kernel_argument(struct check_clause *c, struct expr *e, uint32_t i)
{
	const struct type *word = check_int(c, 8, false);

	if (c->function) {
		if (i >= c->function->n_fields)
			return check_refuse(c, e->place, "range", "%s has %u argument%s",
				check_point_text(c), c->function->n_fields,
				c->function->n_fields == 1 ? "" : "s");
		word = c->function->fields[i].type;
	}
	return context_word(c, e, i, word);
}

/* --- argN ------------------------------------------------------------------------------------- */

const struct type *check_usdt_argument(struct check_clause *c, struct expr *e, uint32_t i)
{
	const struct usdt_operand *o;
	const struct type *type;
	struct value_use *u;

	if (i >= c->n_operands)
		return check_refuse(c, e->place, "range", "%s has %u argument%s",
			check_point_text(c), c->n_operands, c->n_operands == 1 ? "" : "s");
	o = &c->operands[i];
	type = o->is_float ? types_float(check_types(c), o->bytes)
			   : check_int(c, o->bytes, o->is_signed);
	u = new_use(c, e, type);
	u->kind = USE_USDT;
	u->index = i;
	u->operand = *o;
	if (o->kind == USDT_UNREADABLE && o->why) {
		u->kind = USE_UNREADABLE;
		check_warning(
			c, e->place, "unreadable", "'%s' cannot be read: %s", e->name, o->why);
	} else if (o->is_float && o->kind == USDT_REGISTER) {
		mark_unreadable(c, e, u);
	}
	return type;
}

const struct type *check_syscall_argument(struct check_clause *c, struct expr *e, uint32_t i)
{
	if (i >= SYSCALL_ARGS_MAX)
		return check_refuse(c, e->place, "range", "system calls have at most %d arguments",
			SYSCALL_ARGS_MAX);
	return use_index(c, e, unsigned_long(c), USE_SYSCALL_ARG, i);
}

const struct type *check_kprobe_argument(struct check_clause *c, struct expr *e, uint32_t i)
{
	struct value_use *u = new_use(c, e, check_int(c, 8, false));

	u->place = call_raw_argument(MODE_64, i);
	return use_place(c, e, u);
}

const struct type *check_register_argument(struct check_clause *c, struct expr *e, uint32_t i)
{
	struct value_use *u = new_use(c, e, unsigned_long(c));

	u->place = call_raw_argument(c->mode, i);
	return use_place(c, e, u);
}

const struct type *check_stack_word(struct check_clause *c, struct expr *e, uint32_t i)
{
	struct value_use *u = new_use(c, e, unsigned_long(c));
	uint32_t word = (uint32_t)u->type->size;

	/* The return address is at 0. */
	u->place = (struct value_place){
		.kind = VALUE_ON_STACK, .offset = (int32_t)(word * (i + 1)), .bytes = word};
	return use_place(c, e, u);
}

/* --- retval ----------------------------------------------------------------------------------- */

const struct type *check_function_result(struct check_clause *c, struct expr *e)
{
	const struct type *type = unsigned_long(c);
	struct value_use *u;

	if (c->function && c->function->of && c->function->of->kind != TYPE_VOID)
		type = c->function->of;
	if (c->call && c->call->result_trouble)
		return check_refuse(
			c, e->place, "unreadable", "'%s' %s", e->name, c->call->result_trouble);
	u = new_use(c, e, type);
	u->place = call_result(c->mode, type);
	return use_place(c, e, u);
}

/* Addresses above 2 GiB are positive numbers of 64 bits in both modes, and errors negative ones. */
const struct type *check_syscall_result(struct check_clause *c, struct expr *e)
{
	const struct type *type = types_long(check_types(c), true);
	enum syscall_result result =
		c->syscall ? syscall_result(c->syscall) : SYSCALL_RESULT_ADDRESS;

	if (c->mode == MODE_64 || result == SYSCALL_RESULT_NUMBER)
		return use_index(c, e, type, USE_SYSCALL_RESULT, RESULT_OF_NUMBER);
	if (result == SYSCALL_RESULT_ID)
		return use_index(
			c, e, check_int(c, 4, false), USE_SYSCALL_RESULT, RESULT_OF_NUMBER);
	return use_index(c, e, check_int(c, 8, true), USE_SYSCALL_RESULT,
		c->syscall ? RESULT_OF_ADDRESS : RESULT_OF_SEVERAL);
}

const struct type *check_kprobe_result(struct check_clause *c, struct expr *e)
{
	struct value_use *u = new_use(c, e, check_int(c, 8, false));

	u->place = call_result(MODE_64, u->type);
	return use_place(c, e, u);
}

const struct type *check_fexit_result(struct check_clause *c, struct expr *e)
{
	if (!c->function)
		return check_refuse(c, e->place, "not-here", "the type of %s is not known",
			check_point_text(c));
	return context_word(c, e, c->function->n_fields, c->function->of);
}

const struct type *check_retval(struct check_clause *c, struct expr *e)
{
	return point_kinds[c->point->spec.kind].result(c, e);
}

/* --- args.NAME -------------------------------------------------------------------------------- */

static const struct type *unknown_argument(
	struct check_clause *c, struct expr *e, const struct nearest *n, const char *first)
{
	check_error(c, e->place, "unknown-field", "%s has no argument '%s'", check_point_text(c),
		e->name);
	if (n->best)
		check_hint(c, "did you mean '%s'?", n->best);
	else if (first)
		check_hint(c, "its first argument is '%s'", first);
	return check_bad(c);
}

const struct type *check_function_field(struct check_clause *c, struct expr *e)
{
	struct nearest n = {.name = e->name};
	const struct type *f = c->function;
	bool is_kernel = point_has(c->point->spec.kind, POINT_OF_KERNEL);
	struct value_use *u;

	if (!f) {
		check_error(c, e->place, "unknown-field", "the arguments of %s are not known",
			check_point_text(c));
		if (c->point->spec.name && strstr(c->point->spec.name, "::") &&
			!strchr(c->point->spec.name, '('))
			check_hint(c,
				"where several functions have the name, give one with its parameters: \"%s(int)\"",
				c->point->spec.name);
		else
			check_hint(c,
				"declare the function in the script, or use a file with debug information; arg0, arg1, ... always work");
		return check_bad(c);
	}
	for (uint32_t i = 0; i < f->n_fields; i++) {
		if (!f->fields[i].name)
			continue;
		nearest_offer(&n, f->fields[i].name);
		if (strcmp(f->fields[i].name, e->name))
			continue;
		if (is_kernel)
			return context_word(c, e, i, f->fields[i].type);
		u = new_use(c, e, f->fields[i].type);
		u->index = i;
		u->place = c->call ? c->call->places[i] : call_argument(c->mode, f, i);
		if (u->place.kind == VALUE_UNKNOWN)
			return check_refuse(c, e->place, "unreadable", "'%s' of %s programs %s",
				e->name, check_mode_text(c->mode), u->place.why);
		return use_place(c, e, u);
	}
	return unknown_argument(c, e, &n, f->n_fields ? f->fields[0].name : NULL);
}

static int find_syscall_arg(const struct syscall_arg *args, const char *name, struct nearest *n)
{
	for (int i = 0; args && args[i].name; i++) {
		if (n)
			nearest_offer(n, args[i].name);
		if (!strcmp(args[i].name, name))
			return i;
	}
	return -1;
}

static const struct type *syscall_arg_type(struct check_clause *c, const struct syscall_arg *arg)
{
	const char *name = syscall_struct(c->mode, c->syscall, arg->name);
	const struct type *s = name ? types_kernel_struct(check_types(c), name, SPACE_USER) : NULL;

	return s ? types_pointer(check_types(c), s, SPACE_USER)
		 : check_c_type(check_types(c), arg->type);
}

const struct type *check_syscall_field(struct check_clause *c, struct expr *e)
{
	const struct syscall_arg *args;
	struct nearest n = {.name = e->name};
	int i;

	if (!c->syscall) {
		check_error(c, e->place, "unknown-field",
			"%s is about several system calls, whose arguments have different names",
			check_point_text(c));
		return check_hint(c, "arg0, arg1, ... always work");
	}
	args = syscall_args(c->mode, c->syscall);
	i = find_syscall_arg(args, e->name, &n);
	if (i >= 0)
		return use_index(c, e, syscall_arg_type(c, &args[i]), USE_SYSCALL_ARG, (uint32_t)i);
	if (find_syscall_arg(syscall_args(check_other(c->mode), c->syscall), e->name, NULL) >= 0) {
		check_error(c, e->place, "mode",
			"%s has an argument '%s' in %s programs, but not in %s ones", c->syscall,
			e->name, check_mode_text(check_other(c->mode)), check_mode_text(c->mode));
		return check_hint(
			c, "use it inside if (bits == %d) { }", c->mode == MODE_32 ? 64 : 32);
	}
	return unknown_argument(c, e, &n, args ? args[0].name : NULL);
}

/* The checker's type of a field of a tracepoint's record. */
const struct type *check_record_field(struct check_clause *c, struct expr *e)
{
	struct nearest n = {.name = e->name};
	struct type_field field;
	struct value_use *u;
	const char *name;

	if (!c->fields)
		return check_refuse(c, e->place, "unknown-field", "the fields of %s are not known",
			check_point_text(c));
	if (!type_find_field(c->fields, e->name, &field)) {
		for (uint32_t i = 0; i < c->fields->n_fields; i++) {
			if (c->fields->fields[i].name)
				nearest_offer(&n, c->fields->fields[i].name);
		}
		return unknown_argument(c, e, &n, NULL);
	}
	c->session->reads_records = true;
	u = new_use(c, e, field.type);
	u->kind = USE_CONTEXT_FIELD;
	u->offset = (uint32_t)field.offset;
	name = field.type->name;
	if (name && !strncmp(name, "__data_loc", 10) && strstr(name, "char")) {
		u->kind = USE_CONTEXT_DATA;
		u->type = types_string(check_types(c), c->session->string_bytes);
	}
	return u->type;
}

const struct type *check_syscall_return_field(struct check_clause *c, struct expr *e)
{
	return strcmp(e->name, "ret") ? check_syscall_field(c, e) : check_retval(c, e);
}

const struct type *check_args_field(struct check_clause *c, struct expr *e)
{
	const struct point_kind_def *def = &point_kinds[c->point->spec.kind];

	e->a->type[c->mode] = check_bad(c);
	if (def->field)
		return def->field(c, e);
	check_name(c, e->a); /* says that args does not exist here */
	return check_bad(c);
}
