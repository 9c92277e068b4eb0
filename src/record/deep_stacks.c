/* SPDX-License-Identifier: MIT */
/*
 * The program, in pseudo-C:
 *
 *   sp = task_pt_regs(current)->sp;                 // where user mode was left
 *   start = (sp + stack_bytes) & ~4095;
 *   top = tops[tid];
 *   if (top is known and plausible) {
 *           if (top - sp <= stack_bytes) return 1;  // the kernel's copy holds it all
 *           limit = top;
 *   } else {
 *           if (probe_read_user(&word, 8, sp + stack_bytes)) return 1;
 *           limit = start + SMALL;
 *   }
 *   max = limit - start > SMALL ? LARGE : SMALL;
 *   r = ringbuf_reserve(sizeof(*r) + max);          // NULL: the walk ends short, and is counted
 *   r->time = ktime_get_ns(); r->pid_tgid = ...; r->sp = sp; r->start = start;
 *   for (i = 0; i < max / 4096; i++)                // unrolled; stops at the first absent page
 *           if (start + i * 4096 >= limit ||
 *               probe_read_user(r->bytes + i * 4096, 4096, start + i * 4096)) break;
 *   r->n = i * 4096;
 *   ringbuf_submit(r); return 1;                    // 1: the kernel goes on to write its sample
 *
 * Registers: r6 = sp, r7 = bytes read, r8 = start, r9 = record. On the stack: a word for probing,
 * the tid, the limit.
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
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "bpf/load.h"

#define PAGE_BYTES	 4096
/* The ring is filled by what is reserved, not by what is used: most deep stacks are small. */
#define SMALL_BYTES	 (192 * 1024)
#define RING_BYTES_MIN	 ((size_t)16 << 20)
#define RING_BYTES_MAX	 ((size_t)256 << 20)
#define RING_BYTES_A_CPU ((size_t)4 << 20)
#define TOPS_MAX	 16384
#define STACK_BYTES_PLAUSIBLE (1 << 30)
#define AT_WORD		 (-8)
#define AT_TID		 (-16)
#define AT_LIMIT	 (-24)
/* Both are stamped in the same interrupt: which comes first differs between kernels. */
#define MATCH_WINDOW_NS	 50000000u

struct deep_record {
	uint64_t time;
	uint64_t pid_tgid; /* tid in the low half */
	uint64_t sp;
	uint64_t start;
	uint64_t n;
	uint8_t bytes[];
};

struct kept {
	uint64_t time, sp, start;
	uint32_t tid;
	uint8_t *bytes;
	size_t n;
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
	bpf_call(c, BPF_FUNC_get_current_pid_tgid);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, pid_tgid), BPF_REG_0);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, sp), BPF_REG_6);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, start), BPF_REG_8);
}

/* Copies up to `max` bytes into a record of that size and leaves the program. */
static void emit_copy(struct bpf_code *c, int ring_fd, int max, int leave)
{
	int done = bpf_label(c);

	bpf_load_map(c, BPF_REG_1, ring_fd);
	bpf_mov_imm(c, BPF_REG_2, (int32_t)sizeof(struct deep_record) + max);
	bpf_mov_imm(c, BPF_REG_3, 0);
	bpf_call(c, BPF_FUNC_ringbuf_reserve);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_mov(c, BPF_REG_9, BPF_REG_0);
	emit_fields(c);
	bpf_mov_imm(c, BPF_REG_7, 0); /* bytes read so far */
	for (int i = 0; i < max / PAGE_BYTES; i++) {
		bpf_mov(c, BPF_REG_1, BPF_REG_9);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_1,
			(int32_t)sizeof(struct deep_record) + i * PAGE_BYTES);
		bpf_mov_imm(c, BPF_REG_2, PAGE_BYTES);
		bpf_mov(c, BPF_REG_3, BPF_REG_8);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, i * PAGE_BYTES);
		bpf_load(c, BPF_DW, BPF_REG_4, BPF_REG_10, AT_LIMIT);
		bpf_jump_reg(c, BPF_JGE, BPF_REG_3, BPF_REG_4, done);
		bpf_call(c, BPF_FUNC_probe_read_user);
		bpf_jump_imm(c, BPF_JNE, BPF_REG_0, 0, done);
		bpf_mov_imm(c, BPF_REG_7, (i + 1) * PAGE_BYTES);
	}
	bpf_place(c, done);
	bpf_store(c, BPF_DW, BPF_REG_9, offsetof(struct deep_record, n), BPF_REG_7);
	bpf_mov(c, BPF_REG_1, BPF_REG_9);
	bpf_mov_imm(c, BPF_REG_2, BPF_RB_NO_WAKEUP);
	bpf_call(c, BPF_FUNC_ringbuf_submit);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
}

/* r0 = the top of this thread's stack, or goto unknown. */
static void emit_find_top(struct bpf_code *c, int tops_fd, int unknown)
{
	bpf_call(c, BPF_FUNC_get_current_pid_tgid);
	bpf_store(c, BPF_W, BPF_REG_10, AT_TID, BPF_REG_0);
	bpf_load_map(c, BPF_REG_1, tops_fd);
	bpf_mov(c, BPF_REG_2, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_2, AT_TID);
	bpf_call(c, BPF_FUNC_map_lookup_elem);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, unknown);
	bpf_load(c, BPF_DW, BPF_REG_0, BPF_REG_0, 0);
	bpf_mov(c, BPF_REG_1, BPF_REG_0);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_6);
	/* unsigned: a top below sp is implausible, too */
	bpf_jump_imm(c, BPF_JGT, BPF_REG_1, STACK_BYTES_PLAUSIBLE, unknown);
}

/* Sets r6 = sp, r8 = start and the limit, or leaves. */
static void emit_bounds(struct bpf_code *c, int tops_fd, uint32_t stack_bytes, int leave)
{
	int unknown = bpf_label(c), set = bpf_label(c);

	bpf_call(c, BPF_FUNC_get_current_task_btf);
	bpf_mov(c, BPF_REG_1, BPF_REG_0);
	bpf_call(c, BPF_FUNC_task_pt_regs);
	bpf_load(c, BPF_DW, BPF_REG_6, BPF_REG_0, offsetof(struct pt_regs, rsp));
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_8, (int32_t)stack_bytes);
	emit_find_top(c, tops_fd, unknown);
	bpf_jump_imm(c, BPF_JLE, BPF_REG_1, (int32_t)stack_bytes, leave);
	bpf_jump(c, set);
	bpf_place(c, unknown);
	bpf_mov(c, BPF_REG_1, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, AT_WORD);
	bpf_mov_imm(c, BPF_REG_2, 8);
	bpf_mov(c, BPF_REG_3, BPF_REG_8);
	bpf_call(c, BPF_FUNC_probe_read_user);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_0, 0, leave);
	bpf_mov(c, BPF_REG_0, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_0, SMALL_BYTES - PAGE_BYTES);
	bpf_place(c, set);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_LIMIT, BPF_REG_0);
	bpf_alu_imm(c, BPF_AND, BPF_REG_8, -PAGE_BYTES);
}

static void emit_program(struct bpf_code *c, const struct deep_stacks *d, uint32_t stack_bytes)
{
	int leave = bpf_label(c), small = bpf_label(c);

	emit_bounds(c, d->tops_fd, stack_bytes, leave);
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_LIMIT);
	bpf_alu(c, BPF_SUB, BPF_REG_1, BPF_REG_8);
	bpf_jump_imm(c, BPF_JLE, BPF_REG_1, SMALL_BYTES, small);
	emit_copy(c, d->ring.fd, DEEP_STACK_BYTES_MAX, leave);
	bpf_place(c, small);
	emit_copy(c, d->ring.fd, SMALL_BYTES, leave);
	bpf_place(c, leave);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
}

int deep_stacks_open(
	struct deep_stacks **out, uint32_t stack_bytes, size_t n_cpus, struct err *err)
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
		rc = d->tops_fd = bpf_lru_map_open(TOPS_MAX, err);
	if (rc >= 0) {
		emit_program(&code, d, stack_bytes);
		rc = d->program_fd = bpf_program_load(
			BPF_PROG_TYPE_PERF_EVENT, "weir_stack", &code, err);
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

void deep_stacks_set_top(struct deep_stacks *d, uint32_t tid, uint64_t top)
{
	bpf_map_set(d->tops_fd, tid, top);
}

static void keep(void *ctx, const uint8_t *record, size_t n)
{
	const struct deep_record *r = (const void *)record;
	struct deep_stacks *d = ctx;

	if (n < sizeof(*r) || r->n > n - sizeof(*r) || !r->n)
		return;
	vec_push(&d->kept,
		((struct kept){.time = r->time, .sp = r->sp, .start = r->start,
			.tid = (uint32_t)r->pid_tgid, .n = r->n, .bytes = mem_dup(r->bytes, r->n)}));
}

void deep_stacks_collect(struct deep_stacks *d)
{
	bpf_ring_drain(&d->ring, keep, d);
}

struct span deep_stacks_find(
	struct deep_stacks *d, uint32_t tid, uint64_t sp, uint64_t time, uint64_t *start)
{
	uint64_t best_distance = MATCH_WINDOW_NS;
	const struct kept *best = NULL;

	for (size_t i = 0; i < d->kept.n; i++) {
		const struct kept *k = &d->kept.v[i];
		uint64_t distance = k->time > time ? k->time - time : time - k->time;

		if (k->tid != tid || k->sp != sp || distance >= best_distance)
			continue;
		best = k;
		best_distance = distance;
	}
	if (!best)
		return (struct span){NULL, 0};
	*start = best->start;
	return (struct span){best->bytes, best->n};
}

void deep_stacks_forget(struct deep_stacks *d, uint64_t time)
{
	size_t n = 0;

	for (size_t i = 0; i < d->kept.n; i++) {
		if (d->kept.v[i].time < time)
			free(d->kept.v[i].bytes);
		else
			d->kept.v[n++] = d->kept.v[i];
	}
	d->kept.n = n;
}
