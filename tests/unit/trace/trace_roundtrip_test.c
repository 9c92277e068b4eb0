/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/* What is written comes back: tables, records, order, ranges of time, sizes. */
#include "check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace_everything.h"

static char path[64];

static struct trace_writer *begin(void)
{
	struct trace_writer *w = NULL;
	struct err err = {0};

	snprintf(path, sizeof(path), "trace-test-%d.weir", (int)getpid());
	unlink(path);
	if (trace_writer_open(&w, path, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	return w;
}

/* Closes the writer and opens what it wrote; the file is gone by name. */
static struct trace_reader *reopen(struct trace_writer *w)
{
	struct trace_reader *r = NULL;
	struct err err = {0};

	if (trace_writer_close(w, &err) < 0 || trace_reader_open(&r, path, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	unlink(path);
	return r;
}

static struct trace_cursor *walk(
	const struct trace_reader *r, uint32_t stream, uint64_t from, uint64_t to)
{
	struct trace_cursor *c = NULL;
	struct err err = {0};

	if (trace_cursor_open(&c, r, stream, from, to, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	return c;
}

static uint64_t count(const struct trace_reader *r, uint32_t stream, uint64_t from, uint64_t to)
{
	struct trace_cursor *c = walk(r, stream, from, to);
	struct trace_record record;
	struct err err = {0};
	uint64_t n = 0;
	int rc;

	while ((rc = trace_cursor_next(c, &record, &err)) > 0) {
		CHECK(record.time >= from && record.time < to);
		n++;
	}
	CHECK_EQ(rc, 0);
	trace_cursor_close(c);
	return n;
}

static void empty_trace(void)
{
	struct trace_reader *r = reopen(begin());

	CHECK(!trace_reader_is_recovered(r, NULL));
	CHECK_EQ(trace_reader_n_strings(r), 1);
	CHECK_EQ(trace_reader_n_frames(r), 1);
	CHECK_EQ(trace_reader_n_stacks(r), 1);
	CHECK_STR(trace_reader_string(r, 0), "");
	CHECK_EQ(trace_reader_stack(r, 0)->frame, 0);
	CHECK(!trace_reader_meta(r, "host"));
	CHECK_EQ(count(r, TRACE_ALL_STREAMS, 0, UINT64_MAX), 0);
	CHECK_STR(trace_reader_name(r), path);
	trace_reader_close(r);
}

static void same_thing_same_id(void)
{
	struct trace_writer *w = begin();
	uint32_t a = trace_writer_string(w, "a"), b = trace_writer_string_n(w, "bc", 1);
	struct trace_image image = {.kind = IMAGE_KIND_ELF, .path = a, .build_id_n = 2};
	struct trace_frame frame = {FRAME_KIND_NATIVE, true, 0, a, 7};
	struct trace_thread thread = {1, 2, 3};
	uint32_t f, s, i;

	CHECK_EQ(trace_writer_string(w, ""), 0);
	CHECK_EQ(a, 1);
	CHECK_EQ(trace_writer_string(w, "b"), b);
	CHECK_EQ(trace_writer_metric(w, "cpu", "ns"), trace_writer_metric(w, "cpu", "ns"));
	CHECK_EQ(trace_writer_metric(w, "cpu", "1"), 2);
	f = trace_writer_frame(w, &frame);
	CHECK_EQ(f, 1);
	CHECK_EQ(trace_writer_frame(w, &frame), f);
	frame.is_caller = false;
	CHECK_EQ(trace_writer_frame(w, &frame), 2);
	CHECK_EQ(trace_writer_n_frames(w), 2);
	CHECK(!trace_writer_get_frame(w, 2)->is_caller);
	s = trace_writer_stack(w, 0, f);
	CHECK_EQ(trace_writer_stack(w, 0, f), s);
	CHECK_EQ(trace_writer_stack(w, s, f), 2);
	i = trace_writer_image(w, &image);
	image.build_id[5] = 99; /* behind the build-id: means nothing */
	CHECK_EQ(trace_writer_image(w, &image), i);
	image.build_id[1] = 99;
	CHECK_EQ(trace_writer_image(w, &image), i + 1);
	CHECK_EQ(trace_writer_get_image(w, i + 1)->build_id[1], 99);
	CHECK_EQ(trace_writer_thread(w, &thread), 1);
	CHECK_EQ(trace_writer_thread(w, &thread), 1);
	thread.start_ns++;
	CHECK_EQ(trace_writer_thread(w, &thread), 2);
	CHECK_EQ(trace_writer_stream(w, STREAM_KIND_CPU, 0), 1);
	CHECK_EQ(trace_writer_stream(w, STREAM_KIND_LIFE, 0), 2);
	CHECK_EQ(trace_writer_stream(w, STREAM_KIND_CPU, 0), 1);
	trace_reader_close(reopen(w));
}

static void tables_come_back(void)
{
	struct trace_writer *w = begin();
	struct trace_reader *r;
	const struct trace_symbol *s;
	const struct trace_image *image;
	const struct trace_frame *f;

	everything_write(w);
	r = reopen(w);
	CHECK_STR(trace_reader_meta(r, "host"), "box");
	CHECK_STR(trace_reader_meta(r, "empty"), "");
	CHECK_STR(trace_reader_meta_key(r, 1), "command");
	CHECK(!trace_reader_meta_key(r, 3));
	CHECK_EQ(trace_reader_n_metrics(r), 3);
	CHECK_STR(trace_reader_string(r, trace_reader_metric(r, 1)->unit), "ns");
	CHECK_EQ(trace_reader_n_streams(r), 5);
	CHECK_EQ(trace_reader_stream(r, 3)->number, 63);
	CHECK_EQ(trace_reader_thread(r, 2)->start_ns, UINT64_MAX);
	CHECK_EQ(trace_reader_thread(r, 2)->pid, UINT32_MAX);
	CHECK_EQ(trace_reader_n_images(r), 6);
	image = trace_reader_image(r, 2);
	CHECK_EQ(image->kind, IMAGE_KIND_KERNEL);
	CHECK_EQ(image->build_id_n, 32);
	CHECK_EQ(image->build_id[31], 0x0f);
	CHECK_EQ(image->file_mtime_ns, 1700000000123456789u);
	CHECK_EQ(trace_reader_image(r, 4)->pid, 42);
	f = trace_reader_frame(r, 7);
	CHECK_EQ(f->addr, 0xffffffff81000000);
	CHECK_EQ(f->kind, FRAME_KIND_KERNEL);
	CHECK(!f->is_caller);
	CHECK_STR(trace_reader_string(r, trace_reader_frame(r, 8)->name), "no CFI");
	CHECK_EQ(trace_reader_n_stacks(r), 10);
	CHECK_EQ(trace_reader_stack(r, 1)->parent, 0);
	CHECK_EQ(trace_reader_stack(r, 9)->parent, 8);
	s = trace_reader_symbol(r, 1);
	CHECK_EQ(s ? s->n_levels : 0, 2);
	if (s && s->n_levels == 2) {
		CHECK_STR(trace_reader_string(r, s->levels[0].name), "inner");
		CHECK_STR(trace_reader_string(r, s->levels[0].file), "a.c");
		CHECK_EQ(s->levels[1].line, UINT32_MAX);
	}
	CHECK_STR(trace_reader_string(r, trace_reader_symbol(r, 5)->reason), "not ELF");
	CHECK(!trace_reader_symbol(r, 3));
	trace_reader_close(r);
}

static void every_code_comes_back(void)
{
	unsigned seen[EVERYTHING_N_CODES] = {0}, n_text = 0, n_ring_full = 0;
	struct trace_writer *w = begin();
	struct trace_record record;
	struct trace_reader *r;
	struct trace_cursor *c;
	struct err err;
	uint64_t before = 0;

	everything_write(w);
	r = reopen(w);
	c = walk(r, TRACE_ALL_STREAMS, 0, UINT64_MAX);
	while (trace_cursor_next(c, &record, &err) > 0) {
		uint64_t numbers[10] = {0};

		CHECK(record.time >= before);
		before = record.time;
		if (record.major == EVERYTHING_TEXT_CODE) {
			n_text += record.payload.n == 11 &&
				  !memcmp(record.payload.p, "no number \xff", 11);
			continue;
		}
		for (size_t i = 0; i < EVERYTHING_N_CODES; i++) {
			const struct everything_code *e = &everything_codes[i];

			if (e->major != record.major || e->minor != record.minor)
				continue;
			CHECK_EQ(trace_record_numbers(r, &record, numbers, e->n, &err), 0);
			seen[i] += !memcmp(numbers, e->numbers, e->n * sizeof(numbers[0]));
			CHECK(trace_record_numbers(r, &record, numbers, e->n + 1, &err) ==
				ERR_FORMAT);
		}
		if (record.major == RECORD_MAJOR_LOSS && numbers[0] == 7)
			n_ring_full +=
				!strcmp(trace_reader_string(r, (uint32_t)numbers[1]), "ring full");
	}
	for (size_t i = 0; i < EVERYTHING_N_CODES; i++)
		CHECK_EQ(seen[i], 2);
	CHECK_EQ(n_text, 1);
	CHECK_EQ(n_ring_full, 1);
	trace_cursor_close(c);
	trace_reader_close(r);
}

/* Records of stream s at times that depend on i: numbers are (s, i). */
static void write_interleaved(struct trace_writer *w, uint32_t n_streams, uint64_t n)
{
	for (uint32_t s = 0; s < n_streams; s++)
		trace_writer_stream(w, STREAM_KIND_CPU, s);
	for (uint64_t i = 0; i < n; i++)
		for (uint32_t s = 0; s < n_streams; s++)
			trace_writer_numbers(w, 1 + s, i * 100 + i * i % (7 + s), 0x50, 0x10,
				(uint64_t[]){1 + s, i}, 2);
}

static void merge_is_by_time_then_stream(void)
{
	enum { N_STREAMS = 9, N = 20000 };
	struct trace_writer *w = begin();
	uint64_t next[N_STREAMS + 1] = {0}, time = 0, wrong = 0;
	struct trace_record record;
	struct trace_reader *r;
	struct trace_cursor *c;
	struct err err;
	uint32_t stream = 0;

	write_interleaved(w, N_STREAMS, N);
	r = reopen(w);
	c = walk(r, TRACE_ALL_STREAMS, 0, UINT64_MAX);
	while (trace_cursor_next(c, &record, &err) > 0) {
		uint64_t numbers[2];

		trace_record_numbers(r, &record, numbers, 2, &err);
		wrong += record.time < time || (record.time == time && record.stream <= stream);
		wrong += numbers[0] != record.stream || numbers[1] != next[record.stream]++;
		time = record.time;
		stream = record.stream;
	}
	CHECK_EQ(wrong, 0);
	for (int s = 1; s <= N_STREAMS; s++)
		CHECK_EQ(next[s], N);
	CHECK_EQ(trace_cursor_next(c, &record, &err), 0);
	trace_cursor_close(c);
	CHECK_EQ(count(r, 3, 0, UINT64_MAX), N);
	trace_reader_close(r);
}

static void ranges_of_time(void)
{
	struct trace_writer *w = begin();
	struct trace_reader *r;
	struct trace_cursor *c;
	struct err err;

	trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	trace_writer_stream(w, STREAM_KIND_CPU, 0);
	for (uint64_t i = 0; i < 100000; i++)
		trace_writer_numbers(w, 2, i * 10, 0x50, 0x10, (uint64_t[]){i}, 1);
	r = reopen(w);
	CHECK_EQ(count(r, TRACE_ALL_STREAMS, 0, UINT64_MAX), 100000);
	CHECK_EQ(count(r, 1, 0, UINT64_MAX), 0);
	CHECK_EQ(count(r, 2, 0, 0), 0);
	CHECK_EQ(count(r, 2, 10, 11), 1);
	CHECK_EQ(count(r, 2, 11, 20), 0);
	CHECK_EQ(count(r, 2, 999990, UINT64_MAX), 1);
	CHECK_EQ(count(r, 2, 999991, UINT64_MAX), 0);
	for (uint64_t from = 0; from < 1000000; from += 77773)
		CHECK_EQ(count(r, TRACE_ALL_STREAMS, from, from + 50000),
			(from + 50000 > 1000000 ? 1000000 - from + 9 : 50000) / 10);
	CHECK(trace_cursor_open(&c, r, 3, 0, 1, &err) == ERR_NOT_FOUND);
	CHECK(trace_cursor_open(&c, r, 0, 0, 1, &err) == ERR_NOT_FOUND);
	trace_reader_close(r);
}

static void time_that_goes_back(void)
{
	static const uint64_t times[] = {100, 90, 95, 120, 0};
	static const uint64_t expected[] = {100, 100, 100, 120, 120, 120};
	struct trace_writer *w = begin();
	struct trace_record record = {0};
	struct trace_reader *r;
	struct trace_cursor *c;
	uint64_t numbers[2];
	struct err err;

	trace_writer_stream(w, STREAM_KIND_CPU, 0);
	for (size_t i = 0; i < 5; i++)
		trace_writer_numbers(w, 1, times[i], 0x50, 0x10, NULL, 0);
	r = reopen(w);
	c = walk(r, 1, 0, UINT64_MAX);
	for (size_t i = 0; i < 6; i++) {
		CHECK_EQ(trace_cursor_next(c, &record, &err), 1);
		CHECK_EQ(record.time, expected[i]);
	}
	CHECK_EQ(record.major, RECORD_MAJOR_LOSS);
	CHECK_EQ(record.minor, RECORD_LOSS_NOTE);
	CHECK_EQ(trace_record_numbers(r, &record, numbers, 2, &err), 0);
	CHECK_EQ(numbers[0], 3);
	CHECK(strstr(trace_reader_string(r, (uint32_t)numbers[1]), "went back"));
	CHECK_EQ(trace_cursor_next(c, &record, &err), 0);
	trace_cursor_close(c);
	trace_reader_close(r);
}

static void times_of_any_size(void)
{
	struct trace_writer *w = begin();
	struct trace_record record = {0};
	struct trace_reader *r;
	struct trace_cursor *c;
	struct err err;

	trace_writer_stream(w, STREAM_KIND_CPU, 0);
	trace_writer_record(w, 1, 0, UINT32_MAX, UINT32_MAX, NULL, 0);
	trace_writer_record(w, 1, UINT64_MAX, 0, 0, NULL, 0);
	r = reopen(w);
	c = walk(r, 1, 0, UINT64_MAX);
	CHECK_EQ(trace_cursor_next(c, &record, &err), 1);
	CHECK_EQ(record.major, UINT32_MAX);
	CHECK_EQ(record.minor, UINT32_MAX);
	CHECK_EQ(trace_cursor_next(c, &record, &err), 0); /* `to` itself is outside */
	trace_cursor_close(c);
	trace_reader_close(r);
}

static void long_things(void)
{
	enum { LONG = 3 << 20 };
	char *text = mem_alloc(LONG + 1);
	struct trace_writer *w = begin();
	struct trace_record record = {0};
	struct trace_symbol_level levels[SYMBOL_LEVELS_MAX + 10] = {{0}};
	struct trace_reader *r;
	struct trace_cursor *c;
	uint64_t numbers[100];
	uint32_t id, frame;
	struct err err;

	memset(text, 'x', LONG);
	text[LONG] = 0;
	trace_writer_meta(w, "long", text);
	id = trace_writer_string(w, text);
	frame = trace_writer_frame(w, &(struct trace_frame){FRAME_KIND_NATIVE, false, 0, id, 0});
	for (uint32_t i = 0; i < SYMBOL_LEVELS_MAX + 10; i++)
		levels[i].line = i;
	trace_writer_symbol(w, &(struct trace_symbol){frame, 0, SYMBOL_LEVELS_MAX + 10, levels});
	trace_writer_stream(w, STREAM_KIND_CPU, 0);
	trace_writer_record(w, 1, 1, 2, 3, text, LONG); /* dropped, and said so */
	trace_writer_record(w, 1, 1, 2, 3, text, RECORD_BYTES_MAX);
	for (uint64_t i = 0; i < 100; i++)
		numbers[i] = i << i % 64;
	trace_writer_numbers(w, 1, 1, 4, 5, numbers, 100);
	r = reopen(w);
	CHECK_EQ(strlen(trace_reader_string(r, id)), STRING_BYTES_MAX);
	CHECK_EQ(strlen(trace_reader_meta(r, "long")), STRING_BYTES_MAX);
	CHECK_EQ(trace_reader_symbol(r, frame)->n_levels, SYMBOL_LEVELS_MAX);
	CHECK_EQ(trace_reader_symbol(r, frame)->levels[SYMBOL_LEVELS_MAX - 1].line,
		SYMBOL_LEVELS_MAX + 9);
	c = walk(r, 1, 0, UINT64_MAX);
	CHECK_EQ(trace_cursor_next(c, &record, &err), 1);
	CHECK_EQ(record.payload.n, RECORD_BYTES_MAX);
	CHECK_EQ(trace_cursor_next(c, &record, &err), 1);
	memset(numbers, 0, sizeof(numbers));
	CHECK_EQ(trace_record_numbers(r, &record, numbers, 100, &err), 0);
	CHECK_EQ(numbers[99], (uint64_t)99 << 35);
	CHECK_EQ(trace_cursor_next(c, &record, &err), 1);
	CHECK_EQ(record.minor, RECORD_LOSS_RECORDS);
	CHECK_EQ(trace_cursor_next(c, &record, &err), 0);
	trace_cursor_close(c);
	trace_reader_close(r);
	free(text);
}

static void large_tables(void)
{
	enum { N = 200000 };
	struct trace_writer *w = begin();
	struct trace_reader *r;
	uint32_t stack = 0;
	uint64_t wrong = 0;
	char name[32];

	for (uint32_t i = 1; i <= N; i++) {
		struct trace_frame f = {FRAME_KIND_NATIVE, i & 1, 0, 0, i * 0x123456789abcdefu};
		struct trace_symbol_level level = {0, 0, i, 0};

		snprintf(name, sizeof(name), "name %u", i);
		f.name = level.name = trace_writer_string(w, name);
		stack = trace_writer_stack(w, i % 50 ? stack : 0, trace_writer_frame(w, &f));
		trace_writer_symbol(w, &(struct trace_symbol){i, 0, 1, &level});
	}
	r = reopen(w);
	CHECK_EQ(trace_reader_n_frames(r), N + 1);
	CHECK_EQ(trace_reader_n_stacks(r), N + 1);
	CHECK_EQ(trace_reader_n_strings(r), N + 1);
	for (uint32_t i = 1; i <= N && i < trace_reader_n_frames(r); i++) {
		snprintf(name, sizeof(name), "name %u", i);
		wrong += trace_reader_frame(r, i)->addr != i * 0x123456789abcdefu;
		wrong += trace_reader_frame(r, i)->is_caller != (i & 1);
		wrong += strcmp(trace_reader_string(r, trace_reader_frame(r, i)->name), name) != 0;
		wrong += trace_reader_stack(r, i)->parent != (i % 50 ? i - 1 : 0);
		wrong += trace_reader_symbol(r, i)->levels[0].line != i;
	}
	CHECK_EQ(wrong, 0);
	trace_reader_close(r);
}

static void additions_in_memory(void)
{
	struct trace_writer *w = begin();
	struct trace_symbol_level level = {0, 0, 5, 6};
	struct trace_reader *r;
	uint32_t a, n;

	everything_write(w);
	r = reopen(w);
	n = trace_reader_n_strings(r);
	a = trace_reader_add_string(r, "brand new");
	CHECK_EQ(a, n);
	CHECK_EQ(trace_reader_add_string(r, "brand new"), a);
	CHECK_EQ(trace_reader_add_string(r, "newer"), a + 1);
	CHECK_EQ(trace_reader_add_string(r, ""), 0);
	CHECK_STR(trace_reader_string(r, trace_reader_add_string(r, "main")), "main");
	CHECK_EQ(trace_reader_n_strings(r), n + 2);
	level.name = a;
	trace_reader_set_symbol(r, &(struct trace_symbol){3, 0, 1, &level});
	CHECK_STR(trace_reader_string(r, trace_reader_symbol(r, 3)->levels[0].name), "brand new");
	trace_reader_set_symbol(r, &(struct trace_symbol){3, a, 0, NULL});
	CHECK_EQ(trace_reader_symbol(r, 3)->n_levels, 0);
	CHECK_EQ(trace_reader_symbol(r, 3)->reason, a);
	trace_reader_close(r);
}

static void image_facts_come_back(void)
{
	struct trace_writer *w = begin();
	struct trace_reader *r;
	const struct trace_image_facts *f;
	const struct trace_match *m;

	everything_write_all(w);
	r = reopen(w);
	f = trace_reader_image_facts(r, 1);
	CHECK(f && f->image == 1);
	CHECK_EQ(f ? f->machine : 0, 62);
	CHECK_EQ(f ? f->content_hash : 0, 0x1122334455667788);
	CHECK_EQ(f ? f->n_segments : 0, 2);
	if (f && f->n_segments == 2) {
		CHECK_EQ(f->segments[0].addr, 0x400000);
		CHECK_EQ(f->segments[0].file_bytes, 0x1234);
		CHECK_EQ(f->segments[0].flags, 5);
		CHECK_EQ(f->segments[1].offset, UINT64_MAX);
		CHECK_EQ(f->segments[1].mem_bytes, UINT64_MAX);
		CHECK_EQ(f->segments[1].flags, UINT32_MAX);
	}
	CHECK(!trace_reader_image_facts(r, 0) && !trace_reader_image_facts(r, 2));
	f = trace_reader_image_facts(r, 3);
	CHECK(f && f->machine == UINT16_MAX && f->n_segments == 0);
	m = trace_reader_match(r, 1);
	CHECK_EQ(m ? m->rung : 0, 4);
	CHECK_EQ(m ? m->n_symbols : 0, 5);
	CHECK(m && strstr(trace_reader_string(r, m->reason), "in the catalog"));
	CHECK_STR(m ? trace_reader_string(r, m->catalog_id) : "", "beta(int)");
	CHECK_STR(m ? trace_reader_string(r, m->sources) : "", "alpha()");
	m = trace_reader_match(r, 2);
	CHECK(m && m->rung == 0 && m->n_symbols == UINT64_MAX);
	CHECK(!trace_reader_match(r, 0) && !trace_reader_match(r, 3));
	trace_reader_set_match(
		r, &(struct trace_match){3, 2, trace_reader_add_string(r, "late"), 0, 0, 0});
	m = trace_reader_match(r, 3);
	CHECK_STR(m ? trace_reader_string(r, m->reason) : "", "late");
	trace_reader_close(r);
}

static void functions_come_back(void)
{
	struct trace_writer *w = begin();
	const struct trace_function *f, *again;
	struct trace_reader *r;

	everything_write_all(w);
	r = reopen(w);
	CHECK_EQ(trace_reader_functions(r, 1, &f), 4);
	CHECK_EQ(f[0].start, 0x401000);
	CHECK_EQ(f[0].size, 0x10);
	CHECK_STR(trace_reader_string(r, f[0].name), "beta(int)");
	CHECK_EQ(f[1].start, 0x401010);
	CHECK_STR(trace_reader_string(r, f[1].name), "alpha()");
	CHECK_EQ(f[2].start, 0x401010);
	CHECK_EQ(f[2].size, 0);
	CHECK_EQ(f[3].start, 0x402000);
	CHECK_EQ(f[3].size, UINT64_MAX - 0x402000);
	CHECK_EQ(trace_reader_functions(r, 1, &again), 4);
	CHECK(again == f);
	CHECK_EQ(trace_reader_functions(r, 2, &f), 2);
	CHECK_EQ(f[1].start, UINT64_MAX);
	CHECK_EQ(f[1].name, 0);
	CHECK_EQ(trace_reader_functions(r, 3, &f), 0);
	CHECK_EQ(trace_reader_functions(r, 0, &f), 0);
	CHECK_EQ(trace_reader_n_damaged_functions(r, NULL), 0);
	trace_reader_close(r);
}

/* 300,000 functions of one image and 100,000 spans need several chunks each. */
static void large_image_tables(void)
{
	enum { N_FUNCTIONS = 300000, N_SPANS = 100000, N_IMAGES = 500 };
	struct trace_writer *w = begin();
	struct trace_function *functions = mem_calloc(N_FUNCTIONS, sizeof(*functions));
	struct trace_module_span *spans = mem_calloc(N_SPANS, sizeof(*spans));
	struct trace_segment segments[TRACE_SEGMENTS_MAX + 3] = {{0}};
	const struct trace_function *f;
	const struct trace_module_span *s;
	struct trace_reader *r;
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < TRACE_SEGMENTS_MAX + 3; i++)
		segments[i].addr = (uint64_t)i << 40;
	for (uint32_t i = 1; i <= N_IMAGES; i++) {
		struct trace_image image = {.kind = IMAGE_KIND_ELF, .file_bytes = i};

		CHECK_EQ(trace_writer_image(w, &image), i);
		trace_writer_image_facts(
			w, &(struct trace_image_facts){i, 62, i, TRACE_SEGMENTS_MAX + 3, segments});
	}
	for (uint32_t i = 0; i < N_FUNCTIONS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function %u", i * 7919 % 1000);
		functions[i] =
			(struct trace_function){i * 0x1000000ul, i, trace_writer_string(w, name)};
	}
	for (uint32_t i = 0; i < N_SPANS; i++) {
		uint32_t k = (uint32_t)(i * (uint64_t)7919 % N_SPANS); /* every one, in no order */

		spans[i] = (struct trace_module_span){k / 1000, k / 100, (k % 100) << 12,
			(k % 100 + 1) << 12, k, k + 5, 1 + k % N_IMAGES, k, MODULE_END_EXIT, k & 1,
			k & 2};
	}
	trace_writer_functions(w, 7, functions, N_FUNCTIONS - 10);
	trace_writer_functions(w, 7, functions + N_FUNCTIONS - 10, 10);
	trace_writer_module_spans(w, spans, N_SPANS);
	r = reopen(w);
	CHECK_EQ(trace_reader_functions(r, 7, &f), N_FUNCTIONS);
	for (uint32_t i = 0; i < N_FUNCTIONS && i < trace_reader_functions(r, 7, &f); i++)
		wrong += memcmp(&f[i].start, &functions[i].start, 16) != 0 ||
			 f[i].name != functions[i].name;
	CHECK_EQ(wrong, 0);
	CHECK_EQ(trace_reader_module_spans(r, &s), N_SPANS);
	for (uint32_t k = 0; k < trace_reader_module_spans(r, &s); k++)
		wrong += s[k].from != k || s[k].to != k + 5 || s[k].bias != k ||
			 s[k].pid != k / 1000 || s[k].image != 1 + k % N_IMAGES ||
			 s[k].at_start != (k & 1) || s[k].is_used != !!(k & 2);
	CHECK_EQ(wrong, 0);
	for (uint32_t i = 1; i <= N_IMAGES; i++)
		wrong += trace_reader_image_facts(r, i)->n_segments != TRACE_SEGMENTS_MAX ||
			 trace_reader_image_facts(r, i)->segments[255].addr != (uint64_t)255 << 40;
	CHECK_EQ(wrong, 0);
	trace_reader_close(r);
	free(functions);
	free(spans);
}

static void address_index_comes_back_in_order(void)
{
	static const uint32_t pids[] = {1, 42, 42, 42, UINT32_MAX};
	static const uint64_t froms[] = {7, 0, 60, 90, UINT64_MAX};
	struct trace_writer *w = begin();
	const struct trace_module_span *s;
	struct trace_reader *r;

	everything_write_all(w);
	r = reopen(w);
	CHECK_EQ(trace_reader_module_spans(r, &s), EVERYTHING_N_SPANS);
	for (size_t i = 0; i < EVERYTHING_N_SPANS; i++) {
		CHECK_EQ(s[i].pid, pids[i]);
		CHECK_EQ(s[i].from, froms[i]);
	}
	CHECK_EQ(s[0].start, UINT64_MAX - 1);
	CHECK_EQ(s[0].end, UINT64_MAX);
	CHECK_EQ(s[0].to, 7);
	CHECK_EQ(s[0].bias, 1);
	CHECK_EQ(s[1].process_start, 900);
	CHECK_EQ(s[1].ended, MODULE_END_REUSED);
	CHECK(s[1].at_start && !s[1].is_used);
	CHECK_EQ(s[2].end, 0x7f0000003000);
	CHECK_EQ(s[2].bias, 0x7f0000000000);
	CHECK_EQ(s[2].to, 90);
	CHECK_EQ(s[3].to, UINT64_MAX);
	CHECK_EQ(s[3].image, 3);
	CHECK_EQ(s[3].ended, MODULE_END_NONE);
	CHECK_EQ(s[4].process_start, UINT64_MAX);
	CHECK_EQ(s[4].ended, MODULE_END_SNAPSHOT);
	trace_reader_close(r);
}

/* What has been flushed is there for a reader while the writer goes on. */
static void flushed_is_readable(void)
{
	struct trace_writer *w = begin();
	struct trace_reader *r = NULL;
	struct err err = {0};
	const char *why = NULL;
	uint64_t bytes;

	everything_write(w);
	CHECK_EQ(trace_writer_flush(w, &err), 0);
	bytes = trace_writer_bytes(w);
	CHECK_EQ(trace_writer_flush(w, &err), 0);
	CHECK_EQ(trace_writer_bytes(w), bytes);
	CHECK_EQ(trace_reader_open(&r, path, &err), 0);
	CHECK(trace_reader_is_recovered(r, &why));
	CHECK(why && strstr(why, "without its index after"));
	CHECK_EQ(count(r, TRACE_ALL_STREAMS, 0, UINT64_MAX),
		2 * EVERYTHING_N_CODES + 2 + EVERYTHING_N_SAMPLES);
	trace_reader_close(r);
	trace_reader_close(reopen(w));
}

static void older_file_is_kept(void)
{
	struct trace_writer *w = begin();
	struct trace_reader *r = NULL;
	char old[80], reason[80];
	struct err err = {0};

	trace_writer_meta(w, "which", "first");
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(trace_writer_open(&w, path, &err), 0);
	trace_writer_meta(w, "which", "second");
	r = reopen(w);
	CHECK_STR(trace_reader_meta(r, "which"), "second");
	trace_reader_close(r);
	snprintf(old, sizeof(old), "%s.old", path);
	CHECK_EQ(trace_reader_open(&r, old, &err), 0);
	CHECK_STR(trace_reader_meta(r, "which"), "first");
	trace_reader_close(r);
	unlink(old);
	CHECK_EQ(trace_writer_open(&w, "/dev/null", &err), 0);
	everything_write(w);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK(access("/dev/null.old", F_OK) < 0);
	CHECK(trace_writer_open(&w, "no/such/folder", &err) == ERR_NOT_FOUND);
	snprintf(reason, sizeof(reason), "'no/such/folder': cannot create");
	CHECK(!strncmp(err.text, reason, strlen(reason)));
	CHECK_EQ(trace_writer_close(NULL, &err), 0);
}

/* 200 stacks of 30 frames, sampled 100,000 times at a shaky 1 ms on two CPUs. */
static void samples_are_small(void)
{
	enum { N = 100000, N_STACKS = 200 };
	struct trace_writer *w = begin();
	uint32_t stacks[N_STACKS], metric = trace_writer_metric(w, "cpu", "ns"), threads[8];
	uint64_t random = 88172645463325252u, time = 1000000000000;
	struct stat st;
	struct err err;

	for (uint32_t i = 0; i < 8; i++)
		threads[i] = trace_writer_thread(w, &(struct trace_thread){1000, 1000 + i, 5});
	for (uint32_t i = 0; i < N_STACKS; i++) {
		stacks[i] = 0;
		for (uint64_t k = 0; k < 30; k++) {
			struct trace_frame f = {FRAME_KIND_NATIVE, true, 0, 0,
				0x401000 + (k * 20 + i % (k + 1)) * 0x37};

			stacks[i] = trace_writer_stack(w, stacks[i], trace_writer_frame(w, &f));
		}
	}
	for (uint32_t cpu = 0; cpu < 2; cpu++)
		trace_writer_stream(w, STREAM_KIND_CPU, cpu);
	for (uint64_t i = 0; i < N; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		time += 500000 + random % 20000 - 10000;
		trace_writer_sample(w, 1 + i % 2, time,
			&(struct trace_sample){threads[random >> 20 & 7],
				stacks[(random >> 32) % N_STACKS], metric, 1001001});
	}
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(stat(path, &st), 0);
	printf("%.2f bytes a sample\n", (double)st.st_size / N);
	CHECK(st.st_size <= 8 * N);
	unlink(path);
}

int main(void)
{
	static const struct test tests[] = {
		{"an empty trace opens and has the reserved entries", empty_trace},
		{"the same thing gets the same id", same_thing_same_id},
		{"every table comes back as it was written", tables_come_back},
		{"every record code comes back with its payload", every_code_comes_back},
		{"records of all streams merge by time, ties by stream",
			merge_is_by_time_then_stream},
		{"a range of time gives the records in it", ranges_of_time},
		{"a time that goes back is raised and counted", time_that_goes_back},
		{"times and codes of any size fit", times_of_any_size},
		{"long texts, records and symbols are cut or counted", long_things},
		{"tables larger than a chunk come back", large_tables},
		{"strings and symbols can be added in memory", additions_in_memory},
		{"facts and verdicts of images come back", image_facts_come_back},
		{"function tables come back, from several calls and on demand",
			functions_come_back},
		{"tables of images larger than a chunk come back", large_image_tables},
		{"the address index comes back sorted", address_index_comes_back_in_order},
		{"what was flushed is readable while the writer goes on", flushed_is_readable},
		{"an older file is kept as .old", older_file_is_kept},
		{"a sample takes at most 8 bytes", samples_are_small},
	};

	return RUN_TESTS(tests);
}
