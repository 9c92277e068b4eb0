/* SPDX-License-Identifier: MIT */
/* Steps of traces: code and its versions, walking, finding a place, damage. */
#include <limits.h>

#include "check.h"
#include "steps_world.h"
#include "trace/record_run.h"

/* Walks a thread into a text, one line an item; steps one by one, as rows may be cut anywhere. */
static void walk(struct buf *to, struct step_cursor *c)
{
	struct step_item item;

	while (step_cursor_next(c, &item) > 0) {
		switch (item.kind) {
		case STEP_ITEM_STEPS:
			for (uint32_t i = 0; i < item.n; i++)
				buf_printf(to,
					"%" PRIu64 " %" PRIx64 " #%" PRIu32 " x%" PRIu32 "\n",
					item.first + i, item.steps[i].addr, item.steps[i].insn,
					item.steps[i].times);
			break;
		case STEP_ITEM_MARK:
			buf_printf(to, "%" PRIu64 " mark %d\n", item.first, item.mark.kind);
			break;
		case STEP_ITEM_DATA:
			buf_printf(to, "data %zu\n", item.data.n);
			break;
		case STEP_ITEM_DAMAGE:
			buf_printf(to, "damage %s\n", item.sentence);
			break;
		}
	}
}

static struct step_cursor *open_cursor(const struct steps *s, uint32_t thread)
{
	struct step_cursor *c;
	struct err err;

	world_must(step_cursor_open(&c, s, thread, &err), &err);
	return c;
}

static char *walk_all(const struct steps *s, uint32_t thread)
{
	struct step_cursor *c = open_cursor(s, thread);
	struct buf text = {0};

	walk(&text, c);
	step_cursor_close(c);
	buf_text(&text);
	return (char *)text.p;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void test_none(void)
{
	struct steps_world world;
	struct step_merge *m;
	struct step_item item;
	uint32_t thread;

	world_begin(&world);
	world_name(&world, 1, 1, "main");
	world_end(&world);
	world_open(&world);
	CHECK(!trace_reader_has_kind(world.r, RECORD_MAJOR_STEP, RECORD_STEP_RUN));
	CHECK_EQ(steps_n_threads(world.steps), 0);
	CHECK_EQ(steps_n_insns(world.steps), 1);
	CHECK_EQ(steps_find(world.steps, 0, 0, 0), 0);
	CHECK_EQ(steps_insn(world.steps, 0)->length, 0);
	m = step_merge_new(world.steps, NULL, 0);
	CHECK_EQ(step_merge_next(m, &thread, &item), 0);
	step_merge_free(m);
	world_release(&world);
}

static const struct step_insn *insn_at(
	const struct steps *s, uint32_t space, uint64_t addr, uint32_t generation)
{
	return steps_insn(s, steps_find(s, space, addr, generation));
}

static void test_code(void)
{
	struct steps_world world;
	const struct step_insn *insn;

	world_begin(&world);
	world_add_code(&world);
	world_code(&world, 4, 0, 0x1000, "\xf3\x48\xa5", 3); /* rep movsq */
	world_code(&world, 4, 0, 0x1003, "\xf3\xc3", 2);     /* rep ret */
	world_code(&world, 4, 0, 0x1005, "\x48\xa5", 2);     /* movsq */
	world_line(&world, world_thread(&world, 42, 42), 9, 0, 0x1000, 1);
	world_end(&world);
	world_open(&world);
	CHECK(trace_reader_has_kind(world.r, RECORD_MAJOR_STEP, RECORD_STEP_RUN));
	CHECK_EQ(steps_n_insns(world.steps), 12);
	insn = insn_at(world.steps, 1, 0x1000, 0);
	CHECK(insn->is_string && insn->length == 2 && insn->flow == X86_FLOW_NEXT && insn->is_64);
	CHECK(trace_reader_frame(world.r, insn->frame)->addr == 0x1000);
	insn = insn_at(world.steps, 1, 0x1002, 7);
	CHECK(insn->has_target && insn->target == 0x2000 && insn->flow == X86_FLOW_CALL);
	CHECK(!insn->is_string);
	CHECK_EQ(insn_at(world.steps, 1, 0x1007, 0)->flow, X86_FLOW_BRANCH);
	CHECK_EQ(insn_at(world.steps, 1, 0x1007, 0)->target, 0x1000);
	insn = insn_at(world.steps, 2, 0x3000, 0);
	CHECK(insn->addr == 0x3000 && insn->length == 0 && insn->n_bytes == 0);
	CHECK(insn_at(world.steps, 4, 0x1000, 0)->is_string);
	CHECK(insn_at(world.steps, 4, 0x1003, 0)->length &&
		!insn_at(world.steps, 4, 0x1003, 0)->is_string);
	CHECK(insn_at(world.steps, 4, 0x1005, 0)->length &&
		!insn_at(world.steps, 4, 0x1005, 0)->is_string);
	CHECK_EQ(steps_find(world.steps, 3, 0x1000, 0), 0);
	CHECK_EQ(steps_find(world.steps, 1, 0x1001, 0), 0);
	for (uint32_t i = 2; i < steps_n_insns(world.steps); i++) { /* numbers are in order */
		const struct step_insn *a = steps_insn(world.steps, i - 1);
		const struct step_insn *b = steps_insn(world.steps, i);

		CHECK(a->space < b->space || a->addr < b->addr || a->generation < b->generation);
	}
	world_release(&world);
}

static void test_versions(void)
{
	struct steps_world world;

	world_begin(&world);
	world_add_code(&world);
	for (uint32_t g = 10; g < 1000; g += 10) { /* the immediate says which */
		char bytes[] = {(char)0xb8, (char)g, (char)(g >> 8), 0, 0};

		world_code(&world, 1, g, 0x7000, bytes, 5);
	}
	world_code(&world, 1, 500, 0x7000, "\xb8\x01\x00\x00\x00", 5); /* once more */
	world_line(&world, world_thread(&world, 42, 42), 9, 0, 0x1000, 1);
	world_end(&world);
	world_open(&world);
	CHECK_EQ(insn_at(world.steps, 1, 0x2000, 0)->flow, X86_FLOW_RETURN);
	CHECK_EQ(insn_at(world.steps, 1, 0x2000, 2)->flow, X86_FLOW_RETURN);
	CHECK_EQ(insn_at(world.steps, 1, 0x2000, 3)->flow, X86_FLOW_NEXT);
	CHECK_EQ(insn_at(world.steps, 1, 0x2000, 4)->flow, X86_FLOW_NEXT);
	CHECK_EQ(insn_at(world.steps, 1, 0x2000, 5)->flow, X86_FLOW_SYSCALL);
	CHECK_EQ(insn_at(world.steps, 1, 0x2000, UINT32_MAX)->flow, X86_FLOW_SYSCALL);
	CHECK_EQ(insn_at(world.steps, 2, 0x2000, 5)->flow, X86_FLOW_STOP);
	for (uint32_t g = 0; g < 1100; g++) {
		const struct step_insn *insn = insn_at(world.steps, 1, 0x7000, g);
		uint32_t has = insn->bytes[1] | (unsigned)insn->bytes[2] << 8;
		uint32_t expected = g < 10 ? 0 : g > 990 ? 990 : g / 10 * 10;

		CHECK_EQ(has, expected == 500 ? 1 : expected);
	}
	world_release(&world);
}

static void test_threads(void)
{
	struct steps_world world;
	uint32_t late, first, only_marks;

	world_begin(&world);
	late = world_thread(&world, 50, 51);
	first = world_thread(&world, 42, 42);
	only_marks = world_thread(&world, 42, 43);
	world_thread(&world, 1, 1); /* without records */
	trace_writer_routine(world.w, world_thread(&world, 1, 2), 5, world_frame(&world, 1), false);
	world_name(&world, 42, 42, "before");
	world_name(&world, 42, 42, "main");
	world_line(&world, late, 100, 0, 0x1000, 10);
	world_cut(&world);
	world_line(&world, late, 200, 10, 0x1000, 5);
	world_data(&world, late, 200, NULL, 0);
	world_line(&world, first, 300, 0, 0x1000, 7);
	world_cut(&world);
	world_data(&world, first, 400, NULL, 0); /* a chunk that tells no number */
	world_mark(&world, only_marks, 300, &(struct step_mark){.at = 0, .kind = STEP_MARK_EXIT});
	world_end(&world);
	world_open(&world);
	CHECK_EQ(steps_n_threads(world.steps), 3);
	CHECK_EQ(steps_thread(world.steps, 0)->tid, 42);
	CHECK_STR(steps_thread(world.steps, 0)->name, "main");
	CHECK_EQ(steps_thread(world.steps, 0)->n_steps, 7);
	CHECK_EQ(steps_thread(world.steps, 0)->first_time, 300);
	CHECK_EQ(steps_thread(world.steps, 0)->last_time, 400);
	CHECK_EQ(steps_thread(world.steps, 1)->tid, 43);
	CHECK_EQ(steps_thread(world.steps, 1)->n_steps, 0);
	CHECK_EQ(steps_thread(world.steps, 2)->pid, 50);
	CHECK_STR(steps_thread(world.steps, 2)->name, "");
	CHECK_EQ(steps_thread(world.steps, 2)->n_steps, 15);
	CHECK_EQ(steps_thread(world.steps, 2)->stream, late);
	CHECK_EQ(steps_total(world.steps), 22);
	CHECK_EQ(steps_n_damaged(world.steps, NULL), 0);
	world_release(&world);
}

static void test_walk(void)
{
	struct steps_world world;
	char *text;

	world_begin(&world);
	world_add_everything(&world);
	world_end(&world);
	world_open(&world);
	text = walk_all(world.steps, 0);
	/* numbers: 1 movs, 2 call, 3 je, 4 ret, 5 nop, 6 syscall; 7 ud2, 8 not readable */
	CHECK_STR(text, "0 mark 7\n"
			"0 1000 #1 x300\n1 1002 #2 x1\n2 2000 #4 x1\n3 1007 #3 x1\n"
			"data 22\n"
			"4 mark 1\n4 mark 2\n4 mark 3\n4 mark 4\n4 mark 5\n4 mark 6\n4 mark 7\n"
			"4 mark 8\n4 mark 9\n"
			"4 1000 #1 x300\n5 1002 #2 x1\n6 2000 #5 x1\n7 1007 #3 x1\n"
			"8 1000 #1 x300\n9 1002 #2 x1\n10 2000 #6 x1\n11 1007 #3 x1\n"
			"data 22\n"
			"12 mark 8\n");
	free(text);
	text = walk_all(world.steps, 1);
	CHECK(begins(text, "0 ffffffffff600000 #0 x1\n1 2000 #7 x1\n2 3000 #8 x1\n"
			   "3 8000000000003000 #0 x2\n4 9000 #0 x1\n"));
	free(text);
	world_release(&world);
}

static void test_item(void)
{
	struct steps_world world;
	struct step_cursor *c;
	struct step_item item;
	struct step_data_walk data;
	struct step_datum datum;
	struct err err;

	world_begin(&world);
	world_add_everything(&world);
	world_end(&world);
	world_open(&world);
	c = open_cursor(world.steps, 0);
	CHECK_EQ(step_cursor_next(c, &item), 1);
	CHECK_EQ(item.time, 10);
	CHECK_EQ(step_cursor_next(c, &item), 1);
	CHECK(item.time == 20 && item.first == 0 && item.n == 4);
	CHECK(item.space == 1 && item.generation == 0);
	CHECK_EQ(step_cursor_next(c, &item), 1);
	CHECK(item.kind == STEP_ITEM_DATA && item.first == 4);
	CHECK(step_data_open(&data, item.data) && step_data_next(&data, &datum) == 1);
	CHECK_EQ(datum.addr, 0x5000);
	CHECK_EQ(step_cursor_next(c, &item), 1);
	CHECK(item.mark.a == 1 && item.mark.b == -1 && item.mark.c == INT64_MIN);
	CHECK_STR(trace_reader_string(world.r, item.mark.text), "text");
	step_cursor_close(c);
	CHECK_EQ(step_cursor_open(&c, world.steps, 2, &err), ERR_NOT_FOUND);
	world_release(&world);
}

static void test_long_run(void)
{
	const uint32_t n = 3 * STEP_ITEM_STEPS_MAX + 5;
	struct steps_world world;
	struct step_cursor *c;
	struct step_item item;
	uint64_t next = 0;

	world_begin(&world);
	world_line(&world, world_thread(&world, 1, 1), 9, 0, 0x1000, n);
	world_end(&world);
	world_open(&world);
	c = open_cursor(world.steps, 0);
	for (; step_cursor_next(c, &item) > 0; next += item.n) {
		CHECK(item.kind == STEP_ITEM_STEPS && item.first == next);
		CHECK(item.n <= STEP_ITEM_STEPS_MAX && item.steps[0].addr == 0x1000 + next);
	}
	CHECK_EQ(next, n);
	for (uint32_t at = 1; at < n; at += 999) {
		step_cursor_seek(c, at);
		CHECK_EQ(step_cursor_next(c, &item), 1);
		CHECK(item.first == at && item.steps[0].addr == 0x1000 + at);
	}
	step_cursor_close(c);
	world_release(&world);
}

/* Runs of several lengths, marks in front and behind, chunks of all cuts. */
static void make_many(struct steps_world *world)
{
	uint32_t stream;

	world_begin(world);
	stream = world_thread(world, 1, 1);
	for (uint32_t i = 0, first = 0; i < 60; first += i % 7 + 1, i++) {
		if (i % 3 == 0)
			world_mark(world, stream, 10 * i,
				&(struct step_mark){.at = first, .kind = STEP_MARK_SYSCALL});
		if (i % 4 == 0)
			world_cut(world);
		world_line(world, stream, 10 * i + 5, first, 0x1000 * i, i % 7 + 1);
		if (i % 5 == 0)
			world_cut(world);
		world_data(world, stream, 10 * i + 5, NULL, 0);
		if (i % 6 == 0)
			world_cut(world);
	}
	world_end(world);
	world_open(world);
}

/* From the first line that is about step `at` or a later one. */
static const char *behind(const char *text, uint64_t at)
{
	while (*text && (*text == 'd' || strtoull(text, NULL, 10) < at))
		text = strchr(text, '\n') + 1;
	return text;
}

static void test_seek(void)
{
	struct steps_world world;
	struct step_cursor *c;
	char *all;

	make_many(&world);
	all = walk_all(world.steps, 0);
	c = open_cursor(world.steps, 0);
	CHECK(steps_total(world.steps) > 200);
	for (uint64_t at = 0; at < steps_total(world.steps) + 3; at++) {
		struct buf text = {0};

		step_cursor_seek(c, at);
		walk(&text, c);
		CHECK_STR(buf_text(&text), behind(all, at));
		buf_release(&text);
	}
	step_cursor_seek(c, UINT64_MAX);
	CHECK_EQ(step_cursor_next(c, &(struct step_item){0}), 0);
	step_cursor_close(c);
	free(all);
	world_release(&world);
}

static void test_seek_time(void)
{
	struct steps_world world;
	struct step_cursor *c;
	struct step_item item;

	make_many(&world);
	c = open_cursor(world.steps, 0);
	for (uint64_t time = 0; time <= 595; time++) {
		uint64_t expected = time;

		while (expected % 10 != 5 && expected % 30) /* runs and marks */
			expected++;
		step_cursor_seek_time(c, time);
		CHECK_EQ(step_cursor_next(c, &item), 1);
		CHECK_EQ(item.time, expected);
		CHECK(item.kind == (item.time % 10 ? STEP_ITEM_STEPS : STEP_ITEM_MARK));
	}
	step_cursor_seek_time(c, 596);
	CHECK_EQ(step_cursor_next(c, &item), 0);
	step_cursor_close(c);
	world_release(&world);
}

/* Also while a second thread unpacks what would have been next. */
static void test_chunks(void)
{
	struct trace_ahead *ahead = trace_ahead_new();
	struct steps_world world;
	struct trace_run_record record = {0};
	struct trace_runs *runs;
	struct trace_run run;
	struct err err;
	uint32_t n, i = 0;

	make_many(&world);
	for (int with = 0; with < 2; with++) {
		world_must(trace_runs_open(&runs, world.r, steps_thread(world.steps, 0)->stream,
				   with ? ahead : NULL, &err),
			&err);
		n = trace_runs_n_chunks(runs);
		CHECK(n > 30);
		for (int round = 0; round < 500; round++) {
			i = (i * 7 + (uint32_t)round) % n;
			trace_runs_seek(runs, i);
			for (uint32_t k = i; k < n && k < i + (uint32_t)round % 3 + 1; k++) {
				CHECK_EQ(trace_run_next(runs, &run, &err), 1);
				CHECK(trace_run_peek(&run, &record) != NULL);
				CHECK_EQ(record.time, trace_runs_chunk_time(runs, k));
			}
		}
		trace_runs_seek(runs, n);
		CHECK_EQ(trace_run_next(runs, &run, &err), 0);
		trace_runs_close(runs);
	}
	trace_ahead_free(ahead);
	world_release(&world);
}

static void test_merge(void)
{
	static const char expected[] = "2:100 0:150 1:150 2:200 0:250 1:300 ";
	struct steps_world world;
	struct step_merge *m;
	struct step_item item;
	struct buf text = {0};
	uint32_t streams[3], thread;

	world_begin(&world);
	for (uint32_t i = 0; i < 3; i++)
		streams[i] = world_thread(&world, 1, i + 1);
	world_line(&world, streams[0], 150, 0, 0x1000, 2);
	world_line(&world, streams[0], 250, 2, 0x1000, 2);
	world_line(&world, streams[1], 150, 0, 0x2000, 2);
	world_line(&world, streams[1], 300, 2, 0x2000, 2);
	world_line(&world, streams[2], 100, 0, 0x3000, 2);
	world_line(&world, streams[2], 200, 2, 0x3000, 2);
	world_end(&world);
	world_open(&world);
	m = step_merge_new(world.steps, NULL, 0);
	while (step_merge_next(m, &thread, &item) > 0) {
		buf_printf(&text, "%" PRIu32 ":%" PRIu64 " ", thread, item.time);
		CHECK_EQ(item.steps[0].addr, 0x1000 * (thread + 1));
	}
	CHECK_STR(buf_text(&text), expected);
	step_merge_free(m);
	m = step_merge_new(world.steps, (uint32_t[]){2, 1}, 2);
	step_merge_seek_time(m, 160);
	CHECK(step_merge_next(m, &thread, &item) == 1 && thread == 2 && item.time == 200);
	CHECK(step_merge_next(m, &thread, &item) == 1 && thread == 1 && item.time == 300);
	CHECK_EQ(step_merge_next(m, &thread, &item), 0);
	step_merge_free(m);
	buf_release(&text);
	world_release(&world);
}

static void test_damaged_records(void)
{
	struct steps_world world;
	uint32_t stream;
	char *text;

	world_begin(&world);
	stream = world_thread(&world, 1, 77);
	world_line(&world, stream, 10, 0, 0x1000, 2);
	world_record(&world, stream, 20, RECORD_STEP_RUN, "", 0);
	world_line(&world, stream, 30, 9, 0x2000, 1);
	/* two steps are there, the third is not */
	world_record(&world, stream, 40, RECORD_STEP_RUN, "\x0a\x01\x00\x03\x05\x04\x80", 7);
	world_record(&world, stream, 50, RECORD_STEP_MARK, "\x0d\x63\x00\x00\x00\x00", 6);
	world_mark(&world, stream, 60,
		&(struct step_mark){.at = 13, .kind = STEP_MARK_EXEC, .text = 4000});
	world_record(&world, stream, 70, RECORD_STEP_DATA, "\x01", 1);
	world_record(&world, stream, 75, 0x99, "of a version to come", 20);
	world_line(&world, stream, 80, 13, 0x3000, 1);
	world_line(&world, stream, 90, 20, 0x4000, 1);
	world_mark(&world, stream, 95, &(struct step_mark){.at = 22, .kind = STEP_MARK_EXIT});
	world_line(&world, stream, 99, 3, 0x5000, 1);
	world_end(&world);
	world_open(&world);
	text = walk_all(world.steps, 0);
	CHECK_STR(text, "0 1000 #0 x1\n1 1001 #0 x1\n"
			"damage 'steps': thread 77: a run of steps near step 2 is damaged\n"
			"9 2000 #0 x1\n"
			"10 5 #0 x1\n11 3 #0 x1\n"
			"damage 'steps': thread 77: a run of steps near step 12 is damaged\n"
			"damage 'steps': thread 77: a mark near step 12 is damaged\n"
			"damage 'steps': thread 77: a mark near step 13 is damaged\n"
			"damage 'steps': thread 77: a record of data near step 13 is damaged\n"
			"13 3000 #0 x1\n"
			"damage 'steps': thread 77: steps 14 to 19 are missing\n"
			"20 4000 #0 x1\n"
			"damage 'steps': thread 77: steps 21 to 21 are missing\n"
			"22 mark 6\n"
			"damage 'steps': thread 77: step 3 comes where 22 is expected\n"
			"3 5000 #0 x1\n");
	free(text);
	world_release(&world);
}

static void test_damaged_code(void)
{
	struct steps_world world;
	const char *sentence;
	struct buf b = {0};
	struct step_code code = {.addr = 0x1000, .frame = 99, .n = 1, .bytes = {0x90}};

	world_begin(&world);
	step_code_encode(&b, &(struct step_code_head){.space = 1, .pid = 7, .n = 1}, &code);
	world_record(&world, world.code, 1, RECORD_STEP_CODE, b.p, b.n);
	world_record(&world, world.code, 1, RECORD_STEP_CODE, b.p, b.n - 1);
	world_code(&world, 1, 0, 0x1001, "\x90", 1);
	world_line(&world, world_thread(&world, 1, 1), 10, 0, 0x1000, 2);
	world_end(&world);
	world_open(&world);
	CHECK_EQ(steps_n_damaged(world.steps, &sentence), 2);
	CHECK_STR(sentence, "'steps': code at 0x1000 has frame 99, which is not defined");
	CHECK_EQ(steps_n_insns(world.steps), 3);
	CHECK_EQ(insn_at(world.steps, 1, 0x1000, 0)->frame, 0);
	CHECK_EQ(insn_at(world.steps, 1, 0x1000, 0)->length, 1);
	CHECK_EQ(insn_at(world.steps, 1, 0x1001, 0)->length, 1);
	buf_release(&b);
	world_release(&world);
}

static void test_damaged_chunk(void)
{
	struct steps_world world;
	uint32_t stream;
	uint64_t from, to;
	struct step_cursor *c;
	struct step_item item;
	char *text;

	world_begin(&world);
	stream = world_thread(&world, 1, 1);
	world_line(&world, stream, 10, 0, 0x1000, 2);
	world_cut(&world);
	from = trace_writer_bytes(world.w);
	world_line(&world, stream, 20, 2, 0x2000, 2);
	world_cut(&world);
	to = trace_writer_bytes(world.w);
	world_line(&world, stream, 30, 4, 0x3000, 2);
	world_end(&world);
	world.bytes[(from + CHUNK_HEADER_BYTES + to) / 2] ^= 0x10;
	world_open(&world);
	CHECK_EQ(steps_total(world.steps), 6);
	text = walk_all(world.steps, 0);
	CHECK(begins(text, "0 1000 #0 x1\n1 1001 #0 x1\ndamage 'steps': "));
	CHECK(strstr(text, "\n4 3000 #0 x1\n5 3001 #0 x1\n") != NULL);
	free(text);
	c = open_cursor(world.steps, 0);
	step_cursor_seek(c, 5);
	do
		CHECK_EQ(step_cursor_next(c, &item), 1);
	while (item.kind == STEP_ITEM_DAMAGE);
	CHECK(item.first == 5 && item.steps[0].addr == 0x3001);
	step_cursor_close(c);
	world_release(&world);
}

/* The recorder may be killed at any moment: what is in whole chunks is there. */
static void test_killed(void)
{
	struct steps_world world;
	size_t whole;
	uint64_t before = 0;

	make_many(&world);
	world_close(&world);
	whole = world.n_bytes;
	for (size_t n = 600; n < whole; n += 7) {
		world.n_bytes = n;
		world_open(&world);
		CHECK(steps_total(world.steps) >= before);
		before = steps_total(world.steps);
		if (steps_n_threads(world.steps)) {
			char *text = walk_all(world.steps, 0);

			CHECK(!strstr(text, "damage"));
			free(text);
		}
		world_close(&world);
	}
	CHECK(before > 200);
	free(world.bytes);
}

static void test_saturates(void)
{
	struct steps_world world;
	struct step_cursor *c;
	struct step_item item;

	world_begin(&world);
	world_record(&world, world_thread(&world, 1, 1), 1, RECORD_STEP_RUN,
		"\x00\x01\x00\x01\x05\x00\xff\xff\xff\xff\x0f", 11);
	world_end(&world);
	world_open(&world);
	c = open_cursor(world.steps, 0);
	CHECK_EQ(step_cursor_next(c, &item), 1);
	CHECK_EQ(item.steps[0].times, UINT32_MAX);
	CHECK_EQ(step_cursor_next(c, &item), 0);
	step_cursor_close(c);
	world_release(&world);
}

static const char *where(const struct steps_world *world, uint32_t space, uint64_t addr,
	uint64_t time, struct buf *text)
{
	struct step_where w;

	buf_reset(text);
	if (steps_where(world->steps, space, addr, time, &w))
		step_where_put(text, world->steps, &w);
	return buf_text(text);
}

static void test_places(void)
{
	struct steps_world world;
	struct buf b = {0};

	world_begin(&world);
	world_add_places(&world);
	world_place(&world, 50,
		&(struct step_place){1, STEP_PLACE_MEMORY, 0x5800, 0x10, 0, 0,
			trace_writer_string(world.w, "[a\nb]")});
	world_end(&world);
	world_open(&world);
	CHECK_STR(where(&world, 1, 0x5000, 14, &b), "");
	CHECK_STR(where(&world, 1, 0x4fff, 15, &b), "");
	CHECK_STR(where(&world, 1, 0x5000, 15, &b), "libone.so+0x1000");
	CHECK_STR(where(&world, 1, 0x5fef, 15, &b), "libone.so+0x1fef");
	CHECK_STR(where(&world, 1, 0x5ff0, 44, &b), "libone.so(table+0x8)");
	CHECK_STR(where(&world, 1, 0x600f, 44, &b), "libone.so(table+0x27)");
	CHECK_STR(where(&world, 1, 0x6010, 44, &b), "libone.so+0x2010");
	CHECK_STR(where(&world, 1, 0x5ff0, 45, &b), "");
	CHECK_STR(where(&world, 1, 0x5800, 49, &b), "");
	CHECK_STR(where(&world, 1, 0x5808, 50, &b), "[a?b]");
	CHECK_STR(where(&world, 1, 0x57ff, UINT64_MAX - 1, &b), "libone.so+0x17ff");
	CHECK_STR(where(&world, 1, 0x7fffffff, 20, &b), "[stack]");
	CHECK_STR(where(&world, 2, 0x5010, 20, &b), "a file+0x210");
	CHECK_STR(where(&world, 3, 0x5010, 20, &b), "");
	CHECK_EQ(steps_n_damaged(world.steps, NULL), 0);
	buf_release(&b);
	world_release(&world);
}

static void test_damaged_places(void)
{
	struct step_place strange = {1, STEP_PLACE_IMAGE, 0x1000, 1, 99, 0, 0};
	struct steps_world world;
	const char *sentence;
	struct step_where w;

	world_begin(&world);
	world_place(&world, 1, &strange);
	world_record(&world, world.code, 2, RECORD_STEP_PLACE, "\x01", 1);
	world_end(&world);
	world_open(&world);
	CHECK_EQ(steps_n_damaged(world.steps, &sentence), 2);
	CHECK_STR(sentence, "'steps': a record of what is in memory is damaged");
	CHECK(!steps_where(world.steps, 1, 0x1000, 1, &w));
	world_release(&world);
}

int main(void)
{
	static const struct test tests[] = {
		{"places are found by space, address and time", test_places},
		{"damaged places are counted", test_damaged_places},
		{"a trace without steps has no threads", test_none},
		{"code is decoded and found by space and address", test_code},
		{"overwritten code is found as it was in each generation", test_versions},
		{"threads are found with names and counts", test_threads},
		{"a walk tells steps, marks and data in order", test_walk},
		{"items have times, numbers and contents", test_item},
		{"a long run is cut into items", test_long_run},
		{"a cursor begins at any step, with the marks in front of it", test_seek},
		{"a cursor begins at any time", test_seek_time},
		{"the chunks of a stream are found in any order", test_chunks},
		{"threads are merged by time", test_merge},
		{"damaged records and missing steps are told, and the walk goes on",
			test_damaged_records},
		{"damaged code is counted and the rest is there", test_damaged_code},
		{"a damaged chunk costs its own steps only", test_damaged_chunk},
		{"a trace that is cut off anywhere has the steps up to there", test_killed},
		{"iterations that pass 32 bits are as many as fit", test_saturates},
	};

	return RUN_TESTS(tests);
}
