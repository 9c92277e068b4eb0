/* SPDX-License-Identifier: MIT */
/*
 * Programs that trace others themselves (strace, gdb, weir in weir). A thread has one tracer: so one
 * that a program asks for is let go before the call is made, and is the program's own from there on,
 * as it would be without us. Who asks stands meanwhile, in front of the call.
 *
 * The call is seen before it is made when the thread is stepped; in a thread that runs free, for some
 * calls after a fork, which is where programs ask for it.
 */
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "steps/engine/ptrace_engine.h"

#define PTRACE_32 26

/* With the registers in front of the call. */
static enum claim claim_of(
	const struct ptrace_engine *e, struct tracee *t, long number, struct tracee **target)
{
	long request = (long)(t->is_64 ? t->regs.rdi : (uint32_t)t->regs.rbx);
	pid_t tid = (pid_t)(t->is_64 ? t->regs.rsi : t->regs.rcx);

	if (number != (t->is_64 ? SYS_ptrace : PTRACE_32))
		return CLAIM_NONE;
	/* The command's parent is not the one that it would have without us. */
	if (request == PTRACE_TRACEME)
		return t->pid == e->command ? CLAIM_NONE : CLAIM_ITSELF;
	if (request != PTRACE_ATTACH && request != PTRACE_SEIZE)
		return CLAIM_NONE;
	*target = tracee_find(e, tid);
	return *target && (*target)->pid != t->pid ? CLAIM_OTHER : CLAIM_NONE;
}

enum claim tracee_claims(struct ptrace_engine *e, struct tracee *t, struct tracee **target)
{
	uint64_t number = t->is_64 ? t->regs.rax : (uint32_t)t->regs.rax;
	uint8_t bytes[16];
	enum claim claim = claim_of(e, t, (long)number, target);

	if (claim == CLAIM_NONE || !tracee_is_system_call(bytes, tracee_fetch(t, t->saved, bytes)))
		return CLAIM_NONE;
	return claim;
}

enum claim tracee_claims_in_call(
	struct ptrace_engine *e, struct tracee *t, struct tracee **target)
{
	if (!t->n_watched || t->mode != TRACEE_FREE || !tracee_read_regs(t))
		return CLAIM_NONE;
	t->n_watched--;
	if ((int32_t)t->regs.rax != -ENOSYS) /* its end */
		return CLAIM_NONE;
	return claim_of(e, t, (long)t->regs.orig_rax, target);
}
