/* SPDX-License-Identifier: MIT */
/*
 * Intermediate code run twice: by the kernel, after emit_code, and by an interpreter that knows
 * nothing of registers. The kernel's stack memory is not compared; the scratch area is.
 */
#ifndef WEIR_TESTS_IR_WORLD_H
#define WEIR_TESTS_IR_WORLD_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/code.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "probe/compile/emit_bpf.h"

#define SCRATCH_BYTES 1024
#define SITE_WORD     0x1234567
#define ARRAY_N	      8 /* entries of the map that programs use: numbers by number */
#define STEPS_MAX     200000

struct machine {
	uint8_t scratch[SCRATCH_BYTES], stack[STREAM_STACK_BYTES];
	uint64_t array[ARRAY_N];
	uint64_t *values;
};

/* --- the interpreter ------------------------------------------------------------------------- */

static uint64_t cut(uint64_t v, uint32_t bytes, bool is_signed)
{
	uint32_t shift = 64 - bytes * 8;

	if (bytes >= 8)
		return v;
	return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static uint64_t alu(int op, uint64_t a, uint64_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV: /* as the kernel has it: by zero is zero */
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : a;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & 63);
	case BPF_RSH:
		return a >> (b & 63);
	default:
		return (uint64_t)((int64_t)a >> (b & 63));
	}
}

static bool holds(int cond, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (cond) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSGT:
		return sa > sb;
	case BPF_JSGE:
		return sa >= sb;
	case BPF_JSLT:
		return sa < sb;
	default:
		return sa <= sb;
	}
}

static uint8_t *memory_at(struct machine *m, const struct ir *ir, ir_mem mem, int64_t offset)
{
	const struct ir_memory *at = &ir->memories.v[mem];

	return at->is_on_stack
		       ? m->stack + STREAM_WORDS_BYTES + STREAM_STACK_BYTES + at->at + offset
		       : m->scratch + at->at + offset;
}

/* Pointers into the map are host addresses of the array. */
static uint64_t interpret_call(struct machine *m, const struct ir *ir, const struct ir_insn *i)
{
	uint8_t *first = i->n_args && i->args[0].kind == IR_ARG_MEM
				 ? memory_at(m, ir, i->args[0].n, i->args[0].imm)
				 : NULL;
	uint32_t key;

	switch (i->imm) {
	case BPF_FUNC_map_lookup_elem:
		memcpy(&key, memory_at(m, ir, i->args[1].n, i->args[1].imm), 4);
		return key < ARRAY_N ? (uintptr_t)&m->array[key] : 0;
	case BPF_FUNC_map_update_elem:
		memcpy(&key, memory_at(m, ir, i->args[1].n, i->args[1].imm), 4);
		if (key >= ARRAY_N)
			return (uint64_t)-E2BIG;
		memcpy(&m->array[key], memory_at(m, ir, i->args[2].n, i->args[2].imm), 8);
		return 0;
	case BPF_FUNC_probe_read_kernel: /* of addresses below a page: fails and clears */
		memset(first, 0, (size_t)i->args[1].imm);
		return (uint64_t)-EFAULT;
	default: /* a value that programs multiply by zero */
		return 77;
	}
}

static uint64_t swapped(uint64_t v, uint32_t bytes)
{
	return __builtin_bswap64(v) >> (64 - 8 * bytes);
}

static size_t place_of(const struct ir *ir, ir_label label)
{
	for (size_t i = 0; i < ir->insns.n; i++)
		if (ir->insns.v[i].op == IR_LABEL && ir->insns.v[i].label == label)
			return i;
	abort();
}

/* The end of the function that an instruction is in: what is behind the call of it. */
static size_t end_of_function(const struct ir *ir, size_t at)
{
	size_t depth = 1;

	for (; at < ir->insns.n; at++) {
		depth += ir->insns.v[at].op == IR_FUNCTION;
		depth -= ir->insns.v[at].op == IR_FUNCTION_END;
		if (!depth)
			return at;
	}
	abort();
}

static void interpret_memory(struct machine *m, const struct ir *ir, const struct ir_insn *i)
{
	uint64_t right = i->has_imm ? (uint64_t)i->imm : m->values[i->b], v = 0;
	uint8_t *p = i->mem ? memory_at(m, ir, i->mem, i->offset)
			    : (uint8_t *)(uintptr_t)m->values[i->a] + i->offset;

	if (i->op == IR_LOAD) {
		memcpy(&v, p, i->bytes);
		m->values[i->d] = cut(v, i->bytes, i->is_signed);
	} else if (i->op == IR_STORE) {
		memcpy(p, &right, i->bytes);
	} else if (i->op == IR_ZERO) {
		memset(p, 0, (size_t)i->imm);
	} else {
		memcpy(&v, p, 8);
		v += right;
		memcpy(p, &v, 8);
	}
}

static void interpret(struct machine *m, const struct ir *ir)
{
	size_t steps = 0;

	for (size_t at = 0; at < ir->insns.n; at++) {
		const struct ir_insn *i = &ir->insns.v[at];
		uint64_t a = m->values[i->a], b = i->has_imm ? (uint64_t)i->imm : m->values[i->b];

		if (++steps > STEPS_MAX)
			abort();
		switch (i->op) {
		case IR_CONST:
			m->values[i->d] = (uint64_t)i->imm;
			break;
		case IR_COPY:
			m->values[i->d] = a;
			break;
		case IR_ALU:
			m->values[i->d] = alu(i->sub, a, b);
			break;
		case IR_EXTEND:
			m->values[i->d] = cut(a, i->bytes, i->is_signed);
			break;
		case IR_SWAP:
			m->values[i->d] = swapped(a, i->bytes);
			break;
		case IR_SET:
			m->values[i->d] = holds(i->sub, a, b);
			break;
		case IR_JUMP:
			at = place_of(ir, i->label);
			break;
		case IR_BRANCH:
			if (holds(i->sub, a, b))
				at = place_of(ir, i->label);
			break;
		case IR_MAY_TURN:
			if (i->imm && a >= (uint64_t)i->imm)
				at = place_of(ir, i->label);
			break;
		case IR_RETURN:
			at = end_of_function(ir, at);
			break;
		case IR_UNKNOWN:
		case IR_CONTEXT:
			m->values[i->d] = 0;
			break;
		case IR_WORD:
			m->values[i->d] = SITE_WORD;
			break;
		case IR_CALL:
			m->values[i->d] = interpret_call(m, ir, i);
			break;
		case IR_LOAD:
		case IR_STORE:
		case IR_ADD_ATOMIC:
		case IR_ZERO:
			interpret_memory(m, ir, i);
			break;
		default:
			break;
		}
	}
}

/* --- the kernel ------------------------------------------------------------------------------ */

/* r6 = context; r7 = scratch; the site's word; the code; return 0. Numbers of maps in the code are
 * descriptors already. -errno when the kernel refuses it, with its log. */
static int kernel_open(const struct bpf_code *code, int scratch_fd, char *log, size_t log_bytes)
{
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_RAW_TRACEPOINT, .name = "ir_test"};
	struct bpf_code c = {0};
	int fd;

	bpf_mov(&c, BPF_REG_6, BPF_REG_1);
	bpf_load_map_value(&c, BPF_REG_7, scratch_fd, 0);
	bpf_mov_imm(&c, BPF_REG_1, SITE_WORD);
	bpf_store(&c, BPF_DW, BPF_REG_10, STREAM_WORD_SITE, BPF_REG_1);
	bpf_append(&c, code->insns.v, code->insns.n);
	bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_exit(&c);
	spec.insns = c.insns.v;
	spec.n_insns = c.insns.n;
	fd = bpf_program_open(&spec, NULL, 0);
	if (fd < 0)
		bpf_program_open(&spec, log, log_bytes);
	bpf_code_release(&c);
	return fd;
}

#endif
