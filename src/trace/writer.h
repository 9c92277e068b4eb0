/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace file: interns what records refer to, encodes records into one open chunk per
 * stream, and appends whole chunks. What has been flushed survives kill -9.
 *
 * Invariants:
 * 1. A definition is in the file before the first record that refers to it: all pending
 *    definitions are written before any record chunk.
 * 2. Times within a stream never go back; an older time is clamped and counted, and a note of the
 *    stream says so at the end (RECORD_LOSS_NOTE).
 * 3. After a write error (full disk) nothing more is written, every later call is harmless, and
 *    the first error is reported by flush and close. The file stays readable up to there.
 *
 * One thread at a time. Functions that return ids cannot fail.
 */
#ifndef WEIR_TRACE_WRITER_H
#define WEIR_TRACE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/defs.h"
#include "trace/records.h"

struct trace_writer;

/* Creates `path` anew by the rule of base/output.h: an existing file of ours is renamed to `path`.old
 * first, a foreign one is refused, "/dev/null" and its like are written through. */
int trace_writer_open(struct trace_writer **out, const char *path, struct err *err);
/* The same into an empty file that is open already, which belongs to the writer from here on, even
 * when this fails; `name` is for sentences. */
int trace_writer_open_fd(struct trace_writer **out, int fd, const char *name, struct err *err);
/* The same into a pipe, or behind what is in a file: it is written from where it stands, and never cut
 * back. While nobody reads, writing waits; but not once one of the signals is pending (blocked, that is)
 * that end a program: then it fails. */
int trace_writer_open_stream(struct trace_writer **out, int fd, const char *name, struct err *err);
/* What is written from here on is not packed: for readers that cannot unpack. */
void trace_writer_keep_plain(struct trace_writer *w);
/* Writes what is pending, the index and the trailer. Frees `w` even when it fails; NULL is fine. */
int trace_writer_close(struct trace_writer *w, struct err *err);
/* Frees `w`, and the file is as before: removed when this writer made it, the older one is back.
 * NULL is fine. */
void trace_writer_discard(struct trace_writer *w);
/* For a trace that is of use as a whole only: closes it when `rc`, what making it came to, is 0, and
 * discards it when not or when closing fails. Returns `rc` or the failure. */
int trace_writer_settle(struct trace_writer *w, int rc, struct err *err);
/* What is recorded in this stream is in the file in front of what other streams have afterwards, also when the file ends
 * in the midst. */
void trace_writer_lead(struct trace_writer *w, uint32_t stream);
/* Writes all pending definitions and open chunks. Cheap when nothing is pending. */
int trace_writer_flush(struct trace_writer *w, struct err *err);
/* A complete trace of everything up to now, at `path`, where nothing is yet: there as a whole or not
 * at all. Records that
 * `add` (may be NULL) writes are in the copy only; it may define what they refer to, but no facts
 * and symbols. The writer goes on with its own file. Costs as much as copying that. */
int trace_writer_copy(struct trace_writer *w, const char *path, void (*add)(void *ctx), void *ctx,
	struct err *err);
/* Bytes in the file so far. */
uint64_t trace_writer_bytes(const struct trace_writer *w);

/* Facts about the whole trace ("host", "command", ...); a later value replaces an earlier one. */
void trace_writer_meta(struct trace_writer *w, const char *key, const char *value);

/* Texts end at their first zero byte and are cut at 1 MiB. */
uint32_t trace_writer_string(struct trace_writer *w, const char *s);
uint32_t trace_writer_string_n(struct trace_writer *w, const char *s, size_t n);
uint32_t trace_writer_metric(struct trace_writer *w, const char *name, const char *unit);
uint32_t trace_writer_stream(struct trace_writer *w, enum stream_kind kind, uint32_t number);
uint32_t trace_writer_image(struct trace_writer *w, const struct trace_image *image);
uint32_t trace_writer_thread(struct trace_writer *w, const struct trace_thread *thread);
uint32_t trace_writer_frame(struct trace_writer *w, const struct trace_frame *frame);
uint32_t trace_writer_stack(struct trace_writer *w, uint32_t parent, uint32_t frame);
/* Defines what a frame means; a later definition of the same frame replaces an earlier one. */
void trace_writer_symbol(struct trace_writer *w, const struct trace_symbol *symbol);

/* Facts, verdict and function table of an image; each at most once, before close. Functions by
 * address, none beyond 2^64 - 1, at most 2^24 of an image; may be called several times for one
 * image, with later addresses. */
void trace_writer_image_facts(struct trace_writer *w, const struct trace_image_facts *facts);
void trace_writer_match(struct trace_writer *w, const struct trace_match *match);
void trace_writer_functions(
	struct trace_writer *w, uint32_t image, const struct trace_function *functions, size_t n);
/* The address index: all spans of the recording, in any order; sorted by the writer by pid, process
 * start, start, from. Each has an image and at least one byte. Once, at the end. */
void trace_writer_module_spans(
	struct trace_writer *w, const struct trace_module_span *spans, size_t n);

/* For resolving while writing: how many frames there are (ids 1..n), and one of them. The pointers
 * are good until the next addition to the same table. */
uint32_t trace_writer_n_frames(const struct trace_writer *w);
const struct trace_frame *trace_writer_get_frame(const struct trace_writer *w, uint32_t id);
const struct trace_image *trace_writer_get_image(const struct trace_writer *w, uint32_t id);

/* Any record: payload as in docs/format/records.md. One of more than 1 MiB is dropped, and counted
 * as a loss of its stream. */
void trace_writer_record(struct trace_writer *w, uint32_t stream, uint64_t time, uint32_t major,
	uint32_t minor, const void *payload, size_t n);

/* Records whose payload is a row of numbers and nothing else. */
void trace_writer_numbers(struct trace_writer *w, uint32_t stream, uint64_t time, uint32_t major,
	uint32_t minor, const uint64_t *numbers, size_t n);

/* A routine of the stream's thread entered or left (RECORD_MAJOR_ROUTINE), the fast way: there are
 * millions of them. Frame 0, left only: the innermost. */
void trace_writer_routine(
	struct trace_writer *w, uint32_t stream, uint64_t time, uint32_t frame, bool is_left);
/* The time of the stream's last record; 0 when it has none. */
uint64_t trace_writer_stream_time(const struct trace_writer *w, uint32_t stream);

struct trace_sample {
	uint32_t thread; /* id */
	uint32_t stack;	 /* id */
	uint32_t metric; /* id */
	uint64_t weight; /* in units of the metric */
};
void trace_writer_sample(
	struct trace_writer *w, uint32_t stream, uint64_t time, const struct trace_sample *sample);

/* `reason` is a phrase for people: "ring full", "stack copy too short". */
void trace_writer_loss(struct trace_writer *w, uint32_t stream, uint64_t time,
	enum record_minor_loss what, uint64_t count, const char *reason);

#endif
