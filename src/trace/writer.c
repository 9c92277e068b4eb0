/* SPDX-License-Identifier: MIT */
/*
 * The file, its chunks and the records. One open chunk a stream; a chunk that is full is packed
 * and appended by one write, after all pending definitions. After the first error nothing is
 * written any more and the file is cut back to its last whole chunk.
 */
#include "trace/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file.h"
#include "base/staged_file.h"
#include "trace/writer_internal.h"

/* Measured on samples and on events: level 3 saves at most 3 % of the bytes and takes 10 to 40 %
 * more time for the whole of writing. */
#define ZSTD_LEVEL	  1 /* while the program runs, speed is what counts */
#define ZSTD_LEVEL_TABLES 9 /* of large tables: function names, at the end */
#define TABLE_BYTES_LARGE (16 << 10)
/* Smaller payloads do not become smaller. */
#define PACK_BYTES_MIN 32
/* A reader that does not read is waited for that long, when all is to end. */
#define STREAM_WAIT_MS	 100
#define STREAM_WAITS_MAX 20

/* In pieces for which there is room, so that no write blocks where signals are not seen. */
static int write_stream(int fd, struct span bytes)
{
	struct pollfd out = {.fd = fd, .events = POLLOUT};
	unsigned n_waits = 0;

	while (bytes.n) {
		size_t n = bytes.n < PIPE_BUF ? bytes.n : PIPE_BUF;

		if (poll(&out, 1, STREAM_WAIT_MS) == 0) {
			n_waits = output_is_given_up() ? n_waits + 1 : 0;
			if (n_waits <= STREAM_WAITS_MAX)
				continue;
			errno = ETIMEDOUT;
			return -1;
		}
		if (fd_write_all(fd, (struct span){bytes.p, n}) < 0)
			return -1;
		bytes.p += n;
		bytes.n -= n;
	}
	return 0;
}

static void append(struct trace_writer *w, const uint8_t *p, size_t n)
{
	struct span bytes = {p, n};

	if (w->failure.code)
		return;
	if ((w->is_stream ? write_stream(w->fd, bytes) : fd_write_all(w->fd, bytes)) == 0) {
		w->n_bytes += n;
		return;
	}
	err_sys(&w->failure, errno, "'%s': cannot write after %" PRIu64 " bytes", w->path,
		w->n_bytes);
	/* Best effort: the reader's scan copes with half a chunk as well. */
	if (w->is_regular && ftruncate(w->fd, (off_t)w->n_bytes) < 0)
		return;
}

/* Packs `raw` behind room for a header in w->packed; returns the packed size, 0 if not smaller. */
static size_t pack(struct trace_writer *w, uint16_t type, struct span raw)
{
	bool is_large = type != CHUNK_TYPE_RECORDS && raw.n >= TABLE_BYTES_LARGE;
	size_t bound = ZSTD_compressBound(raw.n), n;

	if (w->packed.cap < CHUNK_HEADER_BYTES + bound)
		mem_grow((void **)&w->packed.p, &w->packed.cap, CHUNK_HEADER_BYTES + bound, 1);
	if (!w->zstd || raw.n < PACK_BYTES_MIN)
		return 0;
	n = ZSTD_compressCCtx(w->zstd, w->packed.p + CHUNK_HEADER_BYTES, bound, raw.p, raw.n,
		is_large ? ZSTD_LEVEL_TABLES : ZSTD_LEVEL);
	return ZSTD_isError(n) || n >= raw.n ? 0 : n;
}

void writer_append_chunk(struct trace_writer *w, struct chunk_header header, struct span raw)
{
	struct chunk_entry entry = {w->n_bytes, header.type, header.stream, header.count,
		header.first_time, header.last_time};
	size_t n;

	if (w->failure.code)
		return;
	assert(raw.n <= CHUNK_RAW_BYTES_MAX);
	n = pack(w, (uint16_t)header.type, raw);
	header.flags = n ? CHUNK_FLAG_ZSTD : 0;
	if (!n) {
		n = raw.n;
		memcpy(w->packed.p + CHUNK_HEADER_BYTES, raw.p, n);
	}
	header.stored_bytes = (uint32_t)n;
	header.raw_bytes = (uint32_t)raw.n;
	chunk_header_encode(
		w->packed.p, &header, (struct span){w->packed.p + CHUNK_HEADER_BYTES, n});
	append(w, w->packed.p, CHUNK_HEADER_BYTES + n);
	if (header.type != CHUNK_TYPE_INDEX && !w->failure.code)
		vec_push(&w->chunks, entry);
}

static void write_records(struct trace_writer *w, uint32_t stream)
{
	struct open_chunk *o = &w->open.v[stream];

	writer_append_chunk(w,
		(struct chunk_header){.type = CHUNK_TYPE_RECORDS,
			.stream = stream,
			.count = o->count,
			.first_time = o->first_time,
			.last_time = o->last_time},
		buf_span(&o->raw));
	o->count = 0;
	buf_reset(&o->raw);
}

static int tell_failure(const struct trace_writer *w, struct err *err)
{
	return w->failure.code ? err_set(err, w->failure.code, "%s", w->failure.text) : 0;
}

void trace_writer_lead(struct trace_writer *w, uint32_t stream)
{
	w->leading = stream;
}

static void write_leading(struct trace_writer *w)
{
	if (w->leading && w->open.v[w->leading].count)
		write_records(w, w->leading);
}

int trace_writer_flush(struct trace_writer *w, struct err *err)
{
	writer_tables_write(w);
	write_leading(w);
	for (size_t stream = 1; stream < w->open.n; stream++)
		if (w->open.v[stream].count)
			write_records(w, (uint32_t)stream);
	return tell_failure(w, err);
}

uint64_t trace_writer_bytes(const struct trace_writer *w)
{
	return w->n_bytes;
}

static void writer_free(struct trace_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	for (size_t i = 0; i < w->open.n; i++)
		buf_release(&w->open.v[i].raw);
	vec_release(&w->open);
	vec_release(&w->chunks);
	buf_release(&w->packed);
	buf_release(&w->scratch);
	writer_tables_release(&w->tables);
	ZSTD_freeCCtx(w->zstd);
	output_release(&w->output);
	free(w->path);
	free(w);
}

void trace_writer_keep_plain(struct trace_writer *w)
{
	ZSTD_freeCCtx(w->zstd);
	w->zstd = NULL;
}

static int open_writer(
	struct trace_writer **out, int fd, const char *name, bool is_stream, struct err *err)
{
	struct trace_writer *w = mem_zalloc(sizeof(*w));
	uint8_t header[TRACE_HEADER_BYTES];
	struct stat st;
	int rc;

	w->path = mem_strdup(name);
	w->fd = fd;
	w->output = OUTPUT_NONE;
	if (fstat(fd, &st) < 0)
		st.st_mode = 0;
	w->is_stream =
		is_stream || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode);
	w->is_regular = !is_stream && S_ISREG(st.st_mode);
	w->zstd = ZSTD_createCCtx();
	writer_tables_init(&w->tables);
	vec_push(&w->open, (struct open_chunk){0});
	trace_header_encode(header);
	append(w, header, sizeof(header));
	rc = tell_failure(w, err);
	if (rc < 0)
		writer_free(w);
	else
		*out = w;
	return rc;
}

int trace_writer_open_fd(struct trace_writer **out, int fd, const char *name, struct err *err)
{
	return open_writer(out, fd, name, false, err);
}

int trace_writer_open_stream(struct trace_writer **out, int fd, const char *name, struct err *err)
{
	return open_writer(out, fd, name, true, err);
}

int trace_writer_open(struct trace_writer **out, const char *path, struct err *err)
{
	struct output output;
	int fd, rc = output_open(&output, &fd, path, OUTPUT_MODE_OURS, err);

	if (rc < 0)
		return rc;
	rc = trace_writer_open_fd(out, fd, path, err);
	if (rc < 0) {
		output_discard(&output);
		output_release(&output);
	} else {
		(*out)->output = output;
	}
	return rc;
}

static void write_index(struct trace_writer *w)
{
	struct trailer trailer = {.index_offset = w->n_bytes, .n_chunks = (uint32_t)w->chunks.n};
	uint8_t bytes[TRACE_TRAILER_BYTES];
	struct buf *b = &w->scratch;
	uint64_t before = 0;
	uint32_t count = 0;

	buf_reset(b);
	for (size_t i = 0; i < w->chunks.n; i++) {
		const struct chunk_entry *e = &w->chunks.v[i];

		buf_put_ulebs(b, e->offset - before, e->type, e->stream, e->count, e->first_time,
			e->last_time - e->first_time);
		before = e->offset;
		count++;
		if (i + 1 == w->chunks.n || b->n >= INDEX_CUT_BYTES) {
			writer_append_chunk(w,
				(struct chunk_header){.type = CHUNK_TYPE_INDEX, .count = count},
				buf_span(b));
			buf_reset(b);
			count = 0;
		}
	}
	trailer_encode(bytes, &trailer);
	append(w, bytes, sizeof(bytes));
}

/* What the streams have to say about themselves at the end. */
static void write_notes(struct trace_writer *w)
{
	for (size_t i = 1; i < w->open.n; i++) {
		struct open_chunk o = w->open.v[i];

		if (o.n_clamped)
			trace_writer_loss(w, (uint32_t)i, o.last_time, RECORD_LOSS_NOTE,
				o.n_clamped,
				"time stamps that went back were raised to the one before");
		if (o.n_too_long)
			trace_writer_loss(w, (uint32_t)i, o.last_time, RECORD_LOSS_RECORDS,
				o.n_too_long, "record longer than 1 MiB");
	}
}

/* The first n bytes of `from`, from its beginning to where `to` stands. */
static int copy_bytes(int from, int to, uint64_t n)
{
	uint8_t block[64 << 10];
	off_t at = 0;

	while ((uint64_t)at < n) {
		size_t want = n - (uint64_t)at < sizeof(block) ? (size_t)(n - (uint64_t)at)
							       : sizeof(block);
		ssize_t k = pread(from, block, want, at);

		if (k <= 0 || write(to, block, (size_t)k) != k)
			return errno ? errno : EIO;
		at += k;
	}
	return 0;
}

/* A writer of another file with the same chunks: it borrows everything and adds the end. */
static int write_copy(struct trace_writer *w, int to, const char *path, struct err *err)
{
	struct trace_writer copy = *w;
	char source[32];
	FD_AUTO from = -1;
	int errnum;

	snprintf(source, sizeof(source), "/proc/self/fd/%d", w->fd);
	from = open(source, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return err_sys(err, errno, "'%s': cannot read what was written", w->path);
	copy.path = (char *)(uintptr_t)path;
	copy.fd = to;
	errno = 0;
	errnum = copy_bytes(from, copy.fd, w->n_bytes);
	if (errnum)
		err_sys(&copy.failure, errnum, "'%s': cannot write", path);
	write_index(&copy);
	w->packed = copy.packed; /* may have grown */
	w->scratch = copy.scratch;
	return tell_failure(&copy, err);
}

/* What the file had at one moment, everything being flushed. */
struct mark {
	uint64_t n_bytes;
	size_t n_chunks, n_streams;
	uint32_t n_written[CHUNK_N_TYPES];
	struct open_chunk *open; /* their times */
};

static struct mark set_mark(const struct trace_writer *w)
{
	struct mark m = {.n_bytes = w->n_bytes,
		.n_chunks = w->chunks.n,
		.n_streams = w->open.n,
		.open = mem_dup(w->open.v, w->open.n * sizeof(*w->open.v))};

	memcpy(m.n_written, w->tables.n_written, sizeof(m.n_written));
	return m;
}

/* Takes away what was written since; definitions are written again when they are needed. A file
 * that cannot be cut keeps it: it is true, only more than was asked for. */
static void return_to_mark(struct trace_writer *w, struct mark *m)
{
	if (!w->failure.code && ftruncate(w->fd, (off_t)m->n_bytes) == 0 &&
		lseek(w->fd, (off_t)m->n_bytes, SEEK_SET) >= 0) {
		w->n_bytes = m->n_bytes;
		w->chunks.n = m->n_chunks;
		memcpy(w->tables.n_written, m->n_written, sizeof(m->n_written));
		for (size_t i = 0; i < w->open.n; i++) {
			struct open_chunk *o = &w->open.v[i];
			const struct open_chunk *before = i < m->n_streams ? &m->open[i] : NULL;

			o->last_time = before ? before->last_time : 0;
			o->n_clamped = before ? before->n_clamped : 0;
			o->n_too_long = before ? before->n_too_long : 0;
		}
	}
	free(m->open);
}

int trace_writer_copy(struct trace_writer *w, const char *path, void (*add)(void *ctx), void *ctx,
	struct err *err)
{
	int rc = trace_writer_flush(w, err);
	struct staged_file file;
	struct mark mark;

	if (rc < 0)
		return rc;
	if (!w->is_regular)
		return err_set(
			err, ERR_UNSUPPORTED, "'%s': is not a file, so it has no copy", w->path);
	rc = staged_file_open(&file, path, 0666, err);
	if (rc < 0)
		return rc;
	mark = set_mark(w);
	if (add)
		add(ctx);
	rc = trace_writer_flush(w, err);
	if (rc == 0)
		rc = write_copy(w, file.fd, path, err);
	return_to_mark(w, &mark);
	if (rc == 0)
		rc = staged_file_put(&file, path, false, err);
	staged_file_close(&file);
	return rc;
}

int trace_writer_close(struct trace_writer *w, struct err *err)
{
	int rc;

	if (!w)
		return 0;
	write_notes(w);
	trace_writer_flush(w, NULL);
	write_index(w);
	if (close(w->fd) < 0 && !w->failure.code) /* NFS and quotas speak up only here */
		err_sys(&w->failure, errno, "'%s': cannot close", w->path);
	w->fd = -1;
	rc = tell_failure(w, err);
	writer_free(w);
	return rc;
}

void trace_writer_discard(struct trace_writer *w)
{
	if (!w)
		return;
	output_discard(&w->output);
	writer_free(w);
}

int trace_writer_settle(struct trace_writer *w, int rc, struct err *err)
{
	struct output output = w->output;

	w->output = OUTPUT_NONE;
	if (rc < 0)
		writer_free(w);
	else
		rc = trace_writer_close(w, err);
	if (rc < 0)
		output_discard(&output);
	output_release(&output);
	return rc;
}

/* The time that the record gets: time does not go back in a stream. */
static inline uint64_t begin_record(struct open_chunk *o, uint64_t time)
{
	if (time < o->last_time) {
		time = o->last_time;
		o->n_clamped++;
	}
	if (!o->count)
		o->first_time = o->last_time = time;
	return time;
}

static inline void end_record(struct trace_writer *w, uint32_t stream, uint64_t time)
{
	struct open_chunk *o = &w->open.v[stream];

	o->last_time = time;
	o->count++;
	if (o->raw.n >= RECORDS_CUT_BYTES) {
		writer_tables_write(w);
		write_leading(w);
		if (o->count)
			write_records(w, stream);
	}
}

void trace_writer_record(struct trace_writer *w, uint32_t stream, uint64_t time, uint32_t major,
	uint32_t minor, const void *payload, size_t n)
{
	uint8_t head[3 * ULEB_BYTES_MAX], *p = head;
	struct open_chunk *o;

	assert(stream > 0 && stream < w->open.n);
	if (w->failure.code)
		return;
	o = &w->open.v[stream];
	if (n > RECORD_BYTES_MAX) {
		o->n_too_long++;
		return;
	}
	time = begin_record(o, time);
	p = uleb_put(p, writer_tables_kind(&w->tables, major, minor));
	p = uleb_put(p, n);
	p = uleb_put(p, time - o->last_time);
	buf_put(&o->raw, head, (size_t)(p - head));
	buf_put(&o->raw, payload, n);
	end_record(w, stream, time);
}

uint64_t trace_writer_stream_time(const struct trace_writer *w, uint32_t stream)
{
	return w->open.v[stream].last_time;
}

void trace_writer_routine(
	struct trace_writer *w, uint32_t stream, uint64_t time, uint32_t frame, bool is_left)
{
	struct open_chunk *o = &w->open.v[stream];
	uint8_t *start, *p, *length, *payload;

	if (w->failure.code)
		return;
	if (!w->routine_kinds[is_left])
		w->routine_kinds[is_left] = writer_tables_kind(&w->tables, RECORD_MAJOR_ROUTINE,
			RECORD_ROUTINE_ENTER | (is_left ? RECORD_MINOR_EXIT : 0));
	time = begin_record(o, time);
	if (o->raw.cap - o->raw.n < 4 * ULEB_BYTES_MAX)
		mem_grow((void **)&o->raw.p, &o->raw.cap, o->raw.n + 4 * ULEB_BYTES_MAX, 1);
	start = o->raw.p + o->raw.n;
	length = uleb_put(start, w->routine_kinds[is_left]);
	p = uleb_put(length + 1, time - o->last_time);
	payload = p;
	p = uleb_put(p, frame);
	*length = (uint8_t)(p - payload); /* an uleb of one byte: a frame has at most five */
	o->raw.n += (size_t)(p - start);
	end_record(w, stream, time);
}

void trace_writer_numbers(struct trace_writer *w, uint32_t stream, uint64_t time, uint32_t major,
	uint32_t minor, const uint64_t *numbers, size_t n)
{
	uint8_t few[16 * ULEB_BYTES_MAX], *p = few;

	if (n <= 16) {
		for (size_t i = 0; i < n; i++)
			p = uleb_put(p, numbers[i]);
		trace_writer_record(w, stream, time, major, minor, few, (size_t)(p - few));
		return;
	}
	buf_reset(&w->scratch);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(&w->scratch, numbers[i]);
	trace_writer_record(w, stream, time, major, minor, w->scratch.p, w->scratch.n);
}

void trace_writer_sample(
	struct trace_writer *w, uint32_t stream, uint64_t time, const struct trace_sample *sample)
{
	const uint64_t numbers[] = {sample->thread, sample->stack, sample->metric, sample->weight};

	assert(sample->thread < w->tables.threads.n && sample->stack < w->tables.stacks.n &&
		sample->metric < w->tables.metrics.n);
	trace_writer_numbers(w, stream, time, RECORD_MAJOR_STACK_SAMPLE, RECORD_MINOR_STACK,
		numbers, sizeof(numbers) / sizeof(numbers[0]));
}

void trace_writer_loss(struct trace_writer *w, uint32_t stream, uint64_t time,
	enum record_minor_loss what, uint64_t count, const char *reason)
{
	const uint64_t numbers[] = {count, trace_writer_string(w, reason)};

	trace_writer_numbers(w, stream, time, RECORD_MAJOR_LOSS, what, numbers,
		sizeof(numbers) / sizeof(numbers[0]));
}
