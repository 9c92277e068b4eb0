/* SPDX-License-Identifier: MIT */
/* What the importers of text share: threads by their number, names, stacks. */
#ifndef WEIR_FORMATS_IMPORT_THREADS_H
#define WEIR_FORMATS_IMPORT_THREADS_H

#include "base/map.h"
#include "base/mem.h"
#include "formats/text_lines.h"
#include "trace/writer.h"

struct import_thread {
	uint32_t id, stream;
	uint64_t time; /* of its last line */
};

/* `writer` is NULL while the text is only checked. */
struct import {
	struct trace_writer *writer;
	uint32_t time_metric; /* of events */
	struct text_lines lines;
	VEC(struct import_thread) threads;
	struct map thread_of; /* tid -> index in threads */
};

void import_init(struct import *in, struct span text, const char *name, struct trace_writer *w);
void import_release(struct import *in);
/* Valid until the next new thread. */
struct import_thread *import_thread(struct import *in, uint64_t tid);
/* The frame that is known by this name; 0 while only checking. */
uint32_t import_frame(struct import *in, struct span name);
/*
 * The rest of the line as a stack, outermost first:
 *   [TID ':'] NAME { NAME }
 */
int import_stack(struct import *in, uint64_t *tid, uint32_t *stack, struct err *err);

#endif
