/* SPDX-License-Identifier: MIT */
/* The table of engines. All work by ptrace(2), the last one seldom. */
#include <string.h>

#include "steps/engine/ptrace_engine.h"
#include "steps/engine/translate_engine.h"

static int run_blocks(struct step_session *s, struct err *err)
{
	return ptrace_engine_run(s, true, err);
}

static int accepts_blocks(const struct step_session *s, struct err *err)
{
	if (s->options->data)
		return err_set(err, ERR_UNSUPPORTED,
			"engine 'branch' sees registers at branches only: --data needs 'ptrace'");
	return 0;
}

/* A stop for each taken branch (PTRACE_SINGLEBLOCK), where the processor has it. */
static const struct step_engine branch = {
	.name = "branch",
	.hindrance = ptrace_blocks_hindrance,
	.accepts = accepts_blocks,
	.run = run_blocks,
};

static int run_steps(struct step_session *s, struct err *err)
{
	return ptrace_engine_run(s, false, err);
}

static const char *no_hindrance(void)
{
	return NULL;
}

/* Single steps: any program, 32 and 64 bit, launched or running. */
static const struct step_engine ptrace = {
	.name = "ptrace",
	.hindrance = no_hindrance,
	.run = run_steps,
};

/* A code cache in the program. */
static const struct step_engine translate = {
	.name = "translate",
	.hindrance = translate_engine_hindrance,
	.accepts = translate_engine_accepts,
	.run = translate_engine_run,
};

const struct step_engine *const step_engines[] = {&translate, &branch, &ptrace, NULL};

const struct step_engine *step_engine_find(const char *name)
{
	for (size_t i = 0; step_engines[i]; i++)
		if (!strcmp(step_engines[i]->name, name))
			return step_engines[i];
	return NULL;
}
