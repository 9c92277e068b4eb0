/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "record/hooks/transcript_internal.h"
#include "record/hooks/tree_snapshot.h"

/* A tree on its way into the trace. */
struct passage {
	struct transcript *t;
	struct hook_process *process;
	uint32_t n_functions; /* that the planner knows */
	uint64_t time;
	bool is_replaced; /* by exec: the thread goes on with another tree */
};

/* --- conversions ------------------------------------------------------------------------------ */

/* The counter at a time of the trace. */
static uint64_t ticks_at(const struct transcript *t, uint64_t time)
{
	const struct tick_point *p = &t->clock.points[t->clock.n - 1];
	double ns = time < p->ns ? -(double)(p->ns - time) : (double)(time - p->ns);

	return p->ticks + (uint64_t)(int64_t)(ns * tick_clock_hz(&t->clock) / 1e9);
}

static uint64_t ns_of(void *ctx, uint64_t ticks)
{
	const struct passage *p = ctx;
	double hz = tick_clock_hz(&p->t->clock);

	return hz > 0 ? (uint64_t)((double)ticks / hz * 1e9 + 0.5) : 0;
}

static uint32_t thread_of(void *ctx, uint32_t tid)
{
	const struct passage *p = ctx;

	return processes_thread(p->t->world.processes, p->process->pid, tid, p->time)->trace_id;
}

/* 0 for folded calls, and for ids that make no sense. */
static uint32_t frame_of(void *ctx, uint32_t id)
{
	const struct passage *p = ctx;

	return id && id <= p->n_functions ? transcript_frame(p->t, id) : 0;
}

/* --- one tree --------------------------------------------------------------------------------- */

static struct passage passage_of(struct transcript *t, struct hook_process *process, uint64_t time)
{
	return (struct passage){.t = t,
		.process = process,
		.n_functions = hooks_n_functions(t->h),
		.time = time};
}

static void count_calls(struct passage *p, const struct tree_copy *c)
{
	for (size_t i = 0; i < c->nodes.n; i++) {
		const struct tree_node *n = &c->nodes.v[i];

		p->t->n_events += 2 * n->calls;
		if (n->id && n->id <= p->n_functions)
			transcript_function(p->t, n->id)->hits += n->calls;
	}
}

/* What the library counts for the thread beside its tree. */
static void take_counts(struct transcript *t, const struct hook_thread *thread)
{
	t->totals.n_unhooked += thread->n_unhooked;
	t->totals.n_jumped += thread->n_jumped;
	t->totals.n_dropped += thread->n_dropped;
}

/* `is_end`: nothing will come any more, so it counts. */
static void write_tree(
	struct passage *p, uint32_t thread_i, uint64_t now_ticks, bool is_over, bool is_end)
{
	const struct hook_area *a = &p->process->area;
	struct tree_sink sink = {.w = p->t->world.w,
		.time = p->time,
		.thread = thread_of,
		.frame = frame_of,
		.ns = ns_of,
		.ctx = p};
	struct tree_copy c = {0};
	const void *tree;

	if (!hook_area_has_thread(a, thread_i))
		return;
	tree = hook_area_ring(a, thread_i);
	if (tree && tree_copy_read(&c, tree, a->ring_bytes, now_ticks, is_over)) {
		if (p->t->h->options.prunes_all)
			tree_copy_prune(&c, p->t->h->options.prune_permille);
		tree_copy_write(&c, &sink, a->threads[thread_i].tid);
		if (is_end) {
			count_calls(p, &c);
			hook_costs_add_tree(&p->t->costs, p->process->is_64, c.costs);
		}
		if (is_end && p->is_replaced)
			tree_over_write(&sink, a->threads[thread_i].tid);
	}
	tree_copy_release(&c);
	if (!is_end)
		return;
	take_counts(p->t, &a->threads[thread_i]);
	hook_area_free_thread(a, thread_i);
}

/* --- all of them ------------------------------------------------------------------------------ */

typedef VEC(struct hook_process *) process_list;

/* Those that have an area, each with a reference; false without --tree. */
static bool hold_processes(struct transcript *t, process_list *list)
{
	*list = (process_list){0};
	if (!t->h->options.tree)
		return false;
	tick_clock_refine(&t->clock);
	HOLD(&t->h->lock);
	for (size_t i = 0; i < t->h->processes.n; i++) {
		struct hook_process *p = t->h->processes.v[i];

		if (!p->area.base)
			continue;
		p->n_refs++;
		vec_push(list, p);
	}
	return true;
}

static bool is_empty(const struct hook_area *a)
{
	for (uint32_t i = 0; i < hook_area_n_used(a); i++)
		if (a->threads[i].state != HOOK_THREAD_FREE)
			return false;
	return true;
}

/* Memory of processes that have ended, and whose trees have all been written, is given back. */
static void let_go(struct transcript *t, process_list *list)
{
	HOLD(&t->h->lock);
	for (size_t i = 0; i < list->n; i++) {
		struct hook_process *p = list->v[i];

		if (p->has_ended && !p->n_exchanges && is_empty(&p->area))
			hook_area_close(&p->area);
		hooks_unref_process(p);
	}
	vec_release(list);
}

static void write_process(struct passage *p, uint64_t now_ticks, bool is_over, bool is_end)
{
	for (uint32_t i = 0; i < hook_area_n_used(&p->process->area); i++)
		write_tree(p, i, now_ticks, is_over, is_end);
}

static void write_all(struct transcript *t, uint64_t time, uint64_t now_ticks, bool is_end)
{
	process_list list;

	if (!hold_processes(t, &list))
		return;
	for (size_t i = 0; i < list.n; i++) {
		struct passage p = passage_of(t, list.v[i], time);

		p.is_replaced = list.v[i]->is_superseded;
		write_process(&p, now_ticks, list.v[i]->has_ended, is_end);
	}
	let_go(t, &list);
}

void transcript_write_trees(struct transcript *t, uint64_t time)
{
	write_all(t, time, TREE_NOW, false);
}

void transcript_finish_trees(struct transcript *t, uint64_t time)
{
	write_all(t, time, t->h->stop_ticks == UINT64_MAX ? TREE_NOW : t->h->stop_ticks, true);
}

static uint32_t find_entry(const struct hook_process *p, uint32_t tid)
{
	for (uint32_t i = 0; i < hook_area_n_used(&p->area); i++)
		if (p->area.threads[i].state != HOOK_THREAD_FREE &&
			p->area.threads[i].tid == tid)
			return i;
	return UINT32_MAX;
}

void transcript_end_tree(struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time)
{
	process_list list;
	uint64_t ticks;

	if (!hold_processes(t, &list))
		return;
	ticks = ticks_at(t, time);
	for (size_t i = list.n; i--;) { /* the newest of that pid */
		struct passage p;
		uint32_t at;

		if (list.v[i]->pid != pid || list.v[i]->since_ticks > ticks)
			continue;
		at = find_entry(list.v[i], tid);
		if (at == UINT32_MAX)
			continue;
		p = passage_of(t, list.v[i], time);
		write_tree(&p, at, ticks, false, true);
		break;
	}
	let_go(t, &list);
}

void transcript_exec_trees(struct transcript *t, uint32_t pid, uint64_t time)
{
	process_list list;
	uint64_t ticks;

	if (!hold_processes(t, &list))
		return;
	ticks = ticks_at(t, time);
	for (size_t i = 0; i < list.n; i++) {
		struct passage p = passage_of(t, list.v[i], time);

		p.is_replaced = true;
		if (list.v[i]->pid == pid && list.v[i]->since_ticks < ticks)
			write_process(&p, ticks, false, true);
	}
	let_go(t, &list);
}

/* --- the budget ------------------------------------------------------------------------------- */

/* Adds up what the functions have in one tree; false when there is none. */
static bool add_tree(struct passage *p, uint32_t thread_i)
{
	const struct hook_area *a = &p->process->area;
	struct tree_copy c = {0};
	const void *tree = hook_area_has_thread(a, thread_i) ? hook_area_ring(a, thread_i) : NULL;
	bool is_there = tree && tree_copy_read(&c, tree, a->ring_bytes, TREE_NOW, false);

	for (size_t i = 0; i < c.nodes.n; i++) {
		const struct tree_node *n = &c.nodes.v[i];

		if (!n->id || n->id > p->n_functions)
			continue;
		transcript_function(p->t, n->id)->calls += n->calls;
		transcript_function(p->t, n->id)->ticks += n->elapsed;
	}
	tree_copy_release(&c);
	return is_there;
}

/* What is new. A thread that has ended took its share with it: then all that is there counts. */
static uint64_t take_new(uint64_t now, uint64_t *before)
{
	uint64_t new = now < *before ? now : now - *before;

	*before = now;
	return new;
}

uint64_t transcript_count_trees(struct transcript *t)
{
	process_list list;
	uint64_t n = 0;

	if (!hold_processes(t, &list))
		return 0;
	for (size_t i = 0; i < list.n; i++) {
		struct passage p = passage_of(t, list.v[i], 0);

		for (uint32_t k = 0; k < hook_area_n_used(&list.v[i]->area); k++)
			n += add_tree(&p, k);
	}
	let_go(t, &list);
	for (uint32_t id = 1; id < t->functions.n; id++) {
		struct hooked_function *f = &t->functions.v[id];

		f->calls = take_new(f->calls, &f->tree_calls);
		f->ticks = take_new(f->ticks, &f->tree_ticks);
	}
	return n;
}
