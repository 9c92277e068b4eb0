/* SPDX-License-Identifier: MIT */
/*
 * Samples on their way into the tree. A thread without events needs no order: its samples are
 * summed by stack first, and each stack is walked once. A sample of a thread with events is merged
 * at once, below the events that are open at that moment.
 */
#include "base/order.h"
#include "calltree/build_internal.h"

#include <stdlib.h>
#include <string.h>

#include "calltree/sample_walk.h"

/* The routines of a stack, outermost first, in b->path. */
static void expand_stack(struct builder *b, uint32_t stack)
{
	b->path.n = 0;
	for (; stack; stack = trace_reader_stack(b->reader, stack)->parent) {
		size_t n;
		const uint32_t *routines = frame_routines_get(
			&b->names, trace_reader_stack(b->reader, stack)->frame, &n);

		while (n-- > 0)
			vec_push(&b->path, routines[n]);
	}
	for (size_t i = 0, j = b->path.n; i + 1 < j; i++) {
		uint32_t swap = b->path.v[i];

		b->path.v[i] = b->path.v[--j];
		b->path.v[j] = swap;
	}
}

/* Sums by stack are enough where nothing is open that the sample could lie in. */
static void add_up(struct builder *b, uint32_t thread, uint32_t stack, uint64_t weight)
{
	bool created;
	uint64_t *place = map_ensure(&b->sum_of, (uint64_t)thread << 32 | stack, &created);
	struct sample_sum *sum;

	if (created) {
		*place = b->sums.n;
		vec_push(&b->sums, ((struct sample_sum){.thread = thread, .stack = stack}));
	}
	sum = &b->sums.v[*place];
	sum->weight += weight;
	sum->n++;
}

/* Whether the record of a thread is in the window and wanted: then the thread is played up to it. */
static bool reach(struct builder *b, uint32_t thread, const struct trace_record *record)
{
	if (record->time < b->from || !b->profile->threads[thread].is_wanted)
		return false;
	build_play_before(b, thread, record);
	build_thread_runs(b, thread, record->time);
	return true;
}

/* The same for records with a stack, which is counted; false with the loss noted when damaged. */
static bool reach_stack(struct builder *b, const struct trace_record *record,
	struct trace_sample *sample, const char *damage)
{
	if (trace_record_sample(b->reader, record, sample, NULL) < 0 || !sample->thread) {
		loss_add_reason(&b->profile->loss, damage, 1);
		return false;
	}
	if (!reach(b, sample->thread, record))
		return false;
	b->stack_n[sample->stack]++;
	return true;
}

static void count_sample(struct builder *b, uint32_t thread)
{
	b->profile->n_samples++;
	b->profile->threads[thread].samples++;
}

void build_sample_record(struct builder *b, const struct trace_record *record)
{
	struct calltree_thread *calls;
	struct trace_sample sample;
	uint64_t weight;

	if (!reach_stack(b, record, &sample, "a sample record is damaged") ||
		!sample_is_selected(&b->profile->weighing, sample.metric))
		return;
	weight = sample_weight(&b->profile->weighing, sample.metric, sample.weight);
	if (sample_is_of_hook(&b->profile->weighing, b->reader, sample.stack)) {
		b->profile->n_hook_samples++;
		b->profile->hook_weight += weight;
		return;
	}
	count_sample(b, sample.thread);
	calls = build_open_calls(b, sample.thread, record->time);
	if (!calls) {
		add_up(b, sample.thread, sample.stack, weight);
		return;
	}
	expand_stack(b, sample.stack);
	calltree_set_time(b->tree, record->time);
	calltree_merge_sample(calls, b->path.v, b->path.n, weight, 1);
}

/* A stack at the entry of a routine. Without calls to hang it below it is counted, no more. */
void build_stack_event_record(struct builder *b, const struct trace_record *record)
{
	struct calltree_thread *calls;
	struct trace_sample stack;

	if (!reach_stack(b, record, &stack, "a stack record is damaged"))
		return;
	b->profile->n_stack_events++;
	calls = build_open_calls(b, stack.thread, record->time);
	if (!calls)
		return;
	expand_stack(b, stack.stack);
	calltree_set_time(b->tree, record->time);
	calltree_merge_stack_event(calls, b->path.v, b->path.n);
}

void build_tick_record(struct builder *b, const struct trace_record *record)
{
	struct calltree_thread *calls;
	struct sample_view tick;
	const uint32_t *routines;
	uint64_t weight;
	uint32_t node;
	size_t n;

	if (!sample_view_tick(b->reader, record, &tick)) {
		loss_add_reason(&b->profile->loss, "a sample record is damaged", 1);
		return;
	}
	if (!reach(b, tick.thread, record))
		return;
	b->frame_n[tick.frame]++;
	if (!sample_is_selected(&b->profile->weighing, tick.metric))
		return;
	weight = sample_weight(&b->profile->weighing, tick.metric, tick.weight);
	count_sample(b, tick.thread);
	calls = build_open_calls(b, tick.thread, record->time);
	routines = frame_routines_get(&b->names, tick.frame, &n);
	calltree_set_time(b->tree, record->time);
	if (calls) {
		calltree_merge_sample(calls, routines, n, weight, 1);
		return;
	}
	node = build_root(b, tick.thread);
	for (size_t i = 0; i < n; i++)
		node = calltree_child(b->tree, node, routines[i]);
	calltree_add_sample(b->tree, node, weight, 1);
}

/* The node of a stack below a root; every stack on the way is remembered. */
static uint32_t node_of_stack(struct builder *b, uint32_t root, uint32_t stack)
{
	uint32_t node = root;

	b->path.n = 0;
	while (stack) {
		if (b->node_of[stack].root == root) {
			node = b->node_of[stack].node;
			break;
		}
		vec_push(&b->path, stack);
		stack = trace_reader_stack(b->reader, stack)->parent;
	}
	while (b->path.n) {
		uint32_t id = b->path.v[--b->path.n];
		size_t n;
		const uint32_t *routines =
			frame_routines_get(&b->names, trace_reader_stack(b->reader, id)->frame, &n);

		for (size_t i = 0; i < n; i++)
			node = calltree_child(b->tree, node, routines[i]);
		b->node_of[id] = (struct stack_node){root, node};
	}
	return node;
}

/* Stacks are numbered after their callers', so one pass up and one pass down see all of them. */
static void count_stacks(struct builder *b)
{
	enum { HAS_USER = 1, IS_CUT = 2 };
	struct loss *loss = &b->profile->loss;
	uint32_t n_stacks = trace_reader_n_stacks(b->reader);
	uint8_t *flags = mem_calloc(n_stacks, 1);

	for (uint32_t id = 1; id < n_stacks; id++) {
		const struct trace_stack *stack = trace_reader_stack(b->reader, id);
		enum frame_kind kind = trace_reader_frame(b->reader, stack->frame)->kind;

		flags[id] = flags[stack->parent];
		if (kind != FRAME_KIND_KERNEL)
			flags[id] |= HAS_USER;
		if (kind == FRAME_KIND_MARKER && !stack->parent)
			flags[id] |= IS_CUT;
		if (flags[id] & HAS_USER)
			loss->stacks += b->stack_n[id];
		if (flags[id] == HAS_USER)
			loss->stacks_complete += b->stack_n[id];
	}
	for (uint32_t id = n_stacks; id-- > 1;) {
		const struct trace_stack *stack = trace_reader_stack(b->reader, id);

		b->frame_n[stack->frame] += b->stack_n[id];
		if (stack->parent)
			b->stack_n[stack->parent] += b->stack_n[id];
	}
	free(flags);
}

static void count_frames(struct builder *b)
{
	struct loss *loss = &b->profile->loss;
	uint32_t n_frames = trace_reader_n_frames(b->reader);

	for (uint32_t id = 1; id < n_frames; id++) {
		const struct trace_frame *frame = trace_reader_frame(b->reader, id);
		const char *reason;

		if (!b->frame_n[id])
			continue;
		if (frame->image)
			b->profile->image_is_used[frame->image] = true;
		if (frame->kind == FRAME_KIND_MARKER) {
			loss_add_reason(
				loss, trace_reader_string(b->reader, frame->name), b->frame_n[id]);
			continue;
		}
		loss->frames += b->frame_n[id];
		reason = frame_names_unresolved_reason(b->reader, id);
		if (reason) {
			loss->frames_unresolved += b->frame_n[id];
			loss_add_reason(loss, reason, b->frame_n[id]);
		}
	}
}

/* By thread, so that the nodes of its stacks are found without a search; else as they came. */
ORDER_BY(compare_sums, struct sample_sum, thread, order)

/* A tree that was kept in the program has no times: what a stack has in common with it counts. */
static void hang_sum(struct builder *b, const struct sample_sum *sum)
{
	uint32_t root = build_root(b, sum->thread);

	if (build_has_kept_tree(b, sum->thread)) {
		expand_stack(b, sum->stack);
		calltree_merge_by_shape(b->tree, root, b->path.v, b->path.n, sum->weight, sum->n);
	} else if (b->threads[sum->thread].calls) {
		expand_stack(b, sum->stack);
		calltree_hang_sample(b->tree, root, b->path.v, b->path.n, sum->weight, sum->n);
	} else {
		calltree_add_sample(
			b->tree, node_of_stack(b, root, sum->stack), sum->weight, sum->n);
	}
}

void build_samples_end(struct builder *b)
{
	calltree_set_time(b->tree, UINT64_MAX);
	for (size_t i = 0; i < b->sums.n; i++) {
		b->sums.v[i].order = i;
		build_root(b, b->sums.v[i].thread); /* roots in order of first sight */
	}
	vec_sort(&b->sums, compare_sums);
	for (size_t i = 0; i < b->sums.n; i++)
		hang_sum(b, &b->sums.v[i]);
	count_stacks(b);
	count_frames(b);
}
