/* SPDX-License-Identifier: MIT */
/*
 * Opens a trace: header, then the list of chunks from the index or from a scan, then the
 * definitions. After that the reader does not change, but for what is added in memory and for
 * function tables, which are decoded when they are first asked for.
 */
#include "trace/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "trace/reader_internal.h"

/* The first bytes of a file that is something else, for people. */
static int not_a_trace(const struct trace_reader *r, struct err *err)
{
	struct buf hex = {0};
	int rc;

	for (size_t i = 0; i < r->bytes.n && i < 4; i++)
		buf_printf(&hex, " %02x", r->bytes.p[i]);
	rc = err_set(err, ERR_FORMAT, "'%s': is not a weir trace (first bytes are%s)", r->name,
		buf_text(&hex));
	buf_release(&hex);
	return rc;
}

static int check_header(const struct trace_reader *r, struct err *err)
{
	size_t n = r->bytes.n;
	struct cursor c;
	uint16_t major;

	if (!n)
		return err_set(
			err, ERR_FORMAT, "'%s': is not a weir trace (the file is empty)", r->name);
	if (memcmp(r->bytes.p, TRACE_MAGIC, n < TRACE_MAGIC_BYTES ? n : TRACE_MAGIC_BYTES))
		return not_a_trace(r, err);
	if (n < TRACE_HEADER_BYTES)
		return err_set(err, ERR_FORMAT,
			"'%s': the header of this weir trace is cut off after %zu bytes", r->name,
			n);
	c = cursor_of(r->bytes);
	cursor_skip(&c, TRACE_MAGIC_BYTES);
	major = cursor_u16(&c);
	if (major != TRACE_VERSION_MAJOR)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s': has format version %u, this weir reads version %u only", r->name,
			major, TRACE_VERSION_MAJOR);
	return 0;
}

/* One INDEX chunk; *offset is that of the chunk in the entry before. */
static bool add_index_entries(
	struct trace_reader *r, const struct chunk_view *view, uint64_t *offset)
{
	struct cursor c = cursor_of(view->raw);

	for (uint32_t i = 0; i < view->header.count; i++) {
		uint64_t step = cursor_uleb(&c), type = cursor_uleb(&c), stream = cursor_uleb(&c);
		uint64_t count = cursor_uleb(&c), first = cursor_uleb(&c), span = cursor_uleb(&c);
		struct chunk_entry e;

		if (c.failed || type > UINT16_MAX || stream > UINT32_MAX || count > UINT32_MAX ||
			span > UINT64_MAX - first)
			return false;
		if (r->chunks.n ? step < CHUNK_HEADER_BYTES : step != TRACE_HEADER_BYTES)
			return false;
		if (step > r->bytes.n - *offset)
			return false;
		*offset += step;
		e = (struct chunk_entry){*offset, (uint32_t)type, (uint32_t)stream, (uint32_t)count,
			first, first + span};
		vec_push(&r->chunks, e);
	}
	return c.p == c.end;
}

/* Takes the chunk list from the index; false when there is none or it does not check. */
static bool read_index(struct trace_reader *r, ZSTD_DCtx *zstd, struct buf *unpacked)
{
	uint64_t at, offset = 0, end;
	struct chunk_view view = {0};
	struct trailer trailer;

	if (r->bytes.n < TRACE_HEADER_BYTES + TRACE_TRAILER_BYTES)
		return false;
	end = r->bytes.n - TRACE_TRAILER_BYTES;
	if (!trailer_decode(&trailer, r->bytes.p + end, r->check_crc))
		return false;
	if (trailer.index_offset < TRACE_HEADER_BYTES || trailer.index_offset > end)
		return false;
	for (at = trailer.index_offset; at < end;
		at += CHUNK_HEADER_BYTES + view.header.stored_bytes) {
		if (chunk_load(r, at, end, zstd, unpacked, &view, NULL) < 0 ||
			view.header.type != CHUNK_TYPE_INDEX ||
			!add_index_entries(r, &view, &offset))
			return false;
	}
	r->chunks_end = trailer.index_offset;
	return r->chunks.n == trailer.n_chunks &&
	       (r->chunks.n ? offset + CHUNK_HEADER_BYTES <= r->chunks_end
			    : r->chunks_end == TRACE_HEADER_BYTES);
}

/* Finds the chunks one after another; true when it came as far as an INDEX chunk. */
static bool scan_chunks(struct trace_reader *r)
{
	struct chunk_view view = {0};
	struct span stored;

	r->chunks.n = 0;
	r->chunks_end = TRACE_HEADER_BYTES;
	while (chunk_check(r, r->chunks_end, r->bytes.n, &view, &stored, NULL) == 0) {
		const struct chunk_header *h = &view.header;

		if (h->type == CHUNK_TYPE_INDEX) /* nothing but a trailer stands behind it */
			return true;
		vec_push(&r->chunks, ((struct chunk_entry){r->chunks_end, h->type, h->stream,
					     h->count, h->first_time, h->last_time}));
		r->chunks_end += CHUNK_HEADER_BYTES + stored.n;
	}
	return false;
}

/* The list of chunks without an index, and in r->recovered how far that went. */
static void recover(struct trace_reader *r)
{
	bool has_index = scan_chunks(r);
	uint64_t left = r->bytes.n - r->chunks_end;
	struct buf why = {0};

	if (has_index)
		buf_printf(&why,
			"the end of the file is damaged; a scan found its %zu chunks (%" PRIu64
			" bytes)",
			r->chunks.n, r->chunks_end);
	else
		buf_printf(&why,
			"the recording ended without its index after %zu chunks (%" PRIu64
			" bytes)",
			r->chunks.n, r->chunks_end);
	if (left && !has_index)
		buf_printf(&why, "; the %" PRIu64 " bytes that follow are not readable", left);
	if (file_map_is_cut(&r->map))
		buf_put_cstr(&why, "; the file " FILE_CUT_REASON);
	r->recovered = mem_strdup(buf_text(&why));
	buf_release(&why);
}

/* RECORDS chunk `i` belongs to a stream that is defined, and its times make sense. */
static int check_records_entry(const struct trace_reader *r, size_t i, struct err *err)
{
	const struct chunk_entry *e = &r->chunks.v[i];
	struct chunk_view view = {.offset = e->offset, .listed_type = CHUNK_TYPE_RECORDS};

	if (!e->stream || e->stream >= r->streams.n)
		return chunk_error(r, &view, err, "stream %u is not defined", e->stream);
	if (e->last_time < e->first_time)
		return chunk_error(r, &view, err, "its last time is before its first");
	return 0;
}

/* False: the definition of its stream is damaged, so nobody knows whose records these are. */
static bool is_placed(const struct trace_reader *r, const struct chunk_entry *e)
{
	return r->streams.v[e->stream].kind != 0;
}

/* Lists the record chunks of each stream. */
static int sort_by_stream(struct trace_reader *r, struct err *err)
{
	uint32_t *first = mem_calloc(r->streams.n + 1, sizeof(*first)), *next;
	int rc = 0;

	r->stream_first = first;
	for (size_t i = 0; i < r->chunks.n; i++) {
		if (r->chunks.v[i].type != CHUNK_TYPE_RECORDS)
			continue;
		rc = check_records_entry(r, i, err);
		if (rc < 0)
			return rc;
		if (!is_placed(r, &r->chunks.v[i]))
			r->n_unplaced += r->chunks.v[i].count;
		else
			first[r->chunks.v[i].stream + 1]++;
	}
	for (size_t s = 0; s < r->streams.n; s++)
		first[s + 1] += first[s];
	r->stream_chunks = mem_calloc(first[r->streams.n], sizeof(*r->stream_chunks));
	next = mem_dup(first, r->streams.n * sizeof(*first));
	for (size_t i = 0; i < r->chunks.n && rc == 0; i++) {
		const struct chunk_entry *e = &r->chunks.v[i];
		struct chunk_view view = {.offset = e->offset, .listed_type = CHUNK_TYPE_RECORDS};
		uint32_t *at = &next[e->type == CHUNK_TYPE_RECORDS ? e->stream : 0];

		if (e->type != CHUNK_TYPE_RECORDS || !is_placed(r, e))
			continue;
		if (*at > first[e->stream] &&
			r->chunks.v[r->stream_chunks[*at - 1]].last_time > e->first_time)
			rc = chunk_error(r, &view, err, "time goes back in stream %u", e->stream);
		r->stream_chunks[(*at)++] = (uint32_t)i;
	}
	free(next);
	return rc;
}

static int read_tables(
	struct trace_reader *r, ZSTD_DCtx *zstd, struct buf *unpacked, struct err *err)
{
	for (size_t i = 0; i < r->chunks.n; i++) {
		uint32_t type = r->chunks.v[i].type;
		struct chunk_view view = {0};
		size_t n_before = reader_tables_n(r, type);
		struct err why = {0};
		int rc;

		if (type == CHUNK_TYPE_RECORDS)
			continue;
		if (type == 0 || type >= CHUNK_N_TYPES) {
			r->n_unknown_chunks++;
			continue;
		}
		if (type == CHUNK_TYPE_FUNCTIONS) {
			rc = reader_add_function_chunk(r, i, &why);
		} else {
			rc = chunk_load_listed(r, i, zstd, unpacked, &view, &why);
			if (rc == 0)
				rc = reader_tables_add(r, &view, &why);
		}
		if (rc < 0 && reader_tables_stand_in(r, &r->chunks.v[i], n_before, &why) < 0)
			return err_set(err, rc, "%s", why.text);
	}
	reader_images_finish(r);
	reader_tables_finish(r);
	return sort_by_stream(r, err);
}

static int read_trace(struct trace_reader *r, struct err *err)
{
	ZSTD_DCtx *zstd;
	struct buf unpacked = {0};
	int rc = check_header(r, err);

	if (rc < 0)
		return rc;
	zstd = ZSTD_createDCtx();
	if (!zstd)
		return err_set(err, ERR_FAILED, "'%s': not enough memory to unpack", r->name);
	reader_tables_init(r);
	if (!read_index(r, zstd, &unpacked))
		recover(r);
	rc = read_tables(r, zstd, &unpacked, err);
	buf_release(&unpacked);
	ZSTD_freeDCtx(zstd);
	return rc;
}

/* Takes `r` over, whose bytes are there. */
static int finish_open(
	struct trace_reader **out, struct trace_reader *r, const char *name, struct err *err)
{
	int rc;

	r->name = mem_strdup(name);
	rc = read_trace(r, err);
	if (rc < 0)
		trace_reader_close(r);
	else
		*out = r;
	return rc;
}

int trace_reader_open_bytes(struct trace_reader **out, struct span bytes, bool check_crc,
	const char *name, struct err *err)
{
	struct trace_reader *r = mem_zalloc(sizeof(*r));

	r->bytes = bytes;
	r->check_crc = check_crc;
	return finish_open(out, r, name, err);
}

int trace_reader_open(struct trace_reader **out, const char *path, struct err *err)
{
	struct trace_reader *r = mem_zalloc(sizeof(*r));
	int rc = file_map_open(&r->map, path, err);

	if (rc < 0) {
		free(r);
		return rc;
	}
	r->bytes = r->map.bytes;
	r->check_crc = true;
	return finish_open(out, r, path, err);
}

void trace_reader_close(struct trace_reader *r)
{
	if (!r)
		return;
	reader_tables_release(r);
	vec_release(&r->chunks);
	free(r->stream_first);
	free(r->stream_chunks);
	free(r->recovered);
	free(r->name);
	if (r->map.bytes.p)
		file_map_release(&r->map);
	free(r);
}

void trace_reader_set_name(struct trace_reader *r, const char *name)
{
	char *copy = mem_strdup(name);

	free(r->name);
	r->name = copy;
}

const char *trace_reader_name(const struct trace_reader *r)
{
	return r->name;
}

bool trace_reader_is_recovered(const struct trace_reader *r, const char **why)
{
	if (why)
		*why = r->recovered;
	return r->recovered != NULL;
}

uint32_t trace_reader_n_unknown_chunks(const struct trace_reader *r)
{
	return r->n_unknown_chunks;
}

bool trace_reader_stream_times(
	const struct trace_reader *r, uint32_t stream, uint64_t *first, uint64_t *last)
{
	uint32_t begin = r->stream_first[stream], end = r->stream_first[stream + 1];

	if (begin == end)
		return false;
	*first = r->chunks.v[r->stream_chunks[begin]].first_time;
	*last = r->chunks.v[r->stream_chunks[end - 1]].last_time;
	return true;
}

uint64_t trace_reader_start(const struct trace_reader *r)
{
	uint64_t start = UINT64_MAX, first, last;

	for (uint32_t stream = 1; stream < trace_reader_n_streams(r); stream++)
		if (trace_reader_stream_times(r, stream, &first, &last) && first < start)
			start = first;
	return start == UINT64_MAX ? 0 : start;
}

uint64_t trace_reader_stream_records(const struct trace_reader *r, uint32_t stream)
{
	uint64_t n = 0;

	for (uint32_t i = r->stream_first[stream]; i < r->stream_first[stream + 1]; i++)
		n += r->chunks.v[r->stream_chunks[i]].count;
	return n;
}

uint64_t trace_reader_n_records(const struct trace_reader *r)
{
	uint64_t n = 0;

	for (uint32_t stream = 1; stream < r->streams.n; stream++)
		n += trace_reader_stream_records(r, stream);
	return n;
}
