/* SPDX-License-Identifier: MIT */
/*
 * Text into traces, for tests and for other tools. Both read the whole text twice when asked to
 * write: call them with writer = NULL first, and nothing is written for a text that is wrong.
 */
#ifndef WEIR_FORMATS_IMPORT_EVENTS_H
#define WEIR_FORMATS_IMPORT_EVENTS_H

#include "base/err.h"
#include "base/span.h"
#include "trace/writer.h"

/*
 * Lines, with times in units of 1 that do not go back within a thread:
 *   TIME enter NAME [TID]           TIME switch-out [TID]      TIME add METRIC AMOUNT [TID]
 *   TIME leave NAME [TID]           TIME switch-in [TID]       TIME stack NUMBER [TID]
 *   TIME sample[=WEIGHT] [TID:] NAME...      TIME stack-at [TID:] NAME...
 *   TIME node NUMBER PARENT NAME CALLS ELAPSED MIN MAX [TID]
 *   TIME hook NAME METHOD HITS OFF [REASON...]
 * `name` is the file's, for sentences. Fails with "'FILE':LINE: WHAT".
 */
int import_events(struct span text, const char *name, struct trace_writer *writer, struct err *err);

/* One stack a line, outermost first: [TID:] NAME... The time of a sample is its number. */
int import_samples(
	struct span text, const char *name, struct trace_writer *writer, struct err *err);

#endif
