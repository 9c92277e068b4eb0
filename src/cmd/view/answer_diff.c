/* SPDX-License-Identifier: MIT */
/*
 * Two traces beside each other: the tree of both, and the functions of both. `before` is the older trace,
 * `after` the newer one; a difference is after less before, so what grew is positive. How many samples a
 * figure is from stands beside it: without that nobody can say whether a difference of estimates is one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report.h"
#include "cmd/view/drawn_tree.h"
#include "cmd/view/engine.h"

#define FLAG_EXACT     1
#define FLAG_SAMPLED   2
#define FLAG_RECURSIVE 4
#define FLAG_THREAD    8
#define FLAG_CHAIN     16
#define FLAG_ABSENT    32

static const char *const side_names[N_DIFF_SIDES] = {"before", "after"};

static bool has_calls(const struct profile *p)
{
	return !p->counts.n_nodes || p->counts.has_calls;
}

/* ---- the tree ---- */

static uint8_t flags_of(const struct tree_diff *d, uint32_t id, int side)
{
	const struct calltree_node *node = calltree_get(d->sides[side], id);

	if (!d->nodes[id].is_there[side])
		return FLAG_ABSENT;
	return (uint8_t)((node->exact ? FLAG_EXACT : 0) | (node->sampled ? FLAG_SAMPLED : 0) |
			 (node->rl > 1 ? FLAG_RECURSIVE : 0) | (node->parent ? 0 : FLAG_THREAD) |
			 (calltree_begins_chain(d->sides[side], id) ? FLAG_CHAIN : 0));
}

/* "before_cum"; those of after have no prefix, as in the tree of one trace. */
static double *side_array(struct buf *out, int side, const char *name, size_t n)
{
	char full[32];

	snprintf(full, sizeof(full), "%s%s", side == DIFF_BEFORE ? "before_" : "", name);
	return view_array(out, full, VIEW_F64, n);
}

enum figure { CUM, BASE };

/* NaN: it is there, and neither events nor samples measure it in this metric. What is not there used 0. */
static double used(const struct view_comparison *c, uint32_t id, int side, enum figure which)
{
	const struct report report = {.profile = c->sides[side]};
	const struct calltree_node *node = calltree_get(c->diff->sides[side], id);

	if (c->diff->nodes[id].is_there[side] && !report_is_measured(&report, node->exact))
		return NAN;
	return (double)(which == CUM ? node->cum : node->base);
}

#define SIDE_ARRAYS 5

static void put_side(
	const struct view_comparison *c, const struct drawn_tree *t, int side, struct buf *out)
{
	const struct tree_diff *d = c->diff;
	size_t n = t->nodes.n;
	double *to = side_array(out, side, "cum", n);
	uint8_t *flags;

	for (size_t i = 0; i < n; i++)
		to[i] = used(c, t->nodes.v[i], side, CUM);
	to = side_array(out, side, "base", n);
	for (size_t i = 0; i < n; i++)
		to[i] = used(c, t->nodes.v[i], side, BASE);
	to = side_array(out, side, "calls", n);
	for (size_t i = 0; i < n; i++) {
		const struct calltree_node *node = calltree_get(d->sides[side], t->nodes.v[i]);

		to[i] = node->sampled || !has_calls(c->sides[side]) ? NAN : (double)node->calls;
	}
	to = side_array(out, side, "samples", n);
	for (size_t i = 0; i < n; i++)
		to[i] = (double)d->nodes[t->nodes.v[i]].samples[side];
	flags = view_array(out, side == DIFF_BEFORE ? "before_flags" : "flags", VIEW_U8, n);
	for (size_t i = 0; i < n; i++)
		flags[i] = flags_of(d, t->nodes.v[i], side);
}

#define DIFFERENCE_ARRAYS 2

static void put_differences(
	const struct view_comparison *c, const struct drawn_tree *t, struct buf *out)
{
	static const char *const names[] = {[CUM] = "more_cum", [BASE] = "more_base"};

	for (int which = CUM; which <= BASE; which++) {
		double *more = view_array(out, names[which], VIEW_F64, t->nodes.n);

		for (size_t i = 0; i < t->nodes.n; i++)
			more[i] = used(c, t->nodes.v[i], DIFF_AFTER, (enum figure)which) -
				  used(c, t->nodes.v[i], DIFF_BEFORE, (enum figure)which);
	}
}

#define NAME_ARRAYS 3

static void put_names(const struct calltree *t, struct buf *out)
{
	size_t n = calltree_n_routines(t);
	struct buf names = {0}, images = {0};
	uint8_t *kinds;

	for (uint32_t r = 0; r < n; r++) {
		buf_put_text(&names, calltree_get_routine(t, r)->name);
		buf_put_text(&images, calltree_get_routine(t, r)->image);
	}
	view_texts(out, "name", &names);
	view_texts(out, "image", &images);
	kinds = view_array(out, "kind", VIEW_U8, n);
	for (uint32_t r = 0; r < n; r++)
		kinds[r] = (uint8_t)calltree_get_routine(t, r)->kind;
	buf_release(&names);
	buf_release(&images);
}

int view_answer_diff(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct drawn_tree t = {0};
	struct view_comparison c;

	if (drawn_tree_take_order(&t, q, err) < 0 || view_compare(e, q, &c, err) < 0)
		return err->code;
	drawn_tree_init(&t, c.diff->both);
	view_arrays_begin(out,
		DRAWN_TREE_ARRAYS + N_DIFF_SIDES * SIDE_ARRAYS + DIFFERENCE_ARRAYS + NAME_ARRAYS);
	drawn_tree_put(&t, out);
	for (int side = 0; side < N_DIFF_SIDES; side++)
		put_side(&c, &t, side, out);
	put_differences(&c, &t, out);
	put_names(c.diff->both, out);
	drawn_tree_release(&t);
	return 0;
}

/* ---- functions ---- */

struct known {
	bool base, cum, calls;
};

/* What reports would show of it; what is not there at all is 0, not unknown, when the trace has that figure. */
static struct known known_of(
	const struct view_comparison *c, const struct tree_diff_row *row, int side)
{
	const struct profile *p = c->sides[side];
	const struct report report = {.profile = p, .reader = p->reader};
	bool is_there = row->is_there[side];
	bool is_measured = report_is_measured(&report, row->sides[side].exact);

	return (struct known){.base = !is_there || is_measured,
		.cum = !p->counts.is_flat && (!is_there || is_measured),
		.calls = report_has_calls(&report) &&
			 (is_there ? row->sides[side].has_events : calltree_has_events(p->tree))};
}

static void put_function_side(
	struct json *j, const struct view_comparison *c, const struct tree_diff_row *row, int side)
{
	struct known known = known_of(c, row, side);
	bool has_samples = calltree_has_samples(c->sides[side]->tree);

	json_object_begin(j, side_names[side]);
	json_bool(j, "there", row->is_there[side]);
	json_u64_if(j, "base", known.base, row->sides[side].base);
	json_u64_if(j, "cum", known.cum, row->sides[side].cum);
	json_u64_if(j, "calls", known.calls, row->sides[side].calls);
	json_u64_if(j, "samples", has_samples, row->sides[side].samples);
	json_u64_if(j, "samples_cum", has_samples, row->samples[side]);
	json_bool(j, "exact", row->sides[side].exact);
	json_object_end(j);
}

static void put_difference(
	struct json *j, const char *key, bool is_known, uint64_t before, uint64_t after)
{
	if (is_known)
		json_i64(j, key, (int64_t)(after - before));
	else
		json_null(j, key);
}

/* Before, after and their difference: of a row, or of a box of the call graph. */
void view_put_function_diff(
	struct json *j, const struct view_comparison *c, const struct tree_diff_row *row)
{
	struct known before = known_of(c, row, DIFF_BEFORE), after = known_of(c, row, DIFF_AFTER);
	const struct flat_row *sides = row->sides;

	for (int side = 0; side < N_DIFF_SIDES; side++)
		put_function_side(j, c, row, side);
	json_object_begin(j, "more");
	put_difference(j, "base", before.base && after.base, sides[DIFF_BEFORE].base,
		sides[DIFF_AFTER].base);
	put_difference(
		j, "cum", before.cum && after.cum, sides[DIFF_BEFORE].cum, sides[DIFF_AFTER].cum);
	put_difference(j, "calls", before.calls && after.calls, sides[DIFF_BEFORE].calls,
		sides[DIFF_AFTER].calls);
	json_object_end(j);
}

static void put_functions(FILE *out, const struct view_comparison *c)
{
	const struct calltree *t = c->diff->both;
	struct json j;

	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_object_begin(&j, "metric");
	json_string(&j, "name", c->sides[DIFF_AFTER]->metric);
	json_string(&j, "unit", c->sides[DIFF_AFTER]->unit);
	json_object_end(&j);
	json_object_begin(&j, "total");
	for (int side = 0; side < N_DIFF_SIDES; side++)
		json_u64(&j, side_names[side], c->sides[side]->total);
	put_difference(&j, "more", true, c->sides[DIFF_BEFORE]->total, c->sides[DIFF_AFTER]->total);
	json_object_end(&j);
	json_array_begin(&j, "rows");
	for (uint32_t r = 1; r < calltree_n_routines(t); r++) {
		const struct calltree_routine *routine = calltree_get_routine(t, r);

		if (routine->is_root)
			continue;
		json_object_begin(&j, NULL);
		json_string(&j, "name", routine->name);
		report_json_text(&j, "image", routine->image);
		json_string(&j, "kind", report_routine_kind(routine));
		view_put_function_diff(&j, c, &c->diff->rows[r]);
		json_object_end(&j);
		json_newline(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
}

int view_answer_diff_functions(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct view_comparison c;
	char *text = NULL;
	size_t n = 0;
	FILE *file;

	if (view_compare(e, q, &c, err) < 0)
		return err->code;
	file = open_memstream(&text, &n);
	if (!file)
		return err_set(err, ERR_FAILED, "no memory for the answer");
	put_functions(file, &c);
	fclose(file);
	buf_put(out, text, n);
	free(text);
	return 0;
}
