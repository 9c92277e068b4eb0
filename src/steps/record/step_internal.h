/* SPDX-License-Identifier: MIT */
/* What the files of the recording share beside step_session.h. */
#ifndef WEIR_STEPS_RECORD_STEP_INTERNAL_H
#define WEIR_STEPS_RECORD_STEP_INTERNAL_H

#include "base/mem.h"
#include "process/images.h"
#include "process/processes.h"
#include "run/run.h"
#include "steps/record/step_engine.h"
#include "steps/record/step_session.h"
#include "steps/record/step_space.h"

struct step_track {
	uint32_t pid, tid;
	struct step_space *space;
	uint32_t trace_thread, stream;
	struct step_run_coder run;
	bool is_open; /* `run` has steps */
	struct step_way_coder way;
	bool is_in_way;	   /* and that has, in place of `run` */
	bool is_in_string; /* the last step is a repeated string instruction */
	bool has_ended;
	uint64_t run_began; /* time */
	uint64_t n_steps;
	VEC(struct step_datum) data; /* of `run` */
};

struct symtab;
struct step_session {
	const struct step_options *options;
	struct step_result *result;
	const struct step_engine *engine;
	struct err refused; /* by an engine before it; code 0: by none */
	struct step_space_env env;
	uint32_t life_stream;
	struct processes *processes;
	struct run run;
	VEC(struct step_space *) spaces; /* by number - 1 */
	VEC(struct step_track *) tracks; /* all that ever were */
	unsigned n_live;
	uint64_t n_steps;
	uint64_t flushed_ns, progress_ns;
	/* By image number; NULL = not read yet: functions, variables. */
	VEC(struct symtab *) symtabs;
	VEC(struct symtab *) data_symtabs;
};

/* Ends the thread's run or way, and begins a way with this block, at least `n` of whose instructions were executed. */
void step_session_begin_way(
	struct step_session *s, struct step_track *t, uint32_t generation, uint32_t block);
void step_session_end_run(struct step_session *s, struct step_track *t);
/* Writes all runs and lets them survive us. */
void step_session_flush(struct step_session *s, uint64_t time, bool is_end);
void step_find_release(struct step_session *s);
/* The variables of an image, read when first asked for; a step_memory_symbols. */
const struct symtab *step_find_variables(void *session, uint32_t image);

#endif
