/* SPDX-License-Identifier: MIT */
/*
 * Engines: ways to learn which instructions a program executes. Each is a row of one table; it runs
 * the program and tells the recording (steps/record/step_session.h) what it sees.
 */
#ifndef WEIR_STEPS_RECORD_STEP_ENGINE_H
#define WEIR_STEPS_RECORD_STEP_ENGINE_H

#include "base/err.h"

struct step_session;

struct step_engine {
	const char *name;
	/* NULL when the engine works on this machine, else why it does not, a phrase. Found out by
	 * trying, once; no program is needed for it. */
	const char *(*hindrance)(void);
	/* Whether the engine can do what the session's options ask; else a sentence. NULL: all. */
	int (*accepts)(const struct step_session *s, struct err *err);
	/* Runs from the start to the end of the recording. On failure the program is as it would be
	 * without us: not started, or running on. */
	int (*run)(struct step_session *s, struct err *err);
};

/* steps/engine/engines.c: in order of preference; ended by NULL. */
extern const struct step_engine *const step_engines[];
const struct step_engine *step_engine_find(const char *name);

#endif
