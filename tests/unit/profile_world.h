/* SPDX-License-Identifier: MIT */
/* For tests of profiles: a trace that is written with the writer and read back. WORLD_TRACE is its
 * file. */
#ifndef WEIR_TESTS_PROFILE_WORLD_H
#define WEIR_TESTS_PROFILE_WORLD_H

#include "check.h"
#include "models.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "calltree/arcs.h"
#include "calltree/build.h"
#include "calltree/flat.h"

static __attribute__((unused)) struct trace_writer *w;
static __attribute__((unused)) struct trace_reader *reader;
static __attribute__((unused)) struct profile *profile;
static __attribute__((unused)) struct err err;
static __attribute__((unused)) char path[] = WORLD_TRACE;
static __attribute__((unused)) uint32_t cpu_metric, cpu_stream, life_stream, thread;

static __attribute__((unused)) void begin(void)
{
	struct trace_thread t = {.pid = 100, .tid = 101};

	unlink(path);
	memset(&err, 0, sizeof(err));
	profile = NULL;
	reader = NULL;
	CHECK_EQ(trace_writer_open(&w, path, &err), 0);
	cpu_metric = trace_writer_metric(w, "cpu", "ns");
	life_stream = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	cpu_stream = trace_writer_stream(w, STREAM_KIND_CPU, 0);
	thread = trace_writer_thread(w, &t);
}

static __attribute__((unused)) int build(const struct build_options *options)
{
	profile_free(profile);
	profile = NULL;
	if (w) {
		CHECK_EQ(trace_writer_close(w, &err), 0);
		w = NULL;
		CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	}
	return profile_build(&profile, reader, options, &err);
}

static __attribute__((unused)) void build_all(void)
{
	struct build_options all = BUILD_OPTIONS_ALL;

	CHECK_EQ(build(&all), 0);
}

static __attribute__((unused)) void end(void)
{
	profile_free(profile);
	trace_reader_close(reader);
	unlink(path);
}

static __attribute__((unused)) uint32_t named(const char *name, enum frame_kind kind)
{
	struct trace_frame frame = {.kind = kind, .name = trace_writer_string(w, name)};

	return trace_writer_frame(w, &frame);
}

static __attribute__((unused)) uint32_t at(uint32_t image, uint64_t addr)
{
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE, .image = image, .addr = addr};

	return trace_writer_frame(w, &frame);
}

static __attribute__((unused)) uint32_t stack_of(const uint32_t *frames, size_t n)
{
	uint32_t stack = 0;

	for (size_t i = 0; i < n; i++)
		stack = trace_writer_stack(w, stack, frames[i]);
	return stack;
}
#define STACK(...)                                                                                 \
	stack_of((uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static __attribute__((unused)) void sample(uint64_t time, uint32_t stack, uint64_t weight)
{
	struct trace_sample s = {thread, stack, cpu_metric, weight};

	trace_writer_sample(w, cpu_stream, time, &s);
}

static __attribute__((unused)) struct flat_row row(const char *name)
{
	for (uint32_t r = 1; r < calltree_n_routines(profile->tree); r++)
		if (!strcmp(calltree_get_routine(profile->tree, r)->name, name))
			return flat_sum_routine(profile->tree, r);
	CHECK_STR("no such routine", name);
	return (struct flat_row){0};
}

static __attribute__((unused)) uint64_t reason(const char *phrase)
{
	for (size_t i = 0; i < profile->loss.n_reasons; i++)
		if (!strcmp(profile->loss.reasons[i].phrase, phrase))
			return profile->loss.reasons[i].n;
	return 0;
}

static __attribute__((unused)) void enter(
	uint32_t stream, uint64_t time, uint64_t frame, bool leave)
{
	trace_writer_numbers(w, stream, time, RECORD_MAJOR_ROUTINE,
		RECORD_ROUTINE_ENTER | (leave ? RECORD_MINOR_EXIT : 0), &frame, 1);
}

static __attribute__((unused)) void numbers(
	uint32_t stream, uint64_t time, uint32_t major, uint32_t minor, size_t n, ...)
{
	uint64_t list[8];
	va_list ap;

	va_start(ap, n);
	for (size_t i = 0; i < n; i++)
		list[i] = va_arg(ap, uint64_t);
	va_end(ap);
	trace_writer_numbers(w, stream, time, major, minor, list, n);
}
#define U(x) ((uint64_t)(x))

static __attribute__((unused)) void node(uint64_t time, uint64_t number, uint64_t parent,
	uint32_t frame, uint64_t calls, uint64_t elapsed)
{
	numbers(life_stream, time, RECORD_MAJOR_TREE, RECORD_TREE_NODE, 8, U(thread), number,
		parent, U(frame), calls, elapsed, U(1), U(9));
}

#endif
