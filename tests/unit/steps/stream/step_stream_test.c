/* SPDX-License-Identifier: MIT */
/*
 * Step streams: made here packet by packet as docs/format/step-stream.md says, imported into a
 * trace in memory, exported again. What was made in the order in which weir writes comes back as it
 * was.
 */
#include "check.h"
#include "step_stream_maker.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "steps/stream/step_stream.h"
#include "trace/reader.h"

static struct err err;

/* ---- to a trace and back ---- */

static int memory_file(void)
{
	int fd = memfd_create("step_stream_test", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

static struct trace_writer *open_writer(int fd)
{
	struct trace_writer *w;

	if (trace_writer_open_fd(&w, dup(fd), "memory", &err) < 0)
		abort();
	return w;
}

/* Closes the file: a mapping of it stays. */
static struct trace_reader *open_reader(int fd)
{
	struct trace_reader *r;
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (trace_reader_open(&r, name, &err) < 0) {
		printf("%s\n", err.text);
		abort();
	}
	close(fd);
	return r;
}

/* NULL when it is refused. */
static struct trace_reader *import(void)
{
	int checked = import_step_stream(buf_span(&stream), "x", NULL, &err), rc, fd;
	struct trace_writer *w;

	if (checked < 0)
		return NULL;
	fd = memory_file();
	w = open_writer(fd);
	rc = import_step_stream(buf_span(&stream), "x", w, &err);
	CHECK_EQ(rc, 0); /* what was checked can be written */
	CHECK_EQ(trace_writer_close(w, &err), 0);
	return open_reader(fd);
}

static void put_mark(struct buf *to, const struct step_mark *m, const struct trace_reader *r)
{
	buf_printf(to, "%d %s", m->kind, trace_reader_string(r, m->text));
}

static struct step_export_result result;

/* The text or stream, to be freed; NULL when that failed. */
static char *export(const struct trace_reader *r, bool as_text, const char *only, size_t *n_bytes)
{
	struct step_export_options options = {.thread = only, .put_mark = put_mark};
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, n_bytes);
	int rc = as_text ? export_step_text(r, &options, out, &result, &err)
			 : export_step_stream(r, &options, out, &result, &err);

	fclose(out);
	if (rc < 0) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

static void check_back(int line)
{
	struct trace_reader *r = import();
	char *bytes;
	size_t n, i;

	if (!r) {
		printf("line %d: refused: %s\n", line, err.text);
		check_failures++;
		return;
	}
	bytes = export(r, false, NULL, &n);
	for (i = 0; i < n && i < stream.n && (uint8_t)bytes[i] == stream.p[i]; i++)
		;
	if (n != stream.n || i != n) {
		printf("line %d: %zu bytes, expected %zu, first difference at %zu\n", line, n,
			stream.n, i);
		check_failures++;
	}
	free(bytes);
	trace_reader_close(r);
}
#define COMES_BACK() check_back(__LINE__)

static void refused(int line, const char *why)
{
	struct trace_reader *r = import();

	if (r || !strstr(err.text, why) || !strstr(err.text, "'x': ")) {
		printf("line %d: '%s' is not refused by '%s'\n", line, why, r ? "" : err.text);
		check_failures++;
	}
	trace_reader_close(r);
}
#define REFUSED(why) refused(__LINE__, why)

/* ---- tests ---- */

static void every_packet_comes_back(void)
{
	begin();
	thread(100, 100, "main");
	at(0, 1000);
	mark(7, 0, 0, 0, "");
	image(1, 1, "/bin/program");
	code((struct code_row){1, 0x401000, 1, 0x1000, 64, "\x31\xed"});
	image(2, 4, "[jit]");
	code((struct code_row){1, 0x7f0000000000, 2, 0x7f0000000000, 64, "\x0f\x05"});
	code((struct code_row){1, 0xffffffffffffff00, 0, 0, 0, NULL});
	STEPS(0, 1, 0, 2);
	mark(1, 39, -38, 1, "");
	mark(3, 0, (int64_t)0xffffffffff600000, 4096, "/lib/x y");
	STEPS(2, 1);
	thread(200, 8, "");
	at(1, 1000);
	code((struct code_row){0, 0, 1, 0, 32, "\x90"});
	STEPS(3);
	at(1, 2000);
	STEPS(3);
	mark(6, 256, 0, 0, "");
	end();
	COMES_BACK();
}

static void overwritten_code_comes_back(void)
{
	begin();
	thread(1, 1, "t");
	at(0, 5);
	nop(0x1000);
	nop(0x1001);
	STEPS(0, 1, 0);
	mark(3, 2, 0x1000, 1, "");
	code((struct code_row){1, 0x1000, 0, 0, 64, "\xf4"});
	STEPS(2, 1);
	mark(3, 2, 0x1000, 1, "");
	STEPS(0, 1); /* as it was before */
	at(0, 6);
	code((struct code_row){2, 0x1000, 0, 0, 64, "\x90"}); /* elsewhere */
	code((struct code_row){1, 0x1000, 0, 0, 32, "\x90"}); /* in another mode */
	STEPS(3, 0, 4, 0);
	end();
	COMES_BACK();
}

static void threads_take_turns(void)
{
	begin();
	thread(9, 10, "a");
	at(0, 1);
	nop(0x10);
	STEPS(0);
	thread(9, 11, "b");
	at(1, 2);
	code((struct code_row){1, 0x10, 0, 0, 64, "\xcc"});
	STEPS(1);
	at(0, 3);
	STEPS(0, 0);
	at(1, 3);
	STEPS(1);
	at(0, 4);
	mark(6, 0, 0, 0, "");
	end();
	COMES_BACK();
}

static void long_rows_are_cut_where_a_packet_is_full(void)
{
	uint32_t *words = mem_calloc(16384, sizeof(*words));
	size_t n = 0;

	begin();
	thread(1, 1, "t");
	at(0, 1);
	for (uint32_t i = 0; i < 3; i++)
		nop(0x1000 + 0x1000 * (uint64_t)i);
	for (uint32_t i = 0; i < 300000; i++) {
		if (n + 3 > 16384) {
			steps(words, n);
			n = 0;
		}
		words[n++] = i % 3;
		if (i % 1000 == 999)
			words[n++] = AGAIN | i;
	}
	steps(words, n);
	end();
	COMES_BACK();
	free(words);
}

static void rounds_have_32_bits(void)
{
	struct trace_reader *r;
	size_t n;
	char *text;

	begin();
	thread(1, 5, "t");
	at(0, 1);
	code((struct code_row){1, 0x10, 0, 0, 64, "\xf3\xa4"});
	STEPS(0, AGAIN | 7, 0, 0, 0xffffffff, AGAIN | 1, 0, 0xffffffff, 0xffffffff);
	end();
	COMES_BACK();
	r = import();
	text = export(r, true, NULL, &n);
	CHECK_STR(text, "5\t0\t0x10\tf3a4\t-\trep movsb\t8\n"
			"5\t1\t0x10\tf3a4\t-\trep movsb\n"
			"5\t2\t0x10\tf3a4\t-\trep movsb\t2147483649\n"
			"5\t3\t0x10\tf3a4\t-\trep movsb\t4294967295\n");
	free(text);
	trace_reader_close(r);
}

static void accesses_stay_with_their_steps(void)
{
	begin();
	thread(1, 1, "t");
	at(0, 1);
	nop(0x10);
	nop(0x11);
	STEPS(0, 1);
	data_access(0x7fff0000, 1, 8, "\1\2\3\4\5\6\7\10");
	data_access(0x7fff0008, 2, 4, NULL);
	STEPS(1);
	data_access(0xffffffffffffffff, 3, 0, "");
	STEPS(0, 0);
	mark(2, 11, 1, 0, "");
	STEPS(0);
	thread(1, 2, "u");
	at(1, 1);
	STEPS(1);
	data_access(0, 1, 64, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	end();
	COMES_BACK();
}

static void many_accesses_come_back(void)
{
	begin();
	thread(1, 1, "t");
	at(0, 1);
	nop(0x10);
	for (uint32_t i = 0; i < 10000; i++) {
		STEPS(0);
		data_access(i, 2, 64,
			"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	}
	end();
	COMES_BACK();
	begin();
	thread(1, 1, "t");
	at(0, 1);
	nop(0x10);
	STEPS(0);
	for (uint32_t i = 0; i < 4096; i++)
		data_access(i, 1, 1, "x");
	end();
	COMES_BACK();
	stream.n -= 40;
	data_access(0, 1, 1, "x");
	end();
	REFUSED("more than 4096");
}

static void code_that_changes_at_every_step_comes_back(void)
{
	begin();
	thread(1, 1, "t");
	at(0, 1);
	code((struct code_row){1, 0x10, 0, 0, 64, "\x90"});
	code((struct code_row){1, 0x10, 0, 0, 64, "\xcc"});
	for (int i = 0; i < 1500; i++) {
		STEPS(0, 1);
		mark(9, i, 0, 0, "");
	}
	end();
	COMES_BACK();
}

static void unknown_packets_are_skipped_and_mentioned(void)
{
	struct trace_record record;
	struct trace_reader *r;
	struct trace_cursor *c;
	struct buf b = {0};
	int n_notes = 0;
	char *bytes;
	size_t n;

	begin();
	buf_put_cstr(&b, "abc");
	packet(99, &b);
	thread(1, 1, "t");
	packet(0, &b);
	at(0, 1);
	nop(0x10);
	STEPS(0);
	packet(0xffffffff, &b);
	data_access(1, 1, 1, "x");
	end();
	buf_release(&b);
	r = import();
	CHECK(r != NULL);
	CHECK_EQ(trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err), 0);
	while (trace_cursor_next(c, &record, &err) > 0)
		n_notes += record.major == RECORD_MAJOR_LOSS && record.minor == RECORD_LOSS_NOTE;
	CHECK_EQ(n_notes, 1);
	trace_cursor_close(c);
	bytes = export(r, false, NULL, &n);
	CHECK_EQ(n, stream.n - 3 * 16);
	free(bytes);
	trace_reader_close(r);
}

static void one_thread_is_exported_when_asked_for(void)
{
	static const char *const names[] = {"11", "9_11", "b"};
	struct trace_reader *r;
	char *text;
	size_t n;

	begin();
	thread(9, 10, "a");
	at(0, 1);
	nop(0x10);
	STEPS(0);
	thread(9, 11, "b");
	at(1, 2);
	nop(0x11);
	STEPS(1, 1);
	at(0, 3);
	STEPS(1);
	end();
	r = import();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		text = export(r, true, names[i], &n);
		CHECK_STR(text, "11\t0\t0x11\t90\t-\tnop\n11\t1\t0x11\t90\t-\tnop\n");
		free(text);
		text = export(r, false, names[i], &n);
		CHECK_EQ(result.n_steps, 2);
		free(text);
	}
	CHECK(!export(r, false, "c", &n));
	CHECK(strstr(err.text, "has no thread 'c'") != NULL);
	CHECK(!export(r, true, "9_12", &n));
	trace_reader_close(r);
}

static void text_has_a_line_a_step(void)
{
	struct trace_reader *r;
	char *text;
	size_t n;

	begin();
	thread(9, 10, "a");
	at(0, 1);
	mark(7, 0, 0, 0, "why\tso\n");
	image(1, 1, "/bin/a\tb");
	code((struct code_row){1, 0x401000, 1, 0x1000, 64, "\x31\xed"});
	code((struct code_row){1, 0x20, 0, 0, 0, NULL});
	code((struct code_row){1, 0x30, 0, 0, 64, "\x06"});
	STEPS(0, 1);
	data_access(0xabc, 3, 2, "\x12\xff");
	data_access(0xabc, 1, 2, NULL);
	STEPS(2);
	end();
	r = import();
	text = export(r, true, NULL, &n);
	CHECK_STR(text, "10\t0\tmark\t7 why?so?\n"
			"10\t0\t0x401000\t31ed\ta?b(+0x1000)\txor %ebp, %ebp\n"
			"10\t1\t0x20\t-\t-\t(code not captured)\n"
			"10\t1\tmodify\t0xabc\t2\t12ff\t-\n"
			"10\t1\tread\t0xabc\t2\t-\t-\n"
			"10\t2\t0x30\t06\t-\t(not an instruction)\n");
	CHECK_EQ(result.n_steps, 3);
	CHECK_EQ(result.n_gaps, 0);
	free(text);
	trace_reader_close(r);
}

/* A trace that no recorder writes: a run that is damaged, code that is missing, data of no step. */
static struct trace_reader *damaged_trace(void)
{
	int fd = memory_file();
	struct trace_writer *w = open_writer(fd);
	uint32_t t = trace_writer_thread(w, &(struct trace_thread){.pid = 1, .tid = 2});
	uint32_t s = trace_writer_stream(w, STREAM_KIND_THREAD, t);
	struct step_run_coder run = {0};
	struct step_datum datum[] = {{.at = 0, .how = 1, .n = 1}, {.at = 1, .how = 1, .n = 1},
		{.at = UINT64_MAX, .how = 1, .n = 1}};
	struct buf b = {0};

	step_run_begin(&run, 0, 3, 0);
	step_run_add(&run, 0x10);
	step_run_add(&run, 0x12);
	step_run_end(&run, &b);
	trace_writer_record(w, s, 1, RECORD_MAJOR_STEP, RECORD_STEP_RUN, b.p, b.n);
	buf_reset(&b);
	step_data_encode(&b, datum, 3);
	trace_writer_record(w, s, 1, RECORD_MAJOR_STEP, RECORD_STEP_DATA, b.p, b.n);
	trace_writer_record(w, s, 2, RECORD_MAJOR_STEP, RECORD_STEP_RUN, "\xff\xff", 2);
	buf_release(&b);
	step_run_release(&run);
	trace_writer_close(w, NULL);
	return open_reader(fd);
}

static void damage_becomes_a_mark(void)
{
	struct trace_reader *r = damaged_trace();
	char *bytes;
	size_t n;

	bytes = export(r, false, NULL, &n);
	CHECK(bytes != NULL);
	CHECK_EQ(result.n_steps, 2);
	CHECK(result.n_gaps >= 2);
	trace_reader_close(r);
	buf_reset(&stream);
	buf_put(&stream, bytes, n);
	free(bytes);
	COMES_BACK();
	r = damaged_trace();
	bytes = export(r, true, NULL, &n);
	CHECK(bytes && strstr(bytes, "2\t0\t0x10\t-\t-\t(code not captured)\n"
				     "2\t0\tread\t0x0\t1\t-\t-\n"));
	CHECK(bytes && strstr(bytes, "\tdamage\t"));
	CHECK(result.n_gaps >= 2);
	free(bytes);
	trace_reader_close(r);
}

static void traces_without_steps_have_nothing_to_export(void)
{
	int fd = memory_file();
	struct trace_writer *w = open_writer(fd);
	struct trace_reader *r;
	size_t n;

	trace_writer_close(w, NULL);
	r = open_reader(fd);
	CHECK(!export(r, false, NULL, &n));
	CHECK(strstr(err.text, "has no steps") != NULL);
	CHECK(!export(r, true, NULL, &n));
	trace_reader_close(r);
}

static void a_stream_without_steps_is_a_trace(void)
{
	struct trace_reader *r;

	begin();
	end();
	r = import();
	CHECK(r != NULL);
	trace_reader_close(r);
}

/* ---- refusals ---- */

/* A good stream of one thread up to its end; `type` and `patch` change one of its packets. */
static void good(void)
{
	begin();
	thread(1, 2, "t");
	at(0, 10);
	image(1, 1, "/x");
	code((struct code_row){1, 0x10, 1, 0x10, 64, "\x90"});
	STEPS(0, 0, AGAIN | 1);
	data_access(0x10, 1, 1, "x");
	mark(1, 1, 2, 0, "");
	at(0, 11);
	end();
}

/* The payload of the n-th packet of a type. */
static uint8_t *payload_of(uint32_t type, unsigned nth)
{
	size_t at_byte = 16;
	uint32_t head[2];

	for (; at_byte < stream.n; at_byte += 8 + ((head[1] + 7) & ~7u)) {
		memcpy(head, stream.p + at_byte, sizeof(head));
		if (head[0] == type && !nth--)
			return stream.p + at_byte + 8;
	}
	abort();
}

static void what_is_not_as_said_is_refused(void)
{
	static const struct {
		uint32_t type;
		unsigned nth, offset;
		uint8_t value;
		const char *why;
	} rows[] = {
		{1, 0, 0, 1, "number is 1, not 0"},
		{1, 0, 12, 1, "number is 0"},
		{1, 0, 24, 0, "zero byte"},
		{1, 0, 25, 1, "not zero"},
		{2, 0, 0, 0, "number is 0, not 1"},
		{2, 0, 4, 0, "no kind 0"},
		{2, 0, 4, 6, "no kind 6"},
		{2, 0, 8, 16, "16 bits"},
		{2, 0, 63, 3, "longer"},
		{2, 0, 64, 33, "longer"},
		{3, 0, 0, 1, "number is 1, not 0"},
		{3, 0, 16, 2, "image 2 is not defined"},
		{3, 0, 16, 0, "image 0 is not defined"},
		{3, 0, 20, 16, "16 bits"},
		{3, 0, 20, 0, "0 bits"},
		{3, 0, 21, 16, "more bytes"},
		{3, 0, 21, 0, "more bytes"},
		{3, 0, 22, 1, "number is 0"},
		{3, 0, 47, 1, "more bytes"},
		{4, 0, 0, 1, "thread 1 is not defined"},
		{4, 0, 4, 1, "not defined"},
		{4, 1, 8, 9, "goes back"},
		{5, 0, 0, 1, "instruction 1 is not defined"},
		{5, 0, 3, 0x80, "middle of a step"},
		{5, 0, 8, 0, "0 more times"},
		{6, 0, 0, 0, "no kind 0"},
		{6, 0, 0, 10, "no kind 10"},
		{6, 0, 4, 1, "no kind"},
		{7, 0, 8, 0, "can be"},
		{7, 0, 8, 4, "can be"},
		{7, 0, 9, 65, "can be"},
		{7, 0, 10, 2, "can be"},
		{7, 0, 15, 1, "can be"},
		{7, 0, 9, 2, "too short"},
		{7, 0, 9, 0, "too long"},
		{8, 0, 0, 9, "totals"},
		{8, 0, 8, 9, "totals"},
		{8, 0, 16, 9, "totals"},
		{8, 0, 24, 9, "totals"},
		{8, 0, 28, 9, "totals"},
	};
	struct trace_reader *r;

	good();
	CHECK((r = import()) != NULL);
	trace_reader_close(r);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		good();
		payload_of(rows[i].type, rows[i].nth)[rows[i].offset] = rows[i].value;
		REFUSED(rows[i].why);
	}
}

static void packets_have_their_place(void)
{
	begin();
	thread(1, 2, "t");
	nop(0x10);
	STEPS(0);
	end();
	REFUSED("its thread is not said");
	begin();
	thread(1, 2, "t");
	mark(6, 0, 0, 0, "");
	end();
	REFUSED("its thread is not said");
	begin();
	thread(1, 2, "t");
	at(0, 1);
	data_access(1, 1, 1, "x");
	end();
	REFUSED("of no step");
	begin();
	thread(1, 2, "t");
	at(0, 1);
	nop(0x10);
	STEPS(0);
	mark(6, 0, 0, 0, "");
	data_access(1, 1, 1, "x");
	end();
	REFUSED("of no step");
	begin();
	thread(1, 2, "t");
	thread(1, 2, "u");
	end();
	REFUSED("there twice");
	begin();
	thread(1, 2, "t");
	at(0, 1);
	steps(NULL, 0);
	end();
	REFUSED("not a row of steps");
}

static void frames_of_packets_are_checked(void)
{
	good();
	stream.p[0] = 'W';
	REFUSED("not a step stream");
	good();
	stream.p[8] = 2;
	REFUSED("version 2");
	good();
	stream.n -= 40;
	REFUSED("has no end");
	good();
	buf_put_u64(&stream, 0);
	REFUSED("follows the end");
	good();
	memset(payload_of(4, 0) - 4, 0xff, 4);
	REFUSED("too many");
	good();
	payload_of(8, 0)[-4] = 40;
	REFUSED("cut off");
	for (size_t n = 0; n < 16; n++) {
		good();
		stream.n = n;
		REFUSED("not a step stream");
	}
	good();
	for (size_t n = stream.n - 1; n > 16; n--) {
		stream.n = n;
		CHECK(!import());
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"a stream with every kind of packet comes back", every_packet_comes_back},
		{"code that is overwritten and restored keeps its numbers",
			overwritten_code_comes_back},
		{"threads that take turns come back in their order", threads_take_turns},
		{"long rows are cut where a packet is full, however records are cut",
			long_rows_are_cut_where_a_packet_is_full},
		{"rounds of string instructions have 32 bits", rounds_have_32_bits},
		{"accesses stay with their steps", accesses_stay_with_their_steps},
		{"many accesses come back, but too many of a step are refused",
			many_accesses_come_back},
		{"code that changes at every step comes back",
			code_that_changes_at_every_step_comes_back},
		{"packets of unknown types are skipped and mentioned",
			unknown_packets_are_skipped_and_mentioned},
		{"one thread is exported when it is asked for",
			one_thread_is_exported_when_asked_for},
		{"text has a line for each step, mark and access", text_has_a_line_a_step},
		{"damage in a trace becomes a mark, and is counted", damage_becomes_a_mark},
		{"a trace without steps has nothing to export",
			traces_without_steps_have_nothing_to_export},
		{"a stream without steps is a trace", a_stream_without_steps_is_a_trace},
		{"whatever is not as the document says is refused with its reason",
			what_is_not_as_said_is_refused},
		{"packets have their place", packets_have_their_place},
		{"heads, lengths and ends are checked", frames_of_packets_are_checked},
	};
	int rc = RUN_TESTS(tests);

	buf_release(&stream);
	return rc;
}
