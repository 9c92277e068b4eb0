/* SPDX-License-Identifier: MIT */
/*
 * The call trees of a program. What ran outside of all functions that were entered (a thread that was attached to,
 * the first instructions of a new one) is charged to the thread itself; its blocks tell which functions that was, and
 * they become nodes below it, with an unknown number of calls.
 */
#include "translate/count_trace_internal.h"

#include <stdlib.h>

#include "base/order.h"

struct tree_writer {
	struct count_trace *t;
	const struct counts *c;
	const struct call_thread *thread;
	const uint32_t *function_of; /* by row */
	uint32_t *by_number;	     /* by number of call_function: in t->functions */
	uint32_t id, stream;	     /* in the trace */
	uint64_t first;		     /* nodes that the trace's thread has already */
	uint64_t time;
};

static struct traced_function *touch(struct count_trace *t, uint32_t function)
{
	struct traced_function *f = &t->functions.v[function];

	if (!f->is_touched)
		vec_push(&t->touched, function);
	f->is_touched = true;
	return f;
}

static uint32_t number_function(struct tree_writer *w, uint32_t number)
{
	const struct call_function *f = &w->c->by_number.v[number];

	if (w->by_number[number] == UINT32_MAX)
		w->by_number[number] = traced_code_function(w->t, f->image, f->address - f->bias);
	return w->by_number[number];
}

/* --- sums by function -------------------------------------------------------------------------- */

/* Returns what all blocks of the thread add up to. */
static uint64_t sum_blocks(struct tree_writer *w)
{
	const struct call_thread *thread = w->thread;
	uint64_t sum = 0;

	for (size_t i = 0; i < thread->counters.n; i++) {
		const struct call_count *count = &thread->counters.v[i];
		const struct counts_row *row =
			count->block < w->c->rows.n ? &w->c->rows.v[count->block] : NULL;

		if (!row || w->function_of[count->block] == UINT32_MAX)
			continue;
		touch(w->t, w->function_of[count->block])->blocks += count->count * row->n_insns;
		sum += count->count * row->n_insns;
	}
	for (size_t i = 0; i < thread->faults.n; i++) {
		const struct counts_fault *fault = &thread->faults.v[i];

		if (w->function_of[fault->block] == UINT32_MAX)
			continue;
		touch(w->t, w->function_of[fault->block])->blocks -= fault->count * fault->n_left;
		sum -= fault->count * fault->n_left;
	}
	return sum;
}

static uint64_t sum_nodes(struct tree_writer *w)
{
	uint64_t sum = w->thread->nodes.v[0].cost;

	for (size_t i = 1; i < w->thread->nodes.n; i++) {
		const struct call_node *n = &w->thread->nodes.v[i];

		touch(w->t, number_function(w, n->function))->nodes += n->cost;
		w->t->totals.n_calls += n->calls;
		sum += n->cost;
	}
	return sum;
}

static void forget_sums(struct count_trace *t)
{
	for (size_t i = 0; i < t->touched.n; i++) {
		struct traced_function *f = &t->functions.v[t->touched.v[i]];

		f->blocks = f->nodes = 0;
		f->is_touched = false;
	}
	t->touched.n = 0;
}

/* --- records ----------------------------------------------------------------------------------- */

static void put(const struct tree_writer *w, enum record_minor_count minor, const uint64_t *numbers, size_t n)
{
	trace_writer_numbers(w->t->w, w->stream, w->time, RECORD_MAJOR_COUNT, minor, numbers, n);
}

static void write_node(struct tree_writer *w, size_t i)
{
	const struct call_node *node = &w->thread->nodes.v[i];
	uint64_t n[11] = {w->id, w->first + i, node->parent ? w->first + node->parent : 0, 0, node->calls + 1,
		node->cost, 0, 1, 0, 0, 0};

	n[3] = w->t->functions.v[number_function(w, node->function)].frame;
	if (node->min <= node->max) {
		n[7] = node->min;
		n[8] = node->max;
	}
	put(w, RECORD_COUNT_NODE, n, 11);
}

/* A node below the thread for what it ran itself. */
static void write_start_up_node(struct tree_writer *w, uint64_t number, uint32_t frame, uint64_t cost)
{
	uint64_t n[11] = {w->id, number, 0, frame, 0, cost, 0, 1, 0, 0, 0};

	put(w, RECORD_COUNT_NODE, n, 11);
}

/* The thread's own instructions go to the functions that its tree has too little of. What they have too little of
 * then was executed by others, which jumped into their midst. */
static uint64_t write_start_up(struct tree_writer *w)
{
	struct count_trace *t = w->t;
	uint64_t own = w->thread->nodes.v[0].cost, n = 0;

	for (size_t i = 0; i < t->touched.n; i++) {
		const struct traced_function *f = &t->functions.v[t->touched.v[i]];
		uint64_t missing = f->blocks > f->nodes ? f->blocks - f->nodes : 0;
		uint64_t here = missing < own ? missing : own;

		if (!missing || f->is_part)
			continue;
		own -= here;
		missing -= here;
		t->n_elsewhere += missing;
		if (missing > t->most_elsewhere) {
			t->most_elsewhere = missing;
			t->elsewhere = t->touched.v[i];
		}
		if (here)
			write_start_up_node(w, w->first + w->thread->nodes.n + n++, f->frame, here);
	}
	put(w, RECORD_COUNT_NODE, (uint64_t[]){w->id, 0, 0, 0, 1 + 1, own, 0, 1, 0, 0, 0}, 11);
	return n;
}

static void write_sums(struct tree_writer *w)
{
	struct count_trace *t = w->t;

	for (size_t i = 0; i < t->touched.n; i++) {
		const struct traced_function *f = &t->functions.v[t->touched.v[i]];

		if (f->blocks)
			put(w, RECORD_COUNT_SUM, (uint64_t[]){w->id, f->frame, f->blocks, 0}, 4);
	}
}

/* --- threads ----------------------------------------------------------------------------------- */

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void write_tree(struct tree_writer *w)
{
	const struct call_thread *thread = w->thread;
	struct count_trace *t = w->t;
	uint64_t blocks = sum_blocks(w), nodes = sum_nodes(w), n_start_up;

	if (!blocks && !nodes && thread->nodes.n == 1)
		return;
	for (size_t i = 1; i < thread->nodes.n; i++)
		write_node(w, i);
	n_start_up = write_start_up(w);
	write_sums(w);
	w->first += thread->nodes.n - 1 + n_start_up;
	t->totals.n_insns += blocks;
	if (thread->has_final)
		t->n_uneven += difference(blocks, nodes);
	else
		t->n_unasked++;
	t->n_folded += thread->is_folded;
	t->n_folded_by_any += thread->is_folded_by_any;
}

static void write_thread(struct tree_writer *w, const struct process *p)
{
	const struct trace_thread thread = {
		.pid = p->pid, .tid = (uint32_t)w->thread->tid, .start_ns = p->start_ns};

	w->id = trace_writer_thread(w->t->w, &thread);
	w->stream = trace_writer_stream(w->t->w, STREAM_KIND_THREAD, w->id);
	w->first = *map_ensure(&w->t->n_nodes_of, w->id, NULL);
	write_tree(w);
	forget_sums(w->t);
	*map_ensure(&w->t->n_nodes_of, w->id, NULL) = w->first;
}

void traced_trees_write(struct count_trace *t, const struct counts *c, const struct process *p,
	const uint32_t *function_of, uint64_t time)
{
	struct tree_writer w = {.t = t, .c = c, .function_of = function_of, .time = time};

	w.by_number = mem_alloc(c->by_number.n * sizeof(*w.by_number));
	memset(w.by_number, 0xff, c->by_number.n * sizeof(*w.by_number));
	for (size_t i = 0; i < c->threads.n; i++) {
		w.thread = c->threads.v[i];
		write_thread(&w, p);
	}
	free(w.by_number);
}
