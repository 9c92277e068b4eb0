/* SPDX-License-Identifier: MIT */
/*
 * Lines of `perf script`'s text. Nothing in it is quoted: the names of programs and files have blanks, and every field may be
 * missing. So a head is read from its time, or its event, to the left, and a frame from both ends.
 *
 *	COMM PID[/TID] [CPU] SECONDS.FRACTION: PERIOD EVENT: [ADDRESS SYMBOL+OFFSET (FILE)]
 *		ADDRESS SYMBOL+OFFSET (FILE)
 */
#ifndef WEIR_FORMATS_FOREIGN_PERF_SCRIPT_LINE_H
#define WEIR_FORMATS_FOREIGN_PERF_SCRIPT_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct perf_script_head {
	struct span comm, event; /* empty: not there */
	uint32_t pid, tid;	 /* 0: not there; equal when there is one of them */
	bool has_cpu, has_time, has_period;
	uint32_t cpu;
	uint64_t time_ns, period;
	struct span rest; /* behind the event */
};
/* False: it is none. A line that begins with a blank is one only with a time. */
bool perf_script_head(struct span line, struct perf_script_head *head);

struct perf_script_frame {
	bool has_address;
	uint64_t address;
	struct span symbol; /* without offset; empty: not there */
	struct span file;   /* as in the brackets; empty: not there */
	bool is_inlined;    /* into the next frame */
	bool is_kernel;
};
bool perf_script_frame(struct span line, struct perf_script_frame *frame);
/* "prog.c:12", the place of the frame before. */
bool perf_script_place(struct span line, struct span *file, uint32_t *number);

#endif
