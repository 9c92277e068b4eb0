/* SPDX-License-Identifier: MIT */
/*
 * The trace and the tree with 1 M samples: a made-up program of N_STACKS call paths over N_FRAMES
 * places, some much hotter than others, on two CPUs. The samples are the same in each run.
 */
#include "micro.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "calltree/build.h"
#include "calltree/flat.h"
#include "trace/reader.h"
#include "trace/writer.h"

#define N_SAMPLES    1000000
#define N_FRAMES     6000
#define N_STACKS     30000
#define N_IMAGES     8
#define N_CPUS	     2
#define N_THREADS    4
#define PERIOD_NS    1001001
#define CHAIN_MAX    256
#define N_INTERNINGS 100000 /* stacks that are interned again, frame by frame */

struct program {
	struct trace_writer *w;
	struct trace_frame frames[N_FRAMES]; /* as the recorder would hand them over */
	struct {
		uint32_t parent, frame; /* indexes of these tables; parent 0: none */
		uint32_t id;		/* in the trace */
	} stacks[N_STACKS];
	uint32_t threads[N_THREADS], streams[N_CPUS], metric;
};

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) * n >> 32);
}

static void define_frames(struct program *p)
{
	uint32_t images[N_IMAGES];
	char text[64];

	for (int i = 0; i < N_IMAGES; i++) {
		snprintf(text, sizeof(text), "/usr/lib/libmade%d.so", i);
		images[i] =
			trace_writer_image(p->w, &(struct trace_image){.kind = IMAGE_KIND_ELF,
							 .bits = 64,
							 .path = trace_writer_string(p->w, text)});
	}
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		struct trace_symbol_level level = {.offset = random_below(400)};
		uint32_t id;

		p->frames[i] = (struct trace_frame){.kind = FRAME_KIND_NATIVE,
			.is_caller = i & 1,
			.image = images[random_below(N_IMAGES)],
			.addr = 0x1000 + i * 37ul};
		id = trace_writer_frame(p->w, &p->frames[i]);
		snprintf(text, sizeof(text), "made_function_%u", i / 3);
		level.name = trace_writer_string(p->w, text);
		trace_writer_symbol(
			p->w, &(struct trace_symbol){.frame = id, .n_levels = 1, .levels = &level});
	}
}

static void define_program(struct program *p)
{
	define_frames(p);
	for (uint32_t i = 1; i < N_STACKS; i++) {
		uint32_t reach = i < 900 ? i : 900; /* about 40 levels at the end */

		p->stacks[i].parent = i - 1 - random_below(reach);
		p->stacks[i].frame = random_below(N_FRAMES);
		p->stacks[i].id = trace_writer_stack(p->w, p->stacks[p->stacks[i].parent].id,
			trace_writer_frame(p->w, &p->frames[p->stacks[i].frame]));
	}
	for (uint32_t i = 0; i < N_THREADS; i++)
		p->threads[i] = trace_writer_thread(
			p->w, &(struct trace_thread){.pid = 100, .tid = 100 + i});
	for (uint32_t i = 0; i < N_CPUS; i++)
		p->streams[i] = trace_writer_stream(p->w, STREAM_KIND_CPU, i);
	p->metric = trace_writer_metric(p->w, "cpu", "ns");
}

/* A third of the samples falls on a hundred stacks, as real programs have it. */
static uint32_t random_stack(void)
{
	return random_below(3) ? 1 + random_below(N_STACKS - 1) : N_STACKS - 1 - random_below(100);
}

static void measure_interning(struct program *p)
{
	uint64_t n_frames = 0, start = clock_mono_ns();

	for (int i = 0; i < N_INTERNINGS; i++) {
		uint32_t chain[CHAIN_MAX], n = 0, stack = 0;

		for (uint32_t s = random_stack(); s && n < CHAIN_MAX; s = p->stacks[s].parent)
			chain[n++] = p->stacks[s].frame;
		n_frames += n;
		while (n--)
			stack = trace_writer_stack(
				p->w, stack, trace_writer_frame(p->w, &p->frames[chain[n]]));
	}
	micro_print("writer: interning a known stack",
		(double)(clock_mono_ns() - start) / (double)n_frames, "ns a frame",
		"%.1f frames a stack", (double)n_frames / N_INTERNINGS);
}

static void measure_writing(struct program *p)
{
	uint64_t time = 1000000000, start;
	struct err err;
	double ns;

	trace_writer_flush(p->w, &err);
	start = clock_mono_ns();
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		time += PERIOD_NS / N_CPUS - 400 + random_below(800);
		trace_writer_sample(p->w, p->streams[i % N_CPUS], time,
			&(struct trace_sample){.thread = p->threads[random_below(16) / 5],
				.stack = p->stacks[random_stack()].id,
				.metric = p->metric,
				.weight = PERIOD_NS});
	}
	if (trace_writer_flush(p->w, &err) < 0)
		micro_fail("%s", err.text);
	ns = (double)(clock_mono_ns() - start);
	micro_print("writer: a sample", ns / N_SAMPLES, "ns", "packed and written; 1 M samples");
}

static struct trace_reader *measure_opening(const char *path)
{
	struct trace_reader *r = NULL;
	double least = 0;
	struct err err;

	for (int i = 0; i < MICRO_ROUNDS; i++) {
		uint64_t start = clock_mono_ns();
		double ms;

		trace_reader_close(r);
		if (trace_reader_open(&r, path, &err) < 0)
			micro_fail("%s", err.text);
		ms = (double)(clock_mono_ns() - start) / 1e6;
		least = least == 0 || ms < least ? ms : least;
	}
	micro_print("reader: open", least, "ms", "%u frames, %u stacks, %u strings",
		trace_reader_n_frames(r), trace_reader_n_stacks(r), trace_reader_n_strings(r));
	return r;
}

static void measure_reading(const struct trace_reader *r)
{
	double least = 0;
	uint64_t n = 0;

	for (int i = 0; i < MICRO_ROUNDS; i++) {
		uint64_t start = clock_mono_ns();
		struct trace_record record;
		struct trace_sample sample;
		struct trace_cursor *c;
		struct err err;
		double s;

		if (trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err) < 0)
			micro_fail("%s", err.text);
		for (n = 0; trace_cursor_next(c, &record, &err) > 0; n++)
			if (trace_record_sample(r, &record, &sample, &err) < 0)
				micro_fail("%s", err.text);
		trace_cursor_close(c);
		s = (double)(clock_mono_ns() - start) / 1e9;
		least = least == 0 || s < least ? s : least;
	}
	if (n != N_SAMPLES)
		micro_fail("%llu samples were read", (unsigned long long)n);
	micro_print("reader: samples of all CPUs in order", (double)n / least / 1e6, "M a second",
		"unpacked, checked, merged, decoded");
}

static void measure_building(const struct trace_reader *r)
{
	double build_s = 0, flat_ms = 0;
	size_t n_nodes = 0;

	for (int i = 0; i < MICRO_ROUNDS; i++) {
		uint64_t start = clock_mono_ns(), middle, end;
		struct profile *p;
		struct flat flat;
		struct err err;

		if (profile_build(&p, r, &BUILD_OPTIONS_ALL, &err) < 0)
			micro_fail("%s", err.text);
		middle = clock_mono_ns();
		flat_init(&flat, p->tree);
		end = clock_mono_ns();
		if (p->n_samples != N_SAMPLES)
			micro_fail(
				"%llu samples are in the tree", (unsigned long long)p->n_samples);
		if (i == 0 || (double)(middle - start) / 1e9 < build_s)
			build_s = (double)(middle - start) / 1e9;
		if (i == 0 || (double)(end - middle) / 1e6 < flat_ms)
			flat_ms = (double)(end - middle) / 1e6;
		n_nodes = calltree_n_nodes(p->tree);
		flat_release(&flat);
		profile_free(p);
	}
	micro_print("call tree: build", N_SAMPLES / build_s / 1e6, "M samples a second",
		"reading included; %zu nodes", n_nodes);
	micro_print("call tree: flat rows", flat_ms, "ms", "from the finished tree");
}

void micro_trace(const char *path)
{
	struct program *p = mem_zalloc(sizeof(*p));
	struct trace_reader *r;
	struct err err;

	if (trace_writer_open(&p->w, path, &err) < 0)
		micro_fail("%s", err.text);
	define_program(p);
	measure_interning(p);
	measure_writing(p);
	if (trace_writer_close(p->w, &err) < 0)
		micro_fail("%s", err.text);
	free(p);
	r = measure_opening(path);
	measure_reading(r);
	measure_building(r);
	trace_reader_close(r);
}
