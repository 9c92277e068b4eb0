/* SPDX-License-Identifier: MIT */
/*
 * What translated programs did (translate/counts.h), in a trace: call trees, functions, blocks and lines as records
 * 0x55 (docs/format/records.md), by which reports and exports of `weir count` show them.
 *
 *	count_trace_new()				a recording begins
 *	count_trace_functions()				for regions that translators ask for (region_functions.h)
 *	count_trace_add()	each program's end	its trees are written, its blocks added up
 *	images_drop_changed()
 *	count_trace_finish()				functions, blocks and lines of all programs
 *	name_frames()
 *	count_trace_free()
 */
#ifndef WEIR_TRANSLATE_COUNT_TRACE_H
#define WEIR_TRANSLATE_COUNT_TRACE_H

#include "process/images.h"
#include "process/processes.h"
#include "trace/writer.h"
#include "translate/code_files.h"
#include "translate/counts.h"
#include "translate/region_functions.h"

struct count_totals {
	uint64_t n_insns, n_calls; /* that were executed */
	uint64_t n_blocks;	   /* of code, as the programs were translated */
	uint64_t n_lost;	   /* what is missing from these figures, in whatever unit */
};

struct count_trace;
/* All borrowed; the trace's metrics are defined. */
struct count_trace *count_trace_new(struct trace_writer *w, uint32_t life_stream, struct images *images);
void count_trace_free(struct count_trace *t);
struct function_tables *count_trace_functions(struct count_trace *t);
struct code_files *count_trace_files(struct count_trace *t);
/* Code of the image is about to be executed. */
void count_trace_expect(struct count_trace *t, uint32_t image);

/* `c` may go then. Its process may have ended. `time` is now. */
void count_trace_add(struct count_trace *t, struct counts *c, const struct process *p, uint64_t time);
void count_trace_finish(struct count_trace *t, uint64_t time, struct count_totals *totals);

#endif
