/* SPDX-License-Identifier: MIT */
/* A step stream (docs/format/step-stream.md), of weir or of another tracer, into a trace. */
#ifndef WEIR_STEPS_STREAM_IMPORT_STREAM_H
#define WEIR_STEPS_STREAM_IMPORT_STREAM_H

#include "base/err.h"
#include "base/span.h"
#include "trace/writer.h"

/* `w` NULL: the stream is only checked, as a whole; what is checked can be written. `name` is for
 * sentences. */
int import_step_stream(
	struct span bytes, const char *name, struct trace_writer *w, struct err *err);

#endif
