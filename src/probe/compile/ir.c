/* SPDX-License-Identifier: MIT */
#include "probe/compile/ir.h"

#include <stdlib.h>
#include <string.h>

#include "probe/stream/stream.h"

/* Keys and small records live on the stack; it must leave room for values. */
#define ON_STACK_MAX	 64
#define STACK_MEMORY_MAX 192

void ir_release(struct ir *ir)
{
	vec_release(&ir->insns);
	vec_release(&ir->memories);
	vec_release(&ir->is_target);
}

void ir_reset(struct ir *ir)
{
	ir->insns.n = ir->memories.n = 0;
	ir->n_values = ir->n_labels = ir->n_functions = 0;
	ir->stack_bytes = ir->stack_top = ir->scratch_bytes = ir->scratch_top = 0;
	ir->is_target.n = 0;
	ir->is_dead = ir->is_too_big = ir->is_too_long = false;
}

ir_value ir_new_value(struct ir *ir)
{
	return ++ir->n_values;
}

ir_label ir_new_label(struct ir *ir)
{
	if (!ir->is_target.n)
		vec_push(&ir->is_target, 0);
	vec_push(&ir->is_target, 0);
	return ++ir->n_labels;
}

static ir_mem new_memory(struct ir *ir, uint32_t bytes, bool may_be_on_stack)
{
	struct ir_memory m = {.bytes = (bytes + 7) & ~7u};

	if (!ir->memories.n)
		vec_push(&ir->memories, (struct ir_memory){0});
	m.is_on_stack = may_be_on_stack && m.bytes <= ON_STACK_MAX &&
			ir->stack_bytes + m.bytes <= STACK_MEMORY_MAX;
	if (m.is_on_stack) {
		ir->stack_bytes += m.bytes;
		m.at = -(int32_t)(STREAM_WORDS_BYTES + ir->stack_bytes);
		if (ir->stack_bytes > ir->stack_top)
			ir->stack_top = ir->stack_bytes;
	} else {
		m.at = (int32_t)ir->scratch_bytes;
		ir->scratch_bytes += m.bytes;
		if (ir->scratch_bytes > ir->scratch_top)
			ir->scratch_top = ir->scratch_bytes;
		if (ir->scratch_bytes > STREAM_SCRATCH_MAX) {
			ir->is_too_big = true;
			ir->scratch_bytes = 0;
			m.at = 0;
		}
	}
	vec_push(&ir->memories, m);
	return (ir_mem)(ir->memories.n - 1);
}

ir_mem ir_new_memory(struct ir *ir, uint32_t bytes)
{
	return new_memory(ir, bytes, true);
}

ir_mem ir_new_scratch(struct ir *ir, uint32_t bytes)
{
	return new_memory(ir, bytes, false);
}

struct ir_memory_mark ir_memory_mark(const struct ir *ir)
{
	return (struct ir_memory_mark){ir->stack_bytes, ir->scratch_bytes};
}

void ir_memory_release(struct ir *ir, struct ir_memory_mark mark)
{
	ir->stack_bytes = mark.stack_bytes;
	ir->scratch_bytes = mark.scratch_bytes;
}

static void add(struct ir *ir, struct ir_insn insn)
{
	if (ir->insns.n >= IR_INSNS_MAX)
		ir->is_too_long = true;
	if (ir->is_dead || ir->is_too_long)
		return;
	insn.place = ir->place;
	vec_push(&ir->insns, insn);
}

static ir_value add_d(struct ir *ir, struct ir_insn insn)
{
	insn.d = ir_new_value(ir);
	add(ir, insn);
	return insn.d;
}

ir_value ir_const(struct ir *ir, int64_t value)
{
	return add_d(ir, (struct ir_insn){.op = IR_CONST, .imm = value});
}

void ir_set_const(struct ir *ir, ir_value d, int64_t value)
{
	add(ir, (struct ir_insn){.op = IR_CONST, .d = d, .imm = value});
}

void ir_copy(struct ir *ir, ir_value d, ir_value a)
{
	add(ir, (struct ir_insn){.op = IR_COPY, .d = d, .a = a});
}

/* A right side that is a number: immediates of BPF have 32 bits; longer ones become values. */
static struct ir_insn with_imm(struct ir *ir, struct ir_insn insn, int64_t imm)
{
	if (imm < INT32_MIN || imm > INT32_MAX) {
		insn.b = ir_const(ir, imm);
		return insn;
	}
	insn.has_imm = true;
	insn.imm = imm;
	return insn;
}

ir_value ir_alu(struct ir *ir, int op, ir_value a, ir_value b)
{
	return add_d(ir, (struct ir_insn){.op = IR_ALU, .sub = (uint8_t)op, .a = a, .b = b});
}

ir_value ir_alu_imm(struct ir *ir, int op, ir_value a, int64_t imm)
{
	struct ir_insn insn = {.op = IR_ALU, .sub = (uint8_t)op, .a = a};

	return add_d(ir, with_imm(ir, insn, imm));
}

ir_value ir_extend(struct ir *ir, ir_value a, uint32_t bytes, bool is_signed)
{
	struct ir_insn insn = {.op = IR_EXTEND, .a = a, .bytes = bytes, .is_signed = is_signed};

	return bytes >= 8 ? a : add_d(ir, insn);
}

ir_value ir_swap(struct ir *ir, ir_value a, uint32_t bytes)
{
	return add_d(ir, (struct ir_insn){.op = IR_SWAP, .a = a, .bytes = bytes});
}

ir_value ir_set(struct ir *ir, int cond, ir_value a, ir_value b)
{
	return add_d(ir, (struct ir_insn){.op = IR_SET, .sub = (uint8_t)cond, .a = a, .b = b});
}

ir_value ir_set_imm(struct ir *ir, int cond, ir_value a, int64_t imm)
{
	struct ir_insn insn = {.op = IR_SET, .sub = (uint8_t)cond, .a = a};

	return add_d(ir, with_imm(ir, insn, imm));
}

void ir_place_label(struct ir *ir, ir_label label)
{
	if (ir->is_target.v[label])
		ir->is_dead = false;
	add(ir, (struct ir_insn){.op = IR_LABEL, .label = label});
}

void ir_jump(struct ir *ir, ir_label label)
{
	if (ir->is_dead)
		return;
	add(ir, (struct ir_insn){.op = IR_JUMP, .label = label});
	ir->is_target.v[label] = 1;
	ir->is_dead = true;
}

static void branch(struct ir *ir, struct ir_insn insn)
{
	if (!ir->is_dead)
		ir->is_target.v[insn.label] = 1;
	add(ir, insn);
}

void ir_branch(struct ir *ir, int cond, ir_value a, ir_value b, ir_label label)
{
	branch(ir, (struct ir_insn){
			   .op = IR_BRANCH, .sub = (uint8_t)cond, .a = a, .b = b, .label = label});
}

void ir_branch_imm(struct ir *ir, int cond, ir_value a, int64_t imm, ir_label label)
{
	struct ir_insn insn = {.op = IR_BRANCH, .sub = (uint8_t)cond, .a = a, .label = label};

	branch(ir, with_imm(ir, insn, imm));
}

ir_value ir_context(struct ir *ir, int32_t offset, uint32_t bytes, bool is_signed)
{
	return add_d(ir, (struct ir_insn){.op = IR_CONTEXT,
				 .offset = offset,
				 .bytes = bytes,
				 .is_signed = is_signed});
}

ir_value ir_context_address(struct ir *ir)
{
	return add_d(ir, (struct ir_insn){.op = IR_CONTEXT_ADDRESS});
}

ir_value ir_address(struct ir *ir, ir_mem mem, int32_t offset)
{
	return add_d(ir, (struct ir_insn){.op = IR_ADDRESS, .mem = mem, .offset = offset});
}

ir_value ir_word(struct ir *ir, int32_t offset)
{
	return add_d(ir, (struct ir_insn){.op = IR_WORD, .offset = offset});
}

ir_value ir_load(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes, bool is_signed)
{
	return add_d(ir, (struct ir_insn){.op = IR_LOAD,
				 .mem = mem,
				 .offset = offset,
				 .bytes = bytes,
				 .is_signed = is_signed});
}

ir_value ir_load_at(struct ir *ir, ir_value p, int32_t offset, uint32_t bytes, bool is_signed)
{
	return add_d(ir, (struct ir_insn){.op = IR_LOAD,
				 .a = p,
				 .offset = offset,
				 .bytes = bytes,
				 .is_signed = is_signed});
}

void ir_store(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes, ir_value v)
{
	add(ir, (struct ir_insn){
			.op = IR_STORE, .mem = mem, .offset = offset, .bytes = bytes, .b = v});
}

void ir_store_imm(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes, int64_t imm)
{
	struct ir_insn insn = {.op = IR_STORE, .mem = mem, .offset = offset, .bytes = bytes};

	add(ir, with_imm(ir, insn, imm));
}

void ir_store_at(struct ir *ir, ir_value p, int32_t offset, uint32_t bytes, ir_value v)
{
	add(ir, (struct ir_insn){.op = IR_STORE, .a = p, .offset = offset, .bytes = bytes, .b = v});
}

void ir_add_atomic(struct ir *ir, ir_value p, int32_t offset, ir_value v)
{
	add(ir, (struct ir_insn){.op = IR_ADD_ATOMIC, .a = p, .offset = offset, .b = v});
}

void ir_zero(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes)
{
	if (bytes)
		add(ir, (struct ir_insn){
				.op = IR_ZERO, .mem = mem, .offset = offset, .imm = bytes});
}

/* Marks stand in dead code too, so that begins and ends match. */
void ir_loop(struct ir *ir, int64_t turns)
{
	vec_push(&ir->insns, ((struct ir_insn){.op = IR_LOOP, .imm = turns, .place = ir->place}));
}

void ir_may_turn(struct ir *ir, ir_value turns, int64_t most, ir_label label)
{
	branch(ir, (struct ir_insn){.op = IR_MAY_TURN, .a = turns, .imm = most, .label = label});
	ir_copy(ir, turns, ir_alu_imm(ir, BPF_ADD, turns, 1));
}

void ir_loop_end(struct ir *ir)
{
	vec_push(&ir->insns, ((struct ir_insn){.op = IR_LOOP_END, .place = ir->place}));
}

ir_value ir_unknown(struct ir *ir)
{
	return add_d(ir, (struct ir_insn){.op = IR_UNKNOWN});
}

void ir_forget(struct ir *ir, ir_value v, ir_value unknown)
{
	ir_copy(ir, v, ir_alu(ir, BPF_XOR, ir_alu(ir, BPF_XOR, v, unknown), unknown));
}

uint32_t ir_new_function(struct ir *ir)
{
	return ir->n_functions++;
}

void ir_call_function(struct ir *ir, uint32_t number)
{
	add(ir, (struct ir_insn){.op = IR_CALL_FUNCTION, .imm = number});
}

/* Like the marks of loops. */
void ir_function(struct ir *ir, uint32_t number)
{
	vec_push(&ir->insns,
		((struct ir_insn){.op = IR_FUNCTION, .imm = number, .place = ir->place}));
}

ir_value ir_parameter(struct ir *ir, int n)
{
	return add_d(ir, (struct ir_insn){.op = IR_PARAMETER, .imm = n});
}

void ir_return(struct ir *ir, int64_t value)
{
	add(ir, (struct ir_insn){.op = IR_RETURN, .imm = value});
	ir->is_dead = true;
}

void ir_function_end(struct ir *ir)
{
	vec_push(&ir->insns, ((struct ir_insn){.op = IR_FUNCTION_END, .place = ir->place}));
	ir->is_dead = false; /* it goes on behind the call */
}

ir_value ir_call(struct ir *ir, int helper, const struct ir_arg *args, int n)
{
	struct ir_insn insn = {.op = IR_CALL, .imm = helper, .n_args = (uint8_t)n};

	if (n)
		memcpy(insn.args, args, sizeof(*args) * (size_t)n);
	return add_d(ir, insn);
}
