/* SPDX-License-Identifier: MIT */
/*
 * Records of one stream, a chunk at a time, for those who have to look at a hundred million of
 * them: the chunk is unpacked, the caller decodes its records in place. trace/reader.h has the
 * cursor for everyone else; both accept and refuse the same bytes.
 *
 *	while ((rc = trace_run_next(runs, &run, err)) > 0)
 *		while (run.n_left && (behind = trace_run_peek(&run, &record)))
 *			trace_run_take(&run, &record, behind);
 */
#ifndef WEIR_TRACE_RECORD_RUN_H
#define WEIR_TRACE_RECORD_RUN_H

#include <string.h>

#include "trace/layout.h"
#include "trace/reader.h"

/* Enough bytes for the short way: two one-byte numbers, one of up to four, what the second can say at most, and
 * eight to look at. */
#define TRACE_RUN_SHORT_BYTES (2 + 4 + 0x7f + 8)

/* A place in an unpacked chunk. */
struct trace_run {
	const uint8_t *p, *end;
	uint32_t n_left;    /* records from p on */
	uint32_t n_kinds;   /* kinds are below it */
	uint64_t time;	    /* of the record before p */
	uint64_t last_time; /* of the chunk */
};

struct trace_run_record {
	uint64_t time;
	uint32_t kind; /* see trace_reader_kind */
	struct span payload;
};

/* A thread that unpacks what is needed next; shared by any number of streams that one caller reads.
 * NULL when there can be no such thread. Freed after the streams. */
struct trace_ahead;
struct trace_ahead *trace_ahead_new(void);
void trace_ahead_free(struct trace_ahead *a);

/* `ahead` may be NULL. */
struct trace_runs;
int trace_runs_open(struct trace_runs **out, const struct trace_reader *r, uint32_t stream,
	struct trace_ahead *ahead, struct err *err);
void trace_runs_close(struct trace_runs *runs);
/* 1: *run is at the first record of the next chunk, and the chunk before is gone; 0: there is none;
 * negative: it is damaged, and the next call goes on behind it. */
int trace_run_next(struct trace_runs *runs, struct trace_run *run, struct err *err);
/* No record of the next chunk is before this time; UINT64_MAX when there is no next chunk. */
uint64_t trace_runs_next_time(const struct trace_runs *runs);
/* For those who look for a place: the chunks of the stream have numbers from 0. */
uint32_t trace_runs_n_chunks(const struct trace_runs *runs);
uint64_t trace_runs_chunk_time(const struct trace_runs *runs, uint32_t i); /* of its first record */
/* What the index says of a chunk, which is not unpacked for it. */
struct trace_chunk {
	uint64_t first_time, last_time;
	uint32_t n_records;
};
struct trace_chunk trace_runs_chunk(const struct trace_runs *runs, uint32_t i);
/* The next trace_run_next is about chunk `i`, which may be one behind the last. */
void trace_runs_seek(struct trace_runs *runs, uint32_t i);
/* The sentence for a record at which trace_run_peek gave NULL. */
int trace_run_damage(const struct trace_runs *runs, const struct trace_run *run, struct err *err);

/* A number of up to four bytes at `p`, where at least eight can be read, without a branch on its
 * length. Returns its length; more than 4: it is longer, and *v means nothing. */
static inline unsigned trace_run_short(const uint8_t *p, uint64_t *v)
{
	uint64_t word, last;

	memcpy(&word, p, sizeof(word));
	last = ~word & 0x8080808080808080u;
	last &= -last;	  /* the top bit of the last byte */
	word &= last - 1; /* up to there; all of it when there is none */
	*v = (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000) |
	     (word >> 3 & 0xfe00000);
	return (unsigned)__builtin_ctzll(last | 1ull << 63) / 8 + 1;
}

/* The same: most numbers have one byte or two, and where both lengths come by turns, a branch on the length costs more. */
static inline unsigned trace_run_brief(const uint8_t *p, uint64_t *v)
{
	uint16_t word;
	unsigned has_second, has_third;

	memcpy(&word, p, sizeof(word));
	has_second = word >> 7 & 1;
	has_third = has_second & word >> 15;
	if (__builtin_expect(has_third, 0))
		return trace_run_short(p, v);
	*v = (word & 0x7f) | (-(uint64_t)has_second & (word >> 1 & 0x3f80));
	return 1 + has_second;
}

/* Decodes the record at run->p, of which there must be one left. Returns the place behind it; NULL
 * when it is damaged. */
static inline const uint8_t *trace_run_peek(
	const struct trace_run *run, struct trace_run_record *record)
{
	const uint8_t *p = run->p, *end = run->end;
	uint64_t kind, n, delta;
	unsigned length;

	if (__builtin_expect(end - p >= TRACE_RUN_SHORT_BYTES && (p[0] | p[1]) < 0x80 &&
				     (length = trace_run_brief(p + 2, &delta)) <= 4,
		    1)) {
		kind = p[0];
		n = p[1];
		p += 2 + length;
	} else {
		p = uleb_get(p, end, &kind);
		p = p ? uleb_get(p, end, &n) : NULL;
		p = p ? uleb_get(p, end, &delta) : NULL;
		if (!p || n > (uint64_t)(end - p) || n > RECORD_BYTES_MAX)
			return NULL;
	}
	if (__builtin_expect(kind - 1 >= run->n_kinds - 1 || delta > run->last_time - run->time, 0))
		return NULL;
	record->time = run->time + delta;
	record->kind = (uint32_t)kind;
	record->payload = (struct span){p, (size_t)n};
	p += n;
	if (__builtin_expect(run->n_left == 1 && (p != end || record->time != run->last_time), 0))
		return NULL;
	return p;
}

/* The first number of the payload; false when there is none. */
static inline bool trace_run_number(
	const struct trace_run *run, const struct trace_run_record *record, uint64_t *number)
{
	const uint8_t *p = record->payload.p;

	if (__builtin_expect(run->end - p >= 8, 1)) {
		unsigned length = trace_run_brief(p, number);

		if (__builtin_expect(length <= 4 && length <= record->payload.n, 1))
			return true;
	}
	return uleb_get(p, p + record->payload.n, number) != NULL;
}

static inline void trace_run_take(
	struct trace_run *run, const struct trace_run_record *record, const uint8_t *behind)
{
	run->p = behind;
	run->time = record->time;
	run->n_left--;
}

#endif
