/* SPDX-License-Identifier: MIT */
#include "query/diff/diff_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/path_name.h"
#include "trace/reader.h"

struct diff_run_row *diff_run_row(struct diff_run *run, uint32_t id)
{
	vec_ensure_zero(&run->rows, (size_t)id + 1);
	run->rows.v[id].is_there = true;
	return &run->rows.v[id];
}

/* A walk through the tree, depth first. */
struct tree_walk {
	struct diff_run *run;
	struct diff_keys *keys;
	const struct profile *profile;
	const struct diff_run_question *q;
	uint32_t *key_of;     /* by routine */
	uint32_t *path_of;    /* by node, with DIFF_BY_STACK */
	VEC(uint32_t) open;   /* by level: the keys on the way to the node */
	VEC(uint32_t) n_open; /* by key: how often it is there */
};

static const char *no_image = "";

static uint32_t key_of_routine(struct tree_walk *w, uint32_t id)
{
	const struct calltree_routine *r = calltree_get_routine(w->profile->tree, id);
	const char *name =
		w->q->by == DIFF_BY_IMAGE ? (*r->image ? r->image : "[no image]") : r->name;

	if (!w->key_of[id] && !r->is_root)
		w->key_of[id] = w->q->by == DIFF_BY_IMAGE
					? diff_key(w->keys, path_base_name(name), no_image, false)
					: diff_key(w->keys, name, r->image, w->q->is_before);
	return w->key_of[id];
}

/* Calls cost differently: as though each was a sample of what a call costs. */
static double squares_of(const struct tree_walk *w, double value, const struct calltree_node *node)
{
	uint64_t n = node->exact ? node->calls : node->samples;

	if (node->exact && !w->profile->is_time)
		return 0;
	return value * value / (double)(n ? n : 1);
}

static bool is_outermost(const struct tree_walk *w, uint32_t key)
{
	return key < w->n_open.n && w->n_open.v[key] == 1;
}

static double value_of(const struct tree_walk *w, const struct calltree_node *node, uint32_t key)
{
	if (!w->q->with_callees)
		return (double)node->base;
	return w->q->by == DIFF_BY_STACK || is_outermost(w, key) ? (double)node->cum : 0;
}

/* Figures by events and counts. By stack those of samples below them, too: they have paths of their own. */
static void add_node(
	struct tree_walk *w, const struct calltree_node *node, uint32_t id, uint32_t key)
{
	double value = value_of(w, node, key);
	struct diff_run_row *row = diff_run_row(w->run, id);
	bool is_new_figure = node->exact && !row->is_exact;

	row->is_kernel |=
		calltree_get_routine(w->profile->tree, node->routine)->kind == FRAME_KIND_KERNEL;
	if (!node->sampled && (!w->profile->counts.n_nodes || w->profile->counts.has_calls)) {
		row->has_calls = true;
		row->calls += (double)node->calls;
	}
	if (!node->exact && w->q->by != DIFF_BY_STACK)
		return;
	if (is_new_figure)
		row->figure = (struct figure){0};
	row->is_exact |= node->exact;
	row->figure.value += value;
	row->figure.squares += squares_of(w, value, node);
	row->samples += node->exact ? 0 : node->samples;
}

static void add_arc(struct tree_walk *w, const struct calltree_node *node, uint32_t key)
{
	uint32_t caller = node->level > 1 ? w->open.v[node->level - 1] : 0;
	bool created;
	uint64_t *place = map_ensure(&w->run->arc_of, (uint64_t)caller << 32 | key, &created);
	struct diff_arc *arc;

	if (created) {
		*place = w->run->arcs.n;
		vec_push(&w->run->arcs, ((struct diff_arc){.caller = caller, .callee = key}));
	}
	arc = &w->run->arcs.v[*place];
	if (node->sampled)
		return;
	arc->has_calls = true;
	arc->calls += (double)node->calls;
	arc->value += value_of(w, node, key);
}

/* What was on the way to the node before, and is not now, is closed. */
static void open_node(struct tree_walk *w, const struct calltree_node *node, uint32_t key)
{
	for (size_t level = node->level; level < w->open.n; level++)
		w->n_open.v[w->open.v[level]]--;
	w->open.n = node->level < w->open.n ? node->level : w->open.n;
	vec_push(&w->open, key);
	vec_ensure_zero(&w->n_open, (size_t)key + 1);
	w->n_open.v[key]++;
}

static void walk_node(struct tree_walk *w, uint32_t id)
{
	const struct calltree_node *node = calltree_get(w->profile->tree, id);
	uint32_t key = key_of_routine(w, node->routine);

	open_node(w, node, key);
	if (node->exact) {
		w->run->is_measured = true;
		w->run->is_counted |= !w->profile->is_time;
		w->run->total.value += (double)node->base;
		/* A thread is no call like others. */
		w->run->total.squares += node->parent ? squares_of(w, (double)node->base, node) : 0;
	}
	if (!node->parent)
		return;
	if (w->q->by == DIFF_BY_STACK) {
		w->path_of[id] = diff_path(w->keys, w->path_of[node->parent], key);
		add_node(w, node, w->path_of[id], key);
	} else if (w->q->by != DIFF_BY_LINE) {
		add_node(w, node, key, key);
	}
	if (w->q->by == DIFF_BY_FUNCTION)
		add_arc(w, node, key);
}

static void add_tree(struct diff_run *run, struct diff_keys *keys, const struct profile *profile,
	const struct diff_run_question *q)
{
	const struct calltree *t = profile->tree;
	struct tree_walk w = {.run = run, .keys = keys, .profile = profile, .q = q};

	w.key_of = mem_calloc(calltree_n_routines(t), sizeof(*w.key_of));
	w.path_of = mem_calloc(calltree_n_nodes(t), sizeof(*w.path_of));
	for (uint32_t id = calltree_first_root(t); id; id = calltree_next(t, id))
		walk_node(&w, id);
	free(w.key_of);
	free(w.path_of);
	vec_release(&w.open);
	vec_release(&w.n_open);
}

/* Images and lines have functions that events measured and others: where there are samples, these know both. */
static bool is_by_tree(const struct profile *p, const struct diff_run_question *q)
{
	if (q->by == DIFF_BY_FUNCTION)
		return true;
	return calltree_has_events(p->tree) &&
	       (q->by == DIFF_BY_STACK || !calltree_has_estimates(p->tree));
}

int diff_run_init(struct diff_run *run, struct diff_keys *keys, const struct profile *profile,
	const struct diff_run_question *q, struct err *err)
{
	int rc = 0;

	memset(run, 0, sizeof(*run));
	run->scale = 1;
	if (profile->counts.is_flat && (q->with_callees || q->by == DIFF_BY_STACK))
		return err_set(err, ERR_NOT_FOUND,
			"'%s': has no call paths, so there are no figures %s",
			trace_reader_name(profile->reader),
			q->with_callees ? "with callees" : "by stack");
	if (is_by_tree(profile, q))
		add_tree(run, keys, profile, q);
	if (q->by == DIFF_BY_LINE && run->is_measured)
		rc = diff_run_add_counted_lines(run, keys, profile, q, err);
	else
		rc = diff_run_add_samples(run, keys, profile, q, err);
	if (rc < 0)
		diff_run_release(run);
	return rc;
}

void diff_run_release(struct diff_run *run)
{
	vec_release(&run->rows);
	vec_release(&run->arcs);
	map_release(&run->arc_of);
	vec_release(&run->bytes);
}
