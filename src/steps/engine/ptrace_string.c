/* SPDX-License-Identifier: MIT */
/*
 * Each round of a repeated string instruction would be a stop, and clearing a megabyte half a
 * minute. It has nowhere to go but to the next instruction: so one with many rounds to go runs up
 * to a breakpoint there, and the rounds are what its counter says.
 */

#include "steps/engine/ptrace_engine.h"

#define ROUNDS_MIN 4 /* fewer are as fast by single steps */

static uint64_t counter(
	const struct tracee *t, const struct step_entry *e, const struct user_regs_struct *regs)
{
	bool is_narrow = !t->is_64;

	for (size_t i = 0; i < e->n; i++)
		if (e->bytes[i] == 0x67)
			is_narrow = true;
	return is_narrow ? (uint32_t)regs->rcx : regs->rcx;
}

bool tracee_runs_string(struct ptrace_engine *e, struct tracee *t)
{
	const struct step_entry *known = step_space_known(t->track->space, t->saved);
	uint64_t next;

	/* --data wants each round; in 16-bit addressing, which nobody uses, cx counts. */
	if (!known || !known->is_string || e->o->data || t->regs.rip != t->saved)
		return false;
	t->count_before = counter(t, known, &t->regs);
	next = t->saved + known->n;
	if (t->count_before < ROUNDS_MIN || !tracee_set_places(t, &next, 1))
		return false;
	t->is_in_string = true;
	t->is_in_block = false;
	return true;
}

void tracee_string_stopped(struct ptrace_engine *e, struct tracee *t)
{
	const struct step_entry *known = step_space_known(t->track->space, t->saved);
	struct user_regs_struct before = t->regs;
	uint64_t rounds;

	t->is_in_string = false;
	t->given.a = 0;
	tracee_clear_places(t);
	if (!tracee_read_regs(t) || !known)
		return;
	rounds = t->count_before - counter(t, known, &t->regs);
	if (rounds && rounds <= t->count_before) {
		uint8_t bytes[16];
		size_t n = tracee_fetch(t, t->saved, bytes);

		tracee_tell(e, t, t->saved, bytes, n, &before);
		if (t->is_marked_in && t->track->is_open)
			step_run_again(&t->track->run, rounds - 1);
	}
	t->saved = t->regs.rip;
}
