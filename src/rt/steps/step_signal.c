/* SPDX-License-Identifier: MIT */
/*
 * The program's signals. The kernel gives every signal that the program handles to us, with all
 * signals blocked and on our stack; we build the frame that the kernel would have built, where the
 * program wants it, and go on in the program's handler with the trap flag set. rt_sigreturn is done
 * here, too. So the handler is traced, and what it finds in its frame has nothing of ours.
 *
 * Signals that the program does not handle are the kernel's as ever. SIGTRAP is always ours: what
 * the program does with it is only remembered, and a true one is passed on.
 */
#include "stepper.h"

#define SIG_DFL_       0
#define SIG_IGN_       1
#define SIG_KILL       9
#define SIG_STOP       19
#define SA_SIGINFO_    0x4ull
#define SA_RESTORER_   0x04000000ull
#define SA_ONSTACK_    0x08000000ull
#define SA_RESTART_    0x10000000ull
#define SA_NODEFER_    0x40000000ull
#define SA_RESETHAND_  0x80000000ull
#define SA_KNOWN       0xdc000c07ull	      /* what the kernel keeps of the flags */
#define SA_KERNELS     (SA_RESTART_ | 0x3ull) /* that the kernel has to obey: and SA_NOCLD* */
#define SS_ONSTACK_    1u
#define SS_DISABLE_    2u
#define MINSIGSTKSZ_   2048u
#define RED_ZONE       128u
#define FP_BYTES       512u
#define FP_SOFTWARE_AT 464u /* struct _fpx_sw_bytes */
#define FP_MAGIC1      0x46505853u
#define FP_BYTES_MAX   0x4000u
#define FLAG_DIRECTION 0x400ull
#define FLAG_RESUME    0x10000ull
/* What rt_sigreturn takes of the flags (FIX_EFLAGS of the kernel), without the trap flag. */
#define FLAGS_RETURNED 0x50cd5ull
#define USER_CS	       0x33
#define USER_SS	       0x2b
#define ALL_BUT_TRAP   (~SIG_TRAP_BIT)

struct frame {
	uint64_t ret;
	struct context c;
	struct signal_info info;
};

static uint64_t bit(int number)
{
	return 1ull << (number - 1);
}

static int64_t kernel_action(int number, const struct steps_action *set, struct steps_action *old)
{
	return raw_call(SYS_rt_sigaction, number, set, old, 8);
}

/* Faults are taken even when the program does nothing about them: the trace says what it died of.
 */
static bool is_fault(int number)
{
	return number == 4 || number == 7 || number == 8 || number == 11 || number == 31;
}

static bool is_handled(const struct steps_action *a)
{
	return a->handler != SIG_DFL_ && a->handler != SIG_IGN_;
}

static bool is_ours(int number, const struct steps_action *a)
{
	return is_handled(a) || (is_fault(number) && a->handler == SIG_DFL_);
}

/* Ours in place of the program's. */
static int64_t put_ours(int number, const struct steps_action *own)
{
	struct steps_action a = {.handler = (uint64_t)(uintptr_t)weir_steps_entry,
		.flags = SA_SIGINFO_ | SA_ONSTACK_ | SA_RESTORER_ | (own->flags & SA_KERNELS),
		.restorer = (uint64_t)(uintptr_t)steps_restorer,
		.mask = ~0ull};

	return kernel_action(number, &a, NULL);
}

void signals_begin(struct state *t)
{
	struct process *p = t->process;

	p->actions[SIG_TRAP] = memory()->config.trap_action;
	for (int i = 1; i <= SIG_MAX; i++) {
		if (i == SIG_TRAP || i == SIG_KILL || i == SIG_STOP)
			continue;
		if (kernel_action(i, NULL, &p->actions[i]) == 0 && is_ours(i, &p->actions[i]))
			put_ours(i, &p->actions[i]);
	}
}

void signals_restore(struct process *p)
{
	for (int i = 1; i <= SIG_MAX; i++)
		if (i != SIG_TRAP && is_ours(i, &p->actions[i]))
			kernel_action(i, &p->actions[i], NULL);
}

void signals_clear(struct process *p)
{
	const struct steps_action standard = {0};

	for (int i = 1; i <= SIG_MAX; i++) {
		if (!is_handled(&p->actions[i]))
			continue;
		p->actions[i] = standard;
		if (i != SIG_TRAP && !is_fault(i))
			kernel_action(i, &standard, NULL);
	}
}

/* --- stacks ------------------------------------------------------------------------------------
 */

static bool is_on_stack(const struct state *t, uint64_t sp)
{
	const struct steps_state_head *h = &t->head;

	return !(h->alt_flags & SS_AUTODISARM_) && h->alt_bytes && sp > h->alt_sp &&
	       sp - h->alt_sp <= h->alt_bytes;
}

static int64_t set_stack(struct state *t, const struct signal_stack *s, uint64_t sp)
{
	uint32_t mode = s->flags & ~SS_AUTODISARM_;

	if (is_on_stack(t, sp))
		return -ERRNO_EPERM;
	if (mode != SS_DISABLE_ && mode != SS_ONSTACK_ && mode != 0)
		return -ERRNO_EINVAL;
	if (mode != SS_DISABLE_ && s->bytes < MINSIGSTKSZ_)
		return -ERRNO_ENOMEM;
	t->head.alt_flags = s->flags;
	t->head.alt_sp = mode == SS_DISABLE_ ? 0 : s->sp;
	t->head.alt_bytes = mode == SS_DISABLE_ ? 0 : s->bytes;
	return 0;
}

int64_t signal_call_stack(struct state *t, const struct regs64 *r)
{
	struct signal_stack set, old = {t->head.alt_sp, 0, 0, t->head.alt_bytes};

	old.flags = !t->head.alt_bytes ? SS_DISABLE_ : is_on_stack(t, r->rsp) ? SS_ONSTACK_ : 0;
	old.flags |= t->head.alt_flags & SS_AUTODISARM_;
	if (r->rdi) {
		int64_t rc;

		if (!data_read(t, r->rdi, &set, sizeof(set)))
			return -ERRNO_EFAULT;
		rc = set_stack(t, &set, r->rsp);
		if (rc < 0)
			return rc;
	}
	return r->rsi && !data_write(t, r->rsi, &old, sizeof(old)) ? -ERRNO_EFAULT : 0;
}

/* --- the calls ----------------------------------------------------------------------------------
 */

static int64_t set_action(struct state *t, int number, struct steps_action *a)
{
	int64_t rc = 0;

	a->flags &= SA_KNOWN;
	a->mask &= ~(bit(SIG_KILL) | bit(SIG_STOP));
	/* Who leaves first puts the program's actions back: nothing of ours may come behind that.
	 */
	lock_memory();
	if (number != SIG_TRAP)
		rc = is_ours(number, a) && !t->process->is_restored
			     ? put_ours(number, a)
			     : kernel_action(number, a, NULL);
	if (rc == 0)
		t->process->actions[number] = *a;
	unlock_memory();
	return rc;
}

int64_t signal_call_action(struct state *t, const struct regs64 *r)
{
	int number = (int)r->rdi;
	struct steps_action set, old;

	if (r->r10 != sizeof(uint64_t))
		return -ERRNO_EINVAL;
	if (r->rsi && !data_read(t, r->rsi, &set, sizeof(set)))
		return -ERRNO_EFAULT;
	if (number < 1 || number > SIG_MAX ||
		(r->rsi && (number == SIG_KILL || number == SIG_STOP)))
		return -ERRNO_EINVAL;
	old = t->process->actions[number];
	if (r->rsi) {
		int64_t rc = set_action(t, number, &set);

		if (rc < 0)
			return rc;
	}
	return r->rdx && !data_write(t, r->rdx, &old, sizeof(old)) ? -ERRNO_EFAULT : 0;
}

/* The mask as the program knows it. */
static uint64_t own_mask(const struct state *t, uint64_t mask)
{
	return (mask & ALL_BUT_TRAP) | (t->head.is_trap_blocked ? SIG_TRAP_BIT : 0);
}

static void set_own_mask(struct state *t, struct context *c, uint64_t mask)
{
	t->head.is_trap_blocked = (mask & SIG_TRAP_BIT) != 0;
	c->mask = mask & ~(SIG_TRAP_BIT | bit(SIG_KILL) | bit(SIG_STOP));
}

int64_t signal_call_mask(struct state *t, struct context *c)
{
	uint64_t old = own_mask(t, c->mask), set;

	if (c->r.r10 != sizeof(uint64_t))
		return -ERRNO_EINVAL;
	if (c->r.rsi) {
		if (!data_read(t, c->r.rsi, &set, sizeof(set)))
			return -ERRNO_EFAULT;
		switch ((int)c->r.rdi) {
		case 0: /* SIG_BLOCK */
			set_own_mask(t, c, old | set);
			break;
		case 1: /* SIG_UNBLOCK */
			set_own_mask(t, c, old & ~set);
			break;
		case 2: /* SIG_SETMASK */
			set_own_mask(t, c, set);
			break;
		default:
			return -ERRNO_EINVAL;
		}
	}
	return c->r.rdx && !data_write(t, c->r.rdx, &old, sizeof(old)) ? -ERRNO_EFAULT : 0;
}

bool signal_return(struct state *t, struct context *c)
{
	struct context own;
	uint64_t sp = c->r.rsp;

	if (!data_read(t, sp, &own, sizeof(own)))
		return false;
	trap_record(t, c->r.rip);
	ring_write(t, STEPS_RECORD_SYSCALL, own.r.rax, SYS_rt_sigreturn, 0);
	t->head.has_own_trap = (own.r.flags & FLAG_TRAP) != 0;
	own.r.flags = (c->r.flags & ~FLAGS_RETURNED) | (own.r.flags & FLAGS_RETURNED);
	own.r.cs = c->r.cs;
	own.r.ss = c->r.ss;
	c->r = own.r;
	set_own_mask(t, c, own.mask);
	set_stack(t, &own.stack, c->r.rsp);
	signal_check_pending(t, c);
	return true;
}

/* --- delivery ------------------------------------------------------------------------------------
 */

/* The program does not survive it. A fault comes again, with all that a core dump wants to see. */
static void die_by(struct state *t, int number, bool is_forced)
{
	const struct steps_action standard = {0};
	uint64_t none = ~bit(number);

	kernel_action(number, &standard, NULL);
	if (is_forced && number != SIG_TRAP)
		return;
	raw_call(SYS_tgkill, t->process->pid, t->head.tid, number);
	raw_call(SYS_rt_sigprocmask, 2, &none, NULL, 8);
}

/* The vector registers as the kernel saved them, with all that belongs to them. */
static size_t fp_bytes(uint64_t fpstate)
{
	const uint32_t *software = (const uint32_t *)(uintptr_t)(fpstate + FP_SOFTWARE_AT);

	if (!fpstate)
		return 0;
	if (software[0] != FP_MAGIC1 || software[1] < FP_BYTES || software[1] > FP_BYTES_MAX)
		return FP_BYTES;
	return software[1];
}

/* Where the frame goes. */
static uint64_t frame_top(struct state *t, const struct steps_action *a, uint64_t sp)
{
	if (a->flags & SA_ONSTACK_ && t->head.alt_bytes && !is_on_stack(t, sp))
		return t->head.alt_sp + t->head.alt_bytes;
	return sp - RED_ZONE;
}

/* A fault here is one that the kernel would have had: the process is killed by SIGSEGV, which is
 * blocked now. */
static struct frame *write_frame(struct state *t, const struct steps_action *a,
	const struct signal_info *info, const struct context *c)
{
	size_t n = fp_bytes(c->r.fpstate);
	uint64_t fp = (frame_top(t, a, c->r.rsp) - n) & ~63ull;
	struct frame *f = (struct frame *)(uintptr_t)(((fp - sizeof(*f)) & ~15ull) - 8);

	if (n)
		copy_bytes((void *)(uintptr_t)fp, (const void *)(uintptr_t)c->r.fpstate, n);
	copy_bytes(&f->c, c, sizeof(*c));
	copy_bytes(&f->info, info, sizeof(*info));
	f->ret = a->restorer;
	f->c.r.fpstate = n ? fp : 0;
	f->c.r.flags = (c->r.flags & ~FLAG_TRAP) | (t->head.has_own_trap ? FLAG_TRAP : 0);
	f->c.mask = own_mask(t, c->mask);
	f->c.stack = (struct signal_stack){t->head.alt_sp,
		t->head.alt_bytes ? t->head.alt_flags : SS_DISABLE_, 0, t->head.alt_bytes};
	return f;
}

static void enter_handler(struct state *t, struct context *c, int number,
	const struct steps_action *a, struct frame *f)
{
	uint64_t mask = own_mask(t, t->call.has_mask ? t->call.mask : c->mask);

	if (t->head.alt_flags & SS_AUTODISARM_) {
		t->head.alt_sp = t->head.alt_bytes = 0;
		t->head.alt_flags = SS_DISABLE_;
	}
	mask |= a->mask | (a->flags & SA_NODEFER_ ? 0 : bit(number));
	set_own_mask(t, c, mask);
	c->r.rip = a->handler;
	c->r.rsp = (uint64_t)(uintptr_t)f;
	c->r.rdi = (uint64_t)number;
	c->r.rsi = (uint64_t)(uintptr_t)&f->info;
	c->r.rdx = (uint64_t)(uintptr_t)&f->c;
	c->r.rax = 0;
	c->r.cs = USER_CS;
	c->r.ss = USER_SS;
	c->r.flags &= ~(FLAG_DIRECTION | FLAG_RESUME | FLAG_TRAP);
	c->r.fpstate = 0; /* the vector registers begin anew */
	t->head.has_own_trap = false;
	t->call.has_mask = false;
}

void signal_deliver(struct state *t, int number, const struct signal_info *info, struct context *c)
{
	struct steps_action a = t->process->actions[number];
	bool is_forced = info->code > 0;

	if (number == SIG_TRAP && t->head.is_trap_blocked && !is_forced) {
		t->pending_trap = *info;
		t->head.is_trap_pending = true;
		return;
	}
	if (a.handler == SIG_IGN_ && !is_forced)
		return;
	ring_write(t, STEPS_RECORD_SIGNAL, info->code > 0 ? info->addr : 0, (uint32_t)number,
		(uint32_t)info->code);
	if (!is_handled(&a) || (number == SIG_TRAP && t->head.is_trap_blocked)) {
		die_by(t, number, is_forced);
		return;
	}
	if (a.flags & SA_RESETHAND_) {
		struct steps_action standard = {0};

		set_action(t, number, &standard);
	}
	enter_handler(t, c, number, &a, write_frame(t, &a, info, c));
}

void signal_check_pending(struct state *t, struct context *c)
{
	if (!t->head.is_trap_pending || t->head.is_trap_blocked)
		return;
	t->head.is_trap_pending = false;
	signal_deliver(t, SIG_TRAP, &t->pending_trap, c);
}

void signal_send_again(int number, struct signal_info *info)
{
	long pid = raw_call(SYS_getpid, 0), tid = raw_call(SYS_gettid, 0);

	raw_call(SYS_rt_tgsigqueueinfo, pid, tid, number, info);
}

void signal_pass_on(int number, struct signal_info *info, struct context *c)
{
	struct memory *m = memory();
	struct steps_action now;
	long pid = raw_call(SYS_getpid, 0);

	for (unsigned i = 0; i < N_PROCESSES; i++) {
		struct steps_action *a = &m->processes[i].actions[number];
		uint64_t mask = c->mask | a->mask | bit(number);

		if (m->processes[i].pid != (uint32_t)pid || !is_handled(a))
			continue;
		__atomic_fetch_add(&m->config.n_passing, 1, __ATOMIC_RELAXED);
		raw_call(SYS_rt_sigprocmask, 2, &mask, NULL, 8);
		((void (*)(int, struct signal_info *, struct context *))(uintptr_t)a->handler)(
			number, info, c);
		mask = ~0ull;
		raw_call(SYS_rt_sigprocmask, 2, &mask, NULL, 8);
		__atomic_fetch_sub(&m->config.n_passing, 1, __ATOMIC_RELAXED);
		return;
	}
	/* The last one has left meanwhile: the action is the program's again. */
	if (kernel_action(number, NULL, &now) == 0 &&
		now.handler != (uint64_t)(uintptr_t)weir_steps_entry)
		signal_send_again(number, info);
}
