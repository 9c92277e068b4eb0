/* SPDX-License-Identifier: MIT */
/*
 * Values live from their first to their last mention in the list; one that is alive where a loop
 * begins and mentioned in it lives until the loop ends. A value that is used by the very next
 * instruction alone stays in r0. Of the others the first ones get r8 and r9, and the rest words of
 * the stack below the memory that the lowering took. r6 is the context, r7 the scratch area.
 *
 * A function has the stack of the clause as its own: its fourth argument is the clause's r10, which it keeps in r9 and takes wherever the clause takes r10. r6 and r7 are in
 * two words of that stack, and no value lives in a register of a clause that has functions. Their
 * code stands behind that of the clause:
 *
 *   for_each_map_elem(map, function, r10, 0)        r9 = r4; r6 = r9[context]; r7 = r9[scratch]
 *   ...                                             ...
 *                                                   r0 = 0; exit
 */
#include "probe/compile/emit_bpf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define INSNS_MAX   30000	     /* jumps have 16 bits */
#define IN_R0	    1		     /* used at once */
#define IN_REG(r)   (0x100 | (r))    /* r8, r9 */
#define IN_SLOT(at) (0x10000 | (at)) /* word at r10 - at */

struct life {
	uint32_t from, to; /* instructions; to == 0: never used */
	uint32_t n_uses, n_defs;
	uint32_t home;
};

struct emit {
	const struct ir *ir;
	struct bpf_code *c;
	struct life *lives;				      /* by value */
	int *labels;					      /* by label: of bpf_code */
	uint64_t slots_used[STREAM_STACK_BYTES / 8 / 64 + 1]; /* words of the stack */
	uint32_t regs_used;				      /* bit 8, bit 9 */
	bool is_stack_full;
	int frame;			     /* r10, or r9 in functions */
	uint32_t context_home, scratch_home; /* slots, when there are functions */
	VEC(uint32_t) pending;	 /* instructions that begin a function whose code is not made yet */
	VEC(uint32_t) functions; /* by number: its first BPF instruction */
	VEC(uint32_t) addresses; /* BPF instructions that call or load one: imm is its number */
	VEC(struct stream_line) lines;
};

/* --- lives ----------------------------------------------------------------------------------- */

static void use(struct emit *e, ir_value v, uint32_t at)
{
	if (!v)
		return;
	e->lives[v].n_uses++;
	e->lives[v].to = at;
}

static void find_lives(struct emit *e)
{
	for (uint32_t i = 0; i < e->ir->insns.n; i++) {
		const struct ir_insn *insn = &e->ir->insns.v[i];

		use(e, insn->a, i);
		use(e, insn->b, i);
		for (int k = 0; k < insn->n_args; k++)
			if (insn->args[k].kind == IR_ARG_VALUE)
				use(e, insn->args[k].n, i);
		if (insn->d) {
			struct life *life = &e->lives[insn->d];

			if (!life->n_defs++)
				life->from = i;
			if (life->to < i)
				life->to = i;
		}
	}
}

static void stretch_over_loops(struct emit *e)
{
	VEC(uint32_t) begins = {0};

	for (uint32_t i = 0; i < e->ir->insns.n; i++) {
		enum ir_op op = e->ir->insns.v[i].op;

		if (op == IR_LOOP) {
			vec_push(&begins, i);
		} else if (op == IR_LOOP_END) {
			uint32_t begin = begins.v[--begins.n];

			for (ir_value v = 1; v <= e->ir->n_values; v++)
				if (e->lives[v].n_defs && e->lives[v].from < begin &&
					e->lives[v].to > begin && e->lives[v].to < i)
					e->lives[v].to = i;
		}
	}
	vec_release(&begins);
}

static uint32_t take_slot(struct emit *e)
{
	uint32_t n = (STREAM_STACK_BYTES - e->ir->stack_top) / 8;

	for (uint32_t i = 0; i < n; i++)
		if (!(e->slots_used[i / 64] & (1ull << i % 64))) {
			e->slots_used[i / 64] |= 1ull << i % 64;
			return IN_SLOT(STREAM_WORDS_BYTES + e->ir->stack_top + 8 * (i + 1));
		}
	e->is_stack_full = true;
	return IN_SLOT(STREAM_WORDS_BYTES + e->ir->stack_top + 8);
}

static void give_back(struct emit *e, uint32_t home)
{
	if (home >= 0x10000) {
		uint32_t i = ((home & 0xffff) - STREAM_WORDS_BYTES - e->ir->stack_top) / 8 - 1;

		e->slots_used[i / 64] &= ~(1ull << i % 64);
	} else if (home >= 0x100) {
		e->regs_used &= ~(1u << (home & 0xff));
	}
}

static uint32_t take_home(struct emit *e, ir_value v, uint32_t at)
{
	const struct life *life = &e->lives[v];

	if (life->n_defs == 1 && life->n_uses == 1 && life->to == at + 1)
		return IN_R0;
	for (uint32_t r = 8; r <= 9 && !e->ir->n_functions; r++)
		if (!(e->regs_used & (1u << r))) {
			e->regs_used |= 1u << r;
			return IN_REG(r);
		}
	return take_slot(e);
}

/* Gives every value its home, walking along the list as the code will run. */
static void find_homes(struct emit *e)
{
	VEC(ir_value) alive = {0};

	if (e->ir->n_functions) {
		e->context_home = take_slot(e);
		e->scratch_home = take_slot(e);
	}
	for (uint32_t i = 0; i < e->ir->insns.n; i++) {
		ir_value d = e->ir->insns.v[i].d;
		size_t kept = 0;

		/* One whose last use is here may give its home to the result. */
		for (size_t k = 0; k < alive.n; k++)
			if (e->lives[alive.v[k]].to <= i && alive.v[k] != d)
				give_back(e, e->lives[alive.v[k]].home);
			else
				alive.v[kept++] = alive.v[k];
		alive.n = kept;
		if (!d || e->lives[d].home || !e->lives[d].n_uses)
			continue;
		e->lives[d].home = take_home(e, d, i);
		if (e->lives[d].home != IN_R0)
			vec_push(&alive, d);
	}
	vec_release(&alive);
}

/* --- operands --------------------------------------------------------------------------------- */

static void load_slot(struct emit *e, int reg, uint32_t home)
{
	bpf_load(e->c, BPF_DW, reg, e->frame, (int16_t) - (int32_t)(home & 0xffff));
}

static void store_slot(struct emit *e, uint32_t home, int reg)
{
	bpf_store(e->c, BPF_DW, e->frame, (int16_t) - (int32_t)(home & 0xffff), reg);
}

/* The register with the value: its own, or `scratch` that it is loaded into. */
static int operand(struct emit *e, ir_value v, int scratch)
{
	uint32_t home = e->lives[v].home;

	if (home == IN_R0)
		return BPF_REG_0;
	if (home >= 0x10000) {
		load_slot(e, scratch, home);
		return scratch;
	}
	assert(home >= 0x100); /* used but never made: a bug of the lowering */
	return (int)(home & 0xff);
}

static void operand_into(struct emit *e, ir_value v, int reg)
{
	int has = operand(e, v, reg);

	if (has != reg)
		bpf_mov(e->c, reg, has);
}

/* Where the result is best made; result() then puts it where it belongs. */
static int result_reg(struct emit *e, ir_value d)
{
	uint32_t home = e->lives[d].home;

	return home >= 0x100 && home < 0x10000 ? (int)(home & 0xff) : BPF_REG_0;
}

static void result(struct emit *e, ir_value d, int reg)
{
	uint32_t home = e->lives[d].home;

	if (home >= 0x10000)
		store_slot(e, home, reg);
	else if (home >= 0x100 && (int)(home & 0xff) != reg)
		bpf_mov(e->c, (int)(home & 0xff), reg);
	else if (home == IN_R0 && reg != BPF_REG_0)
		bpf_mov(e->c, BPF_REG_0, reg);
}

static void load_imm64(struct emit *e, int reg, int64_t imm)
{
	if (imm >= INT32_MIN && imm <= INT32_MAX)
		bpf_mov_imm(e->c, reg, (int32_t)imm);
	else
		bpf_load_imm64(e->c, reg, (uint64_t)imm);
}

static int size_code(uint32_t bytes)
{
	return bytes == 1 ? BPF_B : bytes == 2 ? BPF_H : bytes == 4 ? BPF_W : BPF_DW;
}

static void extend(struct emit *e, int reg, uint32_t bytes, bool is_signed)
{
	if (bytes >= 8)
		return;
	if (bytes == 4 && !is_signed) {
		bpf_add(e->c, BPF_ALU | BPF_MOV | BPF_X, reg, reg, 0, 0);
		return;
	}
	bpf_alu_imm(e->c, BPF_LSH, reg, (int32_t)(64 - bytes * 8));
	bpf_alu_imm(e->c, is_signed ? BPF_ARSH : BPF_RSH, reg, (int32_t)(64 - bytes * 8));
}

/* --- instructions ----------------------------------------------------------------------------- */

static void emit_alu(struct emit *e, const struct ir_insn *i)
{
	int d = result_reg(e, i->d), b;

	if (i->has_imm) {
		operand_into(e, i->a, d);
		bpf_alu_imm(e->c, i->sub, d, (int32_t)i->imm);
	} else {
		b = operand(e, i->b, BPF_REG_1);
		/* The right side must survive the left side's move. */
		if (b == d || b == BPF_REG_0) {
			bpf_mov(e->c, BPF_REG_1, b);
			b = BPF_REG_1;
		}
		operand_into(e, i->a, d);
		bpf_alu(e->c, i->sub, d, b);
	}
	result(e, i->d, d);
}

static void emit_compare(struct emit *e, const struct ir_insn *i, int label)
{
	bool is_b_in_r0 = !i->has_imm && e->lives[i->b].home == IN_R0;
	int a, b = BPF_REG_1;

	if (is_b_in_r0)
		bpf_mov(e->c, b, BPF_REG_0);
	a = operand(e, i->a, BPF_REG_0);
	if (!i->has_imm && !is_b_in_r0)
		b = operand(e, i->b, BPF_REG_1);
	if (i->has_imm)
		bpf_jump_imm(e->c, i->sub, a, (int32_t)i->imm, label);
	else
		bpf_jump_reg(e->c, i->sub, a, b, label);
}

static void emit_set(struct emit *e, const struct ir_insn *i)
{
	int yes = bpf_label(e->c), done = bpf_label(e->c);

	emit_compare(e, i, yes);
	bpf_mov_imm(e->c, BPF_REG_0, 0);
	bpf_jump(e->c, done);
	bpf_place(e->c, yes);
	bpf_mov_imm(e->c, BPF_REG_0, 1);
	bpf_place(e->c, done);
	result(e, i->d, BPF_REG_0);
}

/* Register and offset of memory. */
static int memory(struct emit *e, ir_mem mem, int32_t *offset)
{
	const struct ir_memory *m = &e->ir->memories.v[mem];

	*offset += m->at;
	return m->is_on_stack ? e->frame : BPF_REG_7;
}

static void emit_load_from(struct emit *e, const struct ir_insn *i, int base, int32_t offset)
{
	int d = result_reg(e, i->d);

	bpf_load(e->c, size_code(i->bytes), d, base, (int16_t)offset);
	if (i->is_signed)
		extend(e, d, i->bytes, true);
	result(e, i->d, d);
}

static void emit_load(struct emit *e, const struct ir_insn *i)
{
	int32_t offset = i->offset;
	int base = i->mem ? memory(e, i->mem, &offset) : operand(e, i->a, BPF_REG_1);

	emit_load_from(e, i, base, offset);
}

static void emit_store(struct emit *e, const struct ir_insn *i)
{
	int32_t offset = i->offset;
	int base, v;

	if (i->has_imm) {
		base = i->mem ? memory(e, i->mem, &offset) : operand(e, i->a, BPF_REG_1);
		bpf_store_imm(e->c, size_code(i->bytes), base, (int16_t)offset, (int32_t)i->imm);
		return;
	}
	/* Not into r0: the address may be there. */
	v = operand(e, i->b, BPF_REG_2);
	base = i->mem ? memory(e, i->mem, &offset) : operand(e, i->a, BPF_REG_1);
	bpf_store(e->c, size_code(i->bytes), base, (int16_t)offset, v);
}

static void emit_add_atomic(struct emit *e, const struct ir_insn *i)
{
	int v = operand(e, i->b, BPF_REG_2), p = operand(e, i->a, BPF_REG_1);

	bpf_atomic(e->c, BPF_ADD, p, (int16_t)i->offset, v);
}

static void emit_zero(struct emit *e, const struct ir_insn *i)
{
	int32_t offset = i->offset;
	int base = memory(e, i->mem, &offset);
	int64_t n = i->imm;

	/* mem[..] = 0, in the largest steps; memory is aligned to 8. */
	for (; n >= 8 && offset % 8 == 0; n -= 8, offset += 8)
		bpf_store_imm(e->c, BPF_DW, base, (int16_t)offset, 0);
	for (; n > 0; n--, offset++)
		bpf_store_imm(e->c, BPF_B, base, (int16_t)offset, 0);
}

static void emit_argument(struct emit *e, const struct ir_arg *a, int reg)
{
	int32_t offset;
	int base;

	switch (a->kind) {
	case IR_ARG_VALUE:
		operand_into(e, a->n, reg);
		break;
	case IR_ARG_IMM:
		load_imm64(e, reg, a->imm);
		break;
	case IR_ARG_MEM:
		offset = (int32_t)a->imm;
		base = memory(e, a->n, &offset);
		bpf_mov(e->c, reg, base);
		if (offset)
			bpf_alu_imm(e->c, BPF_ADD, reg, offset);
		break;
	case IR_ARG_MAP:
		bpf_load_map(e->c, reg, (int)a->imm);
		break;
	case IR_ARG_CONTEXT:
		bpf_mov(e->c, reg, BPF_REG_6);
		break;
	case IR_ARG_FUNCTION:
		vec_push(&e->addresses, (uint32_t)e->c->insns.n);
		bpf_add(e->c, BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_FUNC, 0, (int32_t)a->n);
		bpf_add(e->c, 0, 0, 0, 0, 0);
		break;
	case IR_ARG_FRAME:
		bpf_mov(e->c, reg, e->frame);
		break;
	}
}

/* r6 and r7 for the functions; those that are called by a function have them already. */
static void keep_registers(struct emit *e)
{
	if (e->frame != BPF_REG_10)
		return;
	store_slot(e, e->context_home, BPF_REG_6);
	if (e->ir->scratch_top)
		store_slot(e, e->scratch_home, BPF_REG_7);
}

static void emit_call(struct emit *e, const struct ir_insn *i)
{
	for (int k = 0; k < i->n_args; k++)
		if (i->args[k].kind == IR_ARG_FRAME)
			keep_registers(e);
	for (int k = 0; k < i->n_args; k++)
		emit_argument(e, &i->args[k], BPF_REG_1 + k);
	bpf_call(e->c, (int)i->imm);
	if (i->d && e->lives[i->d].n_uses)
		result(e, i->d, BPF_REG_0);
}

static void emit_call_function(struct emit *e, const struct ir_insn *i)
{
	keep_registers(e);
	bpf_mov(e->c, BPF_REG_4, e->frame);
	vec_push(&e->addresses, (uint32_t)e->c->insns.n);
	bpf_add(e->c, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, (int32_t)i->imm);
}

static void emit_swap(struct emit *e, const struct ir_insn *i)
{
	operand_into(e, i->a, BPF_REG_0);
	bpf_add(e->c, BPF_ALU | BPF_END | BPF_TO_BE, BPF_REG_0, 0, 0, i->bytes * 8);
	result(e, i->d, BPF_REG_0);
}

static void emit_address(struct emit *e, const struct ir_insn *i)
{
	int d = result_reg(e, i->d);
	int32_t offset = i->offset;
	int base = memory(e, i->mem, &offset);

	bpf_mov(e->c, d, base);
	if (offset)
		bpf_alu_imm(e->c, BPF_ADD, d, offset);
	result(e, i->d, d);
}

/* As streams have it (docs/format/probe-stream.md): the loader makes of it what the kernel knows. */
static void emit_may_turn(struct emit *e, const struct ir_insn *i)
{
	operand_into(e, i->a, BPF_REG_0);
	bpf_jump_imm(
		e->c, BPF_OP(STREAM_LOOP_CODE), BPF_REG_0, (int32_t)i->imm, e->labels[i->label]);
}

static void emit_unknown(struct emit *e, const struct ir_insn *i)
{
	bpf_add(e->c, STREAM_LOOP_CODE, 0, STREAM_LOOP_UNKNOWN, 0, 0);
	result(e, i->d, BPF_REG_0);
}

static void emit_return(struct emit *e, const struct ir_insn *i)
{
	bpf_mov_imm(e->c, BPF_REG_0, (int32_t)i->imm);
	bpf_exit(e->c);
}

static void emit_parameter(struct emit *e, const struct ir_insn *i)
{
	result(e, i->d, (int)i->imm);
}

static void (*const emitters[IR_FUNCTION_END + 1])(struct emit *e, const struct ir_insn *i) = {
	[IR_ALU] = emit_alu,
	[IR_SWAP] = emit_swap,
	[IR_SET] = emit_set,
	[IR_ADDRESS] = emit_address,
	[IR_LOAD] = emit_load,
	[IR_STORE] = emit_store,
	[IR_ADD_ATOMIC] = emit_add_atomic,
	[IR_ZERO] = emit_zero,
	[IR_CALL] = emit_call,
	[IR_CALL_FUNCTION] = emit_call_function,
	[IR_MAY_TURN] = emit_may_turn,
	[IR_UNKNOWN] = emit_unknown,
	[IR_RETURN] = emit_return,
	[IR_PARAMETER] = emit_parameter,
};

static void emit_insn(struct emit *e, const struct ir_insn *i)
{
	int r = i->d ? result_reg(e, i->d) : 0;

	/* What nobody uses is not made, unless making it does something. */
	if (i->d && !e->lives[i->d].n_uses && i->op != IR_CALL)
		return;
	if (emitters[i->op])
		emitters[i->op](e, i);
	switch (i->op) {
	case IR_CONST:
		load_imm64(e, r, i->imm);
		result(e, i->d, r);
		break;
	case IR_COPY:
		result(e, i->d, operand(e, i->a, r));
		break;
	case IR_EXTEND:
		operand_into(e, i->a, r);
		extend(e, r, i->bytes, i->is_signed);
		result(e, i->d, r);
		break;
	case IR_LABEL:
		bpf_place(e->c, e->labels[i->label]);
		break;
	case IR_JUMP:
		bpf_jump(e->c, e->labels[i->label]);
		break;
	case IR_BRANCH:
		emit_compare(e, i, e->labels[i->label]);
		break;
	case IR_CONTEXT:
		emit_load_from(e, i, BPF_REG_6, i->offset);
		break;
	case IR_WORD:
		bpf_load(e->c, BPF_DW, r, e->frame, (int16_t)i->offset);
		result(e, i->d, r);
		break;
	case IR_CONTEXT_ADDRESS:
		result(e, i->d, BPF_REG_6);
		break;
	default: /* of the table, or a mark */
		break;
	}
}

static void add_line(struct emit *e, uint32_t insn_i, struct place place)
{
	struct stream_line line = {insn_i, place};

	if (e->c->insns.n > insn_i &&
		(!e->lines.n || !place_is_same(e->lines.v[e->lines.n - 1].place, place)))
		vec_push(&e->lines, line);
}

/* The end of the function that begins at `i`. */
static uint32_t end_of_function(const struct ir *ir, uint32_t i)
{
	uint32_t depth = 0;

	for (;; i++) {
		depth += ir->insns.v[i].op == IR_FUNCTION;
		if (ir->insns.v[i].op == IR_FUNCTION_END && !--depth)
			return i;
	}
}

/* Functions in between come later. */
static void emit_range(struct emit *e, uint32_t from, uint32_t to, struct emit_out *out)
{
	for (uint32_t i = from; i < to && e->c->insns.n < INSNS_MAX; i++) {
		const struct ir_insn *insn = &e->ir->insns.v[i];
		uint32_t at = (uint32_t)e->c->insns.n;

		if (i == out->boundary_ir)
			out->boundary_insn = at;
		if (insn->op == IR_FUNCTION) {
			vec_push(&e->pending, i);
			i = end_of_function(e->ir, i);
			continue;
		}
		emit_insn(e, insn);
		add_line(e, at, insn->place);
	}
}

static void emit_function(struct emit *e, uint32_t begin, struct emit_out *out)
{
	const struct ir_insn *insn = &e->ir->insns.v[begin];

	e->functions.v[insn->imm] = (uint32_t)e->c->insns.n;
	e->frame = BPF_REG_9;
	bpf_mov(e->c, BPF_REG_9, BPF_REG_4);
	load_slot(e, BPF_REG_6, e->context_home);
	if (e->ir->scratch_top)
		load_slot(e, BPF_REG_7, e->scratch_home);
	add_line(e, e->functions.v[insn->imm], insn->place);
	emit_range(e, begin + 1, end_of_function(e->ir, begin), out);
}

static void emit_all(struct emit *e, struct emit_out *out)
{
	uint32_t main_n;

	for (uint32_t i = 0; i < e->ir->n_functions; i++)
		vec_push(&e->functions, 0);
	e->frame = BPF_REG_10;
	emit_range(e, 0, (uint32_t)e->ir->insns.n, out);
	main_n = (uint32_t)e->c->insns.n;
	for (size_t i = 0; i < e->pending.n; i++)
		emit_function(e, e->pending.v[i], out);
	for (size_t i = 0; i < e->addresses.n; i++) {
		struct bpf_insn *insn = &e->c->insns.v[e->addresses.v[i]];

		insn->imm = (int32_t)(e->functions.v[insn->imm] - main_n);
	}
	out->functions_n = (uint32_t)e->c->insns.n - main_n;
	out->lines = e->lines.v;
	out->n_lines = e->lines.n;
	vec_release(&e->pending);
	vec_release(&e->functions);
	vec_release(&e->addresses);
}

int emit_code(const struct ir *ir, struct emit_out *out, struct err *err)
{
	struct emit e = {.ir = ir, .c = out->code};
	int rc = 0;

	if (ir->is_too_big)
		return err_set(err, ERR_LIMIT, "texts and records need more than %d bytes",
			STREAM_SCRATCH_MAX);
	if (ir->is_too_long)
		return err_set(err, ERR_LIMIT, "it needs more than %d instructions", INSNS_MAX);
	e.lives = mem_calloc(ir->n_values + 1, sizeof(*e.lives));
	e.labels = mem_calloc(ir->n_labels + 1, sizeof(*e.labels));
	for (ir_label l = 1; l <= ir->n_labels; l++)
		e.labels[l] = bpf_label(e.c);
	find_lives(&e);
	stretch_over_loops(&e);
	find_homes(&e);
	emit_all(&e, out);
	out->scratch_bytes = ir->scratch_top;
	if (e.is_stack_full)
		rc = err_set(err, ERR_LIMIT, "an expression needs more than the %d bytes of stack",
			STREAM_STACK_BYTES);
	else if (e.c->insns.n >= INSNS_MAX)
		rc = err_set(err, ERR_LIMIT, "it needs more than %d instructions", INSNS_MAX);
	free(e.lives);
	free(e.labels);
	return rc;
}
