/* SPDX-License-Identifier: MIT */
/*
 * Reads a trace file. Opening maps the file, takes the chunk list from the index (or, when the
 * recorder was killed, from a scan that stops at the first chunk that is not whole), and decodes
 * the definitions. Records are decoded chunk by chunk as a cursor passes.
 *
 * All ids that come out of the reader are valid: references to things that are not defined make
 * the chunk or the record fail with a sentence that names chunk and offset. A damaged chunk, of records
 * or of definitions, costs what it had and nothing else.
 *
 * Several cursors may walk one reader, also from several threads, as long as nobody adds to it.
 */
#ifndef WEIR_TRACE_READER_H
#define WEIR_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "trace/defs.h"
#include "trace/records.h"
#include "trace/writer.h"

struct trace_reader;

int trace_reader_open(struct trace_reader **out, const char *path, struct err *err);
/* For tests and fuzzing; `bytes` must outlive the reader, `name` is used in sentences. Without
 * `check_crc`, for fuzzing alone, check sums are not compared, so that mutations get past them. */
int trace_reader_open_bytes(struct trace_reader **out, struct span bytes, bool check_crc,
	const char *name, struct err *err);
void trace_reader_close(struct trace_reader *r);

const char *trace_reader_name(const struct trace_reader *r); /* path as given */
/* For a trace that was made from another file: the name that the user knows. */
void trace_reader_set_name(struct trace_reader *r, const char *name);
/* True when the end was missing and the chunks were found by scanning; `why` (may be NULL) gets a
 * sentence that lives as long as the reader. */
bool trace_reader_is_recovered(const struct trace_reader *r, const char **why);
/* Chunks of types that this version does not know; they were skipped. */
uint32_t trace_reader_n_unknown_chunks(const struct trace_reader *r);

/* Chunks of definitions that are damaged; `first` (may be NULL) gets the sentence of the first, or NULL.
 * What they defined is called "[damaged definition]"; streams among them have kind 0, and their records,
 * this many, are not handed out. */
uint32_t trace_reader_n_damaged_tables(const struct trace_reader *r, const char **first);
uint64_t trace_reader_n_unplaced(const struct trace_reader *r);

/* NULL when the key is absent. */
const char *trace_reader_meta(const struct trace_reader *r, const char *key);
/* The i-th key in order of first sight; NULL behind the last. */
const char *trace_reader_meta_key(const struct trace_reader *r, uint32_t i);

/* Table sizes count the reserved id 0: valid ids are below n. get functions accept any valid id. */
uint32_t trace_reader_n_strings(const struct trace_reader *r);
const char *trace_reader_string(const struct trace_reader *r, uint32_t id);
uint32_t trace_reader_n_metrics(const struct trace_reader *r);
const struct trace_metric *trace_reader_metric(const struct trace_reader *r, uint32_t id);
uint32_t trace_reader_n_streams(const struct trace_reader *r);
const struct trace_stream *trace_reader_stream(const struct trace_reader *r, uint32_t id);
uint32_t trace_reader_n_images(const struct trace_reader *r);
const struct trace_image *trace_reader_image(const struct trace_reader *r, uint32_t id);
uint32_t trace_reader_n_threads(const struct trace_reader *r);
const struct trace_thread *trace_reader_thread(const struct trace_reader *r, uint32_t id);
uint32_t trace_reader_n_frames(const struct trace_reader *r);
const struct trace_frame *trace_reader_frame(const struct trace_reader *r, uint32_t id);
uint32_t trace_reader_n_stacks(const struct trace_reader *r);
const struct trace_stack *trace_reader_stack(const struct trace_reader *r, uint32_t id);

/* NULL when the trace says nothing about the frame. */
const struct trace_symbol *trace_reader_symbol(const struct trace_reader *r, uint32_t frame);
/* Adds to the reader's tables in memory, for symbols that are resolved at report time. */
uint32_t trace_reader_add_string(struct trace_reader *r, const char *s);
void trace_reader_set_symbol(struct trace_reader *r, const struct trace_symbol *symbol);

/* NULL when the trace does not say. */
const struct trace_image_facts *trace_reader_image_facts(
	const struct trace_reader *r, uint32_t image);
const struct trace_match *trace_reader_match(const struct trace_reader *r, uint32_t image);
/* Replaces the verdict in memory, for images that are matched at report time. */
void trace_reader_set_match(struct trace_reader *r, const struct trace_match *match);
/* By address; 0 when the trace has no function table of the image. Decoded when first asked, so one
 * thread at a time; a damaged table counts as none. */
size_t trace_reader_functions(
	struct trace_reader *r, uint32_t image, const struct trace_function **functions);
/* Tables that turned out damaged when they were asked for; `first` (may be NULL) gets the sentence
 * of the first, or NULL. */
uint32_t trace_reader_n_damaged_functions(const struct trace_reader *r, const char **first);
/* The address index by pid, process start, start, from; 0 when the trace has none (killed, old). */
size_t trace_reader_module_spans(
	const struct trace_reader *r, const struct trace_module_span **spans);

uint32_t trace_reader_n_kinds(const struct trace_reader *r);
const struct trace_kind *trace_reader_kind(const struct trace_reader *r, uint32_t id);
/* Whether the trace has records of this code; minor 0 stands for any. */
bool trace_reader_has_kind(const struct trace_reader *r, uint32_t major, uint32_t minor);
/* Executed instructions, in either form. */
static inline bool trace_reader_has_steps(const struct trace_reader *r)
{
	return trace_reader_has_kind(r, RECORD_MAJOR_STEP, RECORD_STEP_RUN) ||
	       trace_reader_has_kind(r, RECORD_MAJOR_STEP, RECORD_STEP_SHORT_WAY) ||
	       trace_reader_has_kind(r, RECORD_MAJOR_STEP, RECORD_STEP_WAY);
}
/* The times of the stream's first and last record, as the index has them; false when the stream has
 * no records. */
bool trace_reader_stream_times(
	const struct trace_reader *r, uint32_t stream, uint64_t *first, uint64_t *last);
/* The time of the first record of all; 0 when there is none. */
uint64_t trace_reader_start(const struct trace_reader *r);

/* How many records the stream has, as the index has it; O(chunks). */
uint64_t trace_reader_stream_records(const struct trace_reader *r, uint32_t stream);
uint64_t trace_reader_n_records(const struct trace_reader *r); /* of all streams */

struct trace_record {
	uint64_t time;
	uint32_t stream;
	uint32_t major, minor;
	struct span payload; /* borrowed until the next call on the same cursor */
};

/* Walks the records of one stream (or, with stream = TRACE_ALL_STREAMS, of all streams merged by
 * time, ties by stream id), optionally only those with from <= time < to. */
#define TRACE_ALL_STREAMS UINT32_MAX
struct trace_cursor;
int trace_cursor_open(struct trace_cursor **out, const struct trace_reader *r, uint32_t stream,
	uint64_t from, uint64_t to, struct err *err);
/* All streams merged but those with is_left_out[stream]; NULL: all. The array is not kept. */
int trace_cursor_open_some(struct trace_cursor **out, const struct trace_reader *r,
	const bool *is_left_out, uint64_t from, uint64_t to, struct err *err);
/* 1: *record filled; 0: the end; negative: a damaged chunk, with its sentence. A damaged chunk
 * costs the rest of its own records only: it is reported once, and the next call goes on behind it.
 * So count it as a loss and call again, or give up; after 0 every further call gives 0. */
int trace_cursor_next(struct trace_cursor *c, struct trace_record *record, struct err *err);
void trace_cursor_close(struct trace_cursor *c);

/* Payload decoders: 0, or ERR_FORMAT with a sentence. Ids are checked against the tables. */
int trace_record_sample(const struct trace_reader *r, const struct trace_record *record,
	struct trace_sample *sample, struct err *err);
/* `n` numbers; the payload may hold more (a newer minor version), never fewer. On failure some of
 * `numbers` may be set. */
int trace_record_numbers(const struct trace_reader *r, const struct trace_record *record,
	uint64_t *numbers, size_t n, struct err *err);

#endif
