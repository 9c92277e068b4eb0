/* SPDX-License-Identifier: MIT */
/*
 * What runs before the pieces of a trace point, in pseudo-C:
 *
 *   r6 = ctx;
 *   SYSCALL: regs = ctx[0]; call = entry ? ctx[1] : regs->orig_ax;
 *            is_32 = current->thread_info.status & TS_COMPAT;
 *            if (call is none of those of the mode) leave;
 *   other points that see both modes: is_32 = task_pt_regs(current)->cs == 0x23;
 *            // threads of the kernel have no user registers: they count as 64
 *   ITER: if (!ctx[1]) leave;
 *   if (there is no code for the mode) leave;
 *   if (facts[IS_OVER]) leave;                       // exit() has been called: nothing counts any more
 *   if (filtering && current's process is not the only one given && !processes[it]) leave;
 *   site = constant, or the cookie of the link;
 *   for (i = 0; i < SCRATCH_AREAS; i++)               // unrolled
 *           if (cmpxchg(&scratch[i].busy, 0, 1) == 0) { r7 = &scratch[i].area; goto claimed; }
 *   loss[first clause].busy++; leave;
 * claimed:
 *   word[is_32] = is_32;                             // the pieces may change r9
 *   goto go_on; leave: return 0; go_on:              // all jumps are short: see run_program.c
 *
 * Programs interrupt each other on one CPU (a sample inside a system call's program), and those
 * that sleep let others run: so areas are claimed, not just taken. r8 = the call's number, r9 =
 * is_32.
 */
#include "probe/run/run.h"

#include <stddef.h>

#include "probe/types/call_abi.h"
#include "process/syscall_names.h"

#define TS_COMPAT	 2
#define THREAD_STATUS_AT 16 /* struct thread_info of x86-64, the first of task_struct */
#define COMPARES_MAX	 8  /* numbers of calls; more are looked up in words of 64 */
#define AT_KEY		 (STREAM_WORD_FREE) /* 4 bytes */
#define AT_READ		 (STREAM_WORD_FREE + 8)
#define LONG_BITS	 64
#define ITER_TASK_AT	 8 /* the second word of struct bpf_iter__task, ..._file and ..._vma */

/* The one process that everything began with needs no look into the map: when it is gone the run is
 * over, so its number stays its own. */
static void emit_filter(struct bpf_code *c, const struct probe_session *s, int leave)
{
	int is_traced = bpf_label(c);

	bpf_call(c, BPF_FUNC_get_current_pid_tgid);
	bpf_alu_imm(c, BPF_RSH, BPF_REG_0, 32);
	if (s->options.n_pids == 1)
		bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, s->options.pids[0], is_traced);
	bpf_store(c, BPF_W, BPF_REG_10, AT_KEY, BPF_REG_0);
	bpf_find(c, s->maps[STREAM_MAP_PROCESSES], AT_KEY);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_place(c, is_traced);
}

/* r9 = not 0 when the system call is a 32-bit one, whatever the program is (int $0x80). */
static void emit_call_mode(struct bpf_code *c, const struct probe_session *s)
{
	if (s->features.has_btf) {
		bpf_call(c, BPF_FUNC_get_current_task_btf);
		bpf_load(c, BPF_W, BPF_REG_9, BPF_REG_0, THREAD_STATUS_AT);
	} else {
		bpf_call(c, BPF_FUNC_get_current_task);
		bpf_mov(c, BPF_REG_3, BPF_REG_0);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, THREAD_STATUS_AT);
		bpf_read_kernel(c, AT_READ, 8);
		bpf_load(c, BPF_DW, BPF_REG_9, BPF_REG_10, AT_READ);
	}
	bpf_alu_imm(c, BPF_AND, BPF_REG_9, TS_COMPAT);
}

static uint32_t count_bits(const uint64_t *words)
{
	uint32_t n = 0;

	for (size_t i = 0; i < SYSCALL_NUMBERS_MAX / LONG_BITS; i++)
		n += (uint32_t)__builtin_popcountll(words[i]);
	return n;
}

/* Goes on when r8 is one of the numbers (there is at least one: the verifier refuses code that
 * nothing leads to). */
static void emit_numbers(struct bpf_code *c, const uint64_t *words, int leave)
{
	int found = bpf_label(c);
	bool is_few = count_bits(words) <= COMPARES_MAX;

	if (!is_few) {
		bpf_mov(c, BPF_REG_1, BPF_REG_8);
		bpf_alu_imm(c, BPF_RSH, BPF_REG_1, 6);
		bpf_mov(c, BPF_REG_2, BPF_REG_8);
		bpf_alu_imm(c, BPF_AND, BPF_REG_2, LONG_BITS - 1);
	}
	for (int i = 0; i < SYSCALL_NUMBERS_MAX / LONG_BITS; i++) {
		int next = bpf_label(c);

		for (int bit = 0; is_few && bit < LONG_BITS; bit++)
			if (words[i] >> bit & 1)
				bpf_jump_imm(c, BPF_JEQ, BPF_REG_8, i * LONG_BITS + bit, found);
		if (is_few || !words[i])
			continue;
		bpf_jump_imm(c, BPF_JNE, BPF_REG_1, i, next);
		bpf_load_imm64(c, BPF_REG_3, words[i]);
		bpf_alu(c, BPF_RSH, BPF_REG_3, BPF_REG_2);
		bpf_alu_imm(c, BPF_AND, BPF_REG_3, 1);
		bpf_jump_imm(c, BPF_JNE, BPF_REG_3, 0, found);
		bpf_jump(c, leave);
		bpf_place(c, next);
	}
	bpf_jump(c, leave);
	bpf_place(c, found);
}

/* r8 = the number, for entry and return; the registers' address and it in their words. */
static void emit_call_words(struct bpf_code *c, const struct run_program *p)
{
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_6, 0);
	bpf_store(c, BPF_DW, BPF_REG_10, STREAM_WORD_REGS, BPF_REG_1);
	if (!point_has(p->kind, POINT_AT_RETURN)) {
		bpf_load(c, BPF_DW, BPF_REG_8, BPF_REG_6, 8);
	} else {
		bpf_mov(c, BPF_REG_3, BPF_REG_1);
		bpf_alu_imm(c, BPF_ADD, BPF_REG_3, PT_ORIG_AX);
		bpf_read_kernel(c, AT_READ, 8);
		bpf_load(c, BPF_DW, BPF_REG_8, BPF_REG_10, AT_READ);
	}
	/* The kernel's calls have 32-bit numbers; -1 (none) stays none of them. */
	bpf_alu_imm(c, BPF_LSH, BPF_REG_8, 32);
	bpf_alu_imm(c, BPF_RSH, BPF_REG_8, 32);
	bpf_store(c, BPF_DW, BPF_REG_10, STREAM_WORD_CALL, BPF_REG_8);
}

static void emit_call_check(struct bpf_code *c, const struct run_program *p, int leave)
{
	const struct point *found = p->found;
	bool compares = found && !found->is_all_calls;

	if (!p->has[MODE_32] || !p->has[MODE_64]) {
		enum mode only = p->has[MODE_64] ? MODE_64 : MODE_32;

		bpf_jump_imm(c, only == MODE_64 ? BPF_JNE : BPF_JEQ, BPF_REG_9, 0, leave);
		if (compares)
			emit_numbers(c, found->numbers[only], leave);
	} else if (compares) {
		int is_32 = bpf_label(c), checked = bpf_label(c);

		bpf_jump_imm(c, BPF_JNE, BPF_REG_9, 0, is_32);
		emit_numbers(c, found->numbers[MODE_64], leave);
		bpf_jump(c, checked);
		bpf_place(c, is_32);
		emit_numbers(c, found->numbers[MODE_32], leave);
		bpf_place(c, checked);
	}
}

/* Where one point sees both modes: r9 = 1 for a 32-bit program. Leaves when its code is not there.
 */
static void emit_mode(
	struct bpf_code *c, const struct probe_session *s, const struct run_program *p, int leave)
{
	int is_64 = bpf_label(c);

	bpf_mov_imm(c, BPF_REG_9, 0);
	if (s->features.has_btf) {
		bpf_call(c, BPF_FUNC_get_current_task_btf);
		bpf_mov(c, BPF_REG_1, BPF_REG_0);
		bpf_call(c, BPF_FUNC_task_pt_regs);
		bpf_load(c, BPF_H, BPF_REG_0, BPF_REG_0, PT_CS);
		bpf_jump_imm(c, BPF_JNE, BPF_REG_0, CS_32, is_64);
		bpf_mov_imm(c, BPF_REG_9, 1);
	}
	bpf_place(c, is_64);
	if (!p->has[MODE_64])
		bpf_jump_imm(c, BPF_JEQ, BPF_REG_9, 0, leave);
	else if (!p->has[MODE_32] && s->features.has_btf)
		bpf_jump_imm(c, BPF_JNE, BPF_REG_9, 0, leave);
}

/* Behind the last object the kernel runs the program once more, without one. */
static void emit_object_check(struct bpf_code *c, int leave)
{
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_6, ITER_TASK_AT);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_1, 0, leave);
}

static void emit_site(struct bpf_code *c, const struct run_program *p)
{
	int is_64 = bpf_label(c);

	if (point_has(p->kind, POINT_OF_CALLS)) {
		bpf_load_imm64(c, BPF_REG_0,
			SITE_SYSCALL |
				(point_has(p->kind, POINT_AT_RETURN) ? SITE_CALL_RETURN : 0));
		bpf_jump_imm(c, BPF_JEQ, BPF_REG_9, 0, is_64);
		bpf_alu_imm(c, BPF_OR, BPF_REG_0, (int32_t)SITE_CALL_32);
		bpf_place(c, is_64);
		bpf_alu_imm(c, BPF_AND, BPF_REG_8, 0xffff);
		bpf_alu(c, BPF_OR, BPF_REG_0, BPF_REG_8);
	} else {
		bpf_place(c, is_64);
		if (p->has_cookie) {
			bpf_mov(c, BPF_REG_1, BPF_REG_6);
			bpf_call(c, BPF_FUNC_get_attach_cookie);
		} else {
			bpf_load_imm64(c, BPF_REG_0, p->constant_site);
		}
	}
	bpf_store(c, BPF_DW, BPF_REG_10, STREAM_WORD_SITE, BPF_REG_0);
}

static void emit_scratch(
	struct bpf_code *c, const struct probe_session *s, const struct run_program *p, int leave)
{
	uint32_t n = p->can_sleep ? s->scratch_areas : SCRATCH_AREAS;
	int claimed = bpf_label(c);

	for (uint32_t i = 0; i < n; i++) {
		bpf_store_imm(c, BPF_W, BPF_REG_10, AT_KEY, (int32_t)i);
		bpf_find(c, s->maps[STREAM_MAP_SCRATCH], AT_KEY);
		bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
		bpf_mov(c, BPF_REG_7, BPF_REG_0);
		bpf_mov_imm(c, BPF_REG_0, 0);
		bpf_mov_imm(c, BPF_REG_1, 1);
		bpf_atomic(c, BPF_CMPXCHG, BPF_REG_7, 0, BPF_REG_1);
		bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, claimed);
	}
	bpf_store_imm(c, BPF_W, BPF_REG_10, AT_KEY, (int32_t)p->points.v[0]->clause_i);
	bpf_find(c, s->maps[STREAM_MAP_LOSS], AT_KEY);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_mov_imm(c, BPF_REG_1, 1);
	bpf_atomic(c, BPF_ADD, BPF_REG_0, offsetof(struct clause_loss, busy), BPF_REG_1);
	bpf_jump(c, leave);
	bpf_place(c, claimed);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_7, 8);
}

static bool has_exit(const struct stream *s)
{
	for (size_t i = 0; i < s->formats.n; i++)
		if (s->formats.v[i].kind == FORMAT_EXIT)
			return true;
	return false;
}

static void emit_over(struct bpf_code *c, const struct probe_session *s, int leave)
{
	int goes_on = bpf_label(c);

	bpf_store_imm(c, BPF_W, BPF_REG_10, AT_KEY, FACT_IS_OVER);
	bpf_find(c, s->maps[STREAM_MAP_FACTS], AT_KEY);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, goes_on);
	bpf_load(c, BPF_DW, BPF_REG_0, BPF_REG_0, 0);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_0, 0, leave);
	bpf_place(c, goes_on);
}

void prologue_emit(struct bpf_code *c, const struct probe_session *s, const struct run_program *p)
{
	int leave = bpf_label(c), go_on = bpf_label(c);

	bpf_mov(c, BPF_REG_6, BPF_REG_1);
	if (point_has(p->kind, POINT_OF_CALLS)) {
		emit_call_words(c, p);
		emit_call_mode(c, s);
		emit_call_check(c, p, leave);
	}
	if (p->kind == POINT_ITER)
		emit_object_check(c, leave);
	if (s->filters && !point_has(p->kind, POINT_IS_OURS))
		emit_filter(c, s, leave);
	if (p->is_switched && !point_has(p->kind, POINT_OF_CALLS))
		emit_mode(c, s, p, leave);
	if (has_exit(s->stream) && s->maps[STREAM_MAP_FACTS] >= 0 && p->kind != POINT_END)
		emit_over(c, s, leave);
	if (p->uses_site)
		emit_site(c, p);
	if (p->scratch_bytes)
		emit_scratch(c, s, p, leave);
	if (p->is_switched && p->has[MODE_32] && p->has[MODE_64])
		bpf_store(c, BPF_DW, BPF_REG_10, STREAM_WORD_IS_32, BPF_REG_9);
	if (!bpf_label_is_used(c, leave))
		return;
	bpf_jump(c, go_on);
	bpf_place(c, leave);
	bpf_return_0(c);
	bpf_place(c, go_on);
}
