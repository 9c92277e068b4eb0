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

struct step_track;
struct step_session;

/*
 * Where steps go that are not to be in a trace. A session with one shares the processes, images and modules of the
 * recording that it is part of; programs and threads are told to both. `sunk` of spaces and tracks is the sink's.
 */
struct step_sink {
	/* A new program, by exec, or as a copy of what the thread `by` has. */
	void (*program)(void *ctx, struct step_space *space);
	void (*thread)(void *ctx, struct step_track *t, const struct step_track *by); /* by: NULL = nobody */
	/* The thread has ended, or is no longer ours, or its program ends by exec. */
	void (*gone)(void *ctx, struct step_track *t);
	/* As step_session_step. False: it is the step before once more (a repeated string instruction). */
	bool (*step)(void *ctx, struct step_track *t, uint64_t addr, const uint8_t *bytes, size_t n,
		bool is_64);
	/* As step_session_handler. */
	void (*handler)(void *ctx, struct step_track *t, uint64_t addr);
	void (*handler_ended)(void *ctx, struct step_track *t);
	void (*lost)(void *ctx, struct step_track *t, uint64_t n, const char *why);
};

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
	uint64_t sp;	   /* stack pointer in front of what the engine tells next; for sinks */
	void *sunk;	   /* of the sink */
};

struct symtab;
struct step_session {
	const struct step_options *options;
	struct step_result *result;
	const struct step_engine *engine;
	struct err refused; /* by an engine before it; code 0: by none */
	const struct step_sink *sink; /* NULL: a trace of steps is written */
	void *sink_ctx;
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
/* What a session has of its own beside the trace. */
void step_session_release(struct step_session *s);
/* The variables of an image, read when first asked for; a step_memory_symbols. */
const struct symtab *step_find_variables(void *session, uint32_t image);

#endif
