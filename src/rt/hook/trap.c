/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints: a trap at a patched function goes on in its trampoline, whose code includes the
 * replaced instruction; the breakpoint stays in place for the other threads. Traps that are not
 * ours are the program's, and go to the handler that it had.
 */
#include <signal.h>
#include <ucontext.h>

#include "hook.h"

struct kernel_sigaction {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
} __attribute__((packed, aligned(sizeof(long))));

#define KERNEL_SA_RESTORER 0x04000000ul
#define TRAP_BIT	   ((uint64_t)1 << (SIGTRAP - 1))
#define N_INTERNAL_SIGNALS 2 /* 32 and 33 are libc's own */

static struct kernel_sigaction theirs; /* the program's own; written before ours is installed */
static bool is_installed;

#ifdef __x86_64__
#define CONTEXT_PC REG_RIP
#define CONTEXT_SP REG_RSP
#else
#define CONTEXT_PC REG_EIP
#define CONTEXT_SP REG_ESP
#endif

/* Nobody handles it: end as the program would have ended. */
static void die_of_trap(void)
{
	struct kernel_sigaction none = {0};
	uint64_t mask = TRAP_BIT;

	raw_call(SYS_rt_sigaction, SIGTRAP, &none, 0, 8);
	raw_call(SYS_rt_sigprocmask, 1 /* SIG_UNBLOCK */, &mask, 0, 8);
	raw_call(SYS_tgkill, raw_pid(), raw_tid(), SIGTRAP);
}

/*
 * Makes the trampoline's call. Signals are delivered where a handler returns to: in the hook, whose
 * frames unwinders know when one of them cancels the thread, and not in the trampoline.
 */
static void go_to(gregset_t r, uintptr_t call)
{
	const uint8_t *code = (const uint8_t *)call;
	uintptr_t pointer = 0;

	if (code[0] != 0xff || code[1] != 0x15) { /* a jump, or one that was silenced */
		r[CONTEXT_PC] = (greg_t)call;
		return;
	}
	bytes_copy(&pointer, code + 2, 4);
#ifdef __x86_64__
	pointer = call + HOOK_CALL_BYTES + (uintptr_t)(intptr_t)(int32_t)pointer;
#endif
	r[CONTEXT_SP] -= (greg_t)sizeof(uintptr_t);
	*(uintptr_t *)(uintptr_t)r[CONTEXT_SP] = call + HOOK_CALL_BYTES;
	r[CONTEXT_PC] = (greg_t) * (const uintptr_t *)pointer;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uintptr_t pc = (uintptr_t)uc->uc_mcontext.gregs[CONTEXT_PC] - 1;
	const struct patch *p;

	if (pc == (uintptr_t)weir_cost_trap) {
		bool is_tree = library.control && library.control->mode == HOOK_MODE_TREE;

		go_to(uc->uc_mcontext.gregs, is_tree ? (uintptr_t)weir_cost_trampoline_tree
						     : (uintptr_t)weir_cost_trampoline);
		return;
	}
	p = patch_at(pc);
	if (p && !p->call)
		p = NULL; /* of a module that is gone */
	if (p && *(volatile uint8_t *)pc != 0xcc) {
		uc->uc_mcontext.gregs[CONTEXT_PC] = (greg_t)pc; /* taken out meanwhile: once more */
		return;
	}
	if (p) {
		go_to(uc->uc_mcontext.gregs, p->call);
		return;
	}
	if (theirs.handler == (uintptr_t)SIG_DFL || theirs.handler == (uintptr_t)SIG_IGN)
		die_of_trap();
	else
		((void (*)(int, siginfo_t *, void *))theirs.handler)(number, info, context);
}

bool trap_install(void)
{
	struct kernel_sigaction ours = {
		.handler = (uintptr_t)on_trap,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | KERNEL_SA_RESTORER,
		.restorer = (uintptr_t)weir_sigreturn,
	};
	uint64_t mask = 0;

	if (is_installed)
		return true;
	raw_call(SYS_rt_sigprocmask, 0, 0, &mask, 8);
	/* A trap that is blocked kills. Threads that run already may have it blocked, and only they
	 * could say. */
	if ((mask & TRAP_BIT) || (library.is_attached && tasks_count() != 1))
		return false;
	if (raw_call(SYS_rt_sigaction, SIGTRAP, 0, &theirs, 8) < 0)
		return false;
	if (theirs.handler != (uintptr_t)SIG_DFL)
		return false; /* the program uses it itself */
	is_installed = raw_call(SYS_rt_sigaction, SIGTRAP, &ours, 0, 8) >= 0;
	return is_installed;
}

/* A trap that somebody sends goes to the program's handler, which may do anything: then not. */
bool trap_let_through(void)
{
	uint64_t mask = TRAP_BIT;

	return is_installed && theirs.handler == (uintptr_t)SIG_DFL &&
	       raw_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, 0, 8) >= 0;
}

void trap_block(void)
{
	uint64_t mask = TRAP_BIT;

	raw_call(SYS_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
}

/* --- the program's own calls ------------------------------------------------------------- */

static uintptr_t restorer(unsigned long flags)
{
#ifndef __x86_64__
	if (!(flags & SA_SIGINFO))
		return (uintptr_t)weir_sigreturn_old;
#endif
	(void)flags;
	return (uintptr_t)weir_sigreturn;
}

/* glibc's structure is another one. */
static void from_libc(struct kernel_sigaction *to, const struct sigaction *from)
{
	to->handler = (uintptr_t)from->sa_handler;
	to->flags = (unsigned long)(unsigned)from->sa_flags;
	bytes_copy(&to->mask, &from->sa_mask, sizeof(to->mask));
}

static void to_libc(struct sigaction *to, const struct kernel_sigaction *from)
{
	to->sa_handler = (void (*)(int))from->handler;
	to->sa_flags = (int)from->flags;
	bytes_copy(&to->sa_mask, &from->mask, sizeof(from->mask));
}

/* sigaction as libc has it, for everything but the one signal. */
static int own_sigaction(int number, const struct sigaction *wanted, struct sigaction *old)
{
	struct kernel_sigaction in, out;
	long rc;

	if (number >= 32 && number < 32 + N_INTERNAL_SIGNALS)
		return -EINVAL;
	if (number == SIGTRAP) {
		struct kernel_sigaction before = theirs; /* both may be the same structure */

		if (wanted)
			from_libc(&theirs, wanted);
		if (old)
			to_libc(old, &before);
		return 0;
	}
	if (wanted) {
		from_libc(&in, wanted);
		in.flags |= KERNEL_SA_RESTORER;
		in.restorer = restorer(in.flags);
		in.mask &= ~TRAP_BIT;
	}
	rc = raw_call(SYS_rt_sigaction, number, wanted ? &in : 0, old ? &out : 0, 8);
	if (rc < 0)
		return (int)rc;
	if (old) {
		to_libc(old, &out);
		old->sa_flags &= (int)~KERNEL_SA_RESTORER;
		old->sa_restorer = (void (*)(void))out.restorer;
	}
	return 0;
}

/* errno is libc's, and ours to set as libc would have. */
extern int *__errno_location(void) __attribute__((weak));

static int with_errno(long rc)
{
	if (rc >= 0)
		return 0;
	if (__errno_location)
		*__errno_location() = (int)-rc;
	return -1;
}

static int replaced_sigaction(int number, const struct sigaction *wanted, struct sigaction *old)
{
	return with_errno(own_sigaction(number, wanted, old));
}

static long set_mask(int how, const sigset_t *set, sigset_t *old)
{
	uint64_t mask;

	if (!set)
		return raw_call(SYS_rt_sigprocmask, how, 0, old, 8);
	bytes_copy(&mask, set, sizeof(mask));
	if (how == SIG_BLOCK || how == SIG_SETMASK)
		mask &= ~TRAP_BIT;
	/* libc keeps its two internal signals unblocked. */
	mask &= ~((uint64_t)3 << 31);
	return raw_call(SYS_rt_sigprocmask, how, &mask, old, 8);
}

/* pthread_sigmask, which sigprocmask calls: the error is the result. */
static int replaced_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return (int)-set_mask(how, set, old);
}

uintptr_t own_function(enum hook_own own)
{
	switch (own) {
	case HOOK_OWN_CYG_ENTER:
		return (uintptr_t)weir_cyg_enter;
	case HOOK_OWN_CYG_EXIT:
		return (uintptr_t)weir_cyg_exit;
	case HOOK_OWN_SIGMASK:
		return (uintptr_t)replaced_sigmask;
	case HOOK_OWN_SIGACTION:
		return (uintptr_t)replaced_sigaction;
	case HOOK_OWN_MAKECONTEXT:
	case HOOK_OWN_RETURN_LOCATION:
	case HOOK_OWN_PRCTL:
	case HOOK_OWN_SYSCALL:
	case HOOK_OWN_MPROTECT:
	case HOOK_OWN_CREATE_JVM:
	case HOOK_OWN_FIND_JVMS:
	case HOOK_OWN_VM_STRUCTS:
	case HOOK_OWN_VM_STRIDE:
	case HOOK_OWN_VM_OFFSET:
		break;
	}
	return 0;
}
