/* SPDX-License-Identifier: MIT */
/*
 * Threads: counters and call trees.
 *
 * What a thread's blocks add up to and what its nodes were charged with differ by the cost since
 * the last entry or exit, which belongs to the node that was current: it is added there, so that
 * both sums are equal. What ran before the library was set up, or was never entered, is charged to
 * the thread itself; blocks tell which functions that were (write_start_up). Functions of units
 * without call-tree code are nodes below the thread itself, with an unknown number of calls.
 */
#include "base/order.h"
#include "formats/import_counts_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/search.h"
#include "symbols/symtab.h"

#define COUNTER_BYTES 8
/* How long the tick rate is measured when the file does not say it. */
#define TICKS_NS 20000000
/* A shorter run says too little about the rate. */
#define RUN_NS_MIN 100000

/* ---- counters ---- */

/* What one thread's counters say about one block. */
typedef void counter_function(void *ctx, struct counts_block *block, uint64_t count);

static void each_counter(
	struct counts_file *f, const struct counts_area *area, counter_function *each, void *ctx)
{
	uint64_t first = area->row.first, bytes = area->bytes.n;
	/* the first unit that ends behind `first` */
	size_t low = SEARCH(0, f->by_counters.n, i,
		f->units.v[f->by_counters.v[i]].counters +
				(uint64_t)f->units.v[f->by_counters.v[i]].n_blocks *
					COUNTER_BYTES <=
			first);

	for (; low < f->by_counters.n; low++) {
		const struct counts_unit *unit = &f->units.v[f->by_counters.v[low]];
		uint64_t i = 0, at;

		if (unit->counters >= first && unit->counters - first >= bytes)
			break;
		if (unit->counters < first)
			i = (first - unit->counters + COUNTER_BYTES - 1) / COUNTER_BYTES;
		at = unit->counters + i * COUNTER_BYTES - first;
		for (; i < unit->n_blocks && at + COUNTER_BYTES <= bytes; i++) {
			uint64_t count;

			memcpy(&count, area->bytes.p + at, sizeof(count));
			if (count)
				each(ctx, &f->blocks.v[unit->first_block + i], count);
			at += COUNTER_BYTES;
		}
	}
}

static void add_count(void *ctx, struct counts_block *block, uint64_t count)
{
	uint64_t *n_orphans = ctx;

	block->count += count;
	*n_orphans += block->function == COUNTS_NONE;
}

void counts_add_counters(struct counts_file *f)
{
	uint64_t n_orphans = 0;

	for (size_t i = 0; i < f->threads.n; i++)
		for (size_t k = 0; k < f->threads.v[i].counters.n; k++)
			each_counter(f, &f->threads.v[i].counters.v[k], add_count, &n_orphans);
	if (n_orphans)
		counts_lost(f, n_orphans, "a block that was executed is in no function");
}

/* ---- a thread's tree ---- */

struct tree_writer {
	struct counts_file *file;
	const struct counts_thread *thread;
	uint32_t id, stream; /* in the trace */
	uint64_t first;	     /* number of the first node but one in the trace's thread, less 1 */
	uint64_t ticks_per_s;
	struct count_node *nodes;
	size_t n_nodes;
	uint64_t tree_instructions; /* of blocks that charge nodes */
	/* by function, all zero but for those that were touched */
	uint64_t *instructions, *cost;
	uint64_t *entries; /* executions of the first block */
	bool *is_touched;
	VEC(uint32_t) touched;
	size_t n_start_up; /* nodes that write_start_up has added */
	uint64_t n_unknown, n_bad_parents;
};

static void put_record(const struct tree_writer *t, enum record_minor_count minor,
	const uint64_t *numbers, size_t n)
{
	trace_writer_numbers(t->file->w, t->stream, 0, RECORD_MAJOR_COUNT, minor, numbers, n);
}

static void sum_block(void *ctx, struct counts_block *block, uint64_t count)
{
	struct tree_writer *t = ctx;
	uint64_t instructions = count * block->n_insns;

	if (block->function == COUNTS_NONE)
		return;
	if (!t->is_touched[block->function]) {
		t->is_touched[block->function] = true;
		vec_push(&t->touched, block->function);
	}
	t->instructions[block->function] += instructions;
	t->cost[block->function] += count * block->cost;
	if (block == &t->file->blocks.v[t->file->functions.v[block->function].first_block])
		t->entries[block->function] += count;
	if (t->file->units.v[block->unit].flags & COUNT_UNIT_TREE)
		t->tree_instructions += instructions;
}

ORDER_BY(compare_areas, struct counts_area, row.first)

/* The nodes of all areas, one array. Areas follow each other without a gap. */
static void read_nodes(struct tree_writer *t)
{
	const struct counts_thread *thread = t->thread;
	size_t n = 0, n_bad = 0, wanted = thread->has_row ? thread->row.n_nodes : SIZE_MAX;

	vec_sort(&thread->nodes, compare_areas);
	for (size_t i = 0; i < thread->nodes.n; i++)
		n += thread->nodes.v[i].bytes.n / sizeof(struct count_node);
	t->nodes = mem_calloc(n + 1, sizeof(*t->nodes));
	for (size_t i = 0; i < thread->nodes.n && t->n_nodes < wanted; i++) {
		const struct counts_area *area = &thread->nodes.v[i];
		size_t here = area->bytes.n / sizeof(struct count_node);

		if (area->row.first != t->n_nodes) {
			n_bad++;
			continue;
		}
		here = here < wanted - t->n_nodes ? here : wanted - t->n_nodes;
		if (here)
			memcpy(t->nodes + t->n_nodes, area->bytes.p, here * sizeof(*t->nodes));
		t->n_nodes += here;
	}
	if (n_bad)
		counts_lost(t->file, n_bad, "an area of call-tree nodes does not follow another");
	if (thread->has_row && t->n_nodes < wanted)
		counts_lost(t->file, wanted - t->n_nodes, "call-tree nodes are not in the file");
	while (!thread->has_row && t->n_nodes && !t->nodes[t->n_nodes - 1].key)
		t->n_nodes--; /* memory that was not used yet */
}

/* What was counted of blocks and not executed, as their calls did not come back. */
static void take_left(struct tree_writer *t)
{
	uint64_t n_bad = 0;

	for (size_t i = 1; i < t->n_nodes; i++) {
		uint16_t rest;
		const struct counts_block *b =
			counts_node_is_left(&t->nodes[i])
				? counts_left_block(t->file, &t->nodes[i], &rest)
				: NULL;
		uint64_t instructions, cost;

		if (!b || !rest || b->function == COUNTS_NONE)
			continue;
		instructions = t->nodes[i].calls * rest;
		cost = t->nodes[i].calls * (uint64_t)((uint64_t)b->cost * rest / b->n_insns);
		/* Signed: a child of fork may have executed what it has not counted. */
		if ((int64_t)instructions > (int64_t)t->instructions[b->function] ||
			(int64_t)instructions > (int64_t)t->tree_instructions) {
			n_bad++;
			continue;
		}
		if (!t->is_touched[b->function]) {
			t->is_touched[b->function] = true;
			vec_push(&t->touched, b->function);
		}
		t->instructions[b->function] -= instructions;
		t->tree_instructions -= instructions;
		t->cost[b->function] -= cost;
	}
	if (n_bad)
		counts_lost(t->file, n_bad, "more of a block was left out than was executed");
}

static bool is_foreign(const struct count_node *node)
{
	return node->key & COUNT_KEY_FOREIGN;
}

static uint32_t named_frame(struct counts_file *f, const char *name)
{
	char *readable = symbol_demangle(name);
	struct trace_frame frame = {
		.kind = FRAME_KIND_NATIVE, .name = trace_writer_string(f->w, readable)};

	free(readable);
	return trace_writer_frame(f->w, &frame);
}

/* A function of the program that was left alone, or one of somewhere else. */
static uint32_t foreign_frame_of(struct counts_file *f, const char *name)
{
	const uint64_t *left_alone = map_find(&f->left_alone, (uint64_t)(uintptr_t)name);

	if (left_alone)
		return f->functions.v[*left_alone].frame;
	return named_frame(f, *name ? name : "[unnamed foreign function]");
}

static uint32_t foreign_frame(struct tree_writer *t, uint64_t site)
{
	struct counts_foreign *foreign = counts_find_foreign(t->file, site);

	if (!foreign) {
		t->n_unknown++;
		return named_frame(t->file, "[unknown foreign function]");
	}
	if (!foreign->frame)
		foreign->frame = foreign_frame_of(t->file, foreign->name);
	return foreign->frame;
}

static uint32_t frame_of(struct tree_writer *t, const struct count_node *node)
{
	struct counts_file *f = t->file;
	struct trace_frame frame = {
		.kind = FRAME_KIND_NATIVE, .image = f->image, .addr = node->key - f->header->base};
	const uint64_t *function;

	if (is_foreign(node))
		return foreign_frame(t, node->key & ~COUNT_KEY_FOREIGN);
	function = map_find(&f->entry_of, node->key);
	if (function)
		return f->functions.v[*function].frame;
	t->n_unknown++;
	return node->key ? trace_writer_frame(f->w, &frame) : named_frame(f, "[unknown function]");
}

static uint64_t ns_of_ticks(const struct tree_writer *t, uint64_t ticks)
{
	__uint128_t ns = t->ticks_per_s ? (__uint128_t)ticks * 1000000000u / t->ticks_per_s : 0;

	return ns > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)ns;
}

static void write_node(struct tree_writer *t, size_t i, uint64_t told_elsewhere)
{
	const struct count_node *node = &t->nodes[i];
	bool has_cycles = t->file->header->flags & COUNT_FILE_CYCLES;
	bool is_timed = i && is_foreign(node) && t->ticks_per_s;
	uint64_t n[11] = {t->id, 0, 0, 0, node->calls + 1, node->cost - told_elsewhere, 0, 1, 0, 0,
		node->site ? node->site - t->file->header->base : 0};

	if (i) {
		n[1] = t->first + i;
		n[2] = node->parent ? t->first + node->parent : 0;
		n[3] = frame_of(t, node);
	} else {
		n[4] = 1 + 1;
	}
	if (!n[4])
		n[4] = UINT64_MAX;
	if (has_cycles)
		n[6] = is_foreign(node) ? 1 : node->cycles + 1;
	if (i && !is_foreign(node) && node->min <= node->max) { /* foreign ones have ticks */
		n[7] = node->min;
		n[8] = node->max;
	}
	if (is_timed)
		n[9] = ns_of_ticks(t, node->cycles) + 1;
	t->file->has_foreign_time |= is_timed;
	put_record(t, RECORD_COUNT_NODE, n, 11);
}

/* The node that what was not charged yet belongs to: never one of foreign code. */
static size_t current_node(const struct tree_writer *t)
{
	size_t i = t->thread->has_row ? t->thread->row.current : 0;

	if (i >= t->n_nodes)
		return 0;
	while (i && is_foreign(&t->nodes[i]))
		i = t->nodes[i].parent < i ? t->nodes[i].parent : 0;
	return i;
}

/* The program was killed while it made the node; or it is none of a call. */
static bool is_left_out(const struct tree_writer *t, size_t i, size_t current)
{
	const struct count_node *node = &t->nodes[i];

	return i && i != current &&
	       (counts_node_is_left(node) || (!node->key && !node->calls && !node->cost));
}

/* Parents come before their children and are written. */
static void place_nodes(struct tree_writer *t, size_t current)
{
	for (size_t i = 1; i < t->n_nodes; i++) {
		struct count_node *node = &t->nodes[i];

		if (node->parent >= i) {
			t->n_bad_parents++;
			node->parent = 0;
		} else if (is_left_out(t, node->parent, current)) {
			node->parent = t->nodes[node->parent].parent;
		}
	}
}

/* What the nodes of a function account for. */
struct accounted {
	uint64_t cost, calls;
};

/* Instructions of a function that no node of it was charged with. Those of .cold parts are in the
 * function's own nodes. */
static uint64_t left_over(
	const struct tree_writer *t, uint32_t function, const struct accounted *nodes)
{
	const struct counts_function *f = &t->file->functions.v[function];

	if ((f->flags & COUNT_FUNCTION_FRAGMENT) ||
		!(t->file->units.v[f->unit].flags & COUNT_UNIT_TREE) ||
		t->instructions[function] <= nodes[function].cost)
		return 0;
	return t->instructions[function] - nodes[function].cost;
}

/* The function of a node; NULL: none that is counted. */
static const uint64_t *function_of(const struct tree_writer *t, size_t i)
{
	return i && !is_foreign(&t->nodes[i]) ? map_find(&t->file->entry_of, t->nodes[i].key)
					      : NULL;
}

static void account(const struct tree_writer *t, struct accounted *nodes)
{
	for (size_t i = 1; i < t->n_nodes; i++) {
		const uint64_t *function = function_of(t, i);

		if (!function)
			continue;
		nodes[*function].cost += t->nodes[i].cost;
		nodes[*function].calls += t->nodes[i].calls;
	}
}

static void charge(struct tree_writer *t, size_t i, uint64_t cost, struct accounted *nodes)
{
	const uint64_t *function = function_of(t, i);

	t->nodes[i].cost += cost;
	if (function)
		nodes[*function].cost += cost;
}

static void note_charged(const struct tree_writer *t)
{
	for (size_t i = 1; i < t->n_nodes; i++) {
		const uint64_t *function = function_of(t, i);

		if (function)
			t->file->functions.v[*function].charged += t->nodes[i].cost;
	}
}

/*
 * Blocks leave their costs to those behind them. Where the handler of a signal has left for elsewhere in between,
 * nobody was charged: below the node is the call of the handler, which did not come back and is in no block.
 * Returns what is left.
 */
static uint64_t charge_interrupted(
	struct tree_writer *t, size_t current, uint64_t uncharged, struct accounted *nodes)
{
	const uint64_t *last = function_of(t, current);

	for (size_t i = 1; i < t->n_nodes && uncharged; i++) {
		const struct count_node *left = &t->nodes[i];
		const uint64_t *function = left->parent < i ? function_of(t, left->parent) : NULL;
		uint64_t owed;

		if (!counts_node_is_left(left) || is_foreign(left) || left->rest || !left->calls ||
			!function || (last && *last == *function))
			continue;
		owed = left_over(t, (uint32_t)*function, nodes);
		owed = owed < uncharged ? owed : uncharged;
		charge(t, left->parent, owed, nodes);
		uncharged -= owed;
	}
	return uncharged;
}

/* A function that ran in `cost` of the thread's own instructions, below the node for all of them.
 */
static void write_start_up_node(struct tree_writer *t, uint64_t parent, uint32_t function,
	uint64_t cost, const struct accounted *nodes)
{
	uint64_t calls = t->entries[function] > nodes[function].calls
				 ? t->entries[function] - nodes[function].calls
				 : 0;
	uint64_t node[11] = {t->id, t->first + t->n_nodes + t->n_start_up++, parent,
		t->file->functions.v[function].frame, calls + 1, cost, 0, 1, 0, 0, 0};

	t->file->functions.v[function].charged += cost;
	put_record(t, RECORD_COUNT_NODE, node, 11);
}

/*
 * The functions that the thread's own cost is made of. Those that were never entered come first:
 * what others have left over may be code that another function jumps into. Returns how much of it
 * is told.
 */
static uint64_t write_start_up(struct tree_writer *t, uint64_t own, const struct accounted *nodes)
{
	uint64_t all[11] = {t->id, t->first + t->n_nodes, 0, 0, 1 + 1, 0, 0, 1, 0, 0, 0};
	uint64_t left = own;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < t->touched.n && left; i++) {
			uint32_t function = t->touched.v[i];
			uint64_t cost = left_over(t, function, nodes);

			if (!cost || (nodes[function].calls != 0) != pass)
				continue;
			if (!t->n_start_up) {
				t->n_start_up = 1;
				all[3] = named_frame(t->file, "[start-up]");
				put_record(t, RECORD_COUNT_NODE, all, 11);
			}
			cost = cost < left ? cost : left;
			left -= cost;
			write_start_up_node(t, all[1], function, cost, nodes);
		}
	return own - left;
}

static void write_tree(struct tree_writer *t)
{
	size_t n = t->n_nodes ? t->n_nodes : 1, current = current_node(t);
	struct accounted *nodes = mem_calloc(t->file->functions.n + 1, sizeof(*nodes));
	uint64_t charged = 0, uncharged = 0, start_up = 0;

	for (size_t i = 0; i < t->n_nodes; i++)
		charged += t->nodes[i].cost;
	if (charged <= t->tree_instructions)
		uncharged = t->tree_instructions - charged;
	else
		counts_note(t->file, charged - t->tree_instructions,
			"call trees were charged with more instructions than their blocks have");
	account(t, nodes);
	uncharged = charge_interrupted(t, current, uncharged, nodes);
	charge(t, current, uncharged, nodes);
	note_charged(t);
	place_nodes(t, current);
	t->n_start_up = 0;
	if (t->n_nodes)
		start_up = write_start_up(t, t->nodes[0].cost, nodes);
	for (size_t i = 0; i < n; i++)
		if (!is_left_out(t, i, current))
			write_node(t, i, i ? 0 : start_up);
	t->first += n - 1 + t->n_start_up;
	free(nodes);
}

/* ---- sums by function ---- */

static void write_sum(struct tree_writer *t, uint32_t number)
{
	struct counts_function *function = &t->file->functions.v[number];
	uint64_t cycles = t->file->has_model ? t->cost[number] + 1 : 0;
	uint64_t sum[4] = {t->id, function->frame, t->instructions[number], cycles};
	uint64_t node[11] = {t->id, 0, 0, function->frame, 0, sum[2], cycles, 1, 0, 0, 0};

	put_record(t, RECORD_COUNT_SUM, sum, 4);
	if (t->file->units.v[function->unit].flags & COUNT_UNIT_TREE) {
		function->instructions += t->instructions[number];
		return;
	}
	node[1] = ++t->first;
	put_record(t, RECORD_COUNT_NODE, node, 11);
}

static void write_sums(struct tree_writer *t)
{
	for (size_t i = 0; i < t->touched.n; i++) {
		uint32_t function = t->touched.v[i];

		write_sum(t, function);
		t->instructions[function] = t->cost[function] = t->entries[function] = 0;
		t->is_touched[function] = false;
	}
	t->touched.n = 0;
}

/* ---- the threads ---- */

static void note_threads(struct counts_file *f)
{
	uint64_t n_shared = 0, n_rows = 0, n_folded = 0, n_callers = 0;

	for (size_t i = 0; i < f->threads.n; i++) {
		const struct count_thread *row = &f->threads.v[i].row;

		n_shared += row->n_shared;
		n_rows += row->n_shared != 0;
		n_folded += row->folded != 0;
		n_callers += (row->folded & COUNT_FOLDED_CALLERS) != 0;
	}
	if (n_shared)
		counts_note(f, n_shared,
			"a thread shares its row with others, in %" PRIu64
			" rows: there was no room for more, so it has that of one that had ended",
			n_rows);
	if (n_folded)
		counts_note(f, n_folded,
			"a call tree has over %u nodes: recursion from there on is in the node of the open "
			"call of the same function%s",
			COUNT_FOLD_NODES,
			n_callers ? ", whose caller may be another" : " by the same caller");
}

static uint64_t measure_ticks_per_s(void)
{
	struct timespec begin, now;
	uint64_t ticks = __builtin_ia32_rdtsc(), ns;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		ns = (uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000u +
		     (uint64_t)(now.tv_nsec - begin.tv_nsec);
	} while (ns < TICKS_NS);
	ticks = __builtin_ia32_rdtsc() - ticks;
	return (uint64_t)((__uint128_t)ticks * 1000000000u / ns);
}

/* 0: not known. */
static uint64_t tick_rate(struct counts_file *f)
{
	const struct count_header *h = f->header;

	if (h->ticks_per_s || !f->foreign.n || !(h->flags & COUNT_FILE_TREE))
		return h->ticks_per_s;
	if (h->end_ns > h->start_ns && h->end_ns - h->start_ns >= RUN_NS_MIN &&
		h->end_ticks > h->start_ticks)
		return (uint64_t)((__uint128_t)(h->end_ticks - h->start_ticks) * 1000000000u /
				  (h->end_ns - h->start_ns));
	counts_note(f, 1,
		"the program did not say how fast its clock ticks: times of foreign code are by the "
		"clock of the machine that reads them");
	return measure_ticks_per_s();
}

static void name_thread(struct counts_file *f, uint32_t id, const struct counts_thread *thread)
{
	size_t n = strnlen(thread->row.name, sizeof(thread->row.name));
	uint64_t numbers[4] = {id, 0, 0, 0};

	if (!n)
		return;
	numbers[3] = trace_writer_string(f->w, counts_text(f, thread->row.name, n));
	trace_writer_numbers(
		f->w, f->life, 0, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, numbers, 4);
}

void counts_write_threads(struct counts_file *f)
{
	struct tree_writer t = {.file = f, .ticks_per_s = tick_rate(f)};
	/* The nodes that the trace's thread has already: rows of one tid are one thread there. */
	struct map numbers = {0};

	t.instructions = mem_calloc(f->functions.n + 1, sizeof(*t.instructions));
	t.cost = mem_calloc(f->functions.n + 1, sizeof(*t.cost));
	t.entries = mem_calloc(f->functions.n + 1, sizeof(*t.entries));
	t.is_touched = mem_calloc(f->functions.n + 1, sizeof(*t.is_touched));
	for (size_t i = 0; i < f->threads.n; i++) {
		struct trace_thread thread = {.pid = f->header->pid};

		t.thread = &f->threads.v[i];
		thread.tid = t.thread->row.tid;
		t.id = trace_writer_thread(f->w, &thread);
		t.stream = trace_writer_stream(f->w, STREAM_KIND_THREAD, t.id);
		t.first = *map_ensure(&numbers, t.id, NULL);
		t.tree_instructions = 0;
		t.n_nodes = 0;
		name_thread(f, t.id, t.thread);
		for (size_t k = 0; k < t.thread->counters.n; k++)
			each_counter(f, &t.thread->counters.v[k], sum_block, &t);
		read_nodes(&t);
		take_left(&t);
		write_tree(&t);
		write_sums(&t);
		free(t.nodes);
		*map_ensure(&numbers, t.id, NULL) = t.first;
	}
	note_threads(f);
	if (t.n_unknown)
		counts_note(
			f, t.n_unknown, "a call-tree node is of a function that no unit describes");
	if (t.n_bad_parents)
		counts_lost(f, t.n_bad_parents, "a call-tree node has no parent before it");
	free(t.instructions);
	free(t.cost);
	free(t.entries);
	free(t.is_touched);
	vec_release(&t.touched);
	map_release(&numbers);
}
