/* SPDX-License-Identifier: MIT */
/*
 * The executed instructions of a trace as a stream for simulators, which is read again, and as
 * text. docs/format/step-stream.md is the text to the stream.
 */
#ifndef WEIR_STEPS_STREAM_STEP_STREAM_H
#define WEIR_STEPS_STREAM_STEP_STREAM_H

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "steps/read/steps.h"
#include "trace/writer.h"

#define STEP_STREAM_MAGIC	"weirstep"
#define STEP_STREAM_VERSION	1
#define STEP_STREAM_HEAD_BYTES	16
#define STEP_STREAM_PAYLOAD_MAX 65536

enum step_packet {
	STEP_PACKET_THREAD = 1,
	STEP_PACKET_IMAGE = 2,
	STEP_PACKET_CODE = 3,
	STEP_PACKET_AT = 4,
	STEP_PACKET_STEPS = 5,
	STEP_PACKET_MARK = 6,
	STEP_PACKET_ACCESS = 7,
	STEP_PACKET_END = 8
};

#define STEP_PACKET_CODE_ROOM 16 /* bytes, of which the instruction has at most 15 */

/* In a row of steps: this bit set, the others say how often the step before went round again. */
#define STEP_WORD_AGAIN 0x80000000u
#define STEP_CODES_MAX	STEP_WORD_AGAIN

#define STEP_ACCESSES_MAX 4096 /* of one step */

struct step_export_options {
	const char *thread; /* only this one: TID, PID_TID or its name; NULL = all */
	/* Of text: the words of a mark are appended to `to`. */
	void (*put_mark)(
		struct buf *to, const struct step_mark *mark, const struct trace_reader *r);
};

struct step_export_result {
	uint64_t n_steps;
	uint64_t n_gaps; /* damaged records, and places where the recording lost steps */
};

/* The numbers of the threads that are wanted, to be freed; fails when there is none. */
int step_export_threads(uint32_t **wanted, uint32_t *n_wanted, const struct steps *s,
	const struct step_export_options *options, struct err *err);

/* Errors of writing are left in `out`, where the caller finds them by ferror(). */
int export_step_stream(const struct trace_reader *r, const struct step_export_options *options,
	FILE *out, struct step_export_result *result, struct err *err);
/* The same as text, thread by thread and one instruction a line, for grep, awk and diff. The
 * columns, separated by tabs, are described in weir-export(1). */
int export_step_text(const struct trace_reader *r, const struct step_export_options *options,
	FILE *out, struct step_export_result *result, struct err *err);

/* A stream, of weir or of another tracer, into a trace. `w` NULL: it is only checked, as a whole;
 * what is checked can be written. `name` is for sentences. */
int import_step_stream(
	struct span bytes, const char *name, struct trace_writer *w, struct err *err);

#endif
