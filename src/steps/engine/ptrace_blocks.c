/* SPDX-License-Identifier: MIT */
/*
 * Stops at taken branches: what was executed since the last one is the stretch from there to the
 * branch, and that is read after it ran. ptrace does not say where the branch was; it is the
 * instruction of the stretch that leads to where the thread stands now.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/x86_code.h"
#include "steps/engine/ptrace_engine.h"

#define STRETCH_STEPS_MAX   256
#define STRETCH_TARGETS_MAX 16
#define TRIAL_STOPS_MAX	    4096

/* --- which stretches may be run through ------------------------------------------------------- */

struct stretch {
	uint64_t targets[STRETCH_TARGETS_MAX]; /* of its conditional branches */
	size_t n;
};

static bool add_target(struct stretch *s, uint64_t target)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->targets[i] == target)
			return false;
	if (s->n == STRETCH_TARGETS_MAX)
		return false;
	s->targets[s->n++] = target;
	return true;
}

/* pushf, popf, iret; or another instruction with such a byte, which is then stepped for nothing. */
static bool touches_flags(const struct step_entry *e)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->bytes[i] == 0x9c || e->bytes[i] == 0x9d || e->bytes[i] == 0xcf)
			return true;
	return false;
}

/*
 * The place of the branch is found only if no two branches of the stretch lead to the same place;
 * its end must be a direct jump or call, since anything else may lead where one of the branches
 * does. So a stretch is run through when all of it has been executed before, by single steps, and
 * is of that kind. Instructions in which the trap flag would show are stepped.
 */
static bool may_run_through(const struct tracee *t)
{
	struct stretch s = {.n = 0};
	uint64_t addr = t->saved;

	for (unsigned i = 0; i < STRETCH_STEPS_MAX; i++) {
		const struct step_entry *e = step_space_known(t->track->space, addr);
		struct x86_insn insn;

		if (!e || !e->n || touches_flags(e) || e->is_string ||
			!x86_decode(&insn, (struct span){e->bytes, e->n}, addr, t->is_64))
			return false;
		addr += insn.length;
		if (insn.flow == X86_FLOW_JUMP || insn.flow == X86_FLOW_CALL)
			return add_target(&s, insn.target);
		if (insn.flow == X86_FLOW_BRANCH && !add_target(&s, insn.target))
			return false;
		if (insn.flow == X86_FLOW_RETURN || insn.flow == X86_FLOW_JUMP_FAR ||
			insn.flow == X86_FLOW_CALL_FAR)
			return s.n == 0; /* nothing else can have been taken */
		if (insn.flow == X86_FLOW_SYSCALL || insn.flow == X86_FLOW_STOP)
			return false;
	}
	return false;
}

bool tracee_runs_block(struct ptrace_engine *e, struct tracee *t)
{
	t->is_in_block = e->by_block && may_run_through(t);
	return t->is_in_block;
}

/* Whether the taken branch, or the signal that came in between (`is_branch` false), was here. */
static bool leads_to(const struct x86_insn *insn, uint64_t next, uint64_t to, bool is_branch)
{
	if (!is_branch)
		return next == to;
	switch ((enum x86_flow)insn->flow) {
	case X86_FLOW_BRANCH:
		return insn->target == to;
	case X86_FLOW_NEXT:
		return false;
	default:
		return true;
	}
}

/*
 * The kernel stops behind an instruction with a uprobe, whatever that is: it is one of the stretch
 * that leads to where the thread stands, and the one that has the uprobe, if it is still there.
 * What leads to a page of the kernel's is one with a uprobe, or the return at the end.
 */
static uint64_t find_probed(const struct tracee *t, uint64_t from, uint64_t to)
{
	bool is_to_kernels = step_track_is_in_kernels(t->track, to);
	uint64_t addr = from, found = 0;

	for (unsigned i = 0; i < STRETCH_STEPS_MAX; i++) {
		struct x86_insn insn;
		uint8_t bytes[16];
		size_t n = tracee_fetch(t, addr, bytes);

		if (!x86_decode(&insn, (struct span){bytes, n}, addr, t->is_64))
			break;
		if (is_to_kernels || leads_to(&insn, addr + insn.length, to, false) ||
			leads_to(&insn, addr + insn.length, to, true)) {
			if (tracee_has_uprobe(t, addr))
				return addr;
			found = found && !is_to_kernels ? found : addr;
		}
		if (insn.flow != X86_FLOW_NEXT && insn.flow != X86_FLOW_BRANCH)
			break;
		addr += insn.length;
	}
	return found ? found : from;
}

uint64_t tracee_walk_block(
	struct ptrace_engine *e, struct tracee *t, uint64_t from, uint64_t to, int code)
{
	bool is_probed = code == TRAP_UPROBE || step_track_is_in_kernels(t->track, to);
	uint64_t addr = from, end = is_probed ? find_probed(t, from, to) : 0;
	bool is_branch = code == TRAP_STEP;

	for (unsigned i = 0; i < STRETCH_STEPS_MAX; i++) {
		struct x86_insn insn;
		uint8_t bytes[16];
		size_t n = tracee_fetch(t, addr, bytes);

		if (!x86_decode(&insn, (struct span){bytes, n}, addr, t->is_64) ||
			(end ? addr == end : leads_to(&insn, addr + insn.length, to, is_branch)))
			return addr;
		tracee_tell(e, t, addr, bytes, n, NULL);
		addr += insn.length;
	}
	return addr;
}

/* --- whether the processor stops at branches only --------------------------------------------- */

extern const char weir_trial_begin[], weir_trial_end[];

/* Eight instructions in a row, and a jump. */
__attribute__((noinline, noclone, used)) static void run_trial(void)
{
	__asm__ volatile(".globl weir_trial_begin\n"
			 "weir_trial_begin:\n"
			 "nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\n"
			 ".globl weir_trial_end\n"
			 "weir_trial_end:\n"
			 "jmp 1f\n1:\n");
}

static void be_tried(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
		raise(SIGSTOP);
		run_trial();
	}
	kill(getpid(), SIGKILL); /* nothing that our process has prepared for its end may run */
}

/* How many stops there are in the row; -1 when it could not be tried. */
static int count_stops(pid_t child)
{
	int status, n = 0;

	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return -1;
	for (unsigned i = 0; i < TRIAL_STOPS_MAX; i++) {
		struct user_regs_struct regs;

		if (ptrace(PTRACE_SINGLEBLOCK, child, NULL, NULL) < 0)
			return -1;
		if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			return n;
		if (ptrace(PTRACE_GETREGS, child, NULL, &regs) == 0 &&
			regs.rip > (uint64_t)(uintptr_t)weir_trial_begin &&
			regs.rip <= (uint64_t)(uintptr_t)weir_trial_end)
			n++;
	}
	return -1;
}

bool ptrace_blocks_are_emulated(void)
{
	return getenv("WEIR_STEPS_EMULATE_BLOCKS") != NULL;
}

const char *ptrace_blocks_hindrance(void)
{
	static int stops = -2;

	if (ptrace_blocks_are_emulated())
		return NULL;
	if (stops == -2) {
		pid_t child = fork();

		if (child == 0)
			be_tried();
		stops = child < 0 ? -1 : count_stops(child);
		if (child > 0) {
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
		}
	}
	if (stops < 0)
		return "PTRACE_SINGLEBLOCK is refused";
	return stops ? "PTRACE_SINGLEBLOCK stops at every instruction (a virtual machine "
		       "without branch stepping)"
		     : NULL;
}

bool tracee_passes_over(struct ptrace_engine *e, struct tracee *t, int code)
{
	struct user_regs_struct now;
	struct x86_insn insn;
	uint8_t bytes[16];
	uint64_t at = t->emulated ? t->emulated : t->saved;
	size_t n;

	if (!e->emulates_blocks || !t->is_in_block ||
		ptrace(PTRACE_GETREGS, t->tid, NULL, &now) < 0)
		return false;
	t->emulated = 0;
	n = tracee_fetch(t, at, bytes);
	if (code == TRAP_STEP_CALL || !x86_decode(&insn, (struct span){bytes, n}, at, t->is_64) ||
		now.rip != at + insn.length)
		return false;
	t->emulated = now.rip;
	return true;
}
