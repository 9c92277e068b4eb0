/* SPDX-License-Identifier: MIT */
/*
 * Large traces for bench/view.py, made through the writer as recordings make them, the same in each run:
 *   traces samples OUT        1 M samples, on two CPUs, of four threads in a tree of BREADTH functions below each,
 *                             DEPTH deep: 14^5 leaves
 *   traces events OUT BYTES   hooked functions: four threads that walk a tree of EVENT_BREADTH and EVENT_DEPTH, until
 *                             the file has so many bytes. Times between two events are irregular, 20 ns to 8 us, and
 *                             most of them short, so that an event takes as many bytes as in a recording
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/writer.h"

#define N_SAMPLES     1000000
#define BREADTH	      14
#define DEPTH	      5
#define EVENT_BREADTH 4
#define EVENT_DEPTH   7
#define N_THREADS     4
#define N_CPUS	      2
#define PERIOD_NS     1001001
#define EVENTS_A_TURN 65536 /* of a thread before the next one has its turn */

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) * n >> 32);
}

static void fail(const struct err *err)
{
	fprintf(stderr, "traces: %s\n", err->text);
	exit(1);
}

struct program {
	struct trace_writer *w;
	uint32_t threads[N_THREADS], main;
	uint32_t frames[DEPTH + EVENT_DEPTH][BREADTH]; /* by level */
};

static uint32_t named_frame(struct trace_writer *w, const char *name)
{
	return trace_writer_frame(w, &(struct trace_frame){.kind = FRAME_KIND_INTERPRETED,
					     .name = trace_writer_string(w, name)});
}

static void define_program(struct program *p, uint32_t depth)
{
	char text[64];

	p->main = named_frame(p->w, "main");
	for (uint32_t level = 0; level < depth; level++)
		for (uint32_t k = 0; k < BREADTH; k++) {
			snprintf(text, sizeof(text), "level%u_f%u", level, k);
			p->frames[level][k] = named_frame(p->w, text);
		}
	for (uint32_t i = 0; i < N_THREADS; i++)
		p->threads[i] = trace_writer_thread(
			p->w, &(struct trace_thread){.pid = 100, .tid = 100 + i});
}

/* Each leaf of the tree has a sample, and the rest fall anywhere. */
static void write_samples(struct program *p)
{
	uint32_t metric = trace_writer_metric(p->w, "cpu", "ns"), cpus[N_CPUS], n_leaves = 1;
	uint64_t time = 1000000000;

	for (uint32_t i = 0; i < DEPTH; i++)
		n_leaves *= BREADTH;
	for (uint32_t i = 0; i < N_CPUS; i++)
		cpus[i] = trace_writer_stream(p->w, STREAM_KIND_CPU, i);
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		uint32_t leaf = i < n_leaves ? i : random_below(n_leaves);
		uint32_t stack = trace_writer_stack(p->w, 0, p->main);

		for (uint32_t level = 0, part = n_leaves / BREADTH; level < DEPTH;
			level++, part /= BREADTH)
			stack = trace_writer_stack(
				p->w, stack, p->frames[level][leaf / part % BREADTH]);
		time += PERIOD_NS / N_CPUS - 400 + random_below(800);
		trace_writer_sample(p->w, cpus[i % N_CPUS], time,
			&(struct trace_sample){.thread = p->threads[leaf * 4ull / n_leaves],
				.stack = stack,
				.metric = metric,
				.weight = PERIOD_NS});
	}
}

struct walk {
	uint32_t stream;
	uint64_t time;
	uint32_t depth, open[EVENT_DEPTH];
};

static void walk_step(struct program *p, struct walk *t)
{
	uint32_t random = random_below(1u << 30);
	bool is_left = t->depth == EVENT_DEPTH || (t->depth && random & 1);

	t->time += 20 + (random >> 4 & 0x1fff) / (1 + (random >> 17 & 0xff));
	if (!is_left)
		t->open[t->depth] = p->frames[t->depth][(random >> 25) % EVENT_BREADTH];
	t->depth -= is_left;
	trace_writer_routine(p->w, t->stream, t->time, t->open[t->depth], is_left);
	t->depth += !is_left;
}

static uint64_t write_events(struct program *p, uint64_t bytes)
{
	struct walk walks[N_THREADS] = {0};
	uint64_t n = 0;

	for (uint32_t i = 0; i < N_THREADS; i++, n++) {
		walks[i] = (struct walk){.time = 1000000000,
			.stream = trace_writer_stream(p->w, STREAM_KIND_THREAD, p->threads[i])};
		trace_writer_routine(p->w, walks[i].stream, walks[i].time, p->main, false);
	}
	for (; trace_writer_bytes(p->w) < bytes; n += EVENTS_A_TURN)
		for (uint32_t i = 0; i < EVENTS_A_TURN; i++)
			walk_step(p, &walks[n / EVENTS_A_TURN % N_THREADS]);
	for (uint32_t i = 0; i < N_THREADS; i++)
		for (struct walk *t = &walks[i]; t->depth; n++)
			trace_writer_routine(
				p->w, t->stream, t->time += 20, t->open[--t->depth], true);
	return n;
}

int main(int argc, char **argv)
{
	struct program p = {0};
	bool is_samples = argc == 3 && !strcmp(argv[1], "samples");
	uint64_t n = N_SAMPLES;
	struct err err;

	if (!is_samples && (argc != 4 || strcmp(argv[1], "events") != 0)) {
		fprintf(stderr, "usage: traces samples OUT | traces events OUT BYTES\n");
		return 2;
	}
	if (trace_writer_open(&p.w, argv[2], &err) < 0)
		fail(&err);
	define_program(&p, is_samples ? DEPTH : EVENT_DEPTH);
	if (is_samples)
		write_samples(&p);
	else
		n = write_events(&p, strtoull(argv[3], NULL, 10));
	if (trace_writer_close(p.w, &err) < 0)
		fail(&err);
	printf("%llu\n", (unsigned long long)n);
	return 0;
}
