/* SPDX-License-Identifier: MIT */
/*
 * The program, in pseudo-C:
 *
 *   regs = task_pt_regs(current);                   // where user mode was left
 *   at = regs->sp + stack_bytes;
 *   if (probe_read_user(&word, 8, at)) return 1;    // the stack ends within the kernel's copy
 *   max = probe_read_user(&word, 8, at + SMALL) ? SMALL : LARGE;
 *   r = ringbuf_reserve(sizeof(*r) + max);          // NULL: the walk ends short, and is counted
 *   r->time = ktime_get_ns(); r->pid_tgid = ...; r->sp = regs->sp;
 *   r->start = at & ~4095;
 *   for (i = 0; i < max / 4096; i++)                // unrolled; stops at the first absent page
 *           if (probe_read_user(r->bytes + i * 4096, 4096, r->start + i * 4096)) break;
 *   r->n = i * 4096;
 *   ringbuf_submit(r); return 1;                    // 1: the kernel goes on to write its sample
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

#include "base/mem.h"
#include "bpf/load.h"

#define PAGE_BYTES	 4096
/* The ring is filled by what is reserved, not by what is used: most deep stacks are small. */
#define SMALL_BYTES	 (192 * 1024)
#define RING_BYTES	 ((size_t)32 << 20)
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
	VEC(struct kept) kept;
};

static void emit_fields(struct bpf_code *c)
{
	/* r6 = sp, r8 = start, r9 = record */
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

/* if (the word at r8 + offset is not there) goto label */
static void emit_probe(struct bpf_code *c, int32_t offset, int label)
{
	bpf_mov(c, BPF_REG_1, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, -8);
	bpf_mov_imm(c, BPF_REG_2, 8);
	bpf_mov(c, BPF_REG_3, BPF_REG_8);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_3, offset);
	bpf_call(c, BPF_FUNC_probe_read_user);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_0, 0, label);
}

static void emit_program(struct bpf_code *c, int ring_fd, uint32_t stack_bytes)
{
	int leave = bpf_label(c), small = bpf_label(c);

	bpf_call(c, BPF_FUNC_get_current_task_btf);
	bpf_mov(c, BPF_REG_1, BPF_REG_0);
	bpf_call(c, BPF_FUNC_task_pt_regs);
	bpf_load(c, BPF_DW, BPF_REG_6, BPF_REG_0, offsetof(struct pt_regs, rsp));
	bpf_mov(c, BPF_REG_8, BPF_REG_6);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_8, (int32_t)stack_bytes);
	emit_probe(c, 0, leave);
	bpf_alu_imm(c, BPF_AND, BPF_REG_8, -PAGE_BYTES);
	emit_probe(c, SMALL_BYTES, small);
	emit_copy(c, ring_fd, DEEP_STACK_BYTES_MAX, leave);
	bpf_place(c, small);
	emit_copy(c, ring_fd, SMALL_BYTES, leave);
	bpf_place(c, leave);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
}

int deep_stacks_open(struct deep_stacks **out, uint32_t stack_bytes, struct err *err)
{
	struct deep_stacks *d = mem_zalloc(sizeof(*d));
	struct bpf_code code = {0};
	int rc;

	d->program_fd = -1;
	rc = bpf_ring_open(&d->ring, RING_BYTES, err);
	if (rc == 0) {
		emit_program(&code, d->ring.fd, stack_bytes);
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
	if (d->program_fd >= 0)
		close(d->program_fd);
	bpf_ring_close(&d->ring);
	free(d);
}

int deep_stacks_attach(struct deep_stacks *d, int perf_fd, struct err *err)
{
	if (ioctl(perf_fd, PERF_EVENT_IOC_SET_BPF, d->program_fd) < 0)
		return err_sys(err, errno, "BPF program 'weir_stack': cannot be attached");
	return 0;
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
