/* SPDX-License-Identifier: MIT */
/*
 * The program, in pseudo-C:
 *
 *   if (current is not followed) return 0;          // task_filter.h: no sample is written
 *   sp, ip = those of task_pt_regs(current);        // where user mode was left
 *   top = tops[tid], or unknown when it is not there or not plausible;
 *   hole = 0; goes_on = false;
 *   for (page = each page start in (sp, sp + stack_bytes])              // unrolled, no branches
 *           if (top is unknown || page < top) {
 *                   if (!probe_read_user(&word, 8, page)) goes_on |= hole != 0;
 *                   else hole = hole ?: page;
 *           }
 *   if (top is known) { if (!hole && top <= the last page) goto near; }
 *   else if (hole && !goes_on)
 *           if (none of the pages up to sp + SMALL is there) goto near;  // the stack's end, then
 *   start = hole ?: (sp + stack_bytes) & ~4095;
 *   limit = top is known ? top : start + UNKNOWN;
 *   max = limit - start > SMALL ? LARGE : SMALL;
 *   r = ringbuf_reserve(sizeof(*r) + max);          // NULL: the walk ends short, and is counted
 *   r->n_below = the most of 128, 64, ... 8 bytes below sp that can be read into r->below;
 *   for (i = 0; i < max / 4096; i++) {              // unrolled
 *           if (i % 8 == 0 && start + i * 4096 >= limit) break;
 *           if (!probe_read_user(r->bytes + i * 4096, 4096, start + i * 4096))
 *                   r->n = (i + 1) * 4096;          // absent pages are filled with zeros
 *   }
 *   r->n = min(r->n, limit - start, rounded up to pages);
 *   if (max == LARGE && limit - start > LARGE)      // the last pages below the top, too
 *           r->tail_start = ..., likewise;
 *   ringbuf_submit(r, the ring is a quarter full ? WAKEUP : NO_WAKEUP);
 *   return 1;                                       // 1: the kernel goes on to write its sample
 * near:                                             // the kernel's copy holds the stack to its end
 *   r = ringbuf_reserve(sizeof(*r)); ...            // what is below it is all that it lacks
 *
 * A page of a stack is absent when it was never touched, which is so in the middle of a large local
 * buffer; the kernel's copy ends there, although the frames go on behind it. The page below the
 * stack pointer may be absent, too, so that less than the red zone is read: code that keeps
 * something there has touched it.
 *
 * What is done for each page has no branches: at every one the verifier takes a copy of all that it
 * knows and goes both ways, which was nearly all of the time that a recording took to begin.
 *
 * Registers: r6 = sp, r7 = hole, then bytes read, r8 = page, then start, r9 = goes_on (-1 = true), then
 * the record. On the stack: a word for probing, the tid, the top (0 = unknown), the limit, the ip; before
 * the limit is known, in its place where pages are probed to.
 */
#include "record/deep_program.h"

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <stddef.h>

#include "record/task_filter.h"

#define PAGE_BYTES 4096
/* The ring is filled by what is reserved, not by what is used: most deep stacks are small. */
#define SMALL_BYTES	      (192 * 1024)
#define UNKNOWN_BYTES	      (128 * 1024) /* copied while the top is not known */
#define STACK_BYTES_PLAUSIBLE (64 << 20)
#define ANYWHERE	      INT32_MAX /* shifted: above every address */
#define PAGES_AT_ONCE	      8
#define AT_WORD		      (-8)
#define AT_TID		      (-16)
#define AT_LIMIT	      (-24)
#define AT_TOP		      (-32)
#define AT_IP		      (-40)

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

/* r9 = a new record with `n_bytes` behind it, filled but for those. */
static void emit_reserve(struct bpf_code *c, const struct bpf_ring *ring, int n_bytes, int leave)
{
	bpf_load_map(c, BPF_REG_1, ring->fd);
	bpf_mov_imm(c, BPF_REG_2, (int32_t)sizeof(struct deep_record) + n_bytes);
	bpf_mov_imm(c, BPF_REG_3, 0);
	bpf_call(c, BPF_FUNC_ringbuf_reserve);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_mov(c, BPF_REG_9, BPF_REG_0);
	emit_fields(c);
	emit_copy_below(c);
}

/* A record of what is below the stack pointer; the collector comes by itself often enough. */
static void emit_record_below(struct bpf_code *c, const struct bpf_ring *ring, int leave)
{
	bpf_mov_imm(c, BPF_REG_8, 0);
	emit_reserve(c, ring, 0, leave);
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_NO_WAKEUP);
	bpf_call(c, BPF_FUNC_ringbuf_submit);
}

/* r0 = 0 when the page at r3 could be copied to `at` in the record, else that is zeroed. */
static void emit_copy_page(struct bpf_code *c, int at)
{
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, (int32_t)sizeof(struct deep_record) + at);
	bpf_mov_imm(c, BPF_REG_2, PAGE_BYTES);
	bpf_call(c, BPF_FUNC_probe_read_user);
}

/* r0 = -1 when it is negative, as what a read that failed returns; else 0. */
static void emit_failed(struct bpf_code *c)
{
	bpf_alu_imm(c, BPF_ARSH, BPF_REG_0, 63);
}

/* r7 = no more than there is up to the limit, in whole pages. */
static void emit_clamp(struct bpf_code *c)
{
	int fits = bpf_label(c);

	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_LIMIT);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, PAGE_BYTES - 1);
	bpf_alu_imm(c, BPF_AND, BPF_REG_1, -PAGE_BYTES);
	bpf_jump_reg(c, BPF_JLE, BPF_REG_7, BPF_REG_1, fits);
	bpf_mov(c, BPF_REG_7, BPF_REG_1);
	bpf_place(c, fits);
}

/* The first `max` bytes from r8 on, up to the limit; r7 = the end of the last page that is there. */
static void emit_copy_pages(struct bpf_code *c, int max)
{
	int done = bpf_label(c);

	bpf_mov_imm(c, BPF_REG_7, 0);
	for (int i = 0; i < max / PAGE_BYTES; i++) {
		bpf_mov(c, BPF_REG_3, BPF_REG_8);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
		if (i % PAGES_AT_ONCE == 0) {
			bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_LIMIT);
			bpf_jump_reg(c, BPF_JGE, BPF_REG_3, BPF_REG_4, done);
		}
		emit_copy_page(c, i * PAGE_BYTES);
		emit_failed(c);
		bpf_alu(c, BPF_AND, BPF_REG_7, BPF_REG_0);
		bpf_alu_imm(c, BPF_XOR, BPF_REG_0, -1);
		bpf_alu_imm(c, BPF_AND, BPF_REG_0, (i + 1) * PAGE_BYTES);
		bpf_alu(c, BPF_OR, BPF_REG_7, BPF_REG_0);
	}
	bpf_place(c, done);
	emit_clamp(c);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n), BPF_REG_7);
}

/* The last pages below the limit, when the pages before them did not reach so far. */
static void emit_copy_tail(struct bpf_code *c)
{
	int near = bpf_label(c);

	bpf_load(c, BPF_DW, BPF_REG_7, BPF_REG_10, AT_LIMIT);
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

/* Makes a record for `max` bytes (and a tail, when asked), fills it and leaves the program. */
static void emit_record(
	struct bpf_code *c, const struct bpf_ring *ring, int max, bool with_tail, int leave)
{
	int calm = bpf_label(c);

	emit_reserve(c, ring, max + (with_tail ? DEEP_TAIL_BYTES : 0), leave);
	emit_copy_pages(c, max);
	if (with_tail)
		emit_copy_tail(c);
	/* The collector comes by itself often enough, unless the ring fills faster than that. */
	bpf_load_map(c, BPF_REG_1, ring->fd);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_AVAIL_DATA);
	bpf_call(c, BPF_FUNC_ringbuf_query);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_NO_WAKEUP);
	bpf_jump_imm(c, BPF_JLT, BPF_REG_0, (int32_t)(ring->bytes / 4), calm);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_FORCE_WAKEUP);
	bpf_place(c, calm);
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_call(c, BPF_FUNC_ringbuf_submit);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
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

/* r0 = -1 when the page start `i` pages behind r8 is absent, else 0. */
static void emit_probe_page(struct bpf_code *c, int i)
{
	bpf_stack_address(c, BPF_REG_1, AT_WORD);
	bpf_mov_imm(c, BPF_REG_2, 8);
	bpf_mov(c, BPF_REG_3, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
	bpf_call(c, BPF_FUNC_probe_read_user);
	emit_failed(c);
}

/* r7 = the first absent page, r9 = whether there is one behind it; pages at the top are neither. */
static void emit_probe_near(struct bpf_code *c, int i)
{
	emit_probe_page(c, i);
	bpf_mov(c, BPF_REG_3, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
	/* r1 = -1 when it is below the top, r2 = -1 when there is a hole before it */
	bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_LIMIT);
	bpf_mov(c, BPF_REG_1, BPF_REG_3);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_4);
	bpf_alu_imm(c, BPF_ARSH, BPF_REG_1, 63);
	bpf_mov_imm(c, BPF_REG_2, 0);
	bpf_alu(c, BPF_SUB, BPF_REG_2, BPF_REG_7);
	bpf_alu_imm(c, BPF_ARSH, BPF_REG_2, 63);
	/* hole |= page & absent & below & ~before */
	bpf_alu(c, BPF_AND, BPF_REG_3, BPF_REG_0);
	bpf_alu(c, BPF_AND, BPF_REG_3, BPF_REG_1);
	bpf_mov(c, BPF_REG_4, BPF_REG_2);
	bpf_alu_imm(c, BPF_XOR, BPF_REG_4, -1);
	bpf_alu(c, BPF_AND, BPF_REG_3, BPF_REG_4);
	bpf_alu(c, BPF_OR, BPF_REG_7, BPF_REG_3);
	/* goes_on |= ~absent & below & before */
	bpf_alu_imm(c, BPF_XOR, BPF_REG_0, -1);
	bpf_alu(c, BPF_AND, BPF_REG_0, BPF_REG_1);
	bpf_alu(c, BPF_AND, BPF_REG_0, BPF_REG_2);
	bpf_alu(c, BPF_OR, BPF_REG_9, BPF_REG_0);
}

/* The limit's place = the top of the stack, or what is above every address. */
static void emit_probe_limit(struct bpf_code *c)
{
	int known = bpf_label(c);

	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_TOP);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_1, 0, known);
	bpf_mov_imm(c, BPF_REG_1, ANYWHERE);
	bpf_alu_imm(c, BPF_LSH, BPF_REG_1, 31);
	bpf_place(c, known);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_LIMIT, BPF_REG_1);
}

/* To `near` when the kernel's copy will hold the stack to its end; else r8 = where it will not. */
static void emit_find_start(struct bpf_code *c, uint32_t stack_bytes, int near)
{
	int unknown = bpf_label(c), copy = bpf_label(c), no_hole = bpf_label(c);
	int found = bpf_label(c), n_near = (int)(stack_bytes / PAGE_BYTES);

	bpf_mov_imm(c, BPF_REG_7, 0);
	bpf_mov_imm(c, BPF_REG_9, 0);
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	bpf_alu_imm(c, BPF_AND, BPF_REG_8, -PAGE_BYTES);
	emit_probe_limit(c);
	for (int i = 1; i <= n_near; i++)
		emit_probe_near(c, i);
	bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_TOP);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_4, 0, unknown);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_7, 0, copy);
	bpf_mov(c, BPF_REG_3, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_3, n_near * PAGE_BYTES);
	bpf_jump_reg(c, BPF_JGE, BPF_REG_3, BPF_REG_4, near);
	bpf_jump(c, copy);
	bpf_place(c, unknown);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_7, 0, copy);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_9, 0, copy);
	/* Absent to the end of the copy: the stack's end, or a hole that is larger still. */
	for (int i = n_near + 1; i <= SMALL_BYTES / PAGE_BYTES; i++) {
		emit_probe_page(c, i);
		bpf_alu_imm(c, BPF_XOR, BPF_REG_0, -1);
		bpf_alu(c, BPF_OR, BPF_REG_9, BPF_REG_0);
	}
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_9, 0, near);
	bpf_place(c, copy);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_7, 0, no_hole);
	bpf_mov(c, BPF_REG_8, BPF_REG_7);
	bpf_jump(c, found);
	bpf_place(c, no_hole);
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_8, (int32_t)stack_bytes);
	bpf_alu_imm(c, BPF_AND, BPF_REG_8, -PAGE_BYTES);
	bpf_place(c, found);
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

void deep_program_make(struct bpf_code *c, const struct bpf_ring *ring, int tops_fd,
	uint32_t stack_bytes, const struct task_filter *filter)
{
	int leave = bpf_label(c), near = bpf_label(c), small = bpf_label(c), known = bpf_label(c);

	if (filter)
		emit_filter(c, filter);
	emit_find_top(c, tops_fd, leave);
	emit_find_start(c, stack_bytes, near);
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_TOP);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_1, 0, known);
	bpf_mov(c, BPF_REG_1, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, UNKNOWN_BYTES);
	bpf_place(c, known);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_LIMIT, BPF_REG_1);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_jump_imm(c, BPF_JLE, BPF_REG_1, SMALL_BYTES, small);
	emit_record(c, ring, DEEP_LARGE_BYTES, true, leave);
	bpf_place(c, small);
	emit_record(c, ring, SMALL_BYTES, false, leave);
	bpf_place(c, near);
	emit_record_below(c, ring, leave);
	bpf_place(c, leave);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
}
