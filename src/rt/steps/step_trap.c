/* SPDX-License-Identifier: MIT */
/*
 * The handler. At a trap the instruction at the saved address has been executed: its bytes are read
 * now, when its page is certainly there. The next one is only looked at to see whether it is a
 * system call.
 *
 * What the program could see of the trap flag: pushf (taken out of the pushed word), popf and iret
 * (it is set again, and what the program wanted is remembered), syscall (step_call.c), signal
 * frames (step_signal.c). What hides an instruction from us: mov to ss (the next one is added).
 *
 * A step over an instruction with a uprobe (of perf, bpftrace, weir probe) ends with a SIGTRAP as if
 * the thread had sent it to itself by kill(2). What is forced on a thread, as the end of an ordinary
 * step is, comes before that: at another place than the saved one it is the end of a step. Functions
 * with a uretprobe return through a page of the kernel's, which nobody can read: what is in it runs
 * as it is, its system call too, and the recorder leaves it out.
 */
#include "stepper.h"
#include "watched_insn.h"

#include <sys/uio.h>

#define TRAP_TRACE  2
#define TRAP_HWBKPT 4
#define CODE_KERNEL 0x80 /* SI_KERNEL: int3 */
#define CODE_QUEUE  (-1)
#define CODE_USER   0
#define INT3	    0xcc

/* --- reading the program's memory ------------------------------------------------------------ */

static bool vm_copy(const struct state *t, bool is_write, uint64_t addr, void *own, size_t n)
{
	struct iovec local = {own, n}, remote = {(void *)(uintptr_t)addr, n};

	return raw_call(is_write ? SYS_process_vm_writev : SYS_process_vm_readv, t->process->pid,
		       &local, 1, &remote, 1, 0) == (long)n;
}

bool data_read(struct state *t, uint64_t addr, void *to, size_t n)
{
	return vm_copy(t, false, addr, to, n);
}

bool data_write(struct state *t, uint64_t addr, const void *from, size_t n)
{
	return vm_copy(t, true, addr, (void *)(uintptr_t)from, n);
}

static bool page_is_readable(struct state *t, uint64_t page)
{
	uint64_t *known = &t->pages[page / PAGE_BYTES % N_PAGES];
	uint32_t generation = __atomic_load_n(&memory()->map_generation, __ATOMIC_ACQUIRE);
	uint8_t byte;

	if (t->pages_generation != generation) {
		clear_bytes(t->pages, sizeof(t->pages));
		t->blind_page = 0;
		t->pages_generation = generation;
	}
	if (*known == page + 1)
		return true;
	if (!vm_copy(t, false, page, &byte, 1))
		return false;
	*known = page + 1;
	return true;
}

/* The recorder reads it: of pages that may be executed but not read, and of files. */
static size_t ask_for(struct state *t, enum steps_sync what, uint64_t addr, uint8_t *to, size_t n)
{
	uint32_t have;

	if (!ring_sync(t, what, addr))
		return 0;
	have = t->slot->reply_n;
	if (have > n)
		have = (uint32_t)n;
	copy_bytes(to, t->slot->reply, have);
	return have;
}

size_t peek(struct state *t, uint64_t addr, uint8_t *to, size_t n)
{
	uint64_t page = addr & ~(PAGE_BYTES - 1);
	size_t here = (size_t)(page + PAGE_BYTES - addr);

	if (!page_is_readable(t, page)) {
		size_t have = t->blind_page == page + 1
				      ? 0
				      : ask_for(t, STEPS_SYNC_READ, addr, to, n);

		t->blind_page = have ? t->blind_page : page + 1;
		return have;
	}
	if (here > n)
		here = n;
	copy_bytes(to, (const void *)(uintptr_t)addr, here);
	if (here < n && page_is_readable(t, page + PAGE_BYTES)) {
		copy_bytes(to + here, (const void *)(uintptr_t)(addr + here), n - here);
		here = n;
	}
	return here;
}

size_t peek_code(struct state *t, uint64_t addr, uint8_t *to, size_t n)
{
	size_t have = peek(t, addr, to, n), by_file;
	uint8_t file[INSN_BYTES];

	if (!have || to[0] != INT3)
		return have;
	by_file = ask_for(t, STEPS_SYNC_CODE, addr, file, sizeof(file));
	if (!by_file)
		return have;
	have = by_file < n ? by_file : n;
	copy_bytes(to, file, have);
	return have;
}

/* --- instructions that matter ------------------------------------------------------------------
 */

/* The flags that the instruction just pushed, popped or returned into. */
static void mend_flags(struct state *t, struct context *c, const uint8_t *b, size_t n)
{
	unsigned i = n_prefixes(b, n);
	uint8_t opcode = i < n ? b[i] : 0;

	if (opcode == 0x9c && !t->head.has_own_trap)
		*(volatile uint8_t *)(uintptr_t)(c->r.rsp + 1) &= (uint8_t) ~(FLAG_TRAP >> 8);
	else if (opcode == 0x9d || opcode == 0xcf)
		t->head.has_own_trap = (c->r.flags & FLAG_TRAP) != 0;
}

void trap_record(struct state *t, uint64_t addr)
{
	uint8_t bytes[INSN_BYTES];
	size_t n = peek_code(t, addr, bytes, sizeof(bytes));

	ring_step(t, addr, bytes, n);
}

/* The instruction at the saved address was executed, `is_int3` when that is what it was. True when
 * the program had set the trap flag itself, or made a trap: it gets this one. */
static bool executed(struct state *t, struct context *c, bool is_int3)
{
	bool is_own = t->head.has_own_trap;
	uint8_t bytes[INSN_BYTES];
	uint64_t addr;
	size_t n;
	unsigned length;

	addr = t->head.saved;
	n = is_int3 ? peek(t, addr, bytes, sizeof(bytes))
		    : peek_code(t, addr, bytes, sizeof(bytes));
	ring_step(t, addr, bytes, n);
	while ((length = shadow_length(bytes, n)) && c->r.rip != addr + length) {
		addr += length;
		n = peek_code(t, addr, bytes, sizeof(bytes));
		ring_step(t, addr, bytes, n);
	}
	mend_flags(t, c, bytes, n);
	return is_own || (n && bytes[0] == 0xf1);
}

/* --- the handler -------------------------------------------------------------------------------
 */

static bool is_in_stub(const struct state *t, const struct context *c, unsigned at)
{
	return t->call.is_on && c->r.rip == t->call.at + at;
}

/* Looks at what comes next, and does it when it is ours to do. */
static void go_on(struct state *t, struct context *c)
{
	uint8_t bytes[INSN_BYTES];
	unsigned length;
	bool is_32;

	for (;;) {
		uint64_t rip = c->r.rip;
		size_t n;

		t->head.saved = rip;
		if (t->head.is_out || is_off())
			break;
		/* Nearly all instructions are told from a system call by their first byte. */
		n = peek_code(t, rip, bytes, 2);
		if (n == 2 && bytes[0] == 0x0f && bytes[1] != 0x05)
			break;
		if (n == 2 && bytes[0] != 0x0f && bytes[0] != 0xcd && !n_prefixes(bytes, 1))
			break;
		length = syscall_length(bytes, peek_code(t, rip, bytes, sizeof(bytes)), &is_32);
		if (!length || !call_begin(t, c, length, is_32))
			break;
	}
	if (!t->head.is_out && is_off() && !is_in_stub(t, c, 0))
		thread_leave(t, c, 5); /* STEP_WHY_END */
	if (!t->head.is_out) {
		c->r.flags |= FLAG_TRAP;
		c->mask &= ~SIG_TRAP_BIT;
		c->stack = (struct signal_stack){(uint64_t)(uintptr_t)t + sizeof(*t),
			SS_AUTODISARM_, 0, STEPS_STATE_BYTES - sizeof(*t)};
	}
}

static bool is_start(const struct signal_info *info)
{
	return info->code == CODE_QUEUE && info->value == STEPS_START_VALUE;
}

/* A step over an instruction with a uprobe, which may be one that leads to itself; a string instruction
 * may have lost its uprobe by now. */
static bool is_by_uprobe(
	struct state *t, const struct signal_info *info, const struct context *c)
{
	uint8_t memory, bytes[INSN_BYTES];
	size_t n;

	if (info->code != CODE_USER || (uint32_t)info->addr != t->process->pid || !t->head.saved ||
		t->call.is_on)
		return false;
	if (c->r.rip != t->head.saved)
		return true;
	if (!peek(t, c->r.rip, &memory, 1))
		return false;
	n = peek_code(t, c->r.rip, bytes, sizeof(bytes));
	return memory == INT3 ? may_stay(bytes, n) : is_repeated_string(bytes, n);
}

static bool is_step(struct state *t, const struct signal_info *info, const struct context *c)
{
	return info->code == TRAP_TRACE || info->code == TRAP_HWBKPT || is_by_uprobe(t, info, c);
}

static void trapped(struct state *t, const struct signal_info *info, struct context *c)
{
	struct signal_info own;

	if (is_in_stub(t, c, STUB_END)) {
		call_end(t, c);
		return;
	}
	if (!t->head.saved || !executed(t, c, false))
		return;
	own = *info;
	if (own.code > 0)
		own.addr = c->r.rip;
	signal_deliver(t, SIG_TRAP, &own, c);
}

/* A signal of the program's. */
static void signalled(struct state *t, int number, struct signal_info *info, struct context *c)
{
	if (is_in_stub(t, c, 0))
		call_take_back(t, c);
	else if (is_in_stub(t, c, STUB_BEHIND))
		call_end(t, c);
	else if (number == SIG_TRAP && t->head.saved &&
		 (info->code == CODE_KERNEL || c->r.rip != t->head.saved))
		/* int3; or one that was sent in the moment of a step, and is all that came of it */
		executed(t, c, info->code == CODE_KERNEL);
	if (t->head.is_out)
		signal_send_again(number, info);
	else
		signal_deliver(t, number, info, c);
}

void steps_handle(int number, struct signal_info *info, struct context *c);
void steps_handle(int number, struct signal_info *info, struct context *c)
{
	struct state *t = thread_state(c);

	if (t && t->n_vforks)
		vfork_look(t, c);
	if (!t || t->head.is_out) {
		c->r.flags &= ~FLAG_TRAP;
		if (number != SIG_TRAP)
			signal_pass_on(number, info, c);
		return;
	}
	if (!t->head.is_begun && !thread_begin(t, c, STEPS_HOW_START, 0)) {
		if (number != SIG_TRAP)
			signal_send_again(number, info);
		return;
	}
	ring_look_around(t);
	if (number == SIG_TRAP && is_step(t, info, c))
		trapped(t, info, c);
	else if (number != SIG_TRAP || !is_start(info))
		signalled(t, number, info, c);
	go_on(t, c);
}
