/* SPDX-License-Identifier: MIT */
/*
 * The program, in pseudo-C:
 *
 *   if (current is not followed) return 0;          // task_filter.h: no sample is written
 *   sp, ip = those of task_pt_regs(current);        // where user mode was left
 *   top = tops[tid], or unknown when it is not there or not plausible;
 *   if (top is unknown)                             // behind the last page there is, of those near
 *           for (page = each page start in (sp, sp + NEAR])         // unrolled, no branches
 *                   if (!probe_read_user(&word, 8, page)) top = page + 4096;
 *   n = top - sp;
 *   for (size = each of 4 KiB, 16 KiB, 64 KiB, NEAR)                // unrolled
 *           if (n <= size) {
 *                   r = ringbuf_reserve(sizeof(*r) + size);         // NULL: lost++; return 0
 *                   if (!probe_read_user(r->below, 128 + n, sp - 128)) submit(r), return 1;
 *                   n = what is left of it below the page that the top is in;
 *                   if (!probe_read_user(r->below, 128 + n, sp - 128)) submit(r), return 1;
 *                   ringbuf_discard(r);
 *                   break;
 *           }
 *   start = sp & ~4095;                             // with holes, or very deep: page by page
 *   max = top - start > NEAR ? LARGE : NEAR;
 *   r = ringbuf_reserve(sizeof(*r) + max);
 *   r->n_below = the most of 128, 64, ... 8 bytes below sp that can be read into r->below;
 *   for (i = 0; i < max / 4096; i++) {              // unrolled
 *           if (i % 8 == 0 && start + i * 4096 >= top) break;
 *           if (!probe_read_user(r->bytes + i * 4096, 4096, start + i * 4096))
 *                   r->n = (i + 1) * 4096;          // absent pages are filled with zeros
 *   }
 *   r->n = min(r->n, top - start, rounded up to pages);
 *   if (max == LARGE && top - start > LARGE)        // the last pages below the top, too
 *           r->tail_start = ..., likewise;
 *   submit(r);                                      // wakes the reader when the ring is a quarter full
 *   return 1;                                       // 1: the kernel goes on to write its sample
 *
 * Nearly every stack is read whole, by one call: an absent page costs a fault, which is more than all the
 * rest. A page of a stack is absent when it was never touched, which is so in the middle of a large local
 * buffer, and what is behind it counts. So may be the page below the stack pointer, so that less than
 * the red zone is read: code that keeps something there has touched it.
 *
 * A sample without its record could be taken for the one beside it. So there is none: what finds no
 * room is counted, and the kernel writes no sample.
 *
 * What is done for each page has no branches: at every one the verifier takes a copy of all that it
 * knows and goes both ways, which was nearly all of the time that a recording took to begin.
 *
 * Registers: r6 = sp, r7 = n, or bytes read, r8 = start, r9 = the record. On the stack: a word for
 * probing, the tid, the top (0 = unknown), the ip.
 */
#include "record/deep_program.h"

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <stddef.h>

#include "record/task_filter.h"

#define PAGE_BYTES 4096
/* The ring is filled by what is reserved, not by what is used. */
#define NEAR_BYTES	      (192 * 1024)
#define STACK_BYTES_PLAUSIBLE (64 << 20)
#define PAGES_AT_ONCE	      8
#define AT_WORD		      (-8)
#define AT_TID		      (-16)
#define AT_TOP		      (-24)
#define AT_IP		      (-32)

/* What the parts of the program share. */
struct made {
	struct bpf_code *c;
	const struct deep_maps *maps;
	int full; /* where to go when a ring has no room */
};

static void emit_fields(struct bpf_code *c)
{
	bpf_call(c, BPF_FUNC_ktime_get_ns);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, time), BPF_REG_0);
	bpf_call(c, BPF_FUNC_get_smp_processor_id);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, cpu), BPF_REG_0);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, sp), BPF_REG_6);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, start), BPF_REG_8);
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_IP);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, ip), BPF_REG_1);
	bpf_store_imm(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n), 0);
	bpf_store_imm(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, tail_start), 0);
}

/* The bytes that end at the stack pointer, as many as are there. */
static void emit_copy_below(struct bpf_code *c)
{
	int done = bpf_label(c);

	bpf_store_imm(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n_below), 0);
	for (int n = DEEP_BELOW_BYTES; n >= 8; n /= 2) {
		int absent = bpf_label(c);

		bpf_mov(c, BPF_REG_1, BPF_REG_9);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_1,
			(int32_t)offsetof(struct deep_record, below) + DEEP_BELOW_BYTES - n);
		bpf_mov_imm(c, BPF_REG_2, n);
		bpf_mov(c, BPF_REG_3, BPF_REG_6);
		bpf_alu_imm(c, BPF_SUB, BPF_REG_3, n);
		bpf_call(c, BPF_FUNC_probe_read_user);
		bpf_jump_imm(c, BPF_JNE, BPF_REG_0, 0, absent);
		bpf_store_imm(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n_below), n);
		bpf_jump(c, done);
		bpf_place(c, absent);
	}
	bpf_place(c, done);
}

/* r9 = a new record with `n_bytes` behind it, filled but for those and what is below. */
static void emit_reserve(const struct made *m, int n_bytes)
{
	struct bpf_code *c = m->c;

	bpf_load_map(c, BPF_REG_1, m->maps->ring->fd);
	bpf_mov_imm(c, BPF_REG_2, (int32_t)sizeof(struct deep_record) + n_bytes);
	bpf_mov_imm(c, BPF_REG_3, 0);
	bpf_call(c, BPF_FUNC_ringbuf_reserve);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, m->full);
	bpf_mov(c, BPF_REG_9, BPF_REG_0);
	emit_fields(c);
}

/* Leaves the program with the record. The collector comes by itself often enough, unless the ring fills
 * faster than that. */
static void emit_submit(const struct made *m)
{
	struct bpf_code *c = m->c;
	int calm = bpf_label(c);

	bpf_load_map(c, BPF_REG_1, m->maps->ring->fd);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_AVAIL_DATA);
	bpf_call(c, BPF_FUNC_ringbuf_query);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_NO_WAKEUP);
	bpf_jump_imm(c, BPF_JLT, BPF_REG_0, (int32_t)(m->maps->ring->bytes / 4), calm);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_FORCE_WAKEUP);
	bpf_place(c, calm);
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_call(c, BPF_FUNC_ringbuf_submit);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
}

/* r0 = 0 when the page at r3 could be copied to `at` in the record, else that is zeroed. */
static void emit_copy_page(struct bpf_code *c, int at)
{
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, (int32_t)sizeof(struct deep_record) + at);
	bpf_mov_imm(c, BPF_REG_2, PAGE_BYTES);
	bpf_call(c, BPF_FUNC_probe_read_user);
}

/* r7 = value, when r0 is 0, and not negative, as what a read that failed returns. */
static void emit_take_if_read(struct bpf_code *c, int32_t value)
{
	bpf_alu_imm(c, BPF_ARSH, BPF_REG_0, 63);
	bpf_alu(c, BPF_AND, BPF_REG_7, BPF_REG_0);
	bpf_alu_imm(c, BPF_XOR, BPF_REG_0, -1);
	bpf_alu_imm(c, BPF_AND, BPF_REG_0, value);
	bpf_alu(c, BPF_OR, BPF_REG_7, BPF_REG_0);
}

/* r7 = no more than there is up to the top, in whole pages. */
static void emit_clamp(struct bpf_code *c)
{
	int fits = bpf_label(c);

	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_TOP);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, PAGE_BYTES - 1);
	bpf_alu_imm(c, BPF_AND, BPF_REG_1, -PAGE_BYTES);
	bpf_jump_reg(c, BPF_JLE, BPF_REG_7, BPF_REG_1, fits);
	bpf_mov(c, BPF_REG_7, BPF_REG_1);
	bpf_place(c, fits);
}

/* The first `max` bytes from r8 on, up to the top; r7 = the end of the last page that is there. */
static void emit_copy_pages(struct bpf_code *c, int max)
{
	int done = bpf_label(c);

	bpf_mov_imm(c, BPF_REG_7, 0);
	for (int i = 0; i < max / PAGE_BYTES; i++) {
		bpf_mov(c, BPF_REG_3, BPF_REG_8);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
		if (i % PAGES_AT_ONCE == 0) {
			bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_TOP);
			bpf_jump_reg(c, BPF_JGE, BPF_REG_3, BPF_REG_4, done);
		}
		emit_copy_page(c, i * PAGE_BYTES);
		emit_take_if_read(c, (i + 1) * PAGE_BYTES);
	}
	bpf_place(c, done);
	emit_clamp(c);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n), BPF_REG_7);
}

/* The last pages below the top, when the pages before them did not reach so far. */
static void emit_copy_tail(struct bpf_code *c)
{
	int near = bpf_label(c);

	bpf_load(c, BPF_DW, BPF_REG_7, BPF_REG_10, AT_TOP);
	bpf_mov(c, BPF_REG_1, BPF_REG_7);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_jump_imm(c, BPF_JLE, BPF_REG_1, DEEP_LARGE_BYTES, near);
	bpf_alu_imm(c, BPF_AND, BPF_REG_7, -PAGE_BYTES);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_7, PAGE_BYTES - DEEP_TAIL_BYTES);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, tail_start), BPF_REG_7);
	for (int i = 0; i < DEEP_TAIL_BYTES / PAGE_BYTES; i++) {
		bpf_mov(c, BPF_REG_3, BPF_REG_7);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
		emit_copy_page(c, DEEP_LARGE_BYTES + i * PAGE_BYTES);
	}
	bpf_place(c, near);
}

/* Makes a record of pages, at most `max` bytes (and a tail, when asked), and leaves the program. */
static void emit_pages(const struct made *m, int max, bool with_tail)
{
	emit_reserve(m, max + (with_tail ? DEEP_TAIL_BYTES : 0));
	emit_copy_below(m->c);
	emit_copy_pages(m->c, max);
	if (with_tail)
		emit_copy_tail(m->c);
	emit_submit(m);
}

/* r0 = 0 when the n bytes from the stack pointer on, and what is below it, could be read into the record. */
static void emit_read_whole(struct bpf_code *c)
{
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n), BPF_REG_7);
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, (int32_t)offsetof(struct deep_record, below));
	bpf_mov(c, BPF_REG_2, BPF_REG_7);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_2, DEEP_BELOW_BYTES);
	bpf_mov(c, BPF_REG_3, BPF_REG_6);
	bpf_alu_imm(c, BPF_SUB, BPF_REG_3, DEEP_BELOW_BYTES);
	bpf_call(c, BPF_FUNC_probe_read_user);
}

/* When n is no more than `max`: makes a record and leaves the program, or goes to `holes`. */
static void emit_whole(const struct made *m, int max, int holes)
{
	struct bpf_code *c = m->c;
	int larger = bpf_label(c), done = bpf_label(c), absent = bpf_label(c);

	bpf_jump_imm(c, BPF_JGT, BPF_REG_7, max, larger);
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	emit_reserve(m, max);
	bpf_store_imm(
		c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n_below), DEEP_BELOW_BYTES);
	emit_read_whole(c);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, done);
	/* The top is a little above the outermost frame: more than there may be. */
	bpf_load(c, BPF_DW, BPF_REG_7, BPF_REG_10, AT_TOP);
	bpf_alu_imm(c, BPF_SUB, BPF_REG_7, 1);
	bpf_alu_imm(c, BPF_AND, BPF_REG_7, -PAGE_BYTES);
	bpf_alu(c, BPF_SUB, BPF_REG_7, BPF_REG_6);
	bpf_jump_imm(c, BPF_JGT, BPF_REG_7, max, absent);
	emit_read_whole(c);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, done);
	bpf_place(c, absent);
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_NO_WAKEUP);
	bpf_call(c, BPF_FUNC_ringbuf_discard);
	bpf_jump(c, holes);
	bpf_place(c, done);
	emit_submit(m);
	bpf_place(c, larger);
}

/* r6 = sp, and the ip and the top of this thread's stack in their places (0 = unknown). */
static void emit_find_top(struct bpf_code *c, int tops_fd, int leave)
{
	int unknown = bpf_label(c);

	bpf_call(c, BPF_FUNC_get_current_task_btf);
	bpf_mov(c, BPF_REG_1, BPF_REG_0);
	bpf_call(c, BPF_FUNC_task_pt_regs);
	bpf_load(c, BPF_DW, BPF_REG_6, BPF_REG_0, offsetof(struct pt_regs, rsp));
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_0, offsetof(struct pt_regs, rip));
	bpf_store(c, BPF_DW, BPF_REG_10, AT_IP, BPF_REG_1);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_6, 0, leave); /* a thread of the kernel */
	bpf_mov_imm(c, BPF_REG_7, 0);
	task_number_emit(c);
	bpf_store(c, BPF_W, BPF_REG_10, AT_TID, BPF_REG_0);
	bpf_find(c, tops_fd, AT_TID);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, unknown);
	bpf_load(c, BPF_DW, BPF_REG_0, BPF_REG_0, 0);
	bpf_mov(c, BPF_REG_1, BPF_REG_0);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_6);
	/* unsigned: a top below sp is implausible, too */
	bpf_jump_imm(c, BPF_JGT, BPF_REG_1, STACK_BYTES_PLAUSIBLE, unknown);
	bpf_mov(c, BPF_REG_7, BPF_REG_0);
	bpf_place(c, unknown);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_TOP, BPF_REG_7);
}

/* The top = the end of the last page that is there, of those up to NEAR_BYTES above sp. */
static void emit_probe_top(struct bpf_code *c)
{
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	bpf_alu_imm(c, BPF_AND, BPF_REG_8, -PAGE_BYTES);
	bpf_mov_imm(c, BPF_REG_7, PAGE_BYTES);
	for (int i = 1; i < NEAR_BYTES / PAGE_BYTES; i++) {
		bpf_stack_address(c, BPF_REG_1, AT_WORD);
		bpf_mov_imm(c, BPF_REG_2, 8);
		bpf_mov(c, BPF_REG_3, BPF_REG_8);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
		bpf_call(c, BPF_FUNC_probe_read_user);
		emit_take_if_read(c, (i + 1) * PAGE_BYTES);
	}
	bpf_alu(c, BPF_ADD, BPF_REG_7, BPF_REG_8);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_TOP, BPF_REG_7);
}

/* First: what follows is too long to jump over. */
static void emit_filter(struct bpf_code *c, const struct task_filter *filter)
{
	int drop = bpf_label(c), go_on = bpf_label(c);

	task_filter_emit(c, filter, drop);
	bpf_jump(c, go_on);
	bpf_place(c, drop);
	bpf_return_0(c);
	bpf_place(c, go_on);
}

/* Counts a sample that there is no room for; none is written. */
static void emit_lost(struct bpf_code *c, int lost_fd)
{
	bpf_load_map_value(c, BPF_REG_1, lost_fd, 0);
	bpf_mov_imm(c, BPF_REG_2, 1);
	bpf_atomic(c, BPF_ADD, BPF_REG_1, 0, BPF_REG_2);
	bpf_return_0(c);
}

void deep_program_make(
	struct bpf_code *c, const struct deep_maps *maps, const struct task_filter *filter)
{
	static const int sizes[] = {4096, 16384, 65536, NEAR_BYTES};
	int leave = bpf_label(c), known = bpf_label(c), pages = bpf_label(c), near = bpf_label(c);
	const struct made m = {c, maps, bpf_label(c)};

	if (filter)
		emit_filter(c, filter);
	emit_find_top(c, maps->tops_fd, leave);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_7, 0, known);
	emit_probe_top(c);
	bpf_place(c, known);
	bpf_alu(c, BPF_SUB, BPF_REG_7, BPF_REG_6);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		emit_whole(&m, sizes[i], pages);
	bpf_place(c, pages);
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	bpf_alu_imm(c, BPF_AND, BPF_REG_8, -PAGE_BYTES);
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_TOP);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_jump_imm(c, BPF_JLE, BPF_REG_1, NEAR_BYTES, near);
	emit_pages(&m, DEEP_LARGE_BYTES, true);
	bpf_place(c, near);
	emit_pages(&m, NEAR_BYTES, false);
	bpf_place(c, m.full);
	emit_lost(c, maps->lost_fd);
	bpf_place(c, leave);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
}
