/* SPDX-License-Identifier: MIT */
/*
 * Signals. The kernel has one handler for all that the program handles, which only notes what came: it is given to
 * the program at the next end of a block, by frames.c.
 *
 * 1. Until then all signals are blocked, but for SIGSEGV and SIGTRAP, which the translator itself raises: those are
 *    never blocked, and what the program says of them is kept here.
 * 2. pc in translated code: on in a copy of the group, whose exits lead to the translator. In the translator: it
 *    looks before it leaves. On the way out: back in. In front of a system call: that is not made.
 * 3. A fault of an instruction is the program's at that instruction: registers in slots are put back, and what of
 *    the block was not executed is told.
 * 4. kernel_stack is where all of this runs, so nothing of the program's stack is touched before.
 */
#include "block_emit.h"
#include "kernel_frame.h"

#define SA_ONSTACK_   0x08000000u
#define SA_RESTORER_  0x04000000u
#define SA_NODEFER_   0x40000000u
#define SA_RESETHAND_ 0x80000000u
#define SA_SIGINFO_   4u
#define SA_RESTART_   0x10000000u
/* Of the program's flags: SA_NOCLDSTOP, SA_NOCLDWAIT, SA_RESTART. */
#define SA_PASSED     0x10000003u
/* What is in rax when a system call was interrupted: include/linux/errno.h of the kernel. */
#define ERESTARTSYS_	       512
#define ERESTARTNOHAND_	       514
#define ERESTART_RESTARTBLOCK_ 516
#define HANDLER_DEFAULT 0
#define HANDLER_IGNORE	1
#define SIGKILL_ 9
#define SIGSTOP_ 19
#define SIGBUS_	 7
#define SIGFPE_	 8
#define SIGILL_	 4
#define SIGSEGV_ 11
#define SIGTRAP_ 5
#define SI_QUEUE_ (-1)
#define ARCH_GET_GS_ 0x1004
#define ERROR_WRITE 2u /* of a page fault */
#define GS_LOAD_BYTES 9 /* of a general register */
/* Of the program, that the translator does not run with: AC, DF, TF. */
#define FLAGS_NOT_OURS 0x40500ull

struct kernel_action actions[N_SIGNALS + 1];

static bool is_kept(uint64_t number)
{
	return SIGNALS_KEPT & SIGNAL_BIT(number);
}

static bool is_handled(const struct kernel_action *a)
{
	return a->handler != HANDLER_DEFAULT && a->handler != HANDLER_IGNORE;
}

static bool is_raised(int number, int code)
{
	return code > 0 && (number == SIGSEGV_ || number == SIGBUS_ || number == SIGFPE_ || number == SIGILL_ ||
				   number == SIGTRAP_);
}

static void set_mask(uint64_t mask)
{
	raw_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, 0, 8);
}

/* What the kernel is told of an action of the program. */
static int64_t tell_kernel(uint64_t number, const struct kernel_action *a)
{
	struct kernel_action ours = {.handler = (uint64_t)translate_master,
		.flags = SA_SIGINFO_ | SA_ONSTACK_ | SA_RESTORER_ | SA_NODEFER_ | (a->flags & SA_PASSED),
		.restorer = (uint64_t)translate_restorer,
		.mask = ~SIGNALS_KEPT};

	return raw_call(SYS_rt_sigaction, number, is_handled(a) || is_kept(number) ? &ours : a, 0, 8);
}

void signals_set_stack(struct thread *t)
{
	const struct signal_stack stack = {.sp = t->kernel_stack, .size = SIGNALS_ROOM};

	raw_call(SYS_sigaltstack, &stack, 0);
}

bool signals_init(bool is_attached)
{
	for (uint64_t i = 1; i <= N_SIGNALS; i++) {
		raw_call(SYS_rt_sigaction, i, 0, &actions[i], 8);
		if (is_kept(i) || (is_attached && is_handled(&actions[i])))
			tell_kernel(i, &actions[i]);
	}
	return true;
}

/* As without us. While there are threads that may wait in a system call, and do not know of it yet, SIGTRAP and
 * SIGSEGV stay ours. */
void signals_restore(bool is_all)
{
	for (uint64_t i = 1; i <= N_SIGNALS; i++)
		if (is_kept(i) ? is_all : is_handled(&actions[i]))
			raw_call(SYS_rt_sigaction, i, &actions[i], 0, 8);
}

/* Of a thread that has left: it gets what the program says. */
static void comes_natively(int number, const void *info)
{
	if (number < 1 || number > N_SIGNALS)
		return;
	raw_call(SYS_rt_sigaction, number, &actions[number], 0, 8);
	if (!is_raised(number, ((const int *)info)[2])) /* else the instruction raises it again */
		raw_call(SYS_rt_tgsigqueueinfo, raw_pid(), raw_tid(), number, info);
}

/* ---- calls of the program ---- */

int64_t signals_action(struct thread *t, long number, uint64_t action, uint64_t old, uint64_t size)
{
	struct kernel_action new = {0}, before;
	int64_t rc = 0;

	(void)t;
	if (size != 8 || number < 1 || number > N_SIGNALS || number == SIGKILL_ || number == SIGSTOP_)
		return raw_call(SYS_rt_sigaction, number, action, old, size);
	if (action && !translate_copy(&new, (const void *)action, sizeof(new)))
		return -EFAULT;
	before = actions[number];
	if (action) {
		new.mask &= ~(SIGNAL_BIT(SIGKILL_) | SIGNAL_BIT(SIGSTOP_));
		actions[number] = new;
		rc = tell_kernel((uint64_t)number, &new);
	}
	if (rc == 0 && old && !translate_copy((void *)old, &before, sizeof(before)))
		rc = -EFAULT;
	return rc;
}

/* Signals that are the translator's own are never blocked: what came of them meanwhile comes again. */
static void send_held(struct thread *t)
{
	uint64_t free = t->held & ~t->kept_mask;

	t->held &= ~free;
	for (uint64_t i = 1; free && i <= N_SIGNALS; i++)
		if (free & SIGNAL_BIT(i))
			raw_call(SYS_tgkill, raw_pid(), raw_tid(), i);
}

bool signals_hold(const struct thread *t, uint64_t *mask)
{
	uint64_t all = ~SIGNALS_KEPT;

	raw_call(SYS_rt_sigprocmask, 2, &all, mask, 8);
	return !__atomic_load_n(&t->pending, __ATOMIC_RELAXED);
}

void signals_release(uint64_t mask)
{
	set_mask(mask);
}

/* A second one, by a fault while the first waits: the first comes again when it may. */
static void send_again(struct thread *t)
{
	if (t->pending == PENDING_LEAVE)
		is_leaving = true;
	else if (t->pending)
		raw_call(SYS_rt_tgsigqueueinfo, raw_pid(), raw_tid(), t->pending, t->info);
	t->pending = 0;
}

void signals_begin(struct thread *t, uint64_t mask)
{
	uint64_t kept = SIGNALS_KEPT;

	t->kept_mask = mask & SIGNALS_KEPT;
	t->new_mask = mask;
	t->has_new_mask = true;
	raw_call(SYS_rt_sigprocmask, 1, &kept, 0, 8);
}

uint64_t signals_end(struct thread *t)
{
	uint64_t mask;

	if (t->has_new_mask)
		mask = t->new_mask;
	else if (signals_hold(t, &mask))
		mask |= t->kept_mask;
	else
		mask = t->waiting_mask | t->kept_mask;
	t->has_new_mask = false;
	send_again(t);
	return mask;
}

bool signals_mask(struct thread *t)
{
	uint64_t how = (uint32_t)t->a.regs[RDI], set = t->a.regs[RSI], old = t->a.regs[RDX];
	uint64_t new = 0, before = 0, kept = t->kept_mask;
	const uint64_t call[16] = {[RAX] = SYS_rt_sigprocmask,
		[RDI] = how,
		[RSI] = set ? (uint64_t)&new : 0,
		[RDX] = (uint64_t)&before,
		[R10] = 8};

	t->result = t->a.regs[R10] == 8 ? 0 : -EINVAL;
	if (t->result == 0 && set && !translate_copy(&new, (const void *)set, 8))
		t->result = -EFAULT;
	else if (t->result == 0 && set && how > 2)
		t->result = -EINVAL;
	if (t->result)
		return true;
	if (set && how == 0)
		kept |= new & SIGNALS_KEPT;
	else if (set && how == 1)
		kept &= ~new;
	else if (set)
		kept = new & SIGNALS_KEPT;
	new &= ~SIGNALS_KEPT;
	if (!translate_safe_call(t, call)) /* a signal has come, and all are blocked: not what the program has */
		return false;
	before |= t->kept_mask;
	t->kept_mask = kept;
	send_held(t);
	if (old && !translate_copy((void *)old, &before, 8))
		t->result = -EFAULT;
	return true;
}

#define SS_ONSTACK_	1
#define SS_DISABLE_	2
#define SS_AUTODISARM_	0x80000000u
#define STACK_BYTES_MIN 2048

static bool is_on_stack(const struct thread *t)
{
	return t->altstack.size && !((uint32_t)t->altstack.flags & SS_AUTODISARM_) &&
	       t->a.regs[RSP] - t->altstack.sp - 1 < t->altstack.size;
}

int64_t signals_stack(struct thread *t, uint64_t stack, uint64_t old)
{
	struct signal_stack new, before = t->altstack;
	uint32_t mode;

	before.flags = !before.size ? SS_DISABLE_
				    : (int32_t)(((uint32_t)before.flags & SS_AUTODISARM_) |
					      (is_on_stack(t) ? SS_ONSTACK_ : 0));
	if (stack) {
		if (!translate_copy(&new, (const void *)stack, sizeof(new)))
			return -EFAULT;
		mode = (uint32_t)new.flags & ~SS_AUTODISARM_;
		if (is_on_stack(t))
			return -EPERM;
		if (mode != SS_DISABLE_ && mode != SS_ONSTACK_ && mode != 0)
			return -EINVAL;
		if (mode != SS_DISABLE_ && new.size < STACK_BYTES_MIN)
			return -ENOMEM;
		if (mode == SS_DISABLE_)
			new.sp = new.size = 0;
		t->altstack = new;
	}
	return old && !translate_copy((void *)old, &before, sizeof(before)) ? -EFAULT : 0;
}

/* The kernel forgets handlers at an exec, but what is ignored and blocked stays so. */
void signals_before_exec(struct thread *t)
{
	for (uint64_t i = 1; i <= N_SIGNALS; i++)
		if (is_kept(i) && actions[i].handler == HANDLER_IGNORE)
			raw_call(SYS_rt_sigaction, i, &actions[i], 0, 8);
	if (t->kept_mask)
		raw_call(SYS_rt_sigprocmask, 0, &t->kept_mask, 0, 8);
}

void signals_exec_failed(struct thread *t)
{
	if (t->kept_mask)
		raw_call(SYS_rt_sigprocmask, 1, &t->kept_mask, 0, 8);
	for (uint64_t i = 1; i <= N_SIGNALS; i++)
		if (is_kept(i))
			tell_kernel(i, &actions[i]);
}

/* ---- what comes ---- */

struct place {
	const struct group *group;
	uint32_t offset;
	bool is_copy;
};

/* Where in a group, or in the copy of one, pc is; no group: elsewhere in translated code. */
static struct place place_of(const struct thread *t, uint64_t pc)
{
	const struct group *g = t->copy_of;
	struct place p = {0};

	if (g && pc - t->copy_at < g->bytes + 64) {
		p = (struct place){g, (uint32_t)(pc - t->copy_at), true};
	} else {
		p.group = cache_group_at(pc);
		if (p.group)
			p.offset = (uint32_t)(pc - p.group->cache);
	}
	return p;
}

/* The scratch room for what is emitted only to be understood. */
struct understanding {
	struct plan plan;
	struct point points[N_POINTS];
	uint8_t code[GROUP_BYTES_MAX];
};
static struct understanding understanding; /* by whoever has the lock */

static uint64_t *register_of(struct kernel_registers *r, unsigned n)
{
	uint64_t *const at[] = {&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi, &r->rdi};

	return at[n & 7];
}

/* Puts registers of the program where they belong, and finds its pc. False: no instruction of the program. */
static bool understand(struct thread *t, const struct place *p, struct kernel_registers *r, bool is_behind)
{
	struct understanding *u = &understanding;
	struct emission e = {.plan = &u->plan,
		.to = u->code,
		.address = p->group->cache,
		.room = sizeof(u->code),
		.first_exit = p->group->first_exit,
		.points = u->points};
	const struct point *at = NULL;
	const struct planned *b;
	uint64_t pc;

	plan_again(&u->plan, p->group);
	e.n_blocks = u->plan.n_blocks;
	emit_group(&e);
	for (uint32_t i = 0; i < e.n_points && u->points[i].offset <= p->offset - is_behind; i++)
		at = &u->points[i];
	if (!at)
		return false;
	b = &u->plan.block[at->block];
	pc = b->pc;
	for (uint32_t i = 0; i < at->insn + (is_behind ? 1u : 0u); i++)
		pc += u->plan.insns[b->first_insn + i].length;
	if (at->state & POINT_RAX)
		r->rax = t->slot_rax;
	if (at->state & POINT_RCX)
		r->rcx = t->slot_rcx;
	if (at->state & POINT_ANY)
		*register_of(r, at->reg) = t->slot_any;
	r->rip = pc;
	t->fault_block = b->number;
	t->is_in_string = !is_behind && u->plan.insns[b->first_insn + at->insn].is_string_repeated;
	t->fault_rest = (int32_t)b->n_insns - at->insn - (is_behind ? 1 : 0);
	/* It was not counted yet: what is counted by a return is so when rax is in its slot. */
	if (at->insn < b->count_at && !(at->state & POINT_RAX))
		t->fault_rest -= b->n_insns;
	return true;
}

/* What the kernel tells, for the frame that the program gets. */
static void note(struct thread *t, int number, const void *info, const struct kernel_context *c)
{
	bytes_copy(t->info, info, SIGINFO_BYTES);
	t->context_flags = c->flags;
	t->segments = c->r.segments;
	t->error = c->r.error;
	t->trap = c->r.trap;
	t->cr2 = c->r.cr2;
	t->waiting_mask = c->mask & ~SIGNALS_KEPT;
	if (c->r.fp_state)
		bytes_copy(t->fp_words, (const uint8_t *)c->r.fp_state + FP_WORDS_AT, sizeof(t->fp_words));
	__atomic_store_n(&t->pending, (uint32_t)number, __ATOMIC_RELEASE);
}

/* Between two blocks there may be code of ours that leads from one to the other (a jump by the table of targets,
 * emit_restoring, a link by a pointer): as if that had been executed. What leads to the translator is left alone. */
static void skip_way(const struct thread *t, struct kernel_context *c)
{
	static const uint8_t by_table[] = {0x65, 0xff, 0x24, 0xc5}; /* jmp *gs:n(, %rax, 8) */
	const struct place at = place_of(t, c->r.rip);
	const uint8_t *p = (const uint8_t *)c->r.rip;
	int32_t distance;

	if (at.group && bytes_equal(p, by_table, sizeof(by_table))) {
		__builtin_memcpy(&distance, p + sizeof(by_table), 4);
		__builtin_memcpy(&p, (const uint8_t *)t + distance + 8 * c->r.rax, 8);
		c->r.rip = (uint64_t)p;
	} else if (at.group) {
		if (!at.is_copy && at.offset >= at.group->stubs_at && p[0] == 0xff && p[1] == 0x25)
			__builtin_memcpy(&c->r.rip, p + 6, 8);
		return;
	}
	while (p[0] == 0x65 && p[1] == 0x48 && p[2] == 0x8b)
		p += GS_LOAD_BYTES;
	if (p[0] != 0xe9)
		return;
	__builtin_memcpy(&distance, p + 1, 4);
	c->r.rip = (uint64_t)(p + 5) + (uint64_t)(int64_t)distance;
	c->r.rax = t->slot_rax;
	c->r.rcx = t->slot_rcx;
	c->r.rdx = t->slot_rdx;
}

/* Its first instruction is a jump to the translator. */
static bool is_stale_head(const struct group *g, uint64_t pc)
{
	for (uint32_t i = 0; i < g->n_blocks; i++)
		if (block_rows[g->first_block + i].cache == pc ||
			block_rows[g->first_block + i].cache + block_rows[g->first_block + i].body == pc)
			return block_rows[g->first_block + i].flags & TRANSLATE_BLOCK_STALE;
	return false;
}

/* On in a copy of the rest of the block, whose exits lead to the translator. */
static void go_on_in_copy(struct thread *t, struct kernel_context *c)
{
	struct place p;
	struct understanding *u = &understanding;
	struct emission e = {.plan = &u->plan, .room = GROUP_BYTES_MAX, .is_copy = true};

	skip_way(t, c);
	p = place_of(t, c->r.rip);
	if (!p.group || p.is_copy || p.offset >= p.group->stubs_at || is_stale_head(p.group, c->r.rip))
		return; /* on its way to the translator */
	e.to = cache_room_near(t, p.group->cache, p.group->bytes, p.group->cache & 63);
	if (!e.to)
		return;
	cache_lock();
	plan_again(&u->plan, p.group);
	e.address = (uint64_t)e.to;
	e.first_exit = p.group->first_exit;
	while (e.n_blocks < u->plan.n_blocks &&
		(!e.n_blocks || block_rows[p.group->first_block + e.n_blocks].cache <= c->r.rip))
		e.n_blocks++;
	emit_group(&e);
	cache_unlock();
	if (e.failed)
		return;
	t->copy_of = p.group;
	t->copy_at = e.address;
	c->r.rip = e.address + p.offset;
}

static bool is_between(uint64_t pc, const char *start, const char *end)
{
	return pc >= (uint64_t)start && pc < (uint64_t)end;
}

/* A signal that no instruction here has raised. */
static void comes(struct thread *t, int number, const void *info, struct kernel_context *c)
{
	uint64_t pc = c->r.rip;

	if (number == SIGTRAP_ && ((const int *)info)[2] == SI_QUEUE_ &&
		((const uint64_t *)info)[3] == (uint64_t)&header) {
		if (t->pending) {
			is_leaving = true;
			return;
		}
		number = PENDING_LEAVE;
	} else if (is_kept((uint64_t)number)) {
		if (t->kept_mask & SIGNAL_BIT(number)) {
			t->held |= SIGNAL_BIT(number);
			return;
		}
		if (actions[number].handler == HANDLER_IGNORE)
			return;
	}
	send_again(t);
	note(t, number, info, c);
	c->mask = ~SIGNALS_KEPT;
	if (is_between(pc, translate_safe_start, translate_safe_end))
		c->r.rip = (uint64_t)translate_safe_abort;
	else if (is_between(pc, translate_leave_start, translate_leave_end)) {
		c->r.rip = (uint64_t)translate_redispatch;
		c->r.flags &= ~FLAGS_NOT_OURS;
	} else if (cache_is_code(pc))
		go_on_in_copy(t, c);
}

/* The program's own instruction has raised it: at its place natively, or in translated code. */
static void faults(struct thread *t, int number, const void *info, struct kernel_context *c, bool is_native)
{
	bool is_behind = number == SIGTRAP_;
	struct place p = {0};
	bool known = is_native;
	bool is_at_pc = ((const uint64_t *)info)[2] == c->r.rip; /* si_addr of SIGFPE, SIGILL */

	t->fault_block = NO_BLOCK;
	if (!is_native) {
		cache_lock();
		p = place_of(t, c->r.rip);
		known = p.group && understand(t, &p, &c->r, is_behind);
		cache_unlock();
	}
	send_again(t);
	registers_from(t, &c->r);
	t->a.pc = c->r.rip;
	t->variant = VARIANT_PLAIN;
	note(t, number, info, c);
	if (is_at_pc)
		bytes_copy(t->info + 16, &c->r.rip, sizeof(c->r.rip));
	t->is_sync = true;
	t->is_ending = !known || !is_handled(&actions[number]) || (t->kept_mask & SIGNAL_BIT(number)) ||
		       (t->waiting_mask & SIGNAL_BIT(number));
	c->mask = ~SIGNALS_KEPT;
	c->r.rip = (uint64_t)translate_redispatch;
	c->r.flags &= ~FLAGS_NOT_OURS;
}

/* The block whose instruction writes to its page goes on as it was: so it is left in front of that one. */
static void leave_own_page(struct thread *t, uint64_t page, struct kernel_context *c)
{
	struct kernel_registers r = c->r;
	const struct translate_block *row;
	struct place p;
	bool known;

	cache_lock();
	p = place_of(t, c->r.rip);
	known = p.group && understand(t, &p, &r, false);
	cache_unlock();
	row = &block_rows[t->fault_block];
	if (!known || row->pc + row->bytes <= page || row->pc >= page + PAGE_BYTES)
		return;
	registers_from(t, &r);
	t->a.pc = r.rip;
	t->variant = VARIANT_PLAIN;
	t->is_alone = true;
	c->r.rip = (uint64_t)translate_redispatch;
	c->r.flags &= ~FLAGS_NOT_OURS;
}

/* To code that was translated. */
static bool is_write_to_code(struct thread *t, uint64_t address, struct kernel_context *c)
{
	if (!(c->r.error & ERROR_WRITE) || !region_written(address))
		return false;
	if (cache_is_code(c->r.rip))
		leave_own_page(t, PAGE_DOWN(address), c);
	return true;
}

/* True: it was the translator's own. */
static bool is_own(struct thread *t, int number, uint64_t address, struct kernel_context *c)
{
	uint64_t pc = c->r.rip;

	if (number == SIGTRAP_ && pc == (uint64_t)translate_service_at + 1) {
		c->r.rax = (uint64_t)-1; /* nobody is there */
		return true;
	}
	if (number != SIGSEGV_ && number != SIGBUS_)
		return false;
	if (number == SIGSEGV_ && is_write_to_code(t, address, c))
		return true;
	if (is_between(pc, translate_copy_start, translate_copy_end)) {
		c->r.rip = (uint64_t)translate_copy_failed;
		return true;
	}
	if (number == SIGSEGV_ && address == t->a.events_end && c->r.rcx == t->a.events_end) {
		t->a.events_at = c->r.rcx = t->a.events;
		t->a.n_lost_buffers++;
		return true;
	}
	return false;
}

static struct thread *translated_thread(void)
{
	uint64_t base = 0;

	raw_call(SYS_arch_prctl, ARCH_GET_GS_, &base);
	for (uint32_t i = 0; i < header.n_threads && i < TRANSLATE_THREADS_MAX; i++)
		if (((const uint64_t *)header.threads)[i] == base && base)
			return (struct thread *)base;
	return NULL;
}

/* Kills what cannot go on, by the signal that it has. */
static void dies(int number)
{
	const struct kernel_action plain = {0};

	raw_call(SYS_rt_sigaction, number, &plain, 0, 8);
	actions[number] = plain;
}

/* From entry.S. */
void translate_signal(int number, const void *info, struct kernel_context *c);
void translate_signal(int number, const void *info, struct kernel_context *c)
{
	struct thread *t = translated_thread();
	int code = ((const int *)info)[2];
	uint64_t address = ((const uint64_t *)info)[2], pc = c->r.rip;
	bool is_ours = is_between(pc, translate_image_start, translate_image_end);

	if (!t) {
		comes_natively(number, info);
		return;
	}
	if (!is_raised(number, code)) {
		comes(t, number, info, c);
		return;
	}
	if (is_own(t, number, address, c))
		return;
	if (is_ours || (!cache_is_code(pc) && pc != t->go)) {
		if (is_ours)
			dies(number); /* a defect of ours */
		else
			faults(t, number, info, c, true);
		return;
	}
	faults(t, number, info, c, !cache_is_code(pc));
}

/* ---- giving it to the program ---- */

static uint64_t mask_in_handler(const struct thread *t, int number, const struct kernel_action *a)
{
	uint64_t mask = t->waiting_mask | t->kept_mask | a->mask;

	return a->flags & SA_NODEFER_ ? mask : mask | SIGNAL_BIT(number);
}

static void end_by(struct thread *t, int number)
{
	uint64_t unblocked = t->waiting_mask & ~SIGNAL_BIT(number);

	dies(number);
	if (!t->is_sync || number == SIGTRAP_) /* pc is behind what traps: that is not executed again */
		raw_call(SYS_rt_tgsigqueueinfo, raw_pid(), raw_tid(), number, t->info);
	set_mask(unblocked);
}

/* Those that were made before the fault. */
static void tell_rounds(struct thread *t)
{
	const uint32_t words[2] = {(uint32_t)t->a.regs[RCX], (uint32_t)(t->a.regs[RCX] >> 32)};

	if (t->is_in_string)
		words_put(t, TRANSLATE_WORD_REPEATED, words, 2);
}

/* The program was interrupted in a system call when it began here, and this is the first handler behind that: what the
 * kernel makes of the call then. */
static void end_call(struct thread *t, const struct kernel_action *a)
{
	int64_t outcome = t->is_sync ? 0 : t->a.outcome;

	t->a.outcome = 0;
	if (outcome == -ERESTARTNOHAND_ || outcome == -ERESTART_RESTARTBLOCK_ ||
		(outcome == -ERESTARTSYS_ && !(a->flags & SA_RESTART_))) {
		t->a.regs[RAX] = (uint64_t)-EINTR;
		t->a.pc += 2;
	}
}

static void tell_signal(struct thread *t, int number)
{
	const uint32_t *info = (const uint32_t *)t->info;
	const uint32_t words[4] = {(uint32_t)number, info[2], info[4], info[5]};

	words_put(t, TRANSLATE_WORD_SIGNAL, words, 4);
}

bool signals_deliver(struct thread *t)
{
	int number = (int)t->pending;
	struct kernel_action a = actions[number];

	t->copy_of = NULL;
	if (t->is_sync && t->fault_block != NO_BLOCK && t->fault_rest) {
		tell_rounds(t);
		block_left(t, t->fault_block, t->fault_rest);
	} else if (t->is_sync && t->fault_block != NO_BLOCK) {
		left_put(t, t->fault_block, 0);
	}
	if ((t->is_sync && t->is_ending) || !is_handled(&a)) {
		t->pending = 0;
		if (!t->is_sync && a.handler == HANDLER_IGNORE) {
			t->new_mask = t->waiting_mask | t->kept_mask;
			t->has_new_mask = true;
			return false;
		}
		end_by(t, number);
		t->is_ending = t->is_sync; /* natively, at pc */
		t->is_sync = false;
		return false;
	}
	end_call(t, &a);
	t->is_sync = false;
	t->is_ending = false;
	event_put(t, TRANSLATE_EVENT_SIGNAL, NO_BLOCK, t->a.regs[RSP]);
	tell_signal(t, number);
	if (!frame_push(t, &a)) {
		t->pending = 0;
		t->waiting_mask &= ~SIGNAL_BIT(SIGSEGV_);
		end_by(t, SIGSEGV_);
		raw_call(SYS_tgkill, raw_pid(), raw_tid(), SIGSEGV_);
		return false;
	}
	t->a.regs[RDI] = (uint64_t)number;
	t->a.pc = a.handler;
	t->variant = VARIANT_ENTER;
	t->new_mask = mask_in_handler(t, number, &a);
	t->has_new_mask = true;
	if (a.flags & SA_RESETHAND_) {
		actions[number].handler = HANDLER_DEFAULT;
		tell_kernel((uint64_t)number, &actions[number]);
	}
	t->pending = 0;
	return true;
}
