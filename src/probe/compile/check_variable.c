/* SPDX-License-Identifier: MIT */
/*
 * Locals and thread-locals: their types out of assignments. Constants give a weak type, which the
 * first other assignment replaces; integers of different sizes make 64 bits; strings get the length
 * of the longest.
 */
#include <string.h>

#include "probe/compile/checker.h"

/* --- types of two values ---------------------------------------------------------------------- */

static const struct type *join_ints(struct check_clause *c, const struct type *have, bool have_weak,
	const struct type *add, const struct expr *added)
{
	bool is_constant = added && added->is_constant[c->mode];

	if (type_is_same(have, add))
		return have;
	/* true and RED are numbers beside others. */
	if (have->is_bool || have->is_enum || add->is_bool || add->is_enum)
		return check_int(c, 8, !type_is_unsigned64(have) && !type_is_unsigned64(add));
	if (!have_weak && add->size <= have->size && add->is_signed == have->is_signed)
		return have;
	if (have_weak && (!is_constant || type_is_unsigned64(add)))
		return check_int(c, 8, !type_is_unsigned64(add));
	if (is_constant && have->size < 8) {
		uint64_t v = added->constant[c->mode];

		return fold_convert(have, v) == v ? have : check_int(c, 8, true);
	}
	if (is_constant || have->size == 8)
		return have;
	return check_int(c, 8, !type_is_unsigned64(add));
}

/* A constant, which is (void *)0 most often, is of whichever memory the other one points to. */
static const struct type *join_pointers(
	const struct type *have, bool have_weak, const struct type *add, bool add_weak)
{
	const struct type *a = have->of, *b = add->of;
	bool is_same = a->kind == TYPE_VOID || b->kind == TYPE_VOID || type_is_same(a, b) ||
		       (a->kind == TYPE_INT && b->kind == TYPE_INT && a->size == b->size);

	if (!is_same || (have->space != add->space && !have_weak && !add_weak))
		return NULL;
	return have->space != add->space && !add_weak ? add : have;
}

const struct type *check_join(struct check_clause *c, const struct type *have, bool have_weak,
	const struct type *add, const struct expr *added)
{
	bool add_weak = added && added->is_constant[c->mode];

	if (type_is_text(have) && type_is_text(add)) {
		uint64_t a = check_text_bytes(have), b = check_text_bytes(add);

		return types_string(check_types(c), a > b ? a : b);
	}
	if (have->kind == TYPE_INT && add->kind == TYPE_INT)
		return join_ints(c, have, have_weak, add, added);
	if (have->kind == TYPE_INT && have_weak && add->kind == TYPE_POINTER)
		return add;
	if (have->kind == TYPE_POINTER && add->kind == TYPE_INT && add_weak)
		return have;
	if (have->kind != add->kind)
		return NULL;
	switch (have->kind) {
	case TYPE_POINTER:
		return join_pointers(have, have_weak, add, add_weak);
	case TYPE_TUPLE:
		return check_join_tuples(c, have, add);
	case TYPE_BYTES:
		return have->n >= add->n ? have : add;
	case TYPE_STRUCT:
	case TYPE_ARRAY:
	case TYPE_FLOAT:
		return type_is_same(have, add) ? have : NULL;
	default:
		return have;
	}
}

/* --- finding ---------------------------------------------------------------------------------- */

/*
 * The variable that a name means here. One that is assigned without let lives to the end of the
 * clause, as in bpftrace up to 0.21; but once its block has ended it makes room for any other of that
 * name, so that blocks do not share names that they only happen to have in common.
 */
static struct variable *local_find(struct check_clause *c, const char *name)
{
	struct variable *best = NULL;

	for (struct variable *v = c->locals; v; v = v->next) {
		if (v->is_hidden || strcmp(v->name, name))
			continue;
		if (!best || (best->is_left && !v->is_left) ||
			(best->is_left == v->is_left && v->scope >= best->scope))
			best = v;
	}
	return best;
}

static struct variable *add_last(
	struct check_clause *c, struct variable **list, const char *name, struct place place)
{
	struct variable *v = arena_zalloc(c->session->arena, sizeof(*v));

	v->name = name;
	v->place = place;
	while (*list)
		list = &(*list)->next;
	*list = v;
	return v;
}

/* A variable that begins here; in a further round the one that was made in the first. */
static struct variable *local_make(struct check_clause *c, const char *name, struct place place,
	const void *node, uint32_t scope)
{
	struct variable *v;

	for (v = c->locals; v; v = v->next) {
		if (v->is_hidden && v->node == node && !strcmp(v->name, name))
			break;
	}
	if (!v)
		v = add_last(c, &c->locals, name, place);
	v->is_hidden = v->is_assigned = v->is_left = false;
	v->scope = scope;
	v->home = c->scope;
	v->node = node;
	return v;
}

struct variable *check_declare(
	struct check_clause *c, const char *name, struct place place, const void *node)
{
	struct variable *have = local_find(c, name);

	if (have && have->is_left)
		have = NULL;
	if (have && have->scope == c->scope && c->scope) {
		check_error(c, place, "duplicate", "$%s exists already in this block", name);
		return have;
	}
	if (have && !have->scope) {
		check_error(c, place, "duplicate", "$%s exists already in this clause", name);
		return have;
	}
	return local_make(c, name, place, node, c->scope);
}

void check_close_block(struct check_clause *c)
{
	for (struct variable *v = c->locals; v; v = v->next) {
		if (v->scope == c->scope)
			v->is_hidden = true;
		else if (v->home == c->scope)
			v->is_left = true;
	}
	c->scope--;
}

static struct variable *self_ensure(struct check_clause *c, struct expr *e)
{
	for (struct variable *v = c->session->selfs; v; v = v->next) {
		if (!strcmp(v->name, e->name))
			return v;
	}
	return add_last(c, &c->session->selfs, e->name, e->place);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* let $x; before it is assigned: what further down gives it a type is known in a round or two. One
 * that nothing assigns, or only itself, is the number 0. */
#define UNSET_ROUNDS 2

static const struct type *unset_local(struct check_clause *c, struct expr *e, struct variable *v)
{
	v->is_read = true;
	if (c->round < UNSET_ROUNDS) {
		c->has_grown = true;
		return check_bad(c);
	}
	v->type[c->mode] = check_int(c, 8, true);
	v->is_weak = true;
	check_mean(c, e, MEANING_VARIABLE)->variable = v;
	return v->type[c->mode];
}

const struct type *check_local(struct check_clause *c, struct expr *e)
{
	struct variable *v = local_find(c, e->name);

	if (v && v->is_let && !v->is_hidden && !v->type[c->mode])
		return unset_local(c, e, v);
	if (!v || !v->is_assigned || !v->type[c->mode]) {
		struct nearest n = {.name = e->name};

		/* The assignment itself was wrong and is reported. */
		if (v && v->is_assigned)
			return check_bad(c);
		check_error(c, e->place, "unassigned", "$%s has no value here", e->name);
		for (struct variable *o = c->locals; o; o = o->next) {
			if (!o->is_hidden && o != v)
				nearest_offer(&n, o->name);
		}
		if (n.best)
			check_hint(c, "did you mean $%s?", n.best);
		else
			check_hint(c, "assign it first: $%s = 0;", e->name);
		return check_bad(c);
	}
	v->is_read = true;
	check_mean(c, e, MEANING_VARIABLE)->variable = v;
	return v->type[c->mode];
}

/* What a thread-local is in a mode in which nothing assigns it. */
static const struct type *type_of_other_mode(struct check_clause *c, const struct type *type)
{
	struct types *t = check_types(c);

	switch (type->kind) {
	case TYPE_INT:
		return types_int(t, (uint32_t)type->size, type->is_signed);
	case TYPE_POINTER:
		return types_pointer(t, types_void(t), type->space);
	case TYPE_STRING:
		return types_string(t, type->n);
	case TYPE_BYTES:
		return types_bytes(t, type->n);
	default:
		return type_is_special(type) ? types_special(t, type->kind) : NULL;
	}
}

const struct type *check_self(struct check_clause *c, struct expr *e)
{
	struct variable *v = self_ensure(c, e);
	const struct type *type = v->type[c->mode], *other = v->type[check_other(c->mode)];

	v->is_read = true;
	check_mean(c, e, MEANING_VARIABLE)->variable = v;
	if (type || !other)
		return type ? type : check_bad(c);
	type = type_of_other_mode(c, other);
	if (c->session->pass == CHECK_FINAL && !type)
		check_error(c, e->place, "mode", "nothing assigns self->%s in %s programs", e->name,
			check_mode_text(c->mode));
	else if (c->session->pass == CHECK_FINAL)
		v->type[c->mode] = type;
	return type ? type : check_bad(c);
}

/* --- assigning -------------------------------------------------------------------------------- */

static bool is_convertible(struct check_clause *c, const struct type *to, const struct type *from,
	const struct expr *value)
{
	return (to->kind == TYPE_INT && from->kind == TYPE_INT) ||
	       (to->kind == TYPE_STRING && type_is_text(from)) ||
	       check_join(c, to, false, from, value);
}

/* A variable gets another type. Thread-locals have their places in the final pass: then only a mode
 * that was not seen before (one that does not occur on this machine) may still get a type, and one
 * that needs no more room than that of the other mode. */
static bool change_type(struct check_clause *c, struct variable *v, const struct type *type,
	struct place place, bool is_self)
{
	const struct type *have = v->type[c->mode], *other = v->type[check_other(c->mode)];

	if (is_self && c->session->pass == CHECK_FINAL) {
		const struct shape *a = check_shape(c->session, type, NULL, place), *b = NULL;

		if (a && !have && other)
			b = check_shape(c->session, other, NULL, place);
		if (!a || !b || a->kind != b->kind || a->size > b->size)
			return check_error(
				c, place, "type", "the type of self->%s is not settled", v->name);
	}
	if (is_self)
		c->session->is_changed = true;
	else if (have)
		c->has_grown = true;
	v->type[c->mode] = type;
	return true;
}

static bool is_same_name(const struct type *a, const struct type *b)
{
	return a->kind == b->kind && name_is_same(a->name, b->name);
}

static bool check_kept_size(struct check_clause *c, const struct type *type, struct place place)
{
	uint64_t bytes = type->size;

	if ((type->kind != TYPE_STRUCT && type->kind != TYPE_ARRAY) || bytes <= CHECK_VALUE_MAX)
		return true;
	check_error(c, place, "size", "a %s has %llu bytes; a variable holds at most %d",
		type_text(c, type), (unsigned long long)bytes, CHECK_VALUE_MAX);
	check_hint(c, "keep a pointer to it");
	return false;
}

const struct type *check_assign_variable(struct check_clause *c, struct variable *v,
	const struct type *type, const struct expr *value, struct place place, bool is_self)
{
	const struct type **have = &v->type[c->mode], *joined;
	bool is_weak = value && value->is_constant[c->mode];

	v->is_assigned = true;
	if (type->kind == TYPE_BAD || !check_kept_size(c, type, place) ||
		!check_text_fits(c, type, place))
		return check_bad(c);
	if (!*have) {
		v->is_weak = is_weak;
		return change_type(c, v, check_kept_type(check_types(c), type), place, is_self)
			       ? *have
			       : check_bad(c);
	}
	/* Which memory a declared pointer is for follows from what it is given. */
	if (v->is_declared && (*have)->kind == TYPE_POINTER && type->kind == TYPE_POINTER &&
		(*have)->space != type->space && is_same_name((*have)->of, type->of) &&
		!change_type(c, v, type, place, is_self))
		return check_bad(c);
	joined = v->is_declared ? (is_convertible(c, *have, type, value) ? *have : NULL)
				: check_join(c, *have, v->is_weak, type, value);
	if (!joined) {
		check_error(c, place, "type", "%s%s is a %s, and this is a %s",
			is_self ? "self->" : "$", v->name, type_text(c, *have), type_text(c, type));
		if ((*have)->kind == TYPE_POINTER && type->kind == TYPE_INT)
			check_hint(c, "cast it: (%s)", type_text(c, *have));
		return check_bad(c);
	}
	v->is_weak &= is_weak;
	if (joined != *have && !type_is_same(joined, *have) &&
		!change_type(c, v, joined, place, is_self))
		return check_bad(c);
	return *have;
}

static const struct type *refuse_assignment(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->a;

	check_error(c, a->place, "assign", "only $x, self->x and @x can be assigned");
	if (a->kind == EXPR_NAME)
		check_hint(c, "write $%s for a variable of the clause", a->name);
	else if (a->kind == EXPR_MEMBER || a->kind == EXPR_INDEX || a->kind == EXPR_UNARY)
		check_hint(c, "memory of the traced program cannot be changed");
	return check_bad(c);
}

/* Whether a value of that type may be assigned, perhaps with another type for the variable. */
static bool goes_together(struct check_clause *c, const struct variable *v, const struct type *type,
	const struct expr *value)
{
	const struct type *have = v->type[c->mode];

	return !have || type->kind == TYPE_BAD || check_join(c, have, v->is_weak, type, value);
}

static struct variable *assigned_variable(struct check_clause *c, struct expr *a, bool must_exist)
{
	struct variable *v;

	if (a->kind == EXPR_SELF)
		return self_ensure(c, a);
	v = local_find(c, a->name);
	if (v && v->is_loop) {
		check_error(c, a->place, "assign", "$%s belongs to its for and cannot be assigned",
			a->name);
		return NULL;
	}
	if (!v && !must_exist)
		v = local_make(c, a->name, a->place, a, 0);
	return v;
}

const struct type *check_assign(struct check_clause *c, struct expr *e)
{
	struct variable *v;
	const struct type *type;

	if (e->a->kind == EXPR_MAP)
		return check_map_assign(c, e);
	type = check_value(c, e->b);
	if (e->a->kind != EXPR_LOCAL && e->a->kind != EXPR_SELF)
		return refuse_assignment(c, e);
	if (e->op != OP_NONE) {
		bool was_read;

		v = e->a->kind == EXPR_LOCAL ? local_find(c, e->a->name) : self_ensure(c, e->a);
		was_read = v && v->is_read;
		check_expr(c, e->a);
		if (v)
			v->is_read = was_read; /* $x += 1 alone is no use of it */
		type = check_arithmetic(c, e, e->op, e->a, e->b);
		if (e->a->kind == EXPR_SELF && c->session->pass == CHECK_LEARN && !v->type[c->mode])
			v->is_assigned = true;
	}
	v = assigned_variable(c, e->a, false);
	if (!v)
		return check_bad(c);
	if (e->op == OP_NONE && v->is_left && !goes_together(c, v, type, e->b))
		v = local_make(c, e->a->name, e->a->place, e->a, 0);
	type = check_assign_variable(
		c, v, type, e->op == OP_NONE ? e->b : NULL, e->place, e->a->kind == EXPR_SELF);
	e->a->type[c->mode] = type;
	e->a->is_constant[c->mode] = false;
	check_mean(c, e->a, MEANING_VARIABLE)->variable = v;
	/* Only what fits into a register is also the value of the assignment. */
	return type->kind == TYPE_BAD || type_is_scalar(type) ? type : check_void(c);
}

const struct type *check_step(struct check_clause *c, struct expr *e)
{
	static const struct expr one = {.kind = EXPR_INT, .value = 1};
	struct variable *v;
	const struct type *type;

	if (e->a->kind == EXPR_MAP)
		return check_map_step(c, e);
	if (e->a->kind != EXPR_LOCAL && e->a->kind != EXPR_SELF)
		return refuse_assignment(c, e);
	v = assigned_variable(c, e->a, true);
	if (!v && local_find(c, e->a->name))
		return check_bad(c);
	/* self->n++ counts from 0. */
	if (v && e->a->kind == EXPR_SELF && !v->type[c->mode])
		check_assign_variable(c, v, check_int(c, 8, true), &one, e->place, true);
	type = check_expr(c, e->a);
	if (type->kind == TYPE_BAD)
		return type;
	if (!type_is_scalar(type))
		return check_refuse(c, e->place, "type", "%s needs an integer, and this is a %s",
			e->op == OP_ADD ? "++" : "--", type_text(c, type));
	v->is_assigned = true;
	if (type->is_bool || type->is_enum)
		type = check_assign_variable(
			c, v, check_int(c, 8, true), NULL, e->place, e->a->kind == EXPR_SELF);
	return type;
}
