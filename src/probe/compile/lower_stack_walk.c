/* SPDX-License-Identifier: MIT */
/*
 * The stack of the program by rules of its call-frame information (stream/stack_copy.h):
 *
 *   regs = those of user mode; ip, sp, bp out of them; back = 0; i = 0; id = 1;
 *   if (ip is in the page of the kernel's uprobes) // it executes a copy of the probed instruction
 *           ip = utask->vaddr + (ip - utask->xol_vaddr), or ret->orig_ret_vaddr of a return probe
 *   for (;;) {                                     // n_frames turns at most
 *           frames[i++] = ip; id = hash(id, ip);
 *           if (i == n_frames) goto walked;
 *           rule = rules[{space, pid, ip - back}]; if (!rule) goto stuck;
 *           if (rule->flags & OUTERMOST) goto walked;
 *           cfa = ...; if (rule->flags & DEREF) cfa = *cfa;
 *           ra = *...; saved = *...;               // any failure: goto stuck
 *           if (ra is the kernel's trampoline of return probes) ra = ret->orig_ret_vaddr; ret = ret->next;
 *           if (cfa <= sp && i != 1 && !(rule->flags & EXACT)) goto stuck;
 *           if (rule->flags & GUESS && !rules[{space, pid, ra - 1}]) goto stuck;
 *           ip = ra; sp = cfa; bp = ...; back = !(rule->flags & EXACT);
 *           if (!ip) goto walked;
 *   }
 *   stuck: copy = ringbuf_reserve(...); all that is known, and the stack's pages from sp on; submit;
 *           id = time and CPU, even
 *   walked: stacks[id] = frames
 *
 * The loop is a function (ir.h), and does not sleep: a page of the stack that is not there is for the copy.
 * Masks instead of conditions keep the verifier's ways few.
 */
#include <stddef.h>

#include "probe/compile/lower.h"
#include "probe/points/point_kind.h"
#include "probe/stream/stack_copy.h"

#define WORD(field)	 ((int32_t)offsetof(struct stack_rule, field))
#define COPY(field)	 ((int32_t)offsetof(struct stack_copy, field))
#define CPU_BITS	 12
#define EXACT_BIT	 1 /* of STACK_RULE_EXACT */
#define RETURNS_OF_PLACE 3

struct stack_walk {
	struct lower *l;
	struct ir *ir;
	ir_mem frames, regs, returns, key, word;
	ir_value again; /* ones: what take_return() has come to is of the same place */
	ir_value ip, sp, bp, back, i, turns, id, is_stuck;
	ir_value space, pid;
	ir_value page,
		ret; /* of uprobes: the kernel's page in the program; the next return_instance */
	uint32_t n_frames;
	ir_label stuck, walked, failed, none;
};

/* --- words ------------------------------------------------------------------------------------ */

static ir_value cut(struct stack_walk *w, ir_value address)
{
	return w->l->mode == MODE_32 ? ir_extend(w->ir, address, 4, false) : address;
}

/* A word of the program's memory, or `lost`. */
static ir_value read_word(struct stack_walk *w, ir_value address, ir_label lost)
{
	ir_value v = ir_new_value(w->ir), rc;

	ir_zero(w->ir, w->word, 0, 8);
	rc = IR_CALL_(w->ir, BPF_FUNC_copy_from_user, IR_M(w->word, 0),
		IR_I(w->l->mode == MODE_32 ? 4 : 8), IR_V(address));
	ir_branch_imm(w->ir, BPF_JNE, rc, 0, lost);
	ir_copy(w->ir, v, ir_load(w->ir, w->word, 0, 8, false));
	return v;
}

/* a where the mask is ones, b where it is zeros. */
static ir_value choose(struct stack_walk *w, ir_value mask, ir_value a, ir_value b)
{
	ir_value kept = ir_alu(w->ir, BPF_AND, a, mask);
	ir_value other = ir_alu(w->ir, BPF_AND, b, ir_alu_imm(w->ir, BPF_XOR, mask, -1));

	return ir_alu(w->ir, BPF_OR, kept, other);
}

static ir_value of_rule(struct stack_walk *w, ir_value rule, int32_t at)
{
	return ir_load_at(w->ir, rule, at, 8, false);
}

/* --- beginning -------------------------------------------------------------------------------- */

static struct ir_arg user_registers(struct stack_walk *w)
{
	struct lower *l = w->l;

	if (point_has(l->kind, POINT_IN_FILES))
		return IR_CTX;
	if (point_has(l->kind, POINT_OF_CALLS))
		return IR_V(ir_word(w->ir, STREAM_WORD_REGS));
	return IR_V(IR_CALL_(w->ir, BPF_FUNC_task_pt_regs,
		IR_V(ir_call(w->ir, BPF_FUNC_get_current_task_btf, NULL, 0))));
}

static ir_value take_register(struct stack_walk *w, int32_t at)
{
	ir_value v = ir_new_value(w->ir);

	ir_copy(w->ir, v, cut(w, ir_load(w->ir, w->regs, at, 8, false)));
	return v;
}

static void take_registers(struct stack_walk *w)
{
	ir_value rc;

	ir_zero(w->ir, w->regs, 0, 8 * STACK_REGS);
	rc = IR_CALL_(w->ir, BPF_FUNC_probe_read_kernel, IR_M(w->regs, 0), IR_I(8 * STACK_REGS),
		user_registers(w));
	ir_branch_imm(w->ir, BPF_JNE, rc, 0, w->none);
	w->ip = take_register(w, STACK_REG_IP);
	w->sp = take_register(w, STACK_REG_SP);
	w->bp = take_register(w, STACK_REG_BP);
	ir_branch_imm(w->ir, BPF_JEQ, w->sp, 0, w->none); /* a thread of the kernel */
}

/* 8 bytes of the kernel's at an address and an offset; 0 when the one is 0 or the other not known. */
static ir_value kernel_word(struct stack_walk *w, ir_value address, int64_t at)
{
	ir_value v = ir_new_value(w->ir);

	if (at < 0) {
		ir_set_const(w->ir, v, 0);
		return v;
	}
	ir_zero(w->ir, w->word, 0, 8);
	IR_CALL_(w->ir, BPF_FUNC_probe_read_kernel, IR_M(w->word, 0), IR_I(8),
		IR_V(ir_alu_imm(w->ir, BPF_ADD, address, at)));
	ir_copy(w->ir, v, ir_load(w->ir, w->word, 0, 8, false));
	return v;
}

static int64_t kernel_offset(struct stack_walk *w, const char *name, const char *path)
{
	return point_types_kernel_offset(w->l->point_types, name, path);
}

/* ret = ret->next, and again for each one more of the same place (a tail call); gives where the first
 * one returns to. */
static ir_value take_return(struct stack_walk *w)
{
	int64_t chained_at = kernel_offset(w, "return_instance", "chained");
	ir_value to = kernel_word(w, w->ret, kernel_offset(w, "return_instance", "orig_ret_vaddr"));

	for (int i = 0; i < RETURNS_OF_PLACE; i++) {
		ir_value chained =
			ir_alu_imm(w->ir, BPF_AND, kernel_word(w, w->ret, chained_at), 1);
		ir_value next = kernel_word(w, w->ret, kernel_offset(w, "return_instance", "next"));
		ir_value is_next = ir_new_value(w->ir);

		if (i) /* only when the one before was chained */
			next = choose(w, w->again, next, w->ret);
		ir_copy(w->ir, is_next, ir_alu(w->ir, BPF_SUB, ir_const(w->ir, 0), chained));
		ir_copy(w->ir, w->again, i ? ir_alu(w->ir, BPF_AND, w->again, is_next) : is_next);
		ir_copy(w->ir, w->ret, next);
	}
	return to;
}

/* The page in which the kernel executes copies of probed instructions, and which return probes return
 * to: 0 when the program has none. An ip there is mapped back. */
static void leave_slot(struct stack_walk *w, ir_value task, ir_value mm)
{
	ir_label done = ir_new_label(w->ir), in_slot = ir_new_label(w->ir);
	ir_value area = kernel_word(w, mm, kernel_offset(w, "mm_struct", "uprobes_state.xol_area"));
	ir_value utask = kernel_word(w, task, kernel_offset(w, "task_struct", "utask"));
	ir_value slot;

	w->page = kernel_word(w, area, kernel_offset(w, "xol_area", "vaddr"));
	w->ret = kernel_word(w, utask, kernel_offset(w, "uprobe_task", "return_instances"));
	ir_branch_imm(w->ir, BPF_JEQ, w->page, 0, done);
	slot = ir_new_value(w->ir);
	ir_copy(w->ir, slot, ir_alu(w->ir, BPF_SUB, w->ip, w->page));
	ir_branch_imm(w->ir, BPF_JGE, slot, STACK_PAGE_BYTES, done);
	ir_branch_imm(w->ir, BPF_JNE, slot, 0, in_slot);
	ir_copy(w->ir, w->ip, take_return(w));
	ir_jump(w->ir, done);
	ir_place_label(w->ir, in_slot);
	slot = kernel_word(w, utask, kernel_offset(w, "uprobe_task", "xol_vaddr"));
	ir_branch_imm(w->ir, BPF_JEQ, slot, 0, done);
	ir_copy(w->ir, slot, ir_alu(w->ir, BPF_SUB, w->ip, slot));
	ir_copy(w->ir, w->ip,
		cut(w, ir_alu(w->ir, BPF_ADD, slot,
			       kernel_word(w, utask, kernel_offset(w, "uprobe_task", "vaddr")))));
	ir_place_label(w->ir, done);
}

/* What tells one program's addresses from another's; 0 where the kernel's types are not known. */
static void take_space(struct stack_walk *w)
{
	ir_value task = ir_new_value(w->ir);

	ir_copy(w->ir, task, ir_call(w->ir, BPF_FUNC_get_current_task, NULL, 0));
	w->space = kernel_word(w, task, kernel_offset(w, "task_struct", "mm"));
	w->pid = ir_new_value(w->ir);
	ir_copy(w->ir, w->pid, lower_task_number(w->l, TASK_PROCESS, NULL));
	ir_store(w->ir, w->key, 0, 8, w->space);
	ir_store(w->ir, w->key, 8, 8, w->pid);
	leave_slot(w, task, w->space);
}

/* --- walking ---------------------------------------------------------------------------------- */

static void put_frame(struct stack_walk *w)
{
	ir_value at = ir_address(w->ir, w->frames, 8), h;
	/* The verifier may have lost, of values that are in many places, that i is below n_frames. */
	ir_value room = ir_alu_imm(w->ir, BPF_AND, w->i, STACK_FRAMES_ROOM - 1);

	at = ir_alu(w->ir, BPF_ADD, at, ir_alu_imm(w->ir, BPF_LSH, room, 3));
	ir_store_at(w->ir, at, 0, 8, w->ip);
	h = ir_alu(w->ir, BPF_MUL, ir_alu(w->ir, BPF_XOR, w->id, w->ip),
		ir_const(w->ir, (int64_t)STACK_HASH));
	ir_copy(w->ir, w->id, ir_alu(w->ir, BPF_XOR, h, ir_alu_imm(w->ir, BPF_RSH, h, 29)));
	ir_copy(w->ir, w->i, ir_alu_imm(w->ir, BPF_ADD, w->i, 1));
	ir_store(w->ir, w->frames, 0, 8, w->i);
}

static ir_value find_rule(struct stack_walk *w, ir_value address, ir_label none)
{
	ir_value rule = ir_new_value(w->ir);

	ir_store(w->ir, w->key, 16, 8, address);
	ir_copy(w->ir, rule,
		IR_CALL_(w->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_RULES),
			IR_M(w->key, 0)));
	ir_branch_imm(w->ir, BPF_JEQ, rule, 0, none);
	return rule;
}

static ir_value find_cfa(struct stack_walk *w, ir_value rule, ir_value flags)
{
	ir_value cfa = ir_new_value(w->ir), base;
	ir_label plain = ir_new_label(w->ir);

	base = choose(w, of_rule(w, rule, WORD(cfa_bp)), w->bp, w->sp);
	ir_copy(w->ir, cfa, cut(w, ir_alu(w->ir, BPF_ADD, base, of_rule(w, rule, WORD(cfa_at)))));
	ir_branch_imm(
		w->ir, BPF_JEQ, ir_alu_imm(w->ir, BPF_AND, flags, STACK_RULE_DEREF), 0, plain);
	ir_copy(w->ir, cfa, read_word(w, cfa, w->stuck));
	ir_place_label(w->ir, plain);
	return cfa;
}

/* The frame pointer of the caller. */
static ir_value find_bp(struct stack_walk *w, ir_value rule, ir_value cfa)
{
	ir_value base = choose(w, of_rule(w, rule, WORD(bp_bp)), w->bp, w->sp), saved;

	base = choose(w, of_rule(w, rule, WORD(bp_cfa)), cfa, base);
	saved = read_word(
		w, cut(w, ir_alu(w->ir, BPF_ADD, base, of_rule(w, rule, WORD(bp_at)))), w->stuck);
	return choose(w, of_rule(w, rule, WORD(bp_saved)), saved, w->bp);
}

/* To `stuck` when the step leads down, or to nowhere that is known. */
static void check_step(struct stack_walk *w, ir_value flags, ir_value cfa, ir_value ra)
{
	ir_label fine = ir_new_label(w->ir), sure = ir_new_label(w->ir);

	ir_branch(w->ir, BPF_JGT, cfa, w->sp, fine);
	ir_branch_imm(
		w->ir, BPF_JEQ, ir_alu_imm(w->ir, BPF_AND, flags, STACK_RULE_EXACT), 0, w->stuck);
	ir_place_label(w->ir, fine);
	ir_branch_imm(w->ir, BPF_JEQ, ir_alu_imm(w->ir, BPF_AND, flags, STACK_RULE_GUESS), 0, sure);
	find_rule(w, ir_alu_imm(w->ir, BPF_SUB, ra, 1), w->stuck);
	ir_place_label(w->ir, sure);
}

static void step(struct stack_walk *w)
{
	ir_value rule = find_rule(w, ir_alu(w->ir, BPF_SUB, w->ip, w->back), w->stuck), at;
	ir_value flags = ir_new_value(w->ir), cfa, ra, bp = ir_new_value(w->ir);
	ir_label plain = ir_new_label(w->ir);

	ir_copy(w->ir, flags, of_rule(w, rule, WORD(flags)));
	ir_branch_imm(w->ir, BPF_JNE, ir_alu_imm(w->ir, BPF_AND, flags, STACK_RULE_OUTERMOST), 0,
		w->walked);
	cfa = find_cfa(w, rule, flags);
	at = choose(w, of_rule(w, rule, WORD(ra_cfa)), cfa, w->sp);
	ra = read_word(
		w, cut(w, ir_alu(w->ir, BPF_ADD, at, of_rule(w, rule, WORD(ra_at)))), w->stuck);
	ir_branch(w->ir, BPF_JNE, ra, w->page, plain);
	ir_branch_imm(w->ir, BPF_JEQ, ra, 0, plain);
	ir_copy(w->ir, ra, take_return(w));
	ir_place_label(w->ir, plain);
	ir_copy(w->ir, bp, find_bp(w, rule, cfa));
	check_step(w, flags, cfa, ra);
	ir_copy(w->ir, w->ip, ra);
	ir_copy(w->ir, w->sp, cfa);
	ir_copy(w->ir, w->bp, bp);
	flags = ir_alu_imm(w->ir, BPF_AND, flags, STACK_RULE_EXACT);
	ir_copy(w->ir, w->back,
		ir_alu_imm(w->ir, BPF_XOR, ir_alu_imm(w->ir, BPF_RSH, flags, EXACT_BIT), 1));
	ir_branch_imm(w->ir, BPF_JEQ, w->ip, 0, w->walked);
}

/* The loop leaves through `outcome`: out of a function no jump leads. */
static void walk_frames(struct stack_walk *w)
{
	ir_label top = ir_new_label(w->ir), leave = ir_new_label(w->ir);

	ir_loop(w->ir, w->n_frames);
	ir_place_label(w->ir, top);
	ir_may_turn(w->ir, w->turns, w->n_frames, w->walked);
	ir_branch_imm(w->ir, BPF_JGE, w->i, w->n_frames, w->walked);
	put_frame(w);
	step(w);
	ir_jump(w->ir, top);
	ir_place_label(w->ir, w->stuck);
	ir_set_const(w->ir, w->is_stuck, 1);
	ir_jump(w->ir, leave);
	ir_place_label(w->ir, w->walked);
	ir_set_const(w->ir, w->is_stuck, 0);
	ir_place_label(w->ir, leave);
}

static void walk(struct stack_walk *w)
{
	ir_value unknown = ir_unknown(w->ir);
	bool has_function = !w->l->is_in_function; /* the kernel's count of turns takes stack */
	uint32_t number = 0;

	ir_set_const(w->ir, w->i, 0);
	ir_set_const(w->ir, w->id, 1);
	ir_set_const(w->ir, w->turns, 0);
	ir_set_const(w->ir, w->back, 0);
	ir_set_const(w->ir, w->is_stuck, 0);
	/* Of the first turn the verifier is to know no more than of the others. */
	ir_forget(w->ir, w->turns, unknown);
	ir_forget(w->ir, w->i, unknown);
	ir_forget(w->ir, w->id, unknown);
	ir_forget(w->ir, w->back, unknown);
	ir_forget(w->ir, w->again, unknown);
	if (has_function) {
		number = ir_new_function(w->ir);
		ir_call_function(w->ir, number);
		ir_function(w->ir, number);
	}
	walk_frames(w);
	if (has_function)
		ir_return(w->ir, 0);
	if (has_function)
		ir_function_end(w->ir);
	ir_loop_end(w->ir);
}

/* --- handing over ----------------------------------------------------------------------------- */

static void put_pages(struct stack_walk *w, ir_value copy, uint32_t n_pages)
{
	ir_value start = ir_new_value(w->ir), present = ir_new_value(w->ir), ok;

	ir_copy(w->ir, start,
		ir_alu_imm(w->ir, BPF_AND, ir_alu_imm(w->ir, BPF_SUB, w->sp, STACK_RED_ZONE),
			-STACK_PAGE_BYTES));
	ir_set_const(w->ir, present, 0);
	for (uint32_t i = 0; i < n_pages; i++) {
		ir_value to = ir_alu_imm(
			w->ir, BPF_ADD, copy, COPY(bytes) + (int32_t)(i * STACK_PAGE_BYTES));
		ir_value from = ir_alu_imm(w->ir, BPF_ADD, start, (int32_t)(i * STACK_PAGE_BYTES));

		ok = IR_CALL_(w->ir, BPF_FUNC_copy_from_user, IR_V(to), IR_I(STACK_PAGE_BYTES),
			IR_V(from));
		/* -1 when it was read, else 0, without a condition */
		ok = ir_alu_imm(w->ir, BPF_XOR, ir_alu_imm(w->ir, BPF_ARSH, ok, 63), -1);
		ok = ir_alu_imm(w->ir, BPF_AND, ok, (int64_t)1 << i);
		ir_copy(w->ir, present, ir_alu(w->ir, BPF_OR, present, ok));
	}
	ir_store_at(w->ir, copy, COPY(start), 8, start);
	ir_store_at(w->ir, copy, COPY(n_pages), 8, ir_const(w->ir, n_pages));
	ir_store_at(w->ir, copy, COPY(present), 8, present);
}

static void put_facts(struct stack_walk *w, ir_value copy, ir_value time)
{
	struct lower *l = w->l;
	uint64_t clause = l->clause->clause_i | (uint64_t)(l->mode == MODE_32 ? 32 : 64) << 32;

	ir_store_at(w->ir, copy, COPY(time_ns), 8, time);
	ir_store_at(w->ir, copy, COPY(id), 8, w->id);
	ir_store_at(w->ir, copy, COPY(stuck.space), 8, w->space);
	ir_store_at(w->ir, copy, COPY(stuck.pid), 8, w->pid);
	ir_store_at(w->ir, copy, COPY(stuck.address), 8, ir_alu(w->ir, BPF_SUB, w->ip, w->back));
	ir_store_at(w->ir, copy, COPY(ip), 8, w->ip);
	ir_store_at(w->ir, copy, COPY(sp), 8, w->sp);
	ir_store_at(w->ir, copy, COPY(bp), 8, w->bp);
	ir_store_at(w->ir, copy, COPY(clause_i), 8, ir_const(w->ir, (int64_t)clause));
	ir_store_at(w->ir, copy, COPY(n_frames), 8, ir_load(w->ir, w->frames, 0, 8, false));
	ir_store_at(w->ir, copy, COPY(n_wanted), 8, ir_const(w->ir, w->n_frames));
	ir_store_at(w->ir, copy, COPY(trampoline), 8, w->page);
	IR_CALL_(w->ir, BPF_FUNC_probe_read_kernel,
		IR_V(ir_alu_imm(w->ir, BPF_ADD, copy, COPY(returns))), IR_I(8 * STACK_RETURNS),
		IR_V(ir_address(w->ir, w->returns, 0)));
	IR_CALL_(w->ir, BPF_FUNC_probe_read_kernel,
		IR_V(ir_alu_imm(w->ir, BPF_ADD, copy, COPY(regs))), IR_I(8 * STACK_REGS),
		IR_V(ir_address(w->ir, w->regs, 0)));
	IR_CALL_(w->ir, BPF_FUNC_probe_read_kernel,
		IR_V(ir_alu_imm(w->ir, BPF_ADD, copy, COPY(frames))), IR_I(8 * STREAM_STACK_FRAMES),
		IR_V(ir_address(w->ir, w->frames, 8)));
}

static void put_copy(struct stack_walk *w, ir_value time, uint32_t n_pages)
{
	ir_value copy = ir_new_value(w->ir);

	ir_copy(w->ir, copy,
		IR_CALL_(w->ir, BPF_FUNC_ringbuf_reserve, IR_MAP(STREAM_MAP_COPIES),
			IR_I(sizeof(struct stack_copy) + n_pages * STACK_PAGE_BYTES), IR_I(0)));
	ir_branch_imm(w->ir, BPF_JEQ, copy, 0, w->failed);
	put_facts(w, copy, time);
	put_pages(w, copy, n_pages);
	IR_CALL_(w->ir, BPF_FUNC_ringbuf_submit, IR_V(copy), IR_I(0));
}

static void goes_beyond(struct stack_walk *w, uint32_t n_pages, ir_label not )
{
	int32_t last = (int32_t)((n_pages - 1) * STACK_PAGE_BYTES);

	read_word(w, ir_alu_imm(w->ir, BPF_ADD, w->sp, last), not );
}

/* A larger one where the stack goes on behind the smaller one, as far as that can be told. */
static void hand_over(struct stack_walk *w, ir_label done)
{
	ir_value time = ir_new_value(w->ir), cpu;
	ir_label small = ir_new_label(w->ir), medium = ir_new_label(w->ir);

	for (int32_t i = 0; i < STACK_RETURNS; i++)
		ir_store(w->ir, w->returns, 8 * i, 8, take_return(w));
	ir_copy(w->ir, time, ir_call(w->ir, BPF_FUNC_ktime_get_ns, NULL, 0));
	cpu = ir_call(w->ir, BPF_FUNC_get_smp_processor_id, NULL, 0);
	cpu = ir_alu_imm(w->ir, BPF_LSH, ir_alu_imm(w->ir, BPF_AND, cpu, (1 << CPU_BITS) - 1), 1);
	ir_copy(w->ir, w->id,
		ir_alu(w->ir, BPF_OR, ir_alu_imm(w->ir, BPF_LSH, time, CPU_BITS + 1), cpu));
	goes_beyond(w, STACK_PAGES_SMALL, small);
	goes_beyond(w, STACK_PAGES_MEDIUM, medium);
	put_copy(w, time, STACK_PAGES_LARGE);
	ir_jump(w->ir, done);
	ir_place_label(w->ir, medium);
	put_copy(w, time, STACK_PAGES_MEDIUM);
	ir_jump(w->ir, done);
	ir_place_label(w->ir, small);
	put_copy(w, time, STACK_PAGES_SMALL);
	ir_jump(w->ir, done);
}

static void store_stack(struct stack_walk *w, ir_label done)
{
	ir_value p;

	ir_copy(w->ir, w->id, ir_alu_imm(w->ir, BPF_OR, w->id, 1));
	ir_store(w->ir, w->word, 0, 8, w->id);
	p = IR_CALL_(w->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_STACKS), IR_M(w->word, 0));
	ir_branch_imm(w->ir, BPF_JNE, p, 0, done);
	p = IR_CALL_(w->ir, BPF_FUNC_map_update_elem, IR_MAP(STREAM_MAP_STACKS), IR_M(w->word, 0),
		IR_M(w->frames, 0), IR_I(BPF_ANY));
	ir_branch_imm(w->ir, BPF_JEQ, p, 0, done);
}

ir_value lower_stack_walk(struct lower *l, uint32_t n_frames)
{
	struct stack_walk w = {.l = l,
		.ir = &l->ir,
		.n_frames = n_frames,
		.frames = ir_new_memory(&l->ir, 8 + 8 * STACK_FRAMES_ROOM),
		.regs = ir_new_memory(&l->ir, 8 * STACK_REGS),
		.returns = ir_new_memory(&l->ir, 8 * STACK_RETURNS),
		.key = ir_new_memory(&l->ir, sizeof(struct stack_rule_key)),
		.word = ir_new_memory(&l->ir, 8),
		.stuck = ir_new_label(&l->ir),
		.walked = ir_new_label(&l->ir),
		.failed = ir_new_label(&l->ir),
		.none = ir_new_label(&l->ir),
		.i = ir_new_value(&l->ir),
		.id = ir_new_value(&l->ir),
		.back = ir_new_value(&l->ir),
		.turns = ir_new_value(&l->ir),
		.is_stuck = ir_new_value(&l->ir),
		.again = ir_new_value(&l->ir)};
	ir_label done = ir_new_label(&l->ir), stored = ir_new_label(&l->ir);

	l->reads_user = true;
	take_registers(&w);
	take_space(&w);
	ir_set_const(w.ir, w.again, 0);
	walk(&w);
	ir_branch_imm(w.ir, BPF_JEQ, w.is_stuck, 0, stored);
	hand_over(&w, done);
	ir_place_label(w.ir, stored);
	store_stack(&w, done);
	ir_place_label(w.ir, w.failed);
	lower_count_loss(l, offsetof(struct clause_loss, stack_failed));
	ir_set_const(w.ir, w.id, STREAM_STACK_LOST);
	ir_jump(w.ir, done);
	ir_place_label(w.ir, w.none);
	ir_set_const(w.ir, w.id, 0);
	ir_place_label(w.ir, done);
	return w.id;
}
