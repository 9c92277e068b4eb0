/* SPDX-License-Identifier: MIT */
/* The two engines that work by ptrace(2): each instruction, and each taken branch. */
#include "steps/engine/ptrace_engine.h"

static const char *no_hindrance(void)
{
	return NULL;
}

static int accepts_all(const struct step_session *s, struct err *err)
{
	(void)s;
	(void)err;
	return 0;
}

static int run_steps(struct step_session *s, struct err *err)
{
	return ptrace_engine_run(s, false, err);
}

const struct step_engine step_engine_ptrace = {
	.name = "ptrace",
	.summary = "single steps by ptrace(2): any program, 32 and 64 bit, launched or running",
	.hindrance = no_hindrance,
	.accepts = accepts_all,
	.run = run_steps,
};

static int accepts_blocks(const struct step_session *s, struct err *err)
{
	if (step_session_options(s)->data)
		return err_set(err, ERR_UNSUPPORTED,
			"engine 'branch' sees registers at branches only: --data needs 'ptrace'");
	return 0;
}

static int run_blocks(struct step_session *s, struct err *err)
{
	return ptrace_engine_run(s, true, err);
}

const struct step_engine step_engine_branch = {
	.name = "branch",
	.summary = "a stop for each taken branch (PTRACE_SINGLEBLOCK), where the processor has it",
	.hindrance = ptrace_blocks_hindrance,
	.accepts = accepts_blocks,
	.run = run_blocks,
};
