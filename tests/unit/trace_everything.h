/* SPDX-License-Identifier: MIT */
/* A small trace with every kind of definition and every record code, for the trace tests. */
#ifndef WEIR_TESTS_TRACE_EVERYTHING_H
#define WEIR_TESTS_TRACE_EVERYTHING_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "trace/writer.h"

#define EVERYTHING_N_SAMPLES 120    /* enough for a chunk that is worth packing */
#define EVERYTHING_TEXT_CODE 0xabcd /* a major code that nobody knows, with a text as payload */

/* Every code of records.h, with a payload that keeps to docs/format/records.md. Thread, image,
 * stack, frame, metric and string 1 exist. */
static const struct everything_code {
	uint32_t major, minor;
	uint32_t n;
	uint64_t numbers[9];
} everything_codes[] = {
	{RECORD_MAJOR_INTERRUPT, 1 + 2, 1, {1}},
	{RECORD_MAJOR_INTERRUPT, RECORD_MINOR_EXIT + 1 + 2, 1, {1}},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_TICK, 4, {1, 1, 1, 1000}},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_CREATED, 3, {1, 77, 0}},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_IDLE, 1, {1}},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_GC, 1, {1}},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, 4, {1, 77, 1, 1}},
	{RECORD_MAJOR_THREAD, RECORD_THREAD_ENDED, 1, {1}},
	{RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD, 9,
		{42, 1000, 0x7f0000001000, 0x2000, 5, 1, 0x1000, 1, 0x7f0000000000}},
	{RECORD_MAJOR_MODULE, RECORD_MODULE_UNLOAD, 5, {42, 1000, 0x7f0000001000, 0x2000, 1}},
	{RECORD_MAJOR_MODULE, RECORD_MODULE_SNAPSHOT, 7,
		{42, 1000, 0x7f0000001000, 0x2000, 1, 0x7f0000000000, 1}},
	{RECORD_MAJOR_MODULE, RECORD_MODULE_JIT_UNLOAD, 4, {42, 1000, 0x7f0000009000, 64}},
	{RECORD_MAJOR_INTERPRETED, RECORD_ROUTINE_ENTER, 1, {1}},
	{RECORD_MAJOR_INTERPRETED, RECORD_ROUTINE_ENTER + RECORD_MINOR_EXIT, 1, {1}},
	{RECORD_MAJOR_STACK_SAMPLE, RECORD_MINOR_STACK, 4, {1, 1, 1, 1000000}},
	{RECORD_MAJOR_STACK_EVENT, RECORD_MINOR_STACK, 4, {1, 1, 0, 0}},
	{RECORD_MAJOR_ROUTINE, RECORD_ROUTINE_ENTER, 1, {1}},
	{RECORD_MAJOR_ROUTINE, RECORD_ROUTINE_ENTER + RECORD_MINOR_EXIT, 1, {0}},
	{RECORD_MAJOR_PROCESS, RECORD_PROCESS_START, 4, {42, 1, 123456789, 1}},
	{RECORD_MAJOR_PROCESS, RECORD_PROCESS_FORK, 2, {43, 42}},
	{RECORD_MAJOR_PROCESS, RECORD_PROCESS_EXEC, 2, {43, 1}},
	{RECORD_MAJOR_PROCESS, RECORD_PROCESS_END, 2, {43, 1}},
	{RECORD_MAJOR_SWITCH, RECORD_SWITCH_OUT, 2, {1, 1}},
	{RECORD_MAJOR_SWITCH, RECORD_SWITCH_IN, 1, {1}},
	{RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD, 2, {1, UINT64_MAX}},
	{RECORD_MAJOR_PHASE, RECORD_PHASE_STARTED, 0, {0}},
	{RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, 0, {0}},
	{RECORD_MAJOR_LOSS, RECORD_LOSS_SAMPLES, 2, {3, 1}},
	{RECORD_MAJOR_LOSS, RECORD_LOSS_EVENTS, 2, {3, 1}},
	{RECORD_MAJOR_LOSS, RECORD_LOSS_RECORDS, 2, {3, 1}},
	{RECORD_MAJOR_LOSS, RECORD_LOSS_NOTE, 2, {3, 1}},
};
#define EVERYTHING_N_CODES (sizeof(everything_codes) / sizeof(everything_codes[0]))

static inline uint32_t everything_image(struct trace_writer *w, enum image_kind kind,
	const char *path, uint8_t bits, uint8_t build_id_n)
{
	struct trace_image image = {.kind = kind,
		.path = trace_writer_string(w, path),
		.bits = bits,
		.build_id_n = build_id_n,
		.file_bytes = build_id_n * 1000u,
		.file_mtime_ns = build_id_n ? 1700000000123456789u : 0,
		.pid = kind == IMAGE_KIND_JIT ? 42 : 0};

	for (int i = 0; i < build_id_n; i++)
		image.build_id[i] = (uint8_t)(0xf0 + i);
	return trace_writer_image(w, &image);
}

/* Returns the innermost stack; its frames are of every kind and have symbols of every sort. */
static inline uint32_t everything_stack(struct trace_writer *w)
{
	uint32_t elf = everything_image(w, IMAGE_KIND_ELF, "/usr/bin/prog", 64, 20);
	uint32_t kernel = everything_image(w, IMAGE_KIND_KERNEL, "[kernel]", 64, 32);
	uint32_t vdso = everything_image(w, IMAGE_KIND_VDSO, "[vdso]", 32, 1);
	uint32_t jit = everything_image(w, IMAGE_KIND_JIT, "[jit]", 0, 0);
	uint32_t other = everything_image(w, IMAGE_KIND_OTHER, "/tmp/\xc3\xa4 b.dat", 0, 0);
	const struct trace_frame frames[] = {
		{FRAME_KIND_NATIVE, true, elf, 0, 0x401136},
		{FRAME_KIND_NATIVE, true, vdso, 0, 0x40},
		{FRAME_KIND_INTERPRETED, false, 0, trace_writer_string(w, "I:Foo.bar"), 0},
		{FRAME_KIND_JITTED, true, jit, trace_writer_string(w, "J:Foo.baz"), 0x7f1234567890},
		{FRAME_KIND_NATIVE, true, other, 0, 0x1000},
		{FRAME_KIND_NATIVE, true, 0, 0, 0xdead},
		{FRAME_KIND_KERNEL, false, kernel, 0, 0xffffffff81000000},
		{FRAME_KIND_MARKER, false, 0, trace_writer_string(w, "no CFI"), 0},
	};
	uint32_t name = trace_writer_string(w, "main"), stack = 0, ids[8];
	const struct trace_symbol_level levels[] = {
		{trace_writer_string(w, "inner"), trace_writer_string(w, "a.c"), 12, 4},
		{name, trace_writer_string(w, "b.c"), UINT32_MAX, UINT32_MAX},
	};

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		ids[i] = trace_writer_frame(w, &frames[i]);
		stack = trace_writer_stack(w, stack, ids[i]);
	}
	trace_writer_symbol(w, &(struct trace_symbol){ids[0], 0, 1, levels}); /* to be replaced */
	trace_writer_symbol(w, &(struct trace_symbol){ids[0], 0, 2, levels});
	trace_writer_symbol(w, &(struct trace_symbol){ids[1], 0, 1, &levels[1]});
	trace_writer_symbol(
		w, &(struct trace_symbol){ids[4], trace_writer_string(w, "not ELF"), 0, NULL});
	return stack;
}

#define EVERYTHING_N_SPANS 5

/* Facts, verdicts, functions and the address index. Images 1 and 2 are an ELF file and the kernel.
 */
static inline void everything_images(struct trace_writer *w)
{
	const struct trace_segment segments[] = {
		{0x400000, 0, 0x1234, 0x1234, 5},
		{0xfffffffffffff000, UINT64_MAX, 0, UINT64_MAX, UINT32_MAX},
	};
	uint32_t a = trace_writer_string(w, "alpha()"), b = trace_writer_string(w, "beta(int)");
	uint32_t reason = trace_writer_string(w, "build-id f0f1 here, f0f1 in the catalog");
	const struct trace_function functions[] = {
		{0x401000, 0x10, b},
		{0x401010, 0x20, a},
		{0x401010, 0, b},
		{0x402000, UINT64_MAX - 0x402000, a},
		{UINT64_MAX, 0, 0},
	};
	const struct trace_module_span spans[EVERYTHING_N_SPANS] = {
		{42, 1000, 0x7f0000001000, 0x7f0000003000, 60, 90, 1, 0x7f0000000000,
			MODULE_END_OVERLAP, true, true},
		{42, 1000, 0x7f0000001000, 0x7f0000002000, 90, UINT64_MAX, 3, 0x7f0000001000,
			MODULE_END_NONE, false, false},
		{42, 900, 0x400000, 0x401000, 0, 50, 1, 0, MODULE_END_REUSED, true, false},
		{UINT32_MAX, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX, 2, 0,
			MODULE_END_SNAPSHOT, false, true},
		{1, 0, UINT64_MAX - 1, UINT64_MAX, 7, 7, 5, 1, MODULE_END_EXEC, false, true},
	};

	trace_writer_image_facts(w, &(struct trace_image_facts){1, 3, 99, 1, segments});
	trace_writer_image_facts(
		w, &(struct trace_image_facts){1, 62, 0x1122334455667788, 2, segments});
	trace_writer_image_facts(w, &(struct trace_image_facts){3, UINT16_MAX, 0, 0, NULL});
	trace_writer_match(w, &(struct trace_match){1, 4, reason, b, a, 5});
	trace_writer_match(w, &(struct trace_match){2, 0, 0, 0, 0, UINT64_MAX});
	trace_writer_functions(w, 1, functions, 2);
	trace_writer_functions(w, 2, functions + 3, 2);
	trace_writer_functions(w, 1, functions + 2, 2);
	trace_writer_module_spans(w, spans, EVERYTHING_N_SPANS);
}

/* Four streams; each code once or more, in two rounds with a flush between, then a few samples. */
static inline void everything_write(struct trace_writer *w)
{
	struct trace_thread thread = {42, 43, 1000}, thread2 = {UINT32_MAX, 1, UINT64_MAX};
	uint32_t threads[2], streams[4], stack, metric, frame;
	uint64_t time = 5000000000;

	trace_writer_meta(w, "host", "to be replaced");
	trace_writer_meta(w, "command", "prog \"a b\" \xe2\x82\xac");
	trace_writer_meta(w, "empty", "");
	metric = trace_writer_metric(w, "cpu", "ns");
	trace_writer_metric(w, "samples", "1");
	threads[0] = trace_writer_thread(w, &thread);
	threads[1] = trace_writer_thread(w, &thread2);
	streams[0] = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	streams[1] = trace_writer_stream(w, STREAM_KIND_CPU, 0);
	streams[2] = trace_writer_stream(w, STREAM_KIND_CPU, 63);
	streams[3] = trace_writer_stream(w, STREAM_KIND_THREAD, threads[0]);
	stack = everything_stack(w);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < EVERYTHING_N_CODES; i++) {
			const struct everything_code *e = &everything_codes[i];

			trace_writer_numbers(
				w, streams[i % 4], time, e->major, e->minor, e->numbers, e->n);
			time += i * 1000;
		}
		trace_writer_flush(w, NULL);
	}
	trace_writer_record(w, streams[0], time, EVERYTHING_TEXT_CODE, 1, "no number \xff", 11);
	trace_writer_meta(w, "host", "box");
	frame = trace_writer_frame(w, &(struct trace_frame){FRAME_KIND_NATIVE, false, 0,
					      trace_writer_string(w, "late"), 0x10});
	for (unsigned i = 0; i < EVERYTHING_N_SAMPLES; i++) {
		struct trace_sample sample = {threads[i % 2], stack, metric, 1000 + i};

		if (i % 3 == 0)
			sample.stack = trace_writer_stack(w, stack, frame);
		trace_writer_sample(w, streams[1 + i % 2], time + i * 1000000, &sample);
	}
	trace_writer_loss(w, streams[0], time + 1, RECORD_LOSS_SAMPLES, 7, "ring full");
}

/* Everything that a trace can hold. */
static inline void everything_write_all(struct trace_writer *w)
{
	everything_write(w);
	everything_images(w);
}

#endif
