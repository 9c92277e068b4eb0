/* SPDX-License-Identifier: MIT */
/* What the files of a recording of counts share: its life (translate_session.c), and what becomes of what the
 * translator tells (count_work.c). */
#ifndef WEIR_TRANSLATE_COUNT_SESSION_H
#define WEIR_TRANSLATE_COUNT_SESSION_H

#include "process/module_history.h"
#include "translate/count_trace.h"
#include "translate/tracer.h"
#include "translate/translate_session.h"

struct count_session {
	const struct translate_options *options;
	struct translate_result *result;
	struct run run;
	struct trace_writer *w;
	uint32_t life_stream;
	struct images *images;
	struct processes *processes;
	struct module_history *modules;
	struct count_trace *figures;
	struct translate_tracer tracer;
	uint64_t flushed_ns;
};

extern const struct translate_work count_work; /* its ctx is a struct count_session */

/* A counts_stack_bounds; `pid` points to a pid_t. */
bool count_find_stack(void *pid, uint64_t sp, uint64_t *low, uint64_t *high);

#endif
