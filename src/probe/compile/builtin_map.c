/* SPDX-License-Identifier: MIT */
/* Functions of maps: keys, and what is aggregated into values (its code is in lower_map.c). */
#include "probe/compile/builtin.h"

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
	return map_and_key(c, e) ? check_void(c) : check_bad(c);
}

static const struct type *check_has_key(struct check_clause *c, struct expr *e)
{
	return map_and_key(c, e) ? check_int(c, 8, true) : check_bad(c);
}

static ir_value lower_has_key(struct lower *l, const struct expr *e)
{
	const struct expr *map = e->args;
	const struct map_use *use = meaning_of(l, map)->map;
	ir_mem key = lower_map_key(l, use, map->args ? map->args : map->next);

	return ir_set_imm(&l->ir, BPF_JNE, lower_map_find(l, use, key), 0);
}

static ir_value lower_delete(struct lower *l, const struct expr *e)
{
	const struct expr *map = e->args;

	lower_map_delete(l, meaning_of(l, map)->map, map->args ? map->args : map->next);
	return 0;
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
	return ok ? types_aggregation(check_types(c), aggregation, is_signed) : check_bad(c);
}

/* --- the table -------------------------------------------------------------------------------- */

#define AGGREGATE(kind) .check = check_aggregation, .detail = AGGREGATION_##kind

const struct builtin map_builtins[] = {
	{"delete", "delete(@MAP[KEY]) or delete(@MAP, KEY)", 1, 2, .check = check_delete,
		.lower = lower_delete},
	{"has_key", "has_key(@MAP, KEY)", 2, 2, .check = check_has_key, .lower = lower_has_key},
	{"len", "len(@MAP)", 1, 1, .check = check_not_yet,
		.help = "a counter of its own counts what is put into a map"},
	{"count", "count()", 0, 0, AGGREGATE(COUNT)},
	{"sum", "sum(INTEGER)", 1, 1, AGGREGATE(SUM)},
	{"min", "min(INTEGER)", 1, 1, AGGREGATE(MIN)},
	{"max", "max(INTEGER)", 1, 1, AGGREGATE(MAX)},
	{"avg", "avg(INTEGER)", 1, 1, AGGREGATE(AVG)},
	{"stats", "stats(INTEGER)", 1, 1, AGGREGATE(STATS)},
	{"hist", "hist(INTEGER)", 1, 1, AGGREGATE(HIST)},
	{"quantize", "quantize(INTEGER)", 1, 1, AGGREGATE(HIST)},
	{"lhist", "lhist(INTEGER, MIN, MAX, STEP)", 4, 4, AGGREGATE(LHIST)},
	{"lquantize", "lquantize(INTEGER, MIN, MAX, STEP)", 4, 4, AGGREGATE(LHIST)},
	{.name = NULL},
};
