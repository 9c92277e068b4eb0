/* SPDX-License-Identifier: MIT */
/*
 * The program, in pseudo-C:
 *
 *   if (current is not followed) return 0;          // task_filter.h: no sample is written
 *   sp = task_pt_regs(current)->sp;                 // where user mode was left
 *   top = tops[tid], or unknown when it is not there or not plausible;
 *   hole = 0;
 *   for (page = each page start in (sp, sp + stack_bytes]) {             // unrolled
 *           if (top is known && page >= top) { if (hole) goto copy; return 1; }
 *           if (probe_read_user(&word, 8, page)) hole = hole ?: page;
 *           else if (hole) goto copy;               // memory goes on behind a hole
 *   }
 *   if (top is unknown && hole)
 *           if (none of the pages up to sp + SMALL is there) return 1;   // the stack's end, then
 * copy:
 *   start = hole ?: (sp + stack_bytes) & ~4095;
 *   limit = top is known ? top : start + UNKNOWN;
 *   max = limit - start > SMALL ? LARGE : SMALL;
 *   r = ringbuf_reserve(sizeof(*r) + max);          // NULL: the walk ends short, and is counted
 *   for (i = 0; i < max / 4096; i++) {              // unrolled
 *           if (start + i * 4096 >= limit) break;
 *           if (!probe_read_user(r->bytes + i * 4096, 4096, start + i * 4096))
 *                   r->n = (i + 1) * 4096;          // absent pages are filled with zeros
 *   }
 *   if (max == LARGE && limit - start > LARGE)      // the last pages below the top, too
 *           r->tail_start = ..., likewise;
 *   ringbuf_submit(r, the ring is a quarter full ? WAKEUP : NO_WAKEUP);
 *   return 1;                                       // 1: the kernel goes on to write its sample
 *
 * A page of a stack is absent when it was never touched, which is so in the middle of a large local
 * buffer; the kernel's copy ends there, although the frames go on behind it.
 *
 * Registers: r6 = sp, r7 = hole, then bytes read, r8 = page, then start, r9 = record. On the stack:
 * a word for probing, the tid, the top (0 = unknown), the limit.
 */
#include "record/deep_stacks.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/file.h"
#include "base/mem.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "bpf/ring.h"
#include "record/task_filter.h"

#define PAGE_BYTES 4096
/* The ring is filled by what is reserved, not by what is used: most deep stacks are small. */
#define SMALL_BYTES	      (192 * 1024)
#define UNKNOWN_BYTES	      (128 * 1024) /* copied while the top is not known */
#define TAIL_BYTES	      (64 * 1024)
#define LARGE_BYTES	      ((int)DEEP_STACK_BYTES_MAX - TAIL_BYTES)
#define RING_BYTES_MIN	      ((size_t)32 << 20)
#define RING_BYTES_MAX	      ((size_t)256 << 20)
#define RING_BYTES_A_CPU      ((size_t)4 << 20)
#define TOPS_MAX	      16384
#define STACK_BYTES_PLAUSIBLE (64 << 20)
#define AT_WORD		      (-8)
#define AT_TID		      (-16)
#define AT_LIMIT	      (-24)
#define AT_TOP		      (-32)
/* Both are stamped in the same interrupt: which comes first differs between kernels. */
#define MATCH_WINDOW_NS 50000000u

struct deep_record {
	uint64_t time;
	uint64_t cpu;
	uint64_t sp;
	uint64_t start;
	uint64_t n;
	uint64_t tail_start; /* of the TAIL_BYTES behind LARGE_BYTES; 0 = there is no tail */
	uint8_t bytes[];
};

struct kept {
	uint64_t time, sp;
	uint32_t cpu;
	struct deep_stack *stack; /* owned until it is taken */
};

struct deep_stacks {
	struct bpf_ring ring;
	int program_fd;
	int tops_fd; /* tid -> end of its stack */
	VEC(struct kept) kept;
};

static void emit_fields(struct bpf_code *c)
{
	bpf_call(c, BPF_FUNC_ktime_get_ns);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, time), BPF_REG_0);
	bpf_call(c, BPF_FUNC_get_smp_processor_id);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, cpu), BPF_REG_0);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, sp), BPF_REG_6);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, start), BPF_REG_8);
	bpf_mov_imm(c, BPF_REG_1, 0);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, tail_start), BPF_REG_1);
}

/* r0 = 0 when the page at r3 could be copied to `at` in the record, else that is zeroed. */
static void emit_copy_page(struct bpf_code *c, int at)
{
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, (int32_t)sizeof(struct deep_record) + at);
	bpf_mov_imm(c, BPF_REG_2, PAGE_BYTES);
	bpf_call(c, BPF_FUNC_probe_read_user);
}

/* The first `max` bytes from r8 on, up to the limit; r7 = the end of the last page that is there.
 */
static void emit_copy_pages(struct bpf_code *c, int max)
{
	int done = bpf_label(c);

	bpf_mov_imm(c, BPF_REG_7, 0);
	for (int i = 0; i < max / PAGE_BYTES; i++) {
		int absent = bpf_label(c);

		bpf_mov(c, BPF_REG_3, BPF_REG_8);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
		bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_LIMIT);
		bpf_jump_reg(c, BPF_JGE, BPF_REG_3, BPF_REG_4, done);
		emit_copy_page(c, i * PAGE_BYTES);
		bpf_jump_imm(c, BPF_JNE, BPF_REG_0, 0, absent);
		bpf_mov_imm(c, BPF_REG_7, (i + 1) * PAGE_BYTES);
		bpf_place(c, absent);
	}
	bpf_place(c, done);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n), BPF_REG_7);
}

/* The last pages below the limit, when the pages before them did not reach so far. */
static void emit_copy_tail(struct bpf_code *c)
{
	int near = bpf_label(c);

	bpf_load(c, BPF_DW, BPF_REG_7, BPF_REG_10, AT_LIMIT);
	bpf_mov(c, BPF_REG_1, BPF_REG_7);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_jump_imm(c, BPF_JLE, BPF_REG_1, LARGE_BYTES, near);
	bpf_alu_imm(c, BPF_AND, BPF_REG_7, -PAGE_BYTES);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_7, PAGE_BYTES - TAIL_BYTES);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, tail_start), BPF_REG_7);
	for (int i = 0; i < TAIL_BYTES / PAGE_BYTES; i++) {
		bpf_mov(c, BPF_REG_3, BPF_REG_7);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
		emit_copy_page(c, LARGE_BYTES + i * PAGE_BYTES);
	}
	bpf_place(c, near);
}

/* Makes a record for `max` bytes (and a tail, when asked), fills it and leaves the program. */
static void emit_record(
	struct bpf_code *c, const struct bpf_ring *ring, int max, bool with_tail, int leave)
{
	int calm = bpf_label(c);

	bpf_load_map(c, BPF_REG_1, ring->fd);
	bpf_mov_imm(c, BPF_REG_2,
		(int32_t)sizeof(struct deep_record) + max + (with_tail ? TAIL_BYTES : 0));
	bpf_mov_imm(c, BPF_REG_3, 0);
	bpf_call(c, BPF_FUNC_ringbuf_reserve);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_mov(c, BPF_REG_9, BPF_REG_0);
	emit_fields(c);
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

/* r6 = sp, and the top of this thread's stack in its place (0 = unknown). */
static void emit_find_top(struct bpf_code *c, int tops_fd, int leave)
{
	int unknown = bpf_label(c);

	bpf_call(c, BPF_FUNC_get_current_task_btf);
	bpf_mov(c, BPF_REG_1, BPF_REG_0);
	bpf_call(c, BPF_FUNC_task_pt_regs);
	bpf_load(c, BPF_DW, BPF_REG_6, BPF_REG_0, offsetof(struct pt_regs, rsp));
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

/* One page start behind sp: absent, present behind a hole, or not below the top any more. */
static void emit_probe_page(struct bpf_code *c, int i, int at_top, int copy)
{
	int unknown = bpf_label(c), present = bpf_label(c), next = bpf_label(c);

	bpf_mov(c, BPF_REG_3, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
	bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_TOP);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_4, 0, unknown);
	bpf_jump_reg(c, BPF_JGE, BPF_REG_3, BPF_REG_4, at_top);
	bpf_place(c, unknown);
	bpf_stack_address(c, BPF_REG_1, AT_WORD);
	bpf_mov_imm(c, BPF_REG_2, 8);
	bpf_call(c, BPF_FUNC_probe_read_user);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, present);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_7, 0, next);
	bpf_mov(c, BPF_REG_7, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_7, i * PAGE_BYTES);
	bpf_jump(c, next);
	bpf_place(c, present);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_7, 0, copy);
	bpf_place(c, next);
}

/* Leaves when the kernel's copy will hold the stack to its end; else r8 = where it will not. */
static void emit_find_start(struct bpf_code *c, uint32_t stack_bytes, int leave)
{
	int at_top = bpf_label(c), copy = bpf_label(c), no_hole = bpf_label(c);
	int found = bpf_label(c);

	bpf_mov_imm(c, BPF_REG_7, 0); /* the first absent page */
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	bpf_alu_imm(c, BPF_AND, BPF_REG_8, -PAGE_BYTES);
	for (int i = 1; i <= (int)(stack_bytes / PAGE_BYTES); i++)
		emit_probe_page(c, i, at_top, copy);
	bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_TOP);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_4, 0, copy);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_7, 0, copy);
	/* Absent to the end of the copy: the stack's end, or a hole that is larger still. */
	for (int i = (int)(stack_bytes / PAGE_BYTES) + 1; i <= SMALL_BYTES / PAGE_BYTES; i++)
		emit_probe_page(c, i, at_top, copy);
	bpf_jump(c, leave);
	bpf_place(c, at_top);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_7, 0, leave);
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

static void emit_program(struct bpf_code *c, const struct deep_stacks *d, uint32_t stack_bytes,
	const struct task_filter *filter)
{
	int leave = bpf_label(c), small = bpf_label(c), known = bpf_label(c);
	int drop = bpf_label(c), go_on = bpf_label(c);

	if (filter) { /* first: what follows is too long to jump over */
		task_filter_emit(c, filter, drop);
		bpf_jump(c, go_on);
		bpf_place(c, drop);
		bpf_return_0(c);
		bpf_place(c, go_on);
	}

	emit_find_top(c, d->tops_fd, leave);
	emit_find_start(c, stack_bytes, leave);
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_TOP);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_1, 0, known);
	bpf_mov(c, BPF_REG_1, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, UNKNOWN_BYTES);
	bpf_place(c, known);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_LIMIT, BPF_REG_1);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_jump_imm(c, BPF_JLE, BPF_REG_1, SMALL_BYTES, small);
	emit_record(c, &d->ring, LARGE_BYTES, true, leave);
	bpf_place(c, small);
	emit_record(c, &d->ring, SMALL_BYTES, false, leave);
	bpf_place(c, leave);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
}

/* Where stacks end, by thread; the oldest are forgotten when there are too many. */
static int open_tops(struct deep_stacks *d, struct err *err)
{
	struct bpf_map_spec spec = {
		BPF_MAP_TYPE_LRU_HASH, sizeof(uint32_t), sizeof(uint64_t), TOPS_MAX, 0, ""};

	d->tops_fd = bpf_map_open(&spec);
	return d->tops_fd < 0 ? err_sys(err, -d->tops_fd, "BPF map: cannot be made") : 0;
}

int deep_stacks_open(struct deep_stacks **out, uint32_t stack_bytes, size_t n_cpus,
	const struct task_filter *filter, struct err *err)
{
	struct deep_stacks *d = mem_zalloc(sizeof(*d));
	struct bpf_code code = {0};
	size_t ring_bytes = RING_BYTES_MIN;
	int rc;

	while (ring_bytes < n_cpus * RING_BYTES_A_CPU && ring_bytes < RING_BYTES_MAX)
		ring_bytes *= 2;
	d->program_fd = d->tops_fd = -1;
	rc = bpf_ring_open(&d->ring, ring_bytes, err);
	if (rc == 0)
		rc = open_tops(d, err);
	if (rc == 0) {
		emit_program(&code, d, stack_bytes, filter);
		rc = d->program_fd =
			bpf_program_load(BPF_PROG_TYPE_PERF_EVENT, "weir_stack", &code, err);
		bpf_code_release(&code);
	}
	if (rc < 0) {
		deep_stacks_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void deep_stacks_close(struct deep_stacks *d)
{
	if (!d)
		return;
	deep_stacks_forget(d, UINT64_MAX);
	vec_release(&d->kept);
	fd_cleanup(&d->program_fd);
	fd_cleanup(&d->tops_fd);
	bpf_ring_close(&d->ring);
	free(d);
}

int deep_stacks_attach(struct deep_stacks *d, int perf_fd, struct err *err)
{
	if (ioctl(perf_fd, PERF_EVENT_IOC_SET_BPF, d->program_fd) < 0)
		return err_sys(err, errno, "BPF program 'weir_stack': cannot be attached");
	return 0;
}

int deep_stacks_fd(const struct deep_stacks *d)
{
	return d->ring.fd;
}

void deep_stacks_set_top(struct deep_stacks *d, uint32_t tid, uint64_t top)
{
	bpf_map_update(d->tops_fd, &tid, &top);
}

static void keep(void *ctx, const uint8_t *record, size_t n)
{
	const struct deep_record *r = (const void *)record;
	struct deep_stacks *d = ctx;
	struct kept k = {.time = r->time, .sp = r->sp, .cpu = (uint32_t)r->cpu};
	bool has_tail = n >= sizeof(*r) + DEEP_STACK_BYTES_MAX && r->tail_start;
	size_t n_bytes = sizeof(*k.stack) + r->n + (has_tail ? TAIL_BYTES : 0);
	uint8_t *to;

	if (n < sizeof(*r) || r->n > n - sizeof(*r) || (!r->n && !has_tail))
		return;
	k.stack = mem_alloc(n_bytes);
	to = (uint8_t *)(k.stack + 1);
	memcpy(to, r->bytes, r->n);
	*k.stack = (struct deep_stack){.start = r->start, .bytes = {to, r->n}, .n_bytes = n_bytes};
	if (has_tail) {
		memcpy(to + r->n, r->bytes + LARGE_BYTES, TAIL_BYTES);
		k.stack->tail_start = r->tail_start;
		k.stack->tail = (struct span){to + r->n, TAIL_BYTES};
	}
	vec_push(&d->kept, k);
}

void deep_stacks_collect(struct deep_stacks *d)
{
	bpf_ring_drain(&d->ring, keep, d);
}

struct deep_stack *deep_stacks_take(struct deep_stacks *d, uint32_t cpu, uint64_t sp, uint64_t time)
{
	uint64_t best_distance = MATCH_WINDOW_NS;
	struct deep_stack *stack;
	struct kept *best = NULL;

	for (size_t i = 0; i < d->kept.n; i++) {
		struct kept *k = &d->kept.v[i];
		uint64_t distance = k->time > time ? k->time - time : time - k->time;

		if (!k->stack || k->cpu != cpu || k->sp != sp || distance >= best_distance)
			continue;
		best = k;
		best_distance = distance;
	}
	if (!best)
		return NULL;
	stack = best->stack;
	best->stack = NULL;
	return stack;
}

void deep_stacks_forget(struct deep_stacks *d, uint64_t time)
{
	size_t n = 0;

	for (size_t i = 0; i < d->kept.n; i++) {
		if (d->kept.v[i].time < time)
			free(d->kept.v[i].stack);
		else
			d->kept.v[n++] = d->kept.v[i];
	}
	d->kept.n = n;
}
