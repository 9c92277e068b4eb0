/* SPDX-License-Identifier: MIT */
/*
 * Records of any kind, in any order, with any numbers: the bytes say what is written into a trace,
 * which is then read and made into profiles. Their sums must hold, whatever was in it; and whoever
 * reads the stream of a thread by chunks must see what the cursor sees.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/span.h"
#include "calltree/arcs.h"
#include "calltree/build.h"
#include "calltree/code_counts.h"
#include "calltree/timeline.h"
#include "trace/record_run.h"

#define RECORDS_MAX 3000
#define N_FRAMES    6
#define N_STREAMS   4

static const struct {
	uint32_t major, minor;
	uint8_t n; /* numbers of the payload */
} codes[] = {
	{RECORD_MAJOR_ROUTINE, RECORD_ROUTINE_ENTER, 1},
	{RECORD_MAJOR_ROUTINE, RECORD_ROUTINE_ENTER | RECORD_MINOR_EXIT, 1},
	{RECORD_MAJOR_INTERPRETED, RECORD_ROUTINE_ENTER, 1},
	{RECORD_MAJOR_STACK_SAMPLE, RECORD_MINOR_STACK, 4},
	{RECORD_MAJOR_STACK_EVENT, RECORD_MINOR_STACK, 4},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_TICK, 4},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_CREATED, 3},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, 4},
	{RECORD_MAJOR_SWITCH, RECORD_SWITCH_OUT, 2},
	{RECORD_MAJOR_SWITCH, RECORD_SWITCH_IN, 1},
	{RECORD_MAJOR_INTERRUPT, 3, 1},
	{RECORD_MAJOR_INTERRUPT, 3 | RECORD_MINOR_EXIT, 1},
	{RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD, 2},
	{RECORD_MAJOR_HOOK, RECORD_HOOK_FUNCTION, 6},
	{RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1},
	{RECORD_MAJOR_TREE, RECORD_TREE_NODE, 8},
	{RECORD_MAJOR_TREE, RECORD_TREE_PRUNED, 2},
	{RECORD_MAJOR_TREE, RECORD_TREE_OVER, 1},
	{RECORD_MAJOR_LOSS, RECORD_LOSS_EVENTS, 2},
	{RECORD_MAJOR_COUNT, RECORD_COUNT_NODE, 11},
	{RECORD_MAJOR_COUNT, RECORD_COUNT_FUNCTION, 6},
	{RECORD_MAJOR_COUNT, RECORD_COUNT_BLOCK, 6},
	{RECORD_MAJOR_COUNT, RECORD_COUNT_LINE, 4},
	{RECORD_MAJOR_COUNT, RECORD_COUNT_SUM, 4},
	{RECORD_MAJOR_HOOK, RECORD_HOOK_COST, 6},
	{RECORD_MAJOR_HOOK, RECORD_HOOK_FRAME, 1},
	{0x7777, 1, 1},
	{RECORD_MAJOR_STEP, RECORD_STEP_TOLD, 3},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_ENDED, 1},
};
#define N_CODES (sizeof(codes) / sizeof(codes[0]))

static void define(struct trace_writer *w)
{
	uint32_t stack = 0;

	trace_writer_metric(w, "cpu", "ns");
	trace_writer_metric(w, "bytes", "bytes");
	trace_writer_metric(w, "cycles", "1");
	trace_writer_metric(w, "foreign", "ns");
	trace_writer_metric(w, "wait", "ns");
	trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	trace_writer_stream(w, STREAM_KIND_CPU, 0);
	for (uint32_t i = 1; i <= N_FRAMES; i++) {
		char name[2] = {(char)('a' + i), 0};
		struct trace_frame frame = {.kind = i == 3 ? FRAME_KIND_KERNEL : FRAME_KIND_NATIVE,
			.name = trace_writer_string(w, name)};

		stack = trace_writer_stack(w, i == 4 ? 0 : stack, trace_writer_frame(w, &frame));
	}
	for (uint32_t i = 1; i <= 2; i++)
		trace_writer_stream(w, STREAM_KIND_THREAD,
			trace_writer_thread(w, &(struct trace_thread){.pid = 7, .tid = i}));
}

static void write_trace(const char *path, struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	struct trace_writer *w;
	uint64_t time = 0;

	if (trace_writer_open(&w, path, NULL) < 0)
		abort();
	define(w);
	for (int i = 0; i < RECORDS_MAX && cursor_left(&c); i++) {
		uint8_t what = cursor_u8(&c), where = cursor_u8(&c);
		size_t code = what % N_CODES, n = codes[code].n;
		uint64_t numbers[11];

		time += where >> 3;
		for (size_t k = 0; k < n; k++) {
			numbers[k] = cursor_u8(&c);
			if (numbers[k] >= 0xf8)
				numbers[k] = cursor_uleb(&c);
		}
		if (what >= 0xe0 && n > 1)
			n--;
		trace_writer_numbers(w, 1 + where % N_STREAMS, time, codes[code].major,
			codes[code].minor, numbers, n);
		if (what == 0xdf)
			trace_writer_flush(w, NULL);
	}
	if (trace_writer_close(w, NULL) < 0)
		abort();
}

/* Everything lies in the window, and what has a name can be named. */
static void check_timeline(const struct profile *p, uint64_t from, uint64_t to)
{
	struct timeline_picture picture = {
		.from = from, .to = to, .n_columns = 1 + (uint32_t)p->n_samples % 40};
	uint32_t n_frames = trace_reader_n_frames(p->reader);
	struct timeline t;

	if (timeline_init(&t, p, &picture, NULL) < 0)
		abort();
	for (size_t i = 0; i < t.spans.n; i++)
		if (t.spans.v[i].from < t.from || t.spans.v[i].to > t.to ||
			t.spans.v[i].from > t.spans.v[i].to || t.spans.v[i].frame >= n_frames)
			abort();
	for (size_t i = 0; i < t.points.n; i++)
		if (t.points.v[i].time < t.from || t.points.v[i].frame >= n_frames)
			abort();
	for (size_t i = 0; i < t.waits.n; i++)
		if (t.waits.v[i].from < t.from || t.waits.v[i].to > t.to ||
			t.waits.v[i].from >= t.waits.v[i].to || t.waits.v[i].frame >= n_frames ||
			(i && t.waits.v[i].from < t.waits.v[i - 1].to))
			abort();
	for (size_t i = 0; i < t.steps.n; i++)
		if (t.steps.v[i].from > t.steps.v[i].to ||
			t.steps.v[i].words >= trace_reader_n_strings(p->reader))
			abort();
	timeline_release(&t);
}

static void check_profile(const struct trace_reader *r, const struct build_options *o)
{
	uint64_t *weights, sum = 0;
	struct profile *p;
	struct flat flat;
	struct arcs arcs;

	if (profile_build(&p, r, o, NULL) < 0)
		return;
	flat_init(&flat, p->tree);
	arcs_init(&arcs, p->tree, &flat);
	if (!arcs_check(&arcs, p->tree, NULL))
		abort();
	weights = calltree_split_bases(p->tree);
	for (size_t i = 1; i < calltree_n_nodes(p->tree); i++) {
		const struct calltree_node *node = calltree_get(p->tree, (uint32_t)i);

		sum += weights[i];
		if (node->parent >= i)
			abort();
	}
	if (sum != p->total)
		abort();
	free(weights);
	check_timeline(p, 0, UINT64_MAX);
	check_timeline(p, p->start + (p->end - p->start) / 3, p->end - (p->end - p->start) / 3);
	arcs_release(&arcs);
	flat_release(&flat);
	profile_free(p);
}

/* Every index is within its table; a block's lines have all of its cost. */
static void check_code(const struct code_counts *c)
{
	for (size_t i = 0; i < c->n_functions; i++) {
		const struct code_function *f = &c->functions[i];

		if (f->file >= c->n_files || f->n_blocks > c->n_blocks ||
			(f->n_blocks && f->first_block > c->n_blocks - f->n_blocks))
			abort();
	}
	for (size_t i = 0; i < c->n_blocks; i++) {
		const struct code_block *b = &c->blocks[i];
		uint64_t cost = 0, n_insns = 0;

		if (!b->n_lines || b->n_lines > c->n_lines ||
			b->first_line > c->n_lines - b->n_lines)
			abort();
		for (uint32_t k = 0; k < b->n_lines; k++) {
			cost += c->lines[b->first_line + k].cost;
			n_insns += c->lines[b->first_line + k].n_insns;
			if (c->lines[b->first_line + k].file >= c->n_files)
				abort();
		}
		if (n_insns && cost != b->cost)
			abort();
	}
}

/* Both ways to read a stream give the same records. */
static void compare_readers(const struct trace_reader *r, uint32_t stream)
{
	struct trace_run_record quick;
	struct trace_record record;
	struct trace_cursor *cursor;
	struct trace_runs *runs;
	struct trace_run run = {0};
	const uint8_t *behind;

	if (trace_cursor_open(&cursor, r, stream, 0, UINT64_MAX, NULL) < 0 ||
		trace_runs_open(&runs, r, stream, NULL, NULL) < 0)
		abort();
	while (trace_cursor_next(cursor, &record, NULL) > 0) {
		if (!run.n_left && trace_run_next(runs, &run, NULL) <= 0)
			abort();
		behind = trace_run_peek(&run, &quick);
		if (!behind || quick.time != record.time ||
			trace_reader_kind(r, quick.kind)->major != record.major ||
			quick.payload.n != record.payload.n)
			abort();
		trace_run_take(&run, &quick, behind);
	}
	if (run.n_left || trace_run_next(runs, &run, NULL) != 0)
		abort();
	trace_runs_close(runs);
	trace_cursor_close(cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const metrics[] = {
		NULL, "cpu", "wall", "samples", "calls", "bytes", "cycles", "foreign", "wait"};
	struct code_counts *code;
	struct build_options o = BUILD_OPTIONS_ALL;
	struct trace_reader *r;
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/profile_fuzz.%d", (int)getpid());
	unlink(path);
	write_trace(path, (struct span){data, size});
	if (trace_reader_open(&r, path, NULL) < 0)
		abort();
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		o.metric = metrics[i];
		check_profile(r, &o);
	}
	o.metric = NULL;
	o.from = size % 50;
	o.to = size % 300;
	check_profile(r, &o);
	if (code_counts_build(&code, r, NULL) < 0)
		abort();
	check_code(code);
	code_counts_free(code);
	for (uint32_t stream = 1; stream <= N_STREAMS; stream++)
		compare_readers(r, stream);
	trace_reader_close(r);
	unlink(path);
	return 0;
}
