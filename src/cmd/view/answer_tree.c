/* SPDX-License-Identifier: MIT */
/*
 * Trees as arrays, depth first: the tree of a selection, and that of the callers of one function. A page
 * draws boxes out of them without a tree of its own.
 *
 * Figures by events and by samples lie on one line here, as calltree_split_bases does it: a box is as wide
 * as the boxes in it and its own part, and sampled boxes below an event lie within its own part. Exact
 * figures of a node are those of reports: the page asks for them, or takes `cum` and `base`.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/view/drawn_tree.h"
#include "cmd/report/report.h"
#include "cmd/view/engine.h"

#define FLAG_EXACT     1
#define FLAG_SAMPLED   2 /* no event entered it */
#define FLAG_RECURSIVE 4
#define FLAG_THREAD    8
#define FLAG_CHAIN     16 /* the first sampled box below an event */

static uint8_t flags_of(const struct calltree *t, uint32_t id)
{
	const struct calltree_node *node = calltree_get(t, id);

	return (uint8_t)((node->exact ? FLAG_EXACT : 0) | (node->sampled ? FLAG_SAMPLED : 0) |
			 (node->rl > 1 ? FLAG_RECURSIVE : 0) | (node->parent ? 0 : FLAG_THREAD) |
			 (calltree_begins_chain(t, id) ? FLAG_CHAIN : 0));
}

/* NaN: neither events nor samples measure it in this metric. */
static void put_used(struct drawn_tree *d, const struct profile *p, struct buf *out,
	const char *name, size_t offset)
{
	const struct report report = {.profile = p};
	double *to = view_array(out, name, VIEW_F64, d->nodes.n);

	for (size_t i = 0; i < d->nodes.n; i++) {
		const struct calltree_node *node = calltree_get(d->t, d->nodes.v[i]);
		uint64_t value;

		memcpy(&value, (const char *)node + offset, sizeof(value));
		to[i] = report_is_measured(&report, node->exact) ? (double)value : NAN;
	}
}

static void put_calls(struct drawn_tree *d, const struct profile *p, struct buf *out)
{
	bool has_calls = !p->counts.n_nodes || p->counts.has_calls;
	double *to = view_array(out, "calls", VIEW_F64, d->nodes.n);

	for (size_t i = 0; i < d->nodes.n; i++) {
		const struct calltree_node *node = calltree_get(d->t, d->nodes.v[i]);

		to[i] = node->sampled || !has_calls ? NAN : (double)node->calls;
	}
}

static void put_arrays(
	struct drawn_tree *d, const struct profile *p, uint32_t n_more, struct buf *out)
{
	uint8_t *flags;

	view_arrays_begin(out, n_more + DRAWN_TREE_ARRAYS + 4);
	drawn_tree_put(d, out);
	put_used(d, p, out, "cum", offsetof(struct calltree_node, cum));
	put_used(d, p, out, "base", offsetof(struct calltree_node, base));
	put_calls(d, p, out);
	flags = view_array(out, "flags", VIEW_U8, d->nodes.n);
	for (size_t i = 0; i < d->nodes.n; i++)
		flags[i] = flags_of(d->t, d->nodes.v[i]);
}

int view_answer_tree(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct drawn_tree d = {0};
	struct profile *p;

	if (drawn_tree_take_order(&d, q, err) < 0 || view_profile(e, q, &p, err) < 0)
		return err->code;
	drawn_tree_init(&d, p->tree);
	put_arrays(&d, p, 0, out);
	drawn_tree_release(&d);
	return 0;
}

/* ---- callers ---- */

static bool is_exact(const struct calltree *t, uint32_t routine)
{
	const struct calltree_node *node;

	for (uint32_t id = calltree_get_routine(t, routine)->first_instance; id;
		id = node->next_instance) {
		node = calltree_get(t, id);
		if (node->exact)
			return true;
	}
	return false;
}

/* The way from an outermost instance to its thread; what it used with all below it is at its end, so that
 * each caller on the way has it as its cum, and its calls. */
static void add_way(struct calltree *to, uint32_t at, const struct calltree *t, uint32_t id)
{
	struct calltree_node calls = *calltree_get(t, id), whole = calls;

	calls.base = calls.sampled_base = calls.samples = 0;
	whole.base = whole.cum;
	whole.sampled_base = whole.sampled_cum;
	whole.calls = whole.elapsed = whole.occurrences = 0;
	calltree_add_figures(to, at, &calls, CALLTREE_SHARE_ALL);
	for (id = whole.parent; id; id = calltree_get(t, id)->parent) {
		const struct calltree_routine *r =
			calltree_get_routine(t, calltree_get(t, id)->routine);

		at = calltree_child(to, at, calltree_routine(to, r->name, r->image, r->kind));
		calltree_add_figures(to, at, &calls, CALLTREE_SHARE_ALL);
	}
	calltree_add_figures(to, at, &whole, CALLTREE_SHARE_ALL);
}

static struct calltree *callers_of(const struct calltree *t, uint32_t routine)
{
	const struct calltree_routine *r = calltree_get_routine(t, routine);
	struct calltree *to = calltree_new_like(t);
	uint32_t root = calltree_root(to, r->name);
	bool exact = is_exact(t, routine);
	const struct calltree_node *node;

	for (uint32_t id = r->first_instance; id; id = node->next_instance) {
		node = calltree_get(t, id);
		if (node->rl == 1 && node->exact == exact)
			add_way(to, root, t, id);
	}
	calltree_finish(to);
	return to;
}

/* Numbers of functions in it are its own, so it has their names, too. */
int view_answer_callers(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct drawn_tree d = {0};
	struct calltree *t;
	struct profile *p;
	struct buf names = {0};
	uint64_t routine = 0;

	if (view_profile(e, q, &p, err) < 0 || question_u64(q, "routine", &routine, err) < 0)
		return err->code;
	if (!routine || routine >= calltree_n_routines(p->tree))
		return err_set(err, ERR_NOT_FOUND, "routine: there is no function of that number");
	t = callers_of(p->tree, (uint32_t)routine);
	drawn_tree_init(&d, t);
	put_arrays(&d, p, 1, out);
	for (uint32_t r = 0; r < calltree_n_routines(t); r++)
		buf_put_text(&names, calltree_get_routine(t, r)->name);
	view_texts(out, "name", &names);
	buf_release(&names);
	drawn_tree_release(&d);
	calltree_free(t);
	return 0;
}
