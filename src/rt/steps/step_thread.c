/* SPDX-License-Identifier: MIT */
/*
 * States, slots, and how threads come and go.
 *
 *   new thread    its state is chosen by its creator, which makes the call in that state's stub;
 *                 the thread's first trap comes on its own stack, and by the stub it finds its
 * state fork          the child's copy of the memory is its own; it takes a new slot vfork the
 * child runs in its parent's state while that is suspended; what was the parent's is kept aside,
 * and put back when the parent comes back
 */
#include "stepper.h"

#include <sched.h>

#define MADV_POPULATE_WRITE_ 23
#define CLONE_NEWPID_	     0x20000000ull
#define WHY_START	     0 /* STEP_WHY_START */
#define SS_DISABLE_	     2u

/* --- slots --------------------------------------------------------------------------------------
 */

static struct steps_slot *take_slot(void)
{
	struct steps_area *a = area();
	struct steps_slot *slots = (struct steps_slot *)((uint8_t *)a + a->slots_at);

	for (uint32_t i = 0; i < a->n_slots; i++) {
		uint32_t free = STEPS_SLOT_FREE;

		if (slots[i].state == STEPS_SLOT_FREE &&
			__atomic_compare_exchange_n(&slots[i].state, &free, STEPS_SLOT_TAKEN, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return &slots[i];
	}
	return NULL;
}

/* Its pages are there before the first step is written: recording causes no fault. */
static void use_slot(struct state *t, struct steps_slot *s)
{
	struct steps_area *a = area();
	struct steps_slot *slots = (struct steps_slot *)((uint8_t *)a + a->slots_at);
	uint8_t *ring = (uint8_t *)a + a->rings_at + (uint64_t)(s - slots) * a->ring_stride;

	raw_call(SYS_madvise, ring, a->ring_stride, MADV_POPULATE_WRITE_);
	t->ring = (struct steps_record *)ring;
	t->slot = s;
}

static void end_slot(struct state *t)
{
	if (t->slot)
		__atomic_store_n(&t->slot->state, STEPS_SLOT_ENDED, __ATOMIC_RELEASE);
	t->slot = NULL;
}

/* --- processes ----------------------------------------------------------------------------------
 */

static struct process *new_process(uint32_t pid)
{
	struct memory *m = memory();

	for (unsigned i = 0; i < N_PROCESSES; i++) {
		struct process *p = &m->processes[i];

		if (p->pid)
			continue;
		clear_bytes(p, sizeof(*p));
		p->pid = pid;
		return p;
	}
	return NULL;
}

static struct process *find_process(uint32_t pid)
{
	struct memory *m = memory();

	for (unsigned i = 0; i < N_PROCESSES; i++)
		if (m->processes[i].pid == pid)
			return &m->processes[i];
	return NULL;
}

/* The process of a thread that the recorder put us into. */
static struct process *first_process(struct state *t)
{
	struct steps_config *config = &memory()->config;
	struct process *p;

	lock_memory();
	p = find_process(config->pid);
	if (!p)
		p = new_process(config->pid);
	t->process = p;
	if (!p->has_begun) {
		/* All of them, also those that sit in a system call and have yet to trap. */
		p->n_threads = config->n_threads;
		config->actions_at = (uint64_t)(uintptr_t)p->actions;
		signals_begin(t);
		p->has_begun = 1;
	}
	unlock_memory();
	return p;
}

/* --- beginning and leaving
 * ------------------------------------------------------------------------ */

struct state *thread_state(const struct context *c)
{
	uint64_t at = (uint64_t)(uintptr_t)c - (uint64_t)(uintptr_t)state_at(0);
	uint64_t stub = c->r.rip - (uint64_t)(uintptr_t)steps_stubs;

	if (at < (uint64_t)STEPS_N_STATES * STEPS_STATE_BYTES) {
		struct state *t = state_at((uint32_t)(at / STEPS_STATE_BYTES));

		return t->head.is_out && !t->n_vforks ? NULL : t;
	}
	if (stub < (uint64_t)STEPS_N_STATES * STUB_BYTES &&
		memory()->config.owners[stub / STUB_BYTES] == STEPS_OWNER_UNKNOWN)
		return state_at((uint32_t)(stub / STUB_BYTES));
	return NULL;
}

/* Without a slot, or unwanted: as if we had never been. */
static bool decline(struct state *t, struct context *c)
{
	if (!is_off())
		__atomic_fetch_add(&area()->n_slotless, 1, __ATOMIC_RELAXED);
	thread_leave(t, c, WHY_START);
	return false;
}

bool thread_begin(struct state *t, struct context *c, enum steps_slot_how how, uint32_t by_tid)
{
	struct steps_slot *s;

	if (how == STEPS_HOW_START) {
		t->index = (uint32_t)(((uint64_t)(uintptr_t)t - (uint64_t)(uintptr_t)state_at(0)) /
				      STEPS_STATE_BYTES);
		first_process(t);
	}
	t->head.is_begun = 1;
	s = is_off() ? NULL : take_slot();
	if (!s)
		return decline(t, c);
	s->pid = t->process->pid;
	s->tid = t->head.tid;
	s->by_tid = by_tid;
	s->how = how;
	use_slot(t, s);
	__atomic_store_n(&s->state, STEPS_SLOT_LIVE, __ATOMIC_RELEASE);
	ring_write(t, STEPS_RECORD_RESUME, 0, WHY_START, 0);
	return true;
}

/* The program's actions but that of SIGTRAP; once. */
static void restore(struct process *p)
{
	if (p->is_restored)
		return;
	signals_restore(p);
	p->is_restored = 1;
	if (p->pid == memory()->config.pid)
		memory()->config.is_restored = 1;
}

static void forget_thread(struct state *t)
{
	struct process *p = t->process;

	lock_memory();
	if (is_off())
		restore(p);
	if (!--p->n_threads) {
		/* The last one: nobody traps any more. */
		restore(p);
		raw_call(SYS_rt_sigaction, SIG_TRAP, &p->actions[SIG_TRAP], 0, 8);
		p->has_begun = 0;
		p->pid = 0;
	}
	unlock_memory();
}

void thread_leave(struct state *t, struct context *c, int why)
{
	if (t->slot)
		ring_write(t, STEPS_RECORD_PAUSE, 0, (uint32_t)why, 0);
	end_slot(t);
	c->r.flags = (c->r.flags & ~FLAG_TRAP) | (t->head.has_own_trap ? FLAG_TRAP : 0);
	c->stack = (struct signal_stack){t->head.alt_sp,
		t->head.alt_bytes ? t->head.alt_flags : SS_DISABLE_, 0, t->head.alt_bytes};
	if (t->head.is_trap_blocked)
		c->mask |= SIG_TRAP_BIT;
	if (t->head.is_trap_pending)
		signal_send_again(SIG_TRAP, &t->pending_trap);
	t->head.is_trap_pending = 0;
	t->head.is_out = 1;
	t->head.is_begun = 0;
	forget_thread(t);
	if (t->n_vforks) { /* the state is still its parent's */
		t->process = t->vforks[t->n_vforks - 1].process;
		return;
	}
	/* The state stays its own until the thread is gone: its stack is in use until the kernel
	 * has put the context back. */
}

/* Whether the thread really ends the recorder finds out: a signal may still come first. */
void exit_begin(struct state *t, uint64_t addr, uint32_t status, bool is_all)
{
	ring_write(t, STEPS_RECORD_EXIT, addr, status, is_all);
	lock_memory();
	t->process->n_threads--;
	unlock_memory();
}

void exit_take_back(struct state *t)
{
	lock_memory();
	t->process->n_threads++;
	unlock_memory();
}

/* --- new threads and processes
 * ---------------------------------------------------------------------- */

/* A state that nobody uses: never used, or of a thread that is gone. 0 when there is none. */
static uint32_t take_state(struct state *t)
{
	struct memory *m = memory();
	uint32_t found = 0;

	lock_memory();
	for (uint32_t i = 1; i < STEPS_N_STATES && !found; i++) {
		uint32_t owner = m->config.owners[i];

		if (owner == STEPS_OWNER_UNKNOWN)
			continue;
		if (owner && raw_call(SYS_tgkill, t->process->pid, owner, 0) != -ERRNO_ESRCH)
			continue;
		m->config.owners[i] = STEPS_OWNER_UNKNOWN;
		found = i;
	}
	unlock_memory();
	return found;
}

static void free_state(uint32_t i)
{
	__atomic_store_n(&memory()->config.owners[i], 0, __ATOMIC_RELEASE);
}

static bool is_vfork(uint64_t flags)
{
	return (flags & (CLONE_VM | CLONE_VFORK)) == (CLONE_VM | CLONE_VFORK);
}

bool clone_begin(struct state *t, struct context *c, uint64_t flags)
{
	struct state *child;
	uint32_t i;

	(void)c;
	t->call.clone_flags = flags;
	t->head.is_cloning = 1;
	if (is_vfork(flags))
		return t->n_vforks < N_VFORKS && find_process(0);
	if (!(flags & CLONE_VM))
		return true;
	if (!(flags & CLONE_THREAD) && !find_process(0))
		return false;
	i = take_state(t);
	if (!i)
		return false;
	child = state_at(i);
	/* Its pages are there before its first trap. */
	raw_call(SYS_madvise, child, STEPS_STATE_BYTES, MADV_POPULATE_WRITE_);
	clear_bytes(child, sizeof(*child));
	child->index = i;
	child->process = t->process;
	child->head.is_begun = 1;
	child->head.is_trap_blocked = t->head.is_trap_blocked;
	child->head.alt_flags = SS_DISABLE_;
	child->head.has_own_trap = t->head.has_own_trap;
	lock_memory();
	t->process->n_threads++;
	unlock_memory();
	t->call.child = i;
	t->call.at = stub_of(i) + (t->call.is_32 ? STUB_32 : 0);
	return true;
}

void clone_end_parent(struct state *t, int64_t result)
{
	uint64_t flags = t->call.clone_flags;

	if (result < 0) {
		if (t->call.child) {
			free_state(t->call.child);
			lock_memory();
			t->process->n_threads--;
			unlock_memory();
		}
		return;
	}
	/* A vfork child has told of itself in our name. */
	if (!is_vfork(flags) && !(area()->flags & STEPS_FLAG_NO_FOLLOW && !(flags & CLONE_THREAD)))
		ring_write(t, STEPS_RECORD_FORK, (uint64_t)result, (flags & CLONE_THREAD) != 0, 0);
}

/* The state goes on as the child's; the parent's things wait. */
static bool suspend_parent(struct state *t, uint32_t tid)
{
	struct suspended *s = &t->vforks[t->n_vforks++];

	*s = (struct suspended){
		t->slot, t->process, t->call, t->head.tid, t->head.saved, t->head.is_trap_blocked};
	s->call.is_on = true; /* it is still in it */
	if (!(area()->flags & STEPS_FLAG_NO_FOLLOW))
		ring_write(t, STEPS_RECORD_FORK, tid, 0, 0);
	return true;
}

/* A process with the same memory: its actions are its own from now on. */
static bool split_process(struct state *t, uint32_t pid)
{
	struct process *from = t->process, *p;

	lock_memory();
	p = new_process(pid);
	if (p) {
		copy_bytes(p->actions, from->actions, sizeof(p->actions));
		p->has_begun = 1;
		p->is_unfollowed = from->is_unfollowed;
		p->n_threads = 1;
	}
	unlock_memory();
	if (!p)
		return false;
	t->process = p;
	return true;
}

/* The copy of our memory that a forked child has: only this thread is in it. */
static void inherit_memory(struct state *t, uint32_t tid)
{
	struct memory *m = memory();
	struct process *p = t->process;

	m->lock = 0;
	for (unsigned i = 0; i < N_PROCESSES; i++)
		if (&m->processes[i] != p)
			m->processes[i].pid = 0;
	clear_bytes(m->config.owners, sizeof(m->config.owners));
	m->config.owners[t->index] = tid;
	m->config.pid = tid;
	m->config.is_shared = 0;
	m->config.n_passing = 0;
	p->pid = tid;
	p->n_threads = 1;
	t->n_vforks = 0;
}

void clone_end_child(struct state *t, struct context *c)
{
	uint64_t flags = t->call.clone_flags;
	uint32_t tid = (uint32_t)raw_call(SYS_gettid, 0), by = t->call.by_tid;
	bool is_thread = flags & CLONE_THREAD;
	bool is_foreign = !is_thread && (t->process->is_unfollowed || flags & CLONE_NEWPID_);
	bool is_wanted = is_thread || !((area()->flags & STEPS_FLAG_NO_FOLLOW) || is_foreign);
	bool has_process = true;

	if (is_foreign && !(area()->flags & STEPS_FLAG_NO_FOLLOW) && !is_off())
		__atomic_fetch_add(&area()->n_foreign, 1, __ATOMIC_RELAXED);

	if (is_vfork(flags)) {
		suspend_parent(t, tid);
		has_process = split_process(t, tid);
	} else if (!(flags & CLONE_VM)) {
		inherit_memory(t, tid);
	} else {
		__atomic_store_n(&memory()->config.owners[t->index], tid, __ATOMIC_RELEASE);
		if (!is_thread) {
			memory()->config.is_shared = 1;
			lock_memory();
			t->process->n_threads--;
			unlock_memory();
			has_process = split_process(t, tid);
		}
	}
	t->slot = NULL;
	t->n_lost = 0;
	t->head.is_trap_pending = false;
	t->head.tid = tid;
	if (t->call.clears_actions)
		signals_clear(t->process);
	if (!has_process || !is_wanted)
		thread_leave(t, c, WHY_START);
	else
		thread_begin(t, c, is_thread ? STEPS_HOW_THREAD : STEPS_HOW_FORK, by);
}

void vfork_look(struct state *t, const struct context *c)
{
	struct suspended *s = &t->vforks[t->n_vforks - 1];
	uint64_t stub = c->r.rip - s->call.at;

	if ((stub != STUB_BEHIND && stub != STUB_END && stub != 0) ||
		(uint32_t)raw_call(SYS_gettid, 0) != s->tid)
		return;
	lock_memory();
	if (t->process != s->process)
		t->process->pid = 0;
	unlock_memory();
	t->n_vforks--;
	t->slot = s->slot;
	t->process = s->process;
	t->call = s->call;
	t->head.tid = s->tid;
	t->head.saved = s->saved;
	t->head.is_cloning = 1;
	t->head.call_at = s->call.at;
	t->head.call_ret = s->call.ret;
	t->head.is_trap_blocked = s->is_trap_blocked;
	t->head.is_out = 0;
	t->head.is_begun = 1;
	t->n_lost = 0;
	if (t->slot)
		use_slot(t, t->slot);
}
