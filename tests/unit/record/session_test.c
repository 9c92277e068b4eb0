/* SPDX-License-Identifier: MIT */
/* A session that is given records by hand: their order, and what a full ring costs. */
#include "record/session.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "trace/reader.h"

/* In place of libc's, which may be stable or not: sorts right and turns equal ones around. */
void qsort(void *base, size_t n, size_t size, int (*compare)(const void *a, const void *b))
{
	char *v = base, *one = malloc(size);

	for (size_t i = 1; i < n; i++) {
		size_t at = i;

		memcpy(one, v + i * size, size);
		while (at && compare(v + (at - 1) * size, one) >= 0)
			at--;
		memmove(v + (at + 1) * size, v + at * size, (i - at) * size);
		memcpy(v + at * size, one, size);
	}
	free(one);
}

static char path[] = "/tmp/weir-session-XXXXXX";

static struct collected *new_record(enum collected_kind kind, uint64_t time)
{
	struct collected *r = mem_zalloc(sizeof(*r));

	r->kind = kind;
	r->time = time;
	r->pid = r->tid = 7;
	return r;
}

static struct collected *new_name(const char *name, uint64_t time)
{
	struct collected *r = new_record(COLLECTED_COMM, time);

	r->comm.name = name;
	return r;
}

static struct trace_reader *run(struct collected **records, size_t n, struct perf_set *set,
	const struct session_options *options)
{
	struct collected_list list = {.complete_until = UINT64_MAX};
	struct trace_reader *reader = NULL;
	struct trace_writer *w;
	struct session *s;
	struct err err = {0};

	CHECK_EQ(trace_writer_open(&w, path, &err), 0);
	s = session_new(w, set, options);
	for (size_t i = 0; i < n; i++)
		vec_push(&list.items, records[i]);
	session_add(s, &list);
	session_finish(s, 0);
	session_free(s);
	vec_release(&list.items);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	unlink(path);
	return reader;
}

/* The last number of the last record of this code, -1 when there is none. */
static int64_t last_number(struct trace_reader *r, uint32_t major, uint32_t minor, size_t n)
{
	struct trace_record record;
	struct trace_cursor *c;
	uint64_t numbers[8];
	int64_t last = -1;

	CHECK_EQ(trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, NULL), 0);
	while (trace_cursor_next(c, &record, NULL) > 0)
		if (record.major == major && record.minor == minor &&
			trace_record_numbers(r, &record, numbers, n, NULL) == 0)
			last = (int64_t)numbers[n - 1];
	trace_cursor_close(c);
	return last;
}

static void keeps_order_of_arrival(void)
{
	struct collected *records[] = {new_name("first", 5000), new_name("second", 5000),
		new_name("third", 5000), new_name("before", 4000)};
	struct session_options options = {0};
	struct perf_set set = {0};
	struct trace_reader *r = run(records, 4, &set, &options);
	int64_t name = last_number(r, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, 4);

	CHECK(name > 0);
	CHECK_STR(trace_reader_string(r, name > 0 ? (uint32_t)name : 0), "third");
	trace_reader_close(r);
}

static void books(bool has_samples, bool has_kernel, enum record_minor_loss expected)
{
	struct session_options options = {
		.perf = {.events = {{.metric = "samples", .unit = ""}}, .n_events = has_samples}};
	struct collected *lost = new_record(COLLECTED_LOST, 5000);
	struct perf_set set = {0};
	struct trace_reader *r;

	lost->lost.n = 42;
	set.kernel[KERNEL_EVENT_SYS_ENTER].is_on = has_kernel;
	r = run(&lost, 1, &set, &options);
	for (uint32_t minor = RECORD_LOSS_SAMPLES; minor <= RECORD_LOSS_RECORDS; minor++)
		CHECK_EQ(last_number(r, RECORD_MAJOR_LOSS, minor, 1),
			(uint64_t)(minor == (uint32_t)expected ? 42 : -1));
	trace_reader_close(r);
}

static void books_what_was_lost(void)
{
	books(true, false, RECORD_LOSS_SAMPLES);
	books(false, true, RECORD_LOSS_EVENTS);
	books(true, true, RECORD_LOSS_RECORDS);
}

int main(void)
{
	static const struct test tests[] = {
		{"records of one time are taken in the order in which they came",
			keeps_order_of_arrival},
		{"what a full ring lost is booked as what it certainly is", books_what_was_lost},
	};

	close(mkstemp(path));
	return RUN_TESTS(tests);
}
