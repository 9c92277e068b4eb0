/* SPDX-License-Identifier: MIT */
/*
 * What readers of foreign formats have in common: threads, frames with files, lines and inlined calls, stacks and
 * samples, as definitions and records of a trace; and what was left out, by reason.
 */
#ifndef WEIR_FORMATS_FOREIGN_FOREIGN_TRACE_H
#define WEIR_FORMATS_FOREIGN_FOREIGN_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "trace/writer.h"

struct foreign_trace;
/* Borrows the writer. The tool is told as the trace's origin: "pprof". */
struct foreign_trace *foreign_trace_new(struct trace_writer *w, const char *format);
/* Writes the notes and losses that were counted, and frees. NULL is fine. */
void foreign_trace_free(struct foreign_trace *t);

/* A level of a frame: the function, or one inlined into the next level. */
struct foreign_level {
	struct span name; /* as it is in the file; zero bytes end it */
	struct span file; /* empty: not known */
	uint32_t line;	  /* 0 = not known */
};

struct foreign_frame {
	enum frame_kind kind;
	struct span image; /* path or name of the library; empty: not known */
	uint8_t build_id_n;
	const uint8_t *build_id;
	uint64_t addr; /* in the image's addresses; 0 with an image: not known */
	bool is_caller;
	const struct foreign_level *levels; /* innermost first; 0: addr alone is known */
	size_t n_levels;		    /* at most SYMBOL_LEVELS_MAX count */
};

/* The metric of this name. */
uint32_t foreign_trace_metric(struct foreign_trace *t, const char *name, const char *unit);
/* The same for the one that reports show unless they are asked for another. */
uint32_t foreign_trace_main_metric(struct foreign_trace *t, const char *name, const char *unit);
/* The thread; its name, when it is not empty, is told once. */
uint32_t foreign_trace_thread(
	struct foreign_trace *t, uint32_t pid, uint32_t tid, struct span name);
/* The process's command line or name, told once. */
void foreign_trace_process(struct foreign_trace *t, uint32_t pid, struct span name);
uint32_t foreign_trace_frame(struct foreign_trace *t, const struct foreign_frame *frame);
/* The common case: a name and nothing else. */
uint32_t foreign_trace_name(struct foreign_trace *t, enum frame_kind kind, struct span name);
/* The stack of `frame` below that of its caller (0: it is the outermost). */
uint32_t foreign_trace_stack(struct foreign_trace *t, uint32_t caller, uint32_t frame);
/* Of one thread's stream. Weights of zero are no samples. */
void foreign_trace_sample(
	struct foreign_trace *t, uint64_t time_ns, const struct trace_sample *sample);
/* The same in a stream of their own, for threads that also have calls: samples come in order of time among
 * themselves. */
void foreign_trace_sample_beside(
	struct foreign_trace *t, uint64_t time_ns, const struct trace_sample *sample);
/* The thread enters the function of the frame, or leaves it. In order of time. */
void foreign_trace_routine(
	struct foreign_trace *t, uint32_t thread, uint64_t time_ns, uint32_t frame, bool is_left);
/* The time of what is told at the end, where no sample says it. */
void foreign_trace_set_time(struct foreign_trace *t, uint64_t time_ns);
/* `n` samples, or other things, were left out for this reason. */
void foreign_trace_lost(struct foreign_trace *t, uint64_t n, const char *reason);
/* A part of the file, with nobody knows how much in it. */
void foreign_trace_lost_part(struct foreign_trace *t, const char *reason);
void foreign_trace_lost_events(struct foreign_trace *t, uint64_t n, const char *reason);
/* The same, where nothing is missing: "jumps of callgrind are not shown". */
void foreign_trace_note(struct foreign_trace *t, uint64_t n, const char *reason);

#endif
