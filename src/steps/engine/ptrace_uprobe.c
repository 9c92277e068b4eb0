/* SPDX-License-Identifier: MIT */
/*
 * Steps over uprobes of others (perf, bpftrace, weir probe). The kernel executes the instruction out
 * of line or by itself, and then reports the step in a way of its own: by a SIGTRAP that the thread
 * seems to have sent to itself by kill(2), which is queued for the thread alone. kill(2) queues for
 * the whole process, and what is forced on a thread (the end of an ordinary step) comes before
 * either: so such a signal at another place than where the thread stood is the end of a step.
 *
 * At its place it is one, too, where the instruction may lead to itself and has a uprobe now; the
 * uprobe may be gone already, and then a string instruction is known by its counter.
 */
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

#include "arch/x86_code.h"
#include "process/proc.h"
#include "steps/engine/ptrace_engine.h"

bool tracee_has_uprobe(const struct tracee *t, uint64_t addr)
{
	uint8_t bytes[16];
	size_t n = tracee_fetch_memory(t, addr, bytes);

	return step_track_unprobe(t->track, addr, bytes, n, t->is_64);
}

/* Whether the instruction can have been executed and lead to itself: a round of a string
 * instruction, a jump. */
static bool may_stay(const struct tracee *t, const struct user_regs_struct *now)
{
	struct x86_insn insn;
	uint8_t bytes[16];
	size_t n = tracee_fetch_memory(t, t->saved, bytes);
	bool has_uprobe = step_track_unprobe(t->track, t->saved, bytes, n, t->is_64);

	if (!x86_decode(&insn, (struct span){bytes, n}, t->saved, t->is_64))
		return false;
	if (insn.flow != X86_FLOW_NEXT)
		return has_uprobe;
	return x86_is_repeated_string((struct span){bytes, insn.length}) &&
	       (has_uprobe || now->rcx != t->regs.rcx);
}

bool tracee_is_sent_by_uprobe(const struct tracee *t, const siginfo_t *info)
{
	pid_t own = t->pid;

	if (info->si_signo != SIGTRAP || info->si_code != SI_USER)
		return false;
	proc_own_number(t->pid, t->pid, &own);
	return info->si_pid == own;
}

bool tracee_stepped_over_uprobe(const struct tracee *t, const siginfo_t *info)
{
	struct user_regs_struct now;

	if (t->mode != TRACEE_STEP || !t->has_saved || !tracee_is_sent_by_uprobe(t, info) ||
		ptrace(PTRACE_GETREGS, t->tid, NULL, &now) < 0)
		return false;
	return now.rip != (t->emulated ? t->emulated : t->saved) || may_stay(t, &now);
}

/* --- returning through the kernel's int3 ----------------------------------------------------- */

/*
 * In 32-bit programs, and in all where Linux is older than 6.11, a function with a uretprobe returns
 * to an int3, behind which the kernel goes on at the true return address without a word, and the
 * step ends behind the instruction there. Where that is, is known from the call.
 */
void tracee_look_for_call(struct tracee *t, const uint8_t *bytes, size_t n, uint64_t addr)
{
	struct tracee_call *c;
	struct x86_insn insn;
	size_t i = 0;

	while (i < n && (bytes[i] == 0xf2 || bytes[i] == 0x3e ||
				(t->is_64 && (bytes[i] & 0xf0) == 0x40)))
		i++;
	if (i + 1 >= n || (bytes[i] != 0xe8 && (bytes[i] != 0xff || (bytes[i + 1] >> 3 & 7) != 2)) ||
		!x86_decode(&insn, (struct span){bytes, n}, addr, t->is_64))
		return;
	c = &t->calls[t->n_calls++ % TRACEE_CALLS];
	*c = (struct tracee_call){t->regs.rsp, addr + insn.length};
}

/* Nobody can read that page. What Linux 6.11 and later have there for 64-bit programs is some
 * instructions, and its first one does not leave the page. */
bool tracee_is_at_return(const struct tracee *t)
{
	return !(t->saved & 0xfff) && step_track_is_in_kernels(t->track, t->saved) &&
	       !step_track_is_in_kernels(t->track, t->regs.rip);
}

/* Whether the instruction can lead to where the thread stands. */
static bool can_lead(const struct tracee *t, uint64_t addr)
{
	struct x86_insn insn;
	uint8_t bytes[16];
	size_t n = tracee_fetch(t, addr, bytes);

	if (!x86_decode(&insn, (struct span){bytes, n}, addr, t->is_64))
		return false;
	if (insn.flow == X86_FLOW_NEXT || insn.flow == X86_FLOW_SYSCALL)
		return t->regs.rip == addr + insn.length ||
		       x86_is_repeated_string((struct span){bytes, n});
	if (insn.flow == X86_FLOW_BRANCH)
		return t->regs.rip == addr + insn.length || t->regs.rip == insn.target;
	return !insn.has_target || t->regs.rip == insn.target;
}

bool tracee_find_return(const struct tracee *t, uint64_t sp, uint64_t *addr)
{
	uint64_t at = sp - (t->is_64 ? 8 : 4);

	for (size_t i = 1; i <= TRACEE_CALLS && i <= t->n_calls; i++) {
		const struct tracee_call *c = &t->calls[(t->n_calls - i) % TRACEE_CALLS];

		if (c->sp != at)
			continue;
		*addr = c->next;
		return can_lead(t, c->next);
	}
	return false;
}
