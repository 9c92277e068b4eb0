/* SPDX-License-Identifier: MIT */
/* A trace of steps becomes one of counts: what is kept, what is counted, and where. */
#include "steps/calls/step_counts.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "calltree/build.h"
#include "calltree/code_counts.h"
#include "calltree/flat.h"
#include "check.h"
#include "models.h"
#include "steps_world.h"

/* A program of five-byte instructions in an image at 0x1000 (0x401000 in memory). */
#define BIAS  0x400000u
#define NOP   "\x0f\x1f\x44\x00\x00"
#define SPACE 1

struct counted {
	struct steps_world world;
	uint32_t image, thread;
	VEC(struct step_at) steps;
	struct trace_reader *r; /* of the counts */
	struct code_counts *counts;
	struct profile *profile;
	struct flat flat;
};

static void begin(struct counted *c)
{
	struct trace_image image = {.kind = IMAGE_KIND_OTHER, .bits = 64};

	*c = (struct counted){0};
	world_begin(&c->world);
	image.path = trace_writer_string(c->world.w, "/no/such/program");
	c->image = trace_writer_image(c->world.w, &image);
	c->thread = world_thread(&c->world, 7, 7);
	world_name(&c->world, 7, 7, "seven");
}

/* An instruction of the function `name`, which begins `offset` before it; NULL: it has no name. */
static void add_code(struct counted *c, uint64_t addr, const char *bytes, uint8_t n,
	const char *name, uint32_t offset, uint32_t line)
{
	struct trace_writer *w = c->world.w;
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE, .image = c->image, .addr = addr};
	struct step_code_head head = {.space = SPACE, .pid = 7, .is_64 = true, .n = 1};
	struct step_code code = {.addr = addr + BIAS, .n = n};
	struct trace_symbol_level level = {.offset = offset, .line = line};
	struct trace_symbol symbol = {.n_levels = 1, .levels = &level};
	char made_up[32];
	struct buf b = {0};

	code.frame = symbol.frame = trace_writer_frame(w, &frame);
	snprintf(made_up, sizeof(made_up), "program+0x%" PRIx64, addr - offset);
	level.name = trace_writer_string(w, name ? name : made_up);
	level.file = line ? trace_writer_string(w, "a.c") : 0;
	symbol.reason = name ? 0 : trace_writer_string(w, "stripped");
	trace_writer_symbol(w, &symbol);
	memcpy(code.bytes, bytes, n);
	step_code_encode(&b, &head, &code);
	world_record(&c->world, c->world.code, 1, RECORD_STEP_CODE, b.p, b.n);
	buf_release(&b);
}

static void add_jump(struct counted *c, uint64_t addr, uint8_t opcode, uint64_t to,
	const char *name, uint32_t offset, uint32_t line)
{
	char bytes[5] = {(char)opcode};
	uint32_t distance = (uint32_t)(to - addr - 5);

	memcpy(bytes + 1, &distance, 4);
	add_code(c, addr, bytes, 5, name, offset, line);
}
#define CALL 0xe8
#define JUMP 0xe9

static void step(struct counted *c, uint64_t addr)
{
	vec_push(&c->steps, ((struct step_at){addr + BIAS, 1}));
}

static void end_at(struct counted *c, uint64_t time)
{
	struct step_run_head head = {.space = SPACE, .n = (uint32_t)c->steps.n};

	world_run(&c->world, c->thread, time, &head, c->steps.v);
}

static void count(struct counted *c, enum step_counts_code code)
{
	struct build_options options = BUILD_OPTIONS_ALL;
	int fd = memfd_create("counts", MFD_CLOEXEC);
	struct trace_writer *w;
	struct err err;
	char path[32];

	world_end(&c->world);
	world_open(&c->world);
	world_must(trace_writer_open_fd(&w, dup(fd), "counts", &err), &err);
	world_must(step_counts_write(w, c->world.r, code, &err), &err);
	world_must(trace_writer_close(w, &err), &err);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	world_must(trace_reader_open(&c->r, path, &err), &err);
	close(fd);
	world_must(code_counts_build(&c->counts, c->r, &err), &err);
	world_must(profile_build(&c->profile, c->r, &options, &err), &err);
	flat_init(&c->flat, c->profile->tree);
}

static void end(struct counted *c)
{
	flat_release(&c->flat);
	profile_free(c->profile);
	code_counts_free(c->counts);
	trace_reader_close(c->r);
	vec_release(&c->steps);
	world_release(&c->world);
}

static const struct flat_row *row_of(const struct counted *c, const char *name)
{
	for (size_t i = 0; i < c->flat.n_rows; i++)
		if (!strcmp(calltree_get_routine(c->profile->tree, c->flat.rows[i].routine)->name,
			    name))
			return &c->flat.rows[i];
	printf("there is no %s\n", name);
	exit(1);
}

static const struct code_function *function_of(const struct counted *c, const char *name)
{
	ptrdiff_t i = code_counts_find(c->counts, name, 0);

	if (i < 0) {
		printf("there is no %s\n", name);
		exit(1);
	}
	return &c->counts->functions[i];
}

/* main calls f twice; f jumps to its part once. */
static void make_program(struct counted *c)
{
	begin(c);
	add_code(c, 0x1000, NOP, 5, "main", 0, 1);
	add_jump(c, 0x1005, CALL, 0x2000, "main", 5, 2);
	add_jump(c, 0x100a, CALL, 0x2000, "main", 10, 2);
	add_code(c, 0x100f, "\xc3", 1, "main", 15, 3);
	add_code(c, 0x2000, "\x74\x04", 2, "f", 0, 5); /* je 0x2006 */
	add_code(c, 0x2002, NOP, 5, "f", 2, 6);
	add_code(c, 0x2007, "\xc3", 1, "f", 7, 6);
	add_jump(c, 0x2006, JUMP, 0x3000, "f", 6, 7);
	add_code(c, 0x3000, NOP, 5, "f.cold", 0, 8);
	add_code(c, 0x3005, "\xc3", 1, "f.cold", 5, 8);
	step(c, 0x1000);
	step(c, 0x1005);
	step(c, 0x2000);
	step(c, 0x2002);
	step(c, 0x2007);
	step(c, 0x100a);
	step(c, 0x2000);
	step(c, 0x2006);
	step(c, 0x3000);
	step(c, 0x3005);
	step(c, 0x100f);
	end_at(c, 50);
}

static void test_tree(void)
{
	struct counted c;

	make_program(&c);
	count(&c, STEP_COUNTS_TREES);
	CHECK_STR(c.profile->metric, "instructions");
	CHECK_EQ(c.profile->total, 11);
	CHECK_EQ(row_of(&c, "main")->calls, 1);
	CHECK_EQ(row_of(&c, "main")->base, 4);
	CHECK_EQ(row_of(&c, "main")->cum, 11);
	CHECK_EQ(row_of(&c, "f")->calls, 2);
	CHECK_EQ(row_of(&c, "f")->base, 7); /* with its part */
	CHECK_EQ(c.counts->n_functions, 0);
	CHECK(!loss_is_real(&c.profile->loss));
	CHECK_EQ(c.profile->loss.records_unknown, 0);
	CHECK_EQ(c.profile->loss.n_reasons, 0);
	end(&c);
}

static void test_blocks(void)
{
	const struct code_function *f, *part;
	const struct code_block *blocks;
	struct counted c;
	uint64_t sum = 0;

	make_program(&c);
	count(&c, STEP_COUNTS_ALL_CODE);
	for (size_t i = 0; i < c.counts->n_functions; i++)
		sum += c.counts->functions[i].instructions;
	CHECK_EQ(sum, 11);
	f = function_of(&c, "f");
	part = function_of(&c, "f.cold");
	CHECK(part->is_fragment && !f->is_fragment);
	CHECK_EQ(part->instructions, 2);
	CHECK_EQ(f->instructions, 5);
	CHECK_EQ(f->calls, 2);
	CHECK_EQ(f->line, 5);
	CHECK_STR(c.counts->files[f->file], "a.c");
	blocks = c.counts->blocks + f->first_block;
	CHECK_EQ(blocks[0].address, 0x2000);
	CHECK_EQ(blocks[0].count, 2);
	CHECK_EQ(blocks[0].n_insns, 1);
	CHECK_EQ(blocks[1].count, 1);
	CHECK_EQ(function_of(&c, "main")->n_blocks, 1); /* calls do not end a block */
	blocks = c.counts->blocks + function_of(&c, "main")->first_block;
	CHECK_EQ(blocks[0].n_insns, 4);
	CHECK_EQ(blocks[0].n_lines, 3);
	CHECK_EQ(c.counts->lines[blocks[0].first_line + 1].n_insns, 2);
	end(&c);
}

/* The program is not a file: it has no lines but its own. */
static void test_coverage(void)
{
	struct counted c;

	begin(&c);
	add_code(&c, 0x1000, NOP, 5, "known", 0, 1);
	add_code(&c, 0x2000, NOP, 5, "library", 0, 0);
	step(&c, 0x1000);
	step(&c, 0x2000);
	end_at(&c, 50);
	count(&c, STEP_COUNTS_COVERAGE);
	CHECK_EQ(c.counts->n_functions, 1);
	CHECK_STR(c.counts->functions[0].name, "known");
	CHECK_EQ(c.profile->loss.n_reasons, 1);
	CHECK_EQ(c.profile->total, 2);
	end(&c);
}

static void test_code_without_names(void)
{
	struct counted c;

	begin(&c);
	add_code(&c, 0x1000, NOP, 5, NULL, 0, 0);
	add_jump(&c, 0x1005, CALL, 0x1010, NULL, 0, 0);
	add_code(&c, 0x100a, NOP, 5, NULL, 0, 0);
	add_code(&c, 0x1010, NOP, 5, NULL, 0, 0);
	add_code(&c, 0x1015, "\xc3", 1, NULL, 0, 0);
	add_code(&c, 0x1016, "\xf3\x0f\x1e\xfa", 4, NULL, 0, 0); /* endbr64 */
	/* where CFI knows the function */
	add_code(&c, 0x3000, NOP, 5, NULL, 0, 0);
	add_code(&c, 0x3005, NOP, 5, NULL, 5, 0);
	step(&c, 0x1000);
	step(&c, 0x1005);
	step(&c, 0x1010);
	step(&c, 0x1015);
	step(&c, 0x100a);
	step(&c, 0x1016);
	step(&c, 0x3000);
	step(&c, 0x3005);
	end_at(&c, 50);
	count(&c, STEP_COUNTS_ALL_CODE);
	CHECK_EQ(c.counts->n_functions, 4);
	CHECK_EQ(row_of(&c, "program+0x1000")->base, 3);
	CHECK_EQ(row_of(&c, "program+0x1010")->base, 2);
	CHECK_EQ(row_of(&c, "program+0x1010")->calls, 1);
	CHECK_EQ(row_of(&c, "program+0x1016")->base, 1);
	CHECK_EQ(row_of(&c, "program+0x3000")->base, 2);
	end(&c);
}

static void test_rest_of_the_trace(void)
{
	struct counted c;
	struct trace_metric metric;
	uint32_t extra, n_strings, n_frames;

	begin(&c);
	trace_writer_meta(c.world.w, "command", "seven up");
	trace_writer_metric(c.world.w, "bytes", "1");
	add_code(&c, 0x1000, NOP, 5, "main", 0, 1);
	step(&c, 0x1000);
	end_at(&c, 50);
	extra = trace_writer_string(c.world.w, "the last text");
	trace_writer_loss(c.world.w, c.thread, 60, RECORD_LOSS_SAMPLES, 3, "ring full");
	count(&c, STEP_COUNTS_TREES);
	CHECK_STR(trace_reader_meta(c.r, "command"), "seven up");
	CHECK_STR(trace_reader_string(c.r, extra), "the last text");
	metric = *trace_reader_metric(c.r, 1);
	CHECK_STR(trace_reader_string(c.r, metric.name), "bytes");
	n_strings = trace_reader_n_strings(c.world.r);
	for (uint32_t i = 0; i < n_strings; i++)
		CHECK_STR(trace_reader_string(c.r, i), trace_reader_string(c.world.r, i));
	n_frames = trace_reader_n_frames(c.world.r);
	for (uint32_t i = 1; i < n_frames; i++)
		CHECK_EQ(trace_reader_frame(c.r, i)->addr, trace_reader_frame(c.world.r, i)->addr);
	CHECK_EQ(c.profile->loss.samples_lost, 3);
	CHECK_STR(c.profile->threads[1].name, "seven");
	CHECK_STR(c.profile->metric, "instructions");
	CHECK_EQ(c.profile->loss.n_reasons, 1);
	CHECK(!trace_reader_has_kind(c.r, RECORD_MAJOR_STEP, RECORD_STEP_RUN));
	end(&c);
}

/* Only what was flushed is there: nobody wrote an index. */
static void test_killed(void)
{
	struct counted c;

	make_program(&c);
	world_cut(&c.world);
	world_end(&c.world);
	c.world.n_bytes -= 40;
	world_open(&c.world);
	CHECK(trace_reader_is_recovered(c.world.r, NULL));
	world_close(&c.world);
	/* once more through the whole */
	{
		struct span bytes = {c.world.bytes, c.world.n_bytes};
		int fd = memfd_create("counts", MFD_CLOEXEC);
		struct build_options options = BUILD_OPTIONS_ALL;
		struct trace_writer *w;
		struct err err;
		char path[32];

		world_must(trace_reader_open_bytes(&c.world.r, bytes, true, "killed", &err), &err);
		world_must(trace_writer_open_fd(&w, dup(fd), "counts", &err), &err);
		world_must(step_counts_write(w, c.world.r, STEP_COUNTS_ALL_CODE, &err), &err);
		world_must(trace_writer_close(w, &err), &err);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		world_must(trace_reader_open(&c.r, path, &err), &err);
		close(fd);
		world_must(profile_build(&c.profile, c.r, &options, &err), &err);
	}
	CHECK_EQ(c.profile->total, 11);
	CHECK(loss_is_real(&c.profile->loss)); /* the end is missing, and that is told */
	profile_free(c.profile);
	trace_reader_close(c.r);
	vec_release(&c.steps);
	world_release(&c.world);
}

/* Two threads; the second is a child of the first, whose calls are open in it. */
static void test_forked(void)
{
	struct step_mark fork = {.kind = STEP_MARK_FORK, .at = 2, .a = 5, .b = 5};
	struct step_at child[] = {{0x2007 + BIAS, 1}, {0x100f + BIAS, 1}};
	struct counted c;
	uint32_t stream;

	begin(&c);
	add_code(&c, 0x1000, NOP, 5, "main", 0, 1);
	add_jump(&c, 0x100a, CALL, 0x2000, "main", 10, 2);
	add_code(&c, 0x100f, "\xc3", 1, "main", 15, 3);
	add_code(&c, 0x2000, "\x0f\x05", 2, "fork", 0, 0);
	add_code(&c, 0x2002, NOP, 5, "fork", 2, 0);
	add_code(&c, 0x2007, "\xc3", 1, "fork", 7, 0);
	step(&c, 0x100a);
	step(&c, 0x2000);
	end_at(&c, 50);
	world_mark(&c.world, c.thread, 50, &fork);
	stream = world_thread(&c.world, 5, 5); /* before its parent in order of pids */
	world_run(&c.world, stream, 60, &(struct step_run_head){.space = SPACE, .n = 2}, child);
	count(&c, STEP_COUNTS_TREES);
	CHECK_EQ(c.profile->total, 4);
	CHECK_EQ(row_of(&c, "main")->cum, 4);
	CHECK_EQ(row_of(&c, "main")->base, 2);
	CHECK_EQ(row_of(&c, "fork")->calls, 1);
	CHECK_EQ(row_of(&c, "fork")->base, 2);
	end(&c);
}

struct told {
	uint64_t time, kind, n;
	const char *words;
};

static void check_told(const struct counted *c, const struct told *expected, size_t n_expected)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct err err;
	uint64_t numbers[3];
	size_t n = 0;

	world_must(trace_cursor_open(&cursor, c->r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err), &err);
	while (trace_cursor_next(cursor, &record, &err) > 0) {
		if (record.major != RECORD_MAJOR_STEP)
			continue;
		CHECK_EQ(record.minor, RECORD_STEP_TOLD);
		CHECK_EQ(record.stream, c->thread);
		CHECK(n < n_expected && trace_record_numbers(c->r, &record, numbers, 3, &err) == 0);
		if (n >= n_expected)
			break;
		CHECK_EQ(record.time, expected[n].time);
		CHECK_EQ(numbers[0], expected[n].kind);
		CHECK_EQ(numbers[1], expected[n].n);
		CHECK_STR(trace_reader_string(c->r, (uint32_t)numbers[2]), expected[n].words);
		n++;
	}
	CHECK_EQ(n, n_expected);
	trace_cursor_close(cursor);
}

/* For a time line: how much was executed when, and the marks in words. */
static void test_when(void)
{
	static const struct told all[] = {{50, 0, 11, ""}, {51, STEP_MARK_SYSCALL, 1, "write = 12"},
		{60, STEP_MARK_LOST, 1, "3 steps are lost"}, {70, 0, 2, ""}};
	struct step_mark call = {.kind = STEP_MARK_SYSCALL, .at = 11, .a = 1, .b = 12};
	struct step_mark lost = {.kind = STEP_MARK_LOST, .at = 11, .a = 3};
	struct step_at more[] = {{0x1000 + BIAS, 1}, {0x1005 + BIAS, 1}};
	struct step_run_head head = {.first = 11, .space = SPACE, .n = 2};
	struct counted c;

	for (int is_told = 0; is_told < 2; is_told++) {
		make_program(&c);
		world_mark(&c.world, c.thread, 51, &call);
		world_mark(&c.world, c.thread, 60, &lost);
		world_run(&c.world, c.thread, 70, &head, more);
		count(&c, is_told ? STEP_COUNTS_TOLD : STEP_COUNTS_ALL_CODE);
		CHECK_EQ(c.profile->total, 13);
		CHECK_EQ(c.profile->loss.records_unknown, 0);
		check_told(&c, all, is_told ? 4 : 0);
		end(&c);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"steps make a call tree", test_tree},
		{"blocks and lines have exact counts", test_blocks},
		{"coverage leaves libraries without lines out", test_coverage},
		{"code without names is cut where something is called", test_code_without_names},
		{"everything else of the trace is kept with its ids", test_rest_of_the_trace},
		{"the trace of a recorder that was killed is counted, and said to be cut",
			test_killed},
		{"when what was executed is told on request, with the marks in words", test_when},
		{"a child begins inside the calls of its parent", test_forked},
	};

	return RUN_TESTS(tests);
}
