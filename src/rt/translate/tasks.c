/* SPDX-License-Identifier: MIT */
/*
 * Threads and processes. A child that shares the memory (threads, vfork) gets an area of its own before it is made; one that
 * does not has a copy of everything, and begins to count anew.
 */
#include <linux/sched.h>

#include "translate.h"

/* clone3's arguments, as many as are looked at. */
#define CLONE_FIELDS 11
enum { C_FLAGS, C_PIDFD, C_CHILD_TID, C_PARENT_TID, C_SIGNAL, C_STACK, C_STACK_BYTES, C_TLS };

/* The child of a fork: alone, with all that its parent had. */
static void begin_process(struct thread *t)
{
	t->a.tid = raw_tid();
	threads_forget_others(t);
	translate_service(TRANSLATE_FORKED, t, 0);
	event_put(t, TRANSLATE_EVENT_CALLED, NO_BLOCK, t->a.regs[RSP]);
}

static int64_t fork_with(struct thread *t, uint64_t number, const uint64_t args[6], uint64_t stack)
{
	int64_t result;

	cache_lock(); /* so that no other thread of the child's past holds it */
	result = raw_call(number, args[0], args[1], args[2], args[3], args[4], args[5]);
	cache_unlock();
	if (result == 0) {
		if (stack)
			t->a.regs[RSP] = stack;
		begin_process(t);
	}
	return result;
}

static struct thread *child_of(struct thread *t, uint64_t stack, bool waits)
{
	struct thread *c = thread_new();

	if (!c)
		return NULL;
	bytes_copy(c->a.regs, t->a.regs, sizeof(c->a.regs));
	c->a.regs[RAX] = 0;
	c->a.regs[RCX] = t->a.pc;
	c->a.regs[R11] = t->a.flags;
	if (stack)
		c->a.regs[RSP] = stack;
	c->a.pc = t->a.pc;
	c->a.flags = t->a.flags;
	c->a.program_gs = t->a.program_gs;
	c->a.vfork_of = waits ? (uint64_t)t : 0;
	c->kept_mask = t->kept_mask;
	c->fault_block = NO_BLOCK;
	if (waits)
		c->altstack = t->altstack;
	return c;
}

static int64_t share_with(struct thread *t, uint64_t number, const uint64_t args[6], uint64_t flags, uint64_t stack, uint64_t mask)
{
	struct thread *c = child_of(t, stack, flags & CLONE_VFORK);
	int64_t result;

	if (!c)
		return -EAGAIN;
	c->is_guest = !(flags & CLONE_THREAD);
	c->new_mask = mask | t->kept_mask;
	c->has_new_mask = true;
	result = translate_clone((long)number, args, c);
	if (result < 0)
		c->a.state = TRANSLATE_THREAD_FREE;
	return result;
}

static int64_t clone_new(struct thread *t, uint64_t mask)
{
	uint64_t a[CLONE_FIELDS] = {0}, size = t->a.regs[RSI], stack;
	const uint64_t args[6] = {(uint64_t)a, size < sizeof(a) ? size : sizeof(a), 0, 0, 0, 0};

	if (size < 64 || size > 4096)
		return -EINVAL;
	if (!translate_copy(a, (const void *)t->a.regs[RDI], args[1]))
		return -EFAULT;
	if ((!a[C_STACK]) != (!a[C_STACK_BYTES]))
		return -EINVAL;
	stack = a[C_STACK] ? a[C_STACK] + a[C_STACK_BYTES] : 0;
	a[C_STACK] = a[C_STACK_BYTES] = 0;
	if (a[C_FLAGS] & CLONE_VM)
		return share_with(t, SYS_clone3, args, a[C_FLAGS], stack, mask);
	return fork_with(t, SYS_clone3, args, stack);
}

static int64_t clone_old(struct thread *t, uint64_t mask)
{
	const uint64_t *r = t->a.regs;
	const uint64_t args[6] = {r[RDI], 0, r[RDX], r[R10], r[R8], 0};

	if (r[RDI] & CLONE_VM)
		return share_with(t, SYS_clone, args, r[RDI], r[RSI], mask);
	return fork_with(t, SYS_clone, args, r[RSI]);
}

static int64_t make_task(struct thread *t, uint64_t mask)
{
	const uint64_t none[6] = {0}, vfork[6] = {CLONE_VM | CLONE_VFORK | 17 /* SIGCHLD */};

	switch (t->a.regs[RAX]) {
	case SYS_fork:
		return fork_with(t, SYS_fork, none, 0);
	case SYS_vfork:
		return share_with(t, SYS_clone, vfork, vfork[0], 0, mask);
	case SYS_clone3:
		return clone_new(t, mask);
	default:
		return clone_old(t, mask);
	}
}

/* No signal is lent to the child: what waits is given first, what comes now waits in the kernel. */
static enum task_done make_child(struct thread *t, int64_t *result)
{
	uint64_t mask;

	if (!signals_hold(t, &mask))
		return TASK_INTERRUPTED;
	*result = make_task(t, mask);
	signals_release(mask);
	return TASK_MADE;
}

/* A signal that comes before the call is made is the old program's: with it all others are blocked, and would stay
 * so in the new one. */
static enum task_done exec(struct thread *t, int64_t *result)
{
	bool is_made;

	if (t->pending)
		return TASK_INTERRUPTED;
	translate_service(TRANSLATE_EXEC, t, 0);
	signals_before_exec(t);
	is_made = translate_safe_call(t, t->a.regs);
	signals_exec_failed(t);
	*result = t->result;
	return is_made ? TASK_MADE : TASK_INTERRUPTED;
}

enum task_done task_call(struct thread *t, int64_t *result)
{
	uint64_t mask;

	switch (t->a.regs[RAX]) {
	case SYS_fork:
	case SYS_vfork:
	case SYS_clone:
	case SYS_clone3:
		return make_child(t, result);
	case SYS_execve:
	case SYS_execveat:
		return exec(t, result);
	case SYS_exit:
		if (!is_confined) /* a filter may end the program for any other call */
			signals_hold(t, &mask);
		translate_thread_exit(t, (long)t->a.regs[RDI]);
	default:
		return TASK_NOT_ONE;
	}
}
