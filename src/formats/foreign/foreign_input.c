/* SPDX-License-Identifier: MIT */
#include "formats/foreign/foreign_input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#define BLOCK_BYTES	 ((size_t)256 << 10)
#define MAGIC_BYTES	 4
#define ZSTD_WINDOW_LOG	 27 /* a frame that needs more than 128 MiB to unpack is refused */
#define GZIP_WINDOW_BITS (15 + 16)

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

struct foreign_input {
	const char *name, *path;
	int fd;
	struct span bytes;   /* in memory; p NULL: a file */
	uint64_t file_bytes; /* of a regular file */
	bool is_regular;
	uint64_t raw_offset; /* of what is read next, packed */
	enum packing packing;
	z_stream gzip;
	ZSTD_DStream *zstd;
	bool between; /* the last member or frame is complete */
	bool raw_ended, ended;
	struct buf raw;	   /* packed bytes */
	size_t raw_from;   /* first of them that is not used yet */
	struct buf window; /* unpacked bytes */
	size_t from;	   /* first of them that is not taken yet */
	uint64_t offset;   /* of that one */
	uint64_t n_lines, n_cut;
	bool is_line_cut; /* the rest of the last line is still to come */
	struct err failure;
};

static void fail(struct foreign_input *in, int code, const char *what)
{
	if (!in->failure.code)
		err_set(&in->failure, code, "'%s': %s at byte %" PRIu64, in->name, what,
			in->raw_offset);
	in->ended = true;
}

/* What the file has next, at most `n` bytes; fewer at the end alone. */
static size_t read_raw(struct foreign_input *in, uint8_t *to, size_t n)
{
	size_t got = 0;

	if (in->bytes.p) {
		got = in->bytes.n - (size_t)in->raw_offset;
		got = got < n ? got : n;
		memcpy(to, in->bytes.p + in->raw_offset, got);
	}
	while (!in->bytes.p && in->fd >= 0 && got < n) {
		ssize_t k = read(in->fd, to + got, n - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && !in->failure.code)
			err_sys(&in->failure, errno, "'%s': cannot be read", in->name);
		if (k <= 0)
			break;
		got += (size_t)k;
	}
	in->raw_offset += got;
	in->raw_ended = got < n;
	return got;
}

/* More packed bytes, when all are used. */
static void refill_raw(struct foreign_input *in)
{
	if (in->raw_from < in->raw.n || in->raw_ended)
		return;
	buf_reset(&in->raw);
	in->raw_from = 0;
	in->raw.n = read_raw(in, buf_put_zeros(&in->raw, BLOCK_BYTES), BLOCK_BYTES);
}

static size_t unpack_gzip(struct foreign_input *in, uint8_t *to, size_t n)
{
	int rc;

	if (in->between && inflateReset(&in->gzip) != Z_OK)
		fail(in, ERR_FAILED, "cannot be unpacked");
	in->gzip.next_in = in->raw.p + in->raw_from;
	in->gzip.avail_in = (unsigned int)(in->raw.n - in->raw_from);
	in->gzip.next_out = to;
	in->gzip.avail_out = (unsigned int)n;
	rc = inflate(&in->gzip, Z_NO_FLUSH);
	in->between = rc == Z_STREAM_END;
	in->raw_from = in->raw.n - in->gzip.avail_in;
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		fail(in, ERR_FORMAT, "is damaged: what is packed by gzip cannot be unpacked");
	return n - in->gzip.avail_out;
}

static size_t unpack_zstd(struct foreign_input *in, uint8_t *to, size_t n)
{
	ZSTD_inBuffer from = {in->raw.p, in->raw.n, in->raw_from};
	ZSTD_outBuffer into = {to, n, 0};
	size_t rc = ZSTD_decompressStream(in->zstd, &into, &from);

	in->raw_from = from.pos;
	in->between = rc == 0;
	if (ZSTD_isError(rc))
		fail(in, ERR_FORMAT, "is damaged: what is packed by zstd cannot be unpacked");
	return into.pos;
}

static size_t unpack(struct foreign_input *in, uint8_t *to, size_t n)
{
	size_t got = 0, before;

	do {
		refill_raw(in);
		if (in->raw_from == in->raw.n && in->between)
			break;
		before = in->raw_from;
		got = in->packing == PACKING_GZIP ? unpack_gzip(in, to, n) : unpack_zstd(in, to, n);
		if (!got && in->raw_ended && in->raw_from == in->raw.n && !in->between)
			fail(in, ERR_FORMAT, "ends in the midst of what is packed");
		else if (!got && before == in->raw_from && in->raw_from < in->raw.n)
			fail(in, ERR_FORMAT, "is damaged: it cannot be unpacked");
	} while (!got && !in->ended);
	return got;
}

/* One block more in the window, or the end. */
static void grow(struct foreign_input *in)
{
	uint8_t *to;
	size_t got;

	if (in->from) {
		memmove(in->window.p, in->window.p + in->from, in->window.n - in->from);
		in->window.n -= in->from;
		in->from = 0;
	}
	to = buf_put_zeros(&in->window, BLOCK_BYTES);
	got = in->packing == PACKING_NONE ? read_raw(in, to, BLOCK_BYTES)
					  : unpack(in, to, BLOCK_BYTES);
	in->window.n -= BLOCK_BYTES - got;
	in->ended |= !got;
}

static void begin_packing(struct foreign_input *in)
{
	static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
	struct span first = foreign_input_peek(in, MAGIC_BYTES);

	if (first.n >= sizeof(gzip) && !memcmp(first.p, gzip, sizeof(gzip)) &&
		inflateInit2(&in->gzip, GZIP_WINDOW_BITS) == Z_OK)
		in->packing = PACKING_GZIP;
	else if (first.n >= sizeof(zstd) && !memcmp(first.p, zstd, sizeof(zstd)) &&
		 (in->zstd = ZSTD_createDStream()))
		in->packing = PACKING_ZSTD;
	if (in->packing == PACKING_NONE)
		return;
	if (in->zstd)
		ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
	buf_put(&in->raw, in->window.p, in->window.n);
	buf_reset(&in->window);
	in->ended = false;
}

int foreign_input_open(
	struct foreign_input **out, const char *path, const char *name, struct err *err)
{
	struct foreign_input *in = mem_calloc(1, sizeof(*in));
	struct stat st;

	in->name = name;
	in->path = path;
	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0 || fstat(in->fd, &st) < 0) {
		int rc = err_sys(err, errno, "'%s': cannot open", name);

		foreign_input_close(in);
		return rc;
	}
	in->is_regular = S_ISREG(st.st_mode);
	in->file_bytes = in->is_regular ? (uint64_t)st.st_size : 0;
	begin_packing(in);
	*out = in;
	return 0;
}

struct foreign_input *foreign_input_of_bytes(struct span bytes, const char *name)
{
	static const uint8_t nothing[1];
	struct foreign_input *in = mem_calloc(1, sizeof(*in));

	in->name = name;
	in->fd = -1;
	in->bytes = bytes.p ? bytes : (struct span){nothing, 0};
	begin_packing(in);
	return in;
}

static void end_packing(struct foreign_input *in)
{
	if (in->packing == PACKING_GZIP)
		inflateEnd(&in->gzip);
	ZSTD_freeDStream(in->zstd);
	in->zstd = NULL;
	in->gzip = (z_stream){0};
	in->packing = PACKING_NONE;
}

bool foreign_input_restart(struct foreign_input *in)
{
	if (!in->bytes.p && (!in->is_regular || lseek(in->fd, 0, SEEK_SET) != 0))
		return false;
	end_packing(in);
	buf_reset(&in->raw);
	buf_reset(&in->window);
	in->raw_from = in->from = 0;
	in->raw_offset = in->offset = in->n_lines = in->n_cut = 0;
	in->between = in->raw_ended = in->ended = in->is_line_cut = false;
	in->failure = (struct err){0};
	begin_packing(in);
	return true;
}

void foreign_input_close(struct foreign_input *in)
{
	if (!in)
		return;
	end_packing(in);
	fd_cleanup(&in->fd);
	buf_release(&in->raw);
	buf_release(&in->window);
	free(in);
}

const char *foreign_input_name(const struct foreign_input *in)
{
	return in->name;
}

const char *foreign_input_path(const struct foreign_input *in)
{
	return in->path;
}

struct span foreign_input_peek(struct foreign_input *in, size_t n)
{
	size_t there;

	n = n < FOREIGN_PEEK_MAX ? n : FOREIGN_PEEK_MAX;
	while (in->window.n - in->from < n && !in->ended)
		grow(in);
	there = in->window.n - in->from;
	return (struct span){in->window.p + in->from, there < n ? there : n};
}

bool foreign_input_skip(struct foreign_input *in, uint64_t n)
{
	while (n) {
		struct span next =
			foreign_input_peek(in, n < BLOCK_BYTES ? (size_t)n : BLOCK_BYTES);

		if (!next.n)
			return false;
		in->from += next.n;
		in->offset += next.n;
		n -= next.n;
	}
	return true;
}

struct span foreign_input_take(struct foreign_input *in, size_t n)
{
	struct span bytes = foreign_input_peek(in, n);

	in->from += bytes.n;
	in->offset += bytes.n;
	return bytes;
}

/* The rest of a line that is longer than any that is wanted. */
static void skip_line_rest(struct foreign_input *in)
{
	for (;;) {
		struct span next = foreign_input_peek(in, BLOCK_BYTES);
		const uint8_t *end = next.n ? memchr(next.p, '\n', next.n) : NULL;

		foreign_input_take(in, end ? (size_t)(end - next.p) + 1 : next.n);
		if (end || !next.n)
			return;
	}
}

bool foreign_input_line(struct foreign_input *in, struct span *line)
{
	size_t wanted = BLOCK_BYTES, seen = 0;
	const uint8_t *end = NULL;
	struct span all;

	if (in->is_line_cut)
		skip_line_rest(in);
	in->is_line_cut = false;
	for (;;) {
		all = foreign_input_peek(in, wanted);
		end = all.n > seen ? memchr(all.p + seen, '\n', all.n - seen) : NULL;
		seen = all.n;
		if (end || all.n < wanted || wanted > FOREIGN_LINE_MAX)
			break;
		wanted = wanted * 2 < FOREIGN_LINE_MAX ? wanted * 2 : FOREIGN_LINE_MAX + 1;
	}
	if (!all.n)
		return false;
	in->is_line_cut = !end && all.n > FOREIGN_LINE_MAX;
	all.n -= in->is_line_cut;
	in->n_cut += in->is_line_cut;
	in->n_lines++;
	*line = foreign_input_take(in, end ? (size_t)(end - all.p) + 1 : all.n);
	line->n -= end != NULL;
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	return true;
}

uint64_t foreign_input_n_cut(const struct foreign_input *in)
{
	return in->n_cut;
}

uint64_t foreign_input_offset(const struct foreign_input *in)
{
	return in->offset;
}

uint64_t foreign_input_line_number(const struct foreign_input *in)
{
	return in->n_lines;
}

bool foreign_input_is_at_end(struct foreign_input *in)
{
	return !foreign_input_peek(in, 1).n;
}

bool foreign_input_is_seekable(const struct foreign_input *in)
{
	return in->packing == PACKING_NONE && (in->bytes.p || in->is_regular);
}

uint64_t foreign_input_bytes(const struct foreign_input *in)
{
	if (!foreign_input_is_seekable(in))
		return 0;
	return in->bytes.p ? in->bytes.n : in->file_bytes;
}

bool foreign_input_at(struct foreign_input *in, uint64_t offset, void *to, size_t n)
{
	size_t got = 0;

	if (!foreign_input_is_seekable(in) || offset > foreign_input_bytes(in) ||
		n > foreign_input_bytes(in) - offset)
		return false;
	if (in->bytes.p) {
		memcpy(to, in->bytes.p + offset, n);
		return true;
	}
	while (got < n) {
		ssize_t k = pread(in->fd, (uint8_t *)to + got, n - got, (off_t)(offset + got));

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		got += (size_t)k;
	}
	return true;
}

int foreign_input_failure(const struct foreign_input *in, struct err *err)
{
	if (!in->failure.code)
		return 0;
	return err_set(err, in->failure.code, "%s", in->failure.text);
}

int foreign_input_wrong(const struct foreign_input *in, struct err *err, const char *fmt, ...)
{
	char what[400];
	va_list args;

	if (in->failure.code) /* what came of it looked wrong, and this is why */
		return foreign_input_failure(in, err);
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	if (in->n_lines)
		return err_set(
			err, ERR_FORMAT, "'%s':%" PRIu64 ": %s", in->name, in->n_lines, what);
	return err_set(err, ERR_FORMAT, "'%s': %s at byte %" PRIu64, in->name, what, in->offset);
}
