/* SPDX-License-Identifier: MIT */
/* Functions of maps: keys, and what is aggregated into values (its code is in lower_map.c). */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "probe/compile/builtin.h"
#include "probe/script/tree_search.h"

#define LHIST_STEPS_MAX 1000

/* delete(@m[k]), delete(@m, k), delete(@m) of a map without keys; has_key(@m, k). */
static bool map_and_key(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;
	struct map_use *m;

	if (a->kind != EXPR_MAP || (a->args && a->next)) {
		check_error(c, a->place, "arguments", "%s() needs a map%s", e->name,
			a->kind == EXPR_MAP ? " without a key before the key" : "");
		builtin_hint_form(c, e);
		return false;
	}
	m = check_map_of(c, a);
	if (!m)
		return false;
	m->is_read = true;
	a->type[c->mode] = check_void(c);
	check_map_keys(c, m, a->args ? a->args : a->next, a->args ? a->n_args : e->n_args - 1,
		a->next ? a->next->place : a->place);
	return true;
}

static const struct type *check_delete(struct check_clause *c, struct expr *e)
{
	return map_and_key(c, e) ? check_bool(c) : check_bad(c);
}

static const struct type *check_has_key(struct check_clause *c, struct expr *e)
{
	return map_and_key(c, e) ? check_bool(c) : check_bad(c);
}

static ir_value lower_has_key(struct lower *l, const struct expr *e)
{
	const struct expr *map = e->args;
	const struct map_use *use = meaning_of(l, map)->map;
	ir_mem key = lower_map_read_key(l, use, map->args ? map->args : map->next);

	return ir_set_imm(&l->ir, BPF_JNE, lower_map_find(l, use, key), 0);
}

static ir_value lower_delete(struct lower *l, const struct expr *e)
{
	const struct expr *map = e->args;

	return ir_set_imm(&l->ir, BPF_JEQ,
		lower_map_delete(l, meaning_of(l, map)->map, map->args ? map->args : map->next), 0);
}

/* --- find() ------------------------------------------------------------------------------------ */

static bool is_change(void *ctx, const struct expr *e)
{
	(void)ctx;
	return e->kind == EXPR_ASSIGN || e->kind == EXPR_STEP;
}

static struct expr *copy_alone(struct check_clause *c, const struct expr *e)
{
	struct expr *copy = arena_zalloc(c->session->script->arena, sizeof(*copy));

	*copy = *e;
	copy->next = NULL;
	return copy;
}

/* find(@m, key, $x) is has_key(@m, key), e->b, and when that holds $x = @m[key], e->c. */
static void make_find(struct check_clause *c, struct expr *e)
{
	const struct expr *map = e->args, *key = map->next, *result = key->next;
	struct expr *entry = copy_alone(c, map), *value = copy_alone(c, e);

	e->b = copy_alone(c, e);
	e->b->name = "has_key";
	e->b->args = copy_alone(c, map);
	e->b->args->next = copy_alone(c, key);
	e->b->n_args = 2;
	entry->args = copy_alone(c, key);
	entry->n_args = 1;
	*value = (struct expr){.kind = EXPR_ASSIGN,
		.place = e->place,
		.height = e->height,
		.a = copy_alone(c, result),
		.b = entry};
	e->c = value;
}

static const struct type *check_find(struct check_clause *c, struct expr *e)
{
	static const struct tree_search changes = {.is_expr = is_change};
	struct expr *map = e->args, *key = map->next, *result = key->next;

	if (map->kind != EXPR_MAP || map->args || result->kind != EXPR_LOCAL ||
		expr_has(key, &changes)) {
		check_error(c, e->place, "arguments",
			"find() needs a map, a key that changes nothing, and a variable");
		return builtin_hint_form(c, e);
	}
	if (!e->b)
		make_find(c, e);
	for (struct expr *a = map; a; a = a->next)
		a->type[c->mode] = check_void(c);
	if (check_expr(c, e->b)->kind == TYPE_BAD || check_expr(c, e->c)->kind == TYPE_BAD)
		return check_bad(c);
	return check_bool(c);
}

static ir_value lower_find(struct lower *l, const struct expr *e)
{
	ir_value found = ir_new_value(&l->ir);
	ir_label none = ir_new_label(&l->ir);

	ir_copy(&l->ir, found, lower_value(l, e->b));
	ir_branch_imm(&l->ir, BPF_JEQ, found, 0, none);
	lower_effect(l, e->c);
	ir_place_label(&l->ir, none);
	return found;
}

/* --- len() ------------------------------------------------------------------------------------- */

static bool is_stack(const struct type *type)
{
	return type->kind == TYPE_USTACK || type->kind == TYPE_KSTACK;
}

/* A map as a whole, which is not one without a key that holds a stack. */
static bool is_whole_map(const struct check_clause *c, const struct expr *a)
{
	const struct map_use *m = a->kind == EXPR_MAP && !a->args ? check_meaning(c, a)->map : NULL;

	return m && !(m->key && m->key->kind == SHAPE_NONE);
}

static const struct type *check_len_of_map(struct check_clause *c, struct expr *a)
{
	struct map_use *m = check_meaning(c, a)->map;

	m->is_read = true;
	a->type[c->mode] = check_void(c);
	return check_int(c, 8, true);
}

/* len(@m): entries; len(STACK): frames; len(ARRAY): elements */
static const struct type *check_len(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;
	const struct type *type;

	if (a->kind == EXPR_MAP && !a->args && check_map_of(c, a) && is_whole_map(c, a))
		return check_len_of_map(c, a);
	type = check_value(c, a);
	if (type->kind == TYPE_BAD)
		return type;
	if (type->kind == TYPE_ARRAY)
		return check_set_constant(c, e, check_int(c, 8, true), type->n);
	if (is_stack(type))
		return check_int(c, 8, true);
	check_error(c, a->place, "type",
		"len() is of a map with keys, a stack or an array, and this is a %s",
		type_text(c, type));
	if (type_is_text(type))
		check_hint(c, "strlen() is of a text");
	return check_bad(c);
}

/* The stack is where all stacks are kept, under its number; 0 is none. One that weir is to walk later, out of
 * a copy, is not there: until then nobody knows how many frames it has. */
static ir_value lower_len_of_stack(struct lower *l, const struct expr *a)
{
	ir_mem mem = ir_new_memory(&l->ir, 16);
	ir_value id = ir_new_value(&l->ir), n = ir_new_value(&l->ir), p;
	ir_label done = ir_new_label(&l->ir), there = ir_new_label(&l->ir);

	lower_store(l, a, (struct destination){type_of(l, a), mem, 0});
	ir_set_const(&l->ir, n, 0);
	ir_copy(&l->ir, id, ir_load(&l->ir, mem, 0, 8, false));
	ir_branch_imm(&l->ir, BPF_JEQ, id, 0, done);
	p = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_STACKS), IR_M(mem, 0));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, there);
	lower_fail(l, FAILURE_UNWALKED, ENOENT);
	ir_place_label(&l->ir, there);
	ir_copy(&l->ir, n, ir_load_at(&l->ir, p, 0, 8, false));
	ir_place_label(&l->ir, done);
	return n;
}

/* for_each_map_elem(map, function, ..) says how often it has called the function, which does nothing. */
static ir_value lower_len_of_map(struct lower *l, const struct map_use *map)
{
	uint32_t function = ir_new_function(&l->ir);
	ir_value n = ir_new_value(&l->ir);

	ir_loop(&l->ir, 1);
	ir_copy(&l->ir, n,
		IR_CALL_(&l->ir, BPF_FUNC_for_each_map_elem, IR_MAP(lower_map_number(map)),
			IR_FUNC(function), IR_FRAME, IR_I(0)));
	ir_function(&l->ir, function);
	ir_return(&l->ir, 0);
	ir_function_end(&l->ir);
	ir_loop_end(&l->ir);
	return n;
}

static ir_value lower_len(struct lower *l, const struct expr *e)
{
	const struct expr *a = e->args;

	if (type_of(l, a)->kind == TYPE_VOID)
		return lower_len_of_map(l, meaning_of(l, a)->map);
	return lower_len_of_stack(l, a);
}

/* --- aggregations ----------------------------------------------------------------------------- */

static bool check_lhist(struct check_clause *c, struct expr *e)
{
	struct expr *min = e->args->next, *max = min->next, *step = max->next;
	int64_t v[3];
	__int128 n;
	bool ok = check_constant(c, min, "the minimum of lhist()", &v[0]);

	ok &= check_constant(c, max, "the maximum of lhist()", &v[1]);
	ok &= check_constant(c, step, "the step of lhist()", &v[2]);
	if (!ok)
		return false;
	if (v[2] <= 0)
		return check_error(c, step->place, "range", "the step of lhist() must be positive");
	if (v[1] <= v[0])
		return check_error(c, max->place, "range",
			"the maximum of lhist() must be greater than its minimum");
	n = ((__int128)v[1] - v[0] + v[2] - 1) / v[2];
	if (n > LHIST_STEPS_MAX)
		return check_error(
			c, step->place, "range", "lhist() has at most %d steps", LHIST_STEPS_MAX);
	return true;
}

/* hist(n, bits) */
static bool check_hist(struct check_clause *c, struct expr *e)
{
	struct expr *bits = e->args->next;
	int64_t v;

	if (!bits)
		return true;
	if (!check_constant(c, bits, "the bits of hist()", &v))
		return false;
	return (v >= 0 && v <= HIST_BITS_MAX) ||
	       check_error(c, bits->place, "range", "hist() takes 0 to %d bits", HIST_BITS_MAX);
}

bool builtin_tseries_function(const struct expr *call, enum tseries_function *out)
{
	static const char *const names[N_TSERIES_FUNCTIONS] = {[TSERIES_AVG] = "avg",
		[TSERIES_MAX] = "max",
		[TSERIES_MIN] = "min",
		[TSERIES_SUM] = "sum"};
	const struct expr *word = call->args->next->next->next;

	*out = TSERIES_LAST;
	for (int i = TSERIES_AVG; word && i < N_TSERIES_FUNCTIONS; i++)
		if (!strcmp(word->text, names[i]))
			*out = (enum tseries_function)i;
	return !word || *out != TSERIES_LAST;
}

/* The map that a test has for the clock: read at every call. */
static bool check_clock(struct check_clause *c, struct expr *e)
{
	const char *name = c->session->clock_map;

	if (!name)
		return true;
	e->c = arena_zalloc(c->session->script->arena, sizeof(*e->c));
	*e->c = (struct expr){.kind = EXPR_MAP, .name = name + 1, .place = e->place};
	return check_integer(c, e->c, "the clock of tests");
}

/* tseries(n, interval, intervals [, function]) */
static bool check_tseries(struct check_clause *c, struct expr *e)
{
	struct expr *interval = e->args->next, *n = interval->next;
	enum tseries_function function;
	int64_t v[2];
	bool ok = check_constant(c, interval, "the interval of tseries()", &v[0]);

	ok &= check_constant(c, n, "the number of intervals of tseries()", &v[1]);
	ok &= !n->next || check_literal(c, e, n->next);
	if (!ok || !check_clock(c, e))
		return false;
	if (v[0] <= 0)
		return check_error(
			c, interval->place, "range", "the interval of tseries() must be positive");
	if (v[1] < 1 || v[1] > TSERIES_INTERVALS_MAX)
		return check_error(c, n->place, "range", "tseries() has 1 to %d intervals",
			TSERIES_INTERVALS_MAX);
	return builtin_tseries_function(e, &function) ||
	       check_error(c, n->next->place, "arguments",
		       "tseries() knows \"avg\", \"max\", \"min\" and \"sum\"");
}

static const struct type *check_aggregation(struct check_clause *c, struct expr *e)
{
	enum aggregation aggregation = (enum aggregation)check_row(c, e)->detail;
	bool is_signed = false, ok = true;

	if (e->args) {
		ok = check_integer(c, e->args, "what is aggregated");
		is_signed = ok && e->args->type[c->mode]->is_signed;
	}
	if (aggregation == AGGREGATION_LHIST)
		ok &= check_lhist(c, e);
	else if (aggregation == AGGREGATION_HIST)
		ok &= check_hist(c, e);
	else if (aggregation == AGGREGATION_TSERIES)
		ok &= check_tseries(c, e);
	return ok ? types_aggregation(check_types(c), aggregation, is_signed) : check_bad(c);
}

/* --- the table -------------------------------------------------------------------------------- */

#define AGGREGATE(kind) .check = check_aggregation, .detail = AGGREGATION_##kind

const struct builtin map_builtins[] = {
	{"delete", "delete(@MAP[KEY]) or delete(@MAP, KEY)", 1, 2, .check = check_delete,
		.lower = lower_delete, .has_effect = true},
	{"has_key", "has_key(@MAP, KEY)", 2, 2, .check = check_has_key, .lower = lower_has_key},
	{"find", "find(@MAP, KEY, $RESULT)", 3, 3, .check = check_find, .lower = lower_find,
		.has_effect = true},
	{"len", "len(@MAP), len(STACK) or len(ARRAY)", 1, 1, .check = check_len,
		.lower = lower_len},
	{"count", "count()", 0, 0, AGGREGATE(COUNT)},
	{"sum", "sum(INTEGER)", 1, 1, AGGREGATE(SUM)},
	{"min", "min(INTEGER)", 1, 1, AGGREGATE(MIN)},
	{"max", "max(INTEGER)", 1, 1, AGGREGATE(MAX)},
	{"avg", "avg(INTEGER)", 1, 1, AGGREGATE(AVG)},
	{"stats", "stats(INTEGER)", 1, 1, AGGREGATE(STATS)},
	{"hist", "hist(INTEGER [, BITS])", 1, 2, AGGREGATE(HIST)},
	{"quantize", "quantize(INTEGER [, BITS])", 1, 2, AGGREGATE(HIST)},
	{"lhist", "lhist(INTEGER, MIN, MAX, STEP)", 4, 4, AGGREGATE(LHIST)},
	{"lquantize", "lquantize(INTEGER, MIN, MAX, STEP)", 4, 4, AGGREGATE(LHIST)},
	{"tseries",
		"tseries(INTEGER, INTERVAL, INTERVALS [, \"avg\" | \"max\" | \"min\" | \"sum\"])",
		3, 4, AGGREGATE(TSERIES)},
	{.name = NULL},
};
