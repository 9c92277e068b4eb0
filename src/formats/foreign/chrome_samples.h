/* SPDX-License-Identifier: MIT */
/*
 * The lists "samples" and "stackFrames" of Chrome's trace events: a sample names a frame by its key, and a frame the
 * one that called it. The lists come in either order, so samples wait for the end of the file.
 */
#ifndef WEIR_FORMATS_FOREIGN_CHROME_SAMPLES_H
#define WEIR_FORMATS_FOREIGN_CHROME_SAMPLES_H

#include "base/map.h"
#include "base/mem.h"
#include "formats/foreign/foreign_trace.h"
#include "formats/foreign/json_reader.h"

#define CHROME_SAMPLES_MAX ((size_t)1 << 23) /* what is beyond is counted as lost */

struct chrome_sample {
	uint64_t time_ns, weight;
	uint64_t order; /* as the file has it */
	uint32_t thread, frame;
};

struct chrome_frame {
	uint32_t frame, parent; /* of the trace; number of another one here + 1, 0: the outermost */
	uint32_t stack;
	enum { STACK_UNKNOWN, STACK_ASKED, STACK_KNOWN } state;
	bool is_there;
};

struct chrome_samples {
	struct json_reader *json;
	struct foreign_trace *trace;
	struct intern keys; /* of frames, which have the same numbers */
	VEC(struct chrome_frame) frames;
	VEC(struct chrome_sample) v;
	struct buf metric, unit; /* what the weights are, where the file says it */
	uint64_t n_more, n_wrong, n_frameless;
	bool has_weights;
};

/* "otherData": what weir says of its weights. */
void chrome_samples_take_about(struct chrome_samples *s);
void chrome_samples_take(struct chrome_samples *s);	   /* "samples" */
void chrome_samples_take_frames(struct chrome_samples *s); /* "stackFrames" */
/* Writes all of them, and tells what did not fit. */
void chrome_samples_write(struct chrome_samples *s);
void chrome_samples_release(struct chrome_samples *s);

#endif
