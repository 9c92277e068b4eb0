/* SPDX-License-Identifier: MIT */
/*
 * Programs that count themselves: the nodes of their call trees carry exact figures of their own,
 * so that everything else follows by adding up. A metric that was not measured by node (cycles,
 * unless the program summed them; anything, when it kept no call tree) is known by function from
 * the blocks: then the functions hang below their threads, and what depends on calls is not known.
 */
#include "calltree/build_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define CYCLE_PARTS 100 /* costs are in hundredths of cycles */

struct counted_node {
	uint32_t thread, frame;
	size_t parent; /* index in nodes; SIZE_MAX: the thread itself */
	uint64_t calls, instructions, min, max, site;
	uint64_t cycles;     /* hundredths */
	uint64_t time;	     /* ns, entry to exit; 0 when not measured */
	uint64_t below_time; /* of the nearest timed nodes below it */
	bool has_calls, has_cycles, is_timed;
	uint32_t node; /* in the call tree */
};

/* What the blocks of a function add up to in a thread. */
struct counted_sum {
	uint32_t thread, frame;
	uint64_t instructions, cycles;
	bool has_cycles;
};

struct counted {
	struct map *node_of; /* by thread: number -> index in nodes */
	VEC(struct counted_node) nodes;
	VEC(struct counted_sum) sums;
	uint64_t *own; /* by thread: instructions of node 0 */
	uint64_t *own_cycles;
	bool *is_used;	     /* by thread */
	struct map executed; /* frames of functions with an executed block */
	struct map split;    /* frames of parts of functions */
	struct map missed;   /* frames of functions that are not counted */
	struct map bytes_of; /* frame -> bytes of the function */
	struct buf label;    /* of a call site */
	uint64_t rest;	     /* of a cycle, carried from node to node so that the total is right */
};

static void damaged(struct builder *b)
{
	loss_add_reason(&b->profile->loss, "a record of counts is damaged", 1);
}

static struct counted *counted_of(struct builder *b)
{
	size_t n = b->profile->n_threads;
	struct counted *c = b->counted;

	if (c)
		return c;
	c = b->counted = mem_zalloc(sizeof(*c));
	c->node_of = mem_calloc(n, sizeof(*c->node_of));
	c->own = mem_calloc(n, sizeof(*c->own));
	c->own_cycles = mem_calloc(n, sizeof(*c->own_cycles));
	c->is_used = mem_calloc(n, sizeof(*c->is_used));
	return c;
}

/* ---- records ---- */

static bool is_thread(const struct builder *b, uint64_t thread)
{
	return thread && thread < b->profile->n_threads;
}

static bool is_frame(const struct builder *b, uint64_t frame)
{
	return frame && frame < trace_reader_n_frames(b->reader);
}

static void add_node(struct builder *b, const uint64_t n[11])
{
	struct counted *c = b->counted;
	struct counted_node node = {.thread = (uint32_t)n[0],
		.frame = (uint32_t)n[3],
		.parent = SIZE_MAX,
		.calls = n[4] ? n[4] - 1 : 0,
		.has_calls = n[4],
		.instructions = n[5],
		.cycles = n[6] ? n[6] - 1 : 0,
		.has_cycles = n[6],
		.min = n[7],
		.max = n[8],
		.time = n[9] ? n[9] - 1 : 0,
		.is_timed = n[9],
		.site = n[10]};
	const uint64_t *parent = n[2] ? map_find(&c->node_of[n[0]], n[2]) : NULL;
	bool created;
	uint64_t *at;

	if (n[2] && !parent)
		damaged(b); /* it hangs at its thread */
	else if (n[2])
		node.parent = (size_t)*parent;
	at = map_ensure(&c->node_of[n[0]], n[1], &created);
	if (!created) {
		damaged(b);
		return;
	}
	*at = c->nodes.n;
	vec_push(&c->nodes, node);
	b->profile->counts.has_calls |= node.has_calls;
}

static void node_record(struct builder *b, const struct trace_record *record)
{
	struct counted *c = b->counted;
	uint64_t n[11];

	if (trace_record_numbers(b->reader, record, n, 11, NULL) < 0 || !is_thread(b, n[0]) ||
		(n[1] && !is_frame(b, n[3]))) {
		damaged(b);
		return;
	}
	if (!b->profile->threads[n[0]].is_wanted)
		return;
	c->is_used[n[0]] = true;
	b->profile->counts.n_nodes++;
	if (n[1]) {
		add_node(b, n);
		return;
	}
	c->own[n[0]] += n[5];
	c->own_cycles[n[0]] += n[6] ? n[6] - 1 : 0;
}

static void sum_record(struct builder *b, const struct trace_record *record)
{
	struct counted_sum sum;
	uint64_t n[4]; /* thread, frame, instructions, cycles + 1 */

	if (trace_record_numbers(b->reader, record, n, 4, NULL) < 0 || !is_thread(b, n[0]) ||
		!is_frame(b, n[1])) {
		damaged(b);
		return;
	}
	if (!b->profile->threads[n[0]].is_wanted)
		return;
	sum = (struct counted_sum){.thread = (uint32_t)n[0],
		.frame = (uint32_t)n[1],
		.instructions = n[2],
		.cycles = n[3] ? n[3] - 1 : 0,
		.has_cycles = n[3]};
	b->counted->is_used[n[0]] = true;
	vec_push(&b->counted->sums, sum);
}

static void function_record(struct builder *b, const struct trace_record *record)
{
	struct profile_counts *counts = &b->profile->counts;
	uint64_t n[5]; /* frame, bytes, reason, blocks, flags */

	if (trace_record_numbers(b->reader, record, n, 5, NULL) < 0 || !is_frame(b, n[0]) ||
		n[2] >= trace_reader_n_strings(b->reader)) {
		damaged(b);
		return;
	}
	*map_ensure(&b->counted->bytes_of, n[0], NULL) = n[1];
	if (n[4] & RECORD_COUNT_FRAGMENT) {
		map_ensure(&b->counted->split, n[0], NULL);
		return;
	}
	counts->n_functions++;
	if (!n[2])
		return;
	counts->n_left_alone++;
	if (n[4] & RECORD_COUNT_UNMISSED)
		return;
	counts->n_missed++;
	if (n[4] & RECORD_COUNT_OBJECT) {
		if (!counts->n_missed_objects++)
			counts->missed_object = trace_reader_string(
				b->reader, trace_reader_frame(b->reader, (uint32_t)n[0])->name);
		counts->n_functions--; /* nobody knows how many */
	}
	loss_add_reason(&counts->missed, trace_reader_string(b->reader, (uint32_t)n[2]), 1);
	map_ensure(&b->counted->missed, n[0], NULL);
}

static void block_record(struct builder *b, const struct trace_record *record)
{
	uint64_t n[6]; /* frame, address, end, instructions, cost, count */
	bool created;

	if (trace_record_numbers(b->reader, record, n, 6, NULL) < 0 || !is_frame(b, n[0])) {
		damaged(b);
		return;
	}
	b->profile->counts.n_blocks++;
	if (!n[5])
		return;
	b->profile->counts.n_blocks_executed++;
	map_ensure(&b->counted->executed, n[0], &created);
	if (created && !map_find(&b->counted->split, n[0]))
		b->profile->counts.n_executed++;
}

void build_count_record(struct builder *b, const struct trace_record *record)
{
	counted_of(b);
	switch (record->minor) {
	case RECORD_COUNT_NODE:
		node_record(b, record);
		break;
	case RECORD_COUNT_SUM:
		sum_record(b, record);
		break;
	case RECORD_COUNT_FUNCTION:
		function_record(b, record);
		break;
	case RECORD_COUNT_BLOCK:
		block_record(b, record);
		break;
	default: /* lines are for code_counts.c */
		break;
	}
}

/* ---- the tree ---- */

static bool metric_is(const struct builder *b, const char *name)
{
	return !strcmp(b->profile->metric, name);
}

/* Whole cycles, such that those of all nodes together are right but for one. */
static uint64_t whole_cycles(struct counted *c, uint64_t hundredths)
{
	uint64_t whole = hundredths / CYCLE_PARTS;

	c->rest += hundredths % CYCLE_PARTS;
	if (c->rest >= CYCLE_PARTS) {
		c->rest -= CYCLE_PARTS;
		whole++;
	}
	return whole;
}

static bool is_by_function(const struct builder *b)
{
	const struct counted *c = b->counted;

	if (!b->profile->counts.has_calls)
		return !metric_is(b, "foreign");
	if (!metric_is(b, "cycles"))
		return false;
	for (size_t i = 0; i < c->nodes.n; i++)
		if (!c->nodes.v[i].has_cycles && !c->nodes.v[i].is_timed)
			return true;
	return false;
}

static void add_to_tree(struct builder *b, const struct counted_node *n, uint64_t base)
{
	struct calltree_calls figures = {
		.calls = n->calls, .base = base, .min = 1}; /* no call ended */

	if (metric_is(b, "instructions")) {
		figures.min = n->min;
		figures.max = n->max;
	}
	calltree_add_calls(b->tree, n->node, &figures, true);
}

/* Without what ran below it and was timed as well: a foreign function may call back. */
static uint64_t own_time(const struct counted_node *n)
{
	return n->time > n->below_time ? n->time - n->below_time : 0;
}

static uint64_t base_of(struct builder *b, const struct counted_node *n)
{
	if (metric_is(b, "instructions"))
		return n->instructions;
	if (metric_is(b, "cycles"))
		return whole_cycles(b->counted, n->cycles);
	if (b->kind == METRIC_KIND_CALLS)
		return n->calls;
	return own_time(n);
}

/* Parents come before their children: one pass backwards hands the times up. */
static void sum_times(struct builder *b)
{
	struct profile_counts *counts = &b->profile->counts;
	struct counted *c = b->counted;

	for (size_t i = c->nodes.n; i-- > 0;) {
		const struct counted_node *n = &c->nodes.v[i];
		bool is_missed = n->is_timed && map_find(&c->missed, n->frame);

		counts->has_foreign |= n->is_timed;
		counts->foreign_ns += n->is_timed ? own_time(n) : 0;
		counts->has_missed_time |= is_missed;
		counts->missed_ns += is_missed ? own_time(n) : 0;
		if (n->parent != SIZE_MAX)
			c->nodes.v[n->parent].below_time += n->is_timed ? n->time : n->below_time;
	}
}

/* "A+0x20" for a call by A that returns there; "" when calls from all places are one, or when the
 * call does not return into A: A jumped there and is gone. */
static const char *site_label(struct builder *b, const struct counted_node *n)
{
	struct counted *c = b->counted;
	const struct counted_node *parent = n->parent == SIZE_MAX ? NULL : &c->nodes.v[n->parent];
	const uint64_t *bytes = parent ? map_find(&c->bytes_of, parent->frame) : NULL;
	uint64_t start;

	if (!n->site || !bytes)
		return "";
	start = trace_reader_frame(b->reader, parent->frame)->addr;
	if (n->site <= start || n->site - start > *bytes)
		return "";
	buf_reset(&c->label);
	buf_printf(&c->label, "%s+0x%" PRIx64,
		calltree_get_routine(b->tree, calltree_get(b->tree, parent->node)->routine)->name,
		n->site - start);
	return buf_text(&c->label);
}

static void hang_nodes(struct builder *b)
{
	struct counted *c = b->counted;

	for (size_t i = 0; i < c->nodes.n; i++) {
		struct counted_node *n = &c->nodes.v[i];
		uint32_t parent = n->parent == SIZE_MAX ? build_root(b, n->thread)
							: c->nodes.v[n->parent].node;

		n->node = calltree_child_at(
			b->tree, parent, build_routine(b, n->frame), site_label(b, n));
		add_to_tree(b, n, base_of(b, n));
	}
}

/* Functions below their threads, with the calls of all their nodes. */
static void hang_sums(struct builder *b)
{
	struct counted *c = b->counted;
	struct map calls = {0}; /* thread, frame -> calls */

	for (size_t i = 0; i < c->nodes.n; i++)
		*map_ensure(&calls, (uint64_t)c->nodes.v[i].thread << 32 | c->nodes.v[i].frame,
			NULL) += c->nodes.v[i].calls;
	for (size_t i = 0; i < c->sums.n; i++) {
		const struct counted_sum *s = &c->sums.v[i];
		const uint64_t *n_calls = map_find(&calls, (uint64_t)s->thread << 32 | s->frame);
		struct calltree_calls figures = {.calls = n_calls ? *n_calls : 0, .min = 1};
		uint32_t node = calltree_child(
			b->tree, build_root(b, s->thread), build_routine(b, s->frame));

		figures.base =
			metric_is(b, "cycles") ? whole_cycles(c, s->cycles) : s->instructions;
		calltree_add_calls(b->tree, node, &figures, true);
	}
	map_release(&calls);
}

static void add_roots(struct builder *b)
{
	struct counted *c = b->counted;

	for (uint32_t id = 1; id < b->profile->n_threads; id++) {
		struct calltree_calls figures = {.calls = 1, .min = 1};

		if (!c->is_used[id] || b->threads[id].calls)
			continue;
		if (b->profile->counts.is_flat)
			figures.base = 0;
		else if (metric_is(b, "instructions"))
			figures.base = c->own[id];
		else if (metric_is(b, "cycles"))
			figures.base = whole_cycles(c, c->own_cycles[id]);
		calltree_add_calls(b->tree, build_root(b, id), &figures, true);
	}
}

void build_counts_end(struct builder *b)
{
	if (!b->counted)
		return;
	if (b->from || b->to != UINT64_MAX)
		loss_add_reason(&b->profile->loss,
			"counts have no times: a window (--from, --to) does not apply to them", 1);
	calltree_set_time(b->tree, UINT64_MAX);
	loss_sort_reasons(&b->profile->counts.missed);
	sum_times(b);
	b->profile->counts.is_flat = is_by_function(b);
	if (b->profile->counts.is_flat)
		hang_sums(b);
	else
		hang_nodes(b);
	add_roots(b);
}

void build_counts_release(struct builder *b)
{
	struct counted *c = b->counted;

	if (!c)
		return;
	for (uint32_t id = 0; id < b->profile->n_threads; id++)
		map_release(&c->node_of[id]);
	free(c->node_of);
	vec_release(&c->nodes);
	vec_release(&c->sums);
	free(c->own);
	free(c->own_cycles);
	free(c->is_used);
	map_release(&c->executed);
	map_release(&c->split);
	map_release(&c->missed);
	map_release(&c->bytes_of);
	buf_release(&c->label);
	free(c);
}
