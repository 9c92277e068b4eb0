/* SPDX-License-Identifier: MIT */
/* Makes traces with steps, for tests: in memory, and one that has everything. */
#ifndef WEIR_TESTS_STEPS_WORLD_H
#define WEIR_TESTS_STEPS_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "steps/read/steps.h"
#include "trace/writer.h"

struct steps_world {
	struct trace_writer *w;
	int fd;
	uint32_t code; /* stream */
	uint8_t *bytes;
	size_t n_bytes;
	struct trace_reader *r;
	struct steps *steps;
};

static inline void world_must(int rc, const struct err *err)
{
	if (rc < 0) {
		printf("not ok %s\n", err->text);
		exit(1);
	}
}

static inline void world_begin(struct steps_world *world)
{
	struct err err;

	*world = (struct steps_world){.fd = memfd_create("steps", MFD_CLOEXEC)};
	world_must(trace_writer_open_fd(&world->w, dup(world->fd), "steps", &err), &err);
	world->code = trace_writer_stream(world->w, STREAM_KIND_LIFE, RECORD_STEP_CODE_STREAM);
}

/* Returns its stream. */
static inline uint32_t world_thread(struct steps_world *world, uint32_t pid, uint32_t tid)
{
	struct trace_thread thread = {.pid = pid, .tid = tid};

	return trace_writer_stream(
		world->w, STREAM_KIND_THREAD, trace_writer_thread(world->w, &thread));
}

static inline void world_name(
	struct steps_world *world, uint32_t pid, uint32_t tid, const char *name)
{
	struct trace_thread thread = {.pid = pid, .tid = tid};
	uint64_t numbers[] = {trace_writer_thread(world->w, &thread), tid, 0,
		trace_writer_string(world->w, name)};

	trace_writer_numbers(world->w, trace_writer_stream(world->w, STREAM_KIND_LIFE, 0), 1,
		RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, numbers, 4);
}

static inline uint32_t world_frame(struct steps_world *world, uint64_t addr)
{
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE, .addr = addr};

	return trace_writer_frame(world->w, &frame);
}

/* One instruction of 64-bit code. */
static inline void world_code(struct steps_world *world, uint32_t space, uint32_t generation,
	uint64_t addr, const char *bytes, uint8_t n)
{
	struct step_code_head head = {
		.space = space, .generation = generation, .pid = 42, .is_64 = true, .n = 1};
	struct step_code code = {.addr = addr, .frame = world_frame(world, addr), .n = n};
	struct buf b = {0};

	memcpy(code.bytes, bytes, n);
	step_code_encode(&b, &head, &code);
	trace_writer_record(
		world->w, world->code, 1, RECORD_MAJOR_STEP, RECORD_STEP_CODE, b.p, b.n);
	buf_release(&b);
}

static inline void world_record(struct steps_world *world, uint32_t stream, uint64_t time,
	uint32_t minor, const void *payload, size_t n)
{
	trace_writer_record(world->w, stream, time, RECORD_MAJOR_STEP, minor, payload, n);
}

static inline void world_run(struct steps_world *world, uint32_t stream, uint64_t time,
	const struct step_run_head *head, const struct step_at *steps)
{
	struct step_run_coder c = {0};
	struct buf b = {0};

	step_run_begin(&c, head->first, head->space, head->generation);
	for (uint32_t i = 0; i < head->n; i++) {
		step_run_add(&c, steps[i].addr);
		for (uint64_t k = 1; k < steps[i].times; k++)
			step_run_again(&c, 1);
	}
	step_run_end(&c, &b);
	world_record(world, stream, time, RECORD_STEP_RUN, b.p, b.n);
	step_run_release(&c);
	buf_release(&b);
}

/* `n` steps of one byte each from `start` on, in space 1, generation 0. */
static inline void world_line(struct steps_world *world, uint32_t stream, uint64_t time,
	uint64_t first, uint64_t start, uint32_t n)
{
	struct step_at *steps = malloc((n + 1) * sizeof(*steps));

	for (uint32_t i = 0; i < n; i++)
		steps[i] = (struct step_at){start + i, 1};
	world_run(world, stream, time, &(struct step_run_head){.first = first, .space = 1, .n = n},
		steps);
	free(steps);
}

static inline void world_mark(
	struct steps_world *world, uint32_t stream, uint64_t time, const struct step_mark *mark)
{
	struct buf b = {0};

	step_mark_encode(&b, mark);
	world_record(world, stream, time, RECORD_STEP_MARK, b.p, b.n);
	buf_release(&b);
}

static inline void world_data(struct steps_world *world, uint32_t stream, uint64_t time,
	const struct step_datum *data, uint32_t n)
{
	struct buf b = {0};

	step_data_encode(&b, data, n);
	world_record(world, stream, time, RECORD_STEP_DATA, b.p, b.n);
	buf_release(&b);
}

static inline void world_place(struct steps_world *world, uint64_t time, const struct step_place *p)
{
	struct buf b = {0};

	step_place_encode(&b, p);
	world_record(world, world->code, time, RECORD_STEP_PLACE, b.p, b.n);
	buf_release(&b);
}

/* What was written so far is in chunks of its own. */
static inline void world_cut(struct steps_world *world)
{
	struct err err;

	world_must(trace_writer_flush(world->w, &err), &err);
}

/* The trace is written and in world->bytes. */
static inline void world_end(struct steps_world *world)
{
	struct stat st;
	struct err err;

	world_must(trace_writer_close(world->w, &err), &err);
	fstat(world->fd, &st);
	world->n_bytes = (size_t)st.st_size;
	world->bytes = malloc(world->n_bytes);
	if (pread(world->fd, world->bytes, world->n_bytes, 0) != st.st_size)
		exit(1);
	close(world->fd);
}

static inline void world_open(struct steps_world *world)
{
	struct span bytes = {world->bytes, world->n_bytes};
	struct err err;

	world_must(trace_reader_open_bytes(&world->r, bytes, true, "steps", &err), &err);
	world->steps = steps_open(world->r);
}

static inline void world_close(struct steps_world *world)
{
	steps_close(world->steps);
	trace_reader_close(world->r);
	world->steps = NULL;
	world->r = NULL;
}

static inline void world_release(struct steps_world *world)
{
	world_close(world);
	free(world->bytes);
}

/* A string instruction, a call and a return, a branch; code that is overwritten, twice; another
 * space; code that cannot be read. */
static inline void world_add_code(struct steps_world *world)
{
	world_code(world, 1, 0, 0x1000, "\xf3\xa4", 2);		    /* rep movsb */
	world_code(world, 1, 0, 0x1002, "\xe8\xf9\x0f\x00\x00", 5); /* call 0x2000 */
	world_code(world, 1, 0, 0x2000, "\xc3", 1);		    /* ret */
	world_code(world, 1, 0, 0x1007, "\x74\xf7", 2);		    /* je 0x1000 */
	world_code(world, 1, 3, 0x2000, "\x90", 1);		    /* nop */
	world_code(world, 1, 5, 0x2000, "\x0f\x05", 2);		    /* syscall */
	world_code(world, 2, 0, 0x2000, "\x0f\x0b", 2);		    /* ud2 */
	world_code(world, 2, 0, 0x3000, "", 0);
}

/* A thread with all kinds of records. */
static inline void world_add_marks(struct steps_world *world, uint32_t stream)
{
	struct step_at call[] = {{0x1000, 300}, {0x1002, 1}, {0x2000, 1}, {0x1007, 1}};
	struct step_run_head head = {.first = 0, .space = 1, .generation = 0, .n = 4};
	struct step_datum data[] = {
		{.at = 0,
			.addr = 0x5000,
			.how = STEP_DATA_READ,
			.n = 1,
			.has_value = true,
			.value = {7}},
		{.at = 0,
			.addr = 0x6000,
			.how = STEP_DATA_WRITE,
			.n = 1,
			.has_value = true,
			.value = {7}},
		{.at = 2, .addr = 0x7ffffff8, .how = STEP_DATA_READ, .n = 8},
	};

	world_mark(world, stream, 10, &(struct step_mark){.at = 0, .kind = STEP_MARK_RESUME});
	world_run(world, stream, 20, &head, call);
	world_data(world, stream, 20, data, 3);
	for (int kind = STEP_MARK_SYSCALL; kind < STEP_N_MARKS; kind++)
		world_mark(world, stream, 30,
			&(struct step_mark){.at = 4,
				.kind = (enum step_mark_kind)kind,
				.a = kind,
				.b = -1,
				.c = INT64_MIN,
				.text = trace_writer_string(world->w, "text")});
	head.first = 4;
	head.generation = 4;
	world_run(world, stream, 40, &head, call);
	head.first = 8;
	head.generation = 5;
	world_run(world, stream, 50, &head, call);
	for (int i = 0; i < 3; i++)
		data[i].at += 8;
	world_data(world, stream, 50, data, 3);
	world_mark(world, stream, 60,
		&(struct step_mark){.at = 12, .kind = STEP_MARK_PAUSE, .a = STEP_WHY_END});
}

/* A variable inside an image that another file replaces; a stack; a variable in two pieces. */
static inline void world_add_places(struct steps_world *world)
{
	struct trace_image image = {.kind = IMAGE_KIND_ELF,
		.path = trace_writer_string(world->w, "/lib/libone.so"),
		.bits = 64};
	struct step_place places[] = {
		{1, STEP_PLACE_IMAGE, 0x5000, 0x2000, trace_writer_image(world->w, &image), 0x1000,
			0},
		{1, STEP_PLACE_VARIABLE, 0x5ff0, 0x20, 1, 0x8,
			trace_writer_string(world->w, "table")},
		{1, STEP_PLACE_MEMORY, 0x7ffff000, 0x1000, 0, 0,
			trace_writer_string(world->w, "[stack]")},
		{2, STEP_PLACE_FILE, 0x5000, 0x100, 0, 0x200,
			trace_writer_string(world->w, "/tmp/a file")},
	};
	struct step_place gone = {.space = 1, .start = 0x5800, .bytes = 0x1000};

	for (int i = 0; i < 4; i++)
		world_place(world, 15, &places[i]);
	world_place(world, 45, &gone);
}

/* Everything of it: two threads, the second of another space, with far addresses. */
static inline void world_add_everything(struct steps_world *world)
{
	struct step_at far[] = {
		{0xffffffffff600000, 1}, {0x2000, 1}, {0x3000, 1}, {0x3000 + (1ull << 63), 2}};
	uint32_t first = world_thread(world, 42, 42), second = world_thread(world, 42, 43);

	world_name(world, 42, 43, "worker");
	world_add_code(world);
	world_add_places(world);
	world_add_marks(world, first);
	world_run(world, second, 35,
		&(struct step_run_head){.first = 0, .space = 2, .generation = 9, .n = 4}, far);
	world_cut(world);
	world_line(world, second, 70, 4, 0x9000, 40);
}

#endif
