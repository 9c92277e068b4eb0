/* SPDX-License-Identifier: MIT */
/*
 * Walks records in order of time. Each stream is a run of chunks with a place in it; a small heap
 * orders the streams by the time of their next record, ties by stream id.
 *
 * Invariants:
 * 1. A stream waits in the heap with the time of its next record or, while its next chunk is not
 *    unpacked, with that chunk's first time, which is a lower bound. So a chunk is unpacked only
 *    when the walk gets there.
 * 2. The record handed out last is that of the heap's top, which moves on at the next call: until
 *    then its payload stays where it is.
 * 3. A chunk that turns out to be damaged is dropped with one error; the stream goes on behind it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

#include "trace/reader_internal.h"

struct stream_walk {
	uint32_t stream;
	uint32_t next_i, end_i; /* chunks still to come, in reader->stream_chunks */
	bool is_loaded;		/* a chunk is unpacked and has a current record */
	uint64_t time;		/* of the current record, or the lower bound */
	struct chunk_view view;
	struct buf unpacked;
	const uint8_t *p, *end; /* behind the current record, end of the payload */
	uint32_t n_left;	/* records behind the current one */
	uint32_t kind;
	struct span payload;
};

struct trace_cursor {
	const struct trace_reader *r;
	uint64_t from, to;
	struct stream_walk *walks;
	struct stream_walk **heap;
	size_t n_walks, n_heap;
	bool is_used; /* the top's record was handed out */
	ZSTD_DCtx *zstd;
};

static bool is_before(const struct stream_walk *a, const struct stream_walk *b)
{
	return a->time != b->time ? a->time < b->time : a->stream < b->stream;
}

static void sift_down(struct trace_cursor *c, size_t i)
{
	struct stream_walk *moving = c->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= c->n_heap)
			break;
		if (child + 1 < c->n_heap && is_before(c->heap[child + 1], c->heap[child]))
			child++;
		if (!is_before(c->heap[child], moving))
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = moving;
}

static void drop_top(struct trace_cursor *c)
{
	buf_release(&c->heap[0]->unpacked);
	c->heap[0] = c->heap[--c->n_heap];
	if (c->n_heap)
		sift_down(c, 0);
}

int record_head_decode(const struct trace_reader *r, const struct chunk_view *view,
	const uint8_t *p, const uint8_t *end, uint64_t before, uint32_t i, struct record_head *head,
	struct err *err)
{
	uint64_t kind, n, delta;

	p = uleb_get(p, end, &kind);
	p = p ? uleb_get(p, end, &n) : NULL;
	p = p ? uleb_get(p, end, &delta) : NULL;
	if (!p || n > (uint64_t)(end - p))
		return chunk_error(r, view, err, "record %u: is cut off", i);
	if (!kind || kind >= r->kinds.n)
		return chunk_error(r, view, err, "record %u: its kind is not defined", i);
	if (n > RECORD_BYTES_MAX)
		return chunk_error(r, view, err, "record %u: is too long", i);
	if (delta > view->header.last_time - before)
		return chunk_error(r, view, err, "record %u: is later than the last", i);
	*head = (struct record_head){(uint32_t)kind, before + delta, {p, (size_t)n}};
	return 0;
}

/* Decodes the record at s->p; the chunk must have one left. */
static int next_record(const struct trace_reader *r, struct stream_walk *s, struct err *err)
{
	const uint32_t i = s->view.header.count - s->n_left;
	struct record_head head;
	int rc = record_head_decode(r, &s->view, s->p, s->end, s->time, i, &head, err);

	if (rc < 0)
		return rc;
	s->kind = head.kind;
	s->time = head.time;
	s->payload = head.payload;
	s->p = head.payload.p + head.payload.n;
	s->n_left--;
	if (!s->n_left && (s->p != s->end || s->time != s->view.header.last_time))
		return chunk_error(r, &s->view, err, "its end is not where its header says");
	return 0;
}

/* Moves the stream to its next chunk, not yet unpacked; false when there is none in range. */
static bool next_chunk(struct trace_cursor *c, struct stream_walk *s)
{
	s->is_loaded = false;
	for (; s->next_i < s->end_i; s->next_i++) {
		const struct chunk_entry *e = &c->r->chunks.v[c->r->stream_chunks[s->next_i]];

		if (e->last_time < c->from)
			continue;
		if (e->first_time >= c->to)
			return false;
		s->time = e->first_time;
		return true;
	}
	return false;
}

static int load_chunk(struct trace_cursor *c, struct stream_walk *s, struct err *err)
{
	size_t chunk_i = c->r->stream_chunks[s->next_i++];
	int rc = chunk_load_listed(c->r, chunk_i, c->zstd, &s->unpacked, &s->view, err);

	if (rc < 0)
		return rc;
	s->p = s->view.raw.p;
	s->end = s->view.raw.p + s->view.raw.n;
	s->n_left = s->view.header.count;
	s->time = s->view.header.first_time;
	if (!s->n_left && s->p != s->end)
		return chunk_error(c->r, &s->view, err, "has bytes but no records");
	s->is_loaded = true;
	return 0;
}

/* The top moves to its next record within range; its place in the heap follows. */
static int advance_top(struct trace_cursor *c, struct err *err)
{
	struct stream_walk *s = c->heap[0];
	int rc = 0;

	while (s->n_left) {
		rc = next_record(c->r, s, err);
		if (rc < 0)
			break;
		if (s->time >= c->to) {
			drop_top(c);
			return 0;
		}
		if (s->time >= c->from) {
			sift_down(c, 0);
			return 0;
		}
	}
	if (next_chunk(c, s))
		sift_down(c, 0);
	else
		drop_top(c);
	return rc;
}

int trace_cursor_next(struct trace_cursor *c, struct trace_record *record, struct err *err)
{
	int rc;

	for (;;) {
		struct stream_walk *s;

		if (c->is_used) {
			c->is_used = false;
			rc = advance_top(c, err);
			if (rc < 0)
				return rc;
		}
		if (!c->n_heap)
			return 0;
		s = c->heap[0];
		if (s->is_loaded) {
			const struct trace_kind *kind = &c->r->kinds.v[s->kind];

			*record = (struct trace_record){
				s->time, s->stream, kind->major, kind->minor, s->payload};
			c->is_used = true;
			return 1;
		}
		rc = load_chunk(c, s, err);
		if (rc < 0)
			s->n_left = 0; /* the stream goes on behind it */
		if (rc < 0 && !next_chunk(c, s))
			drop_top(c);
		else if (rc < 0)
			sift_down(c, 0);
		if (rc < 0)
			return rc;
		c->is_used = true; /* no record yet: go to the first */
	}
}

static void add_walk(struct trace_cursor *c, uint32_t stream)
{
	struct stream_walk *s = &c->walks[c->n_walks++];

	s->stream = stream;
	s->next_i = c->r->stream_first[stream];
	s->end_i = c->r->stream_first[stream + 1];
	if (next_chunk(c, s))
		c->heap[c->n_heap++] = s;
}

/* A cursor with room for `n` streams. */
static int cursor_new(struct trace_cursor **out, const struct trace_reader *r, size_t n,
	uint64_t from, uint64_t to, struct err *err)
{
	struct trace_cursor *c = mem_zalloc(sizeof(*c));

	c->r = r;
	c->from = from;
	c->to = to;
	c->zstd = ZSTD_createDCtx();
	if (!c->zstd) {
		trace_cursor_close(c);
		return err_set(err, ERR_FAILED, "'%s': not enough memory to unpack", r->name);
	}
	c->walks = mem_calloc(n, sizeof(*c->walks));
	c->heap = mem_calloc(n, sizeof(struct stream_walk *));
	*out = c;
	return 0;
}

int trace_cursor_open_some(struct trace_cursor **out, const struct trace_reader *r,
	const bool *is_left_out, uint64_t from, uint64_t to, struct err *err)
{
	struct trace_cursor *c;
	int rc = cursor_new(&c, r, r->streams.n, from, to, err);

	if (rc < 0)
		return rc;
	for (uint32_t s = 1; s < r->streams.n; s++)
		if (!is_left_out || !is_left_out[s])
			add_walk(c, s);
	for (size_t i = c->n_heap / 2; i-- > 0;)
		sift_down(c, i);
	*out = c;
	return 0;
}

int trace_cursor_open(struct trace_cursor **out, const struct trace_reader *r, uint32_t stream,
	uint64_t from, uint64_t to, struct err *err)
{
	int rc;

	if (stream == TRACE_ALL_STREAMS)
		return trace_cursor_open_some(out, r, NULL, from, to, err);
	if (!stream || stream >= r->streams.n)
		return err_set(err, ERR_NOT_FOUND, "'%s': has no stream %u", r->name, stream);
	rc = cursor_new(out, r, 1, from, to, err);
	if (rc == 0)
		add_walk(*out, stream);
	return rc;
}

void trace_cursor_close(struct trace_cursor *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_walks; i++)
		buf_release(&c->walks[i].unpacked);
	free(c->walks);
	free(c->heap);
	ZSTD_freeDCtx(c->zstd);
	free(c);
}

/* --- payloads: rows of numbers, and the sample, which is checked against the tables --- */

static int bad_record(const struct trace_reader *r, const struct trace_record *record,
	struct err *err, const char *what)
{
	return err_set(err, ERR_FORMAT,
		"'%s': record 0x%02x/0x%x of stream %u at time %" PRIu64 ": %s", r->name,
		record->major, record->minor, record->stream, record->time, what);
}

int trace_record_numbers(const struct trace_reader *r, const struct trace_record *record,
	uint64_t *numbers, size_t n, struct err *err)
{
	const uint8_t *p = record->payload.p, *end = p + record->payload.n;

	for (size_t i = 0; i < n; i++) {
		p = uleb_get(p, end, &numbers[i]);
		if (!p)
			return bad_record(r, record, err, "its payload is too short");
	}
	return 0;
}

int trace_record_sample(const struct trace_reader *r, const struct trace_record *record,
	struct trace_sample *sample, struct err *err)
{
	uint64_t n[4];
	int rc = trace_record_numbers(r, record, n, 4, err);

	if (rc < 0)
		return rc;
	if (n[0] >= r->threads.n)
		return bad_record(r, record, err, "its thread is not defined");
	if (n[1] >= r->stacks.n)
		return bad_record(r, record, err, "its stack is not defined");
	if (n[2] >= r->metrics.n)
		return bad_record(r, record, err, "its metric is not defined");
	*sample = (struct trace_sample){(uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2], n[3]};
	return 0;
}
