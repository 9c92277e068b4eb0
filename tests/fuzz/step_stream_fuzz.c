/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a step stream: what is accepted becomes a trace, whose export is accepted, too, and
 * does not change any more. Other bytes are a trace to be exported: what comes out is accepted.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "steps/stream/step_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void put_mark(struct buf *to, const struct step_mark *mark, const struct trace_reader *r)
{
	(void)r;
	buf_printf(to, "%d", mark->kind);
}

static const struct step_export_options options = {.put_mark = put_mark};

/* The stream of a trace; empty when it has none. To be freed. */
static struct span export(const struct trace_reader *r)
{
	struct step_export_result as_text, as_stream;
	char *bytes = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&bytes, &n);
	struct err err;
	int rc = export_step_text(r, &options, out, &as_text, &err);

	fclose(out);
	free(bytes);
	out = open_memstream(&bytes, &n);
	if (export_step_stream(r, &options, out, &as_stream, &err) != rc)
		abort();
	fclose(out);
	if (rc < 0 || as_text.n_steps != as_stream.n_steps) {
		if (rc == 0)
			abort();
		free(bytes);
		return (struct span){NULL, 0};
	}
	return (struct span){(const uint8_t *)bytes, n};
}

/* The stream of the trace of a stream that is accepted. */
static struct span turn(struct span stream)
{
	int fd = memfd_create("step_stream_fuzz", MFD_CLOEXEC);
	struct trace_writer *w;
	struct trace_reader *r;
	struct span back;
	struct err err;
	char name[32];

	if (trace_writer_open_fd(&w, dup(fd), "memory", &err) < 0 ||
		import_step_stream(stream, "stream", w, &err) < 0 ||
		trace_writer_close(w, &err) < 0)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (trace_reader_open(&r, name, &err) < 0)
		abort();
	close(fd);
	back = export(r);
	trace_reader_close(r);
	return back;
}

static void check_stream(struct span stream)
{
	struct span once, twice;

	if (import_step_stream(stream, "stream", NULL, NULL) < 0)
		return;
	once = turn(stream);
	if (!once.p) /* it has no steps */
		return;
	if (import_step_stream(once, "once", NULL, NULL) < 0)
		abort();
	twice = turn(once);
	if (once.n != twice.n || memcmp(once.p, twice.p, once.n))
		abort();
	free((void *)once.p);
	free((void *)twice.p);
}

/* The whole packets of a stream with numbers, fillings and totals put right, so that changes of all
 * else get past the checks of these. */
static void put_right(struct buf *to, struct span from)
{
	uint64_t totals[4] = {0};
	uint32_t numbers[4] = {0, 0, 1, 0}; /* the next one, by type */
	struct cursor c = cursor_of(from);
	uint32_t word = 0;

	buf_put(to, from.p, STEP_STREAM_HEAD_BYTES);
	cursor_skip(&c, STEP_STREAM_HEAD_BYTES);
	for (;;) {
		uint32_t type = cursor_u32(&c), n = cursor_u32(&c);
		struct span payload = cursor_bytes(&c, n);
		size_t at = to->n + 8;

		if (c.failed || n > STEP_STREAM_PAYLOAD_MAX)
			break;
		cursor_skip(&c, -n & 7);
		if (type == STEP_PACKET_END)
			continue;
		buf_put_u32(to, type);
		buf_put_u32(to, n);
		buf_put(to, payload.p, n);
		while (to->n & 7)
			buf_put_u8(to, 0);
		if (type >= STEP_PACKET_THREAD && type <= STEP_PACKET_CODE && n >= 4) {
			memcpy(to->p + at, &numbers[type], 4);
			numbers[type]++;
		}

		for (size_t i = 0; type == STEP_PACKET_STEPS && i + 4 <= n; i += 4) {
			memcpy(&word, to->p + at + i, 4);
			totals[0] += !(word & STEP_WORD_AGAIN);
		}
		totals[1] += type == STEP_PACKET_MARK;
		totals[2] += type == STEP_PACKET_ACCESS;
	}
	totals[3] = numbers[3] | (uint64_t)numbers[1] << 32;
	buf_put_u32(to, STEP_PACKET_END);
	buf_put_u32(to, sizeof(totals));
	buf_put(to, totals, sizeof(totals));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span bytes = {data, n}, stream;
	struct trace_reader *r;

	if (n >= STEP_STREAM_HEAD_BYTES && !memcmp(data, STEP_STREAM_MAGIC, 8)) {
		struct buf right = {0};

		check_stream(bytes);
		put_right(&right, bytes);
		check_stream(buf_span(&right));
		buf_release(&right);
		return 0;
	}
	if (trace_reader_open_bytes(&r, bytes, false, "trace", NULL) < 0)
		return 0;
	stream = export(r);
	trace_reader_close(r);
	if (!stream.p)
		return 0;
	if (import_step_stream(stream, "exported", NULL, NULL) < 0)
		abort();
	free((void *)stream.p);
	return 0;
}
