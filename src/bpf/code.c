/* SPDX-License-Identifier: MIT */
#include "bpf/code.h"

#include <assert.h>
#include <stdlib.h>

void bpf_code_release(struct bpf_code *c)
{
	vec_release(&c->insns);
	vec_release(&c->labels);
	vec_release(&c->jumps);
}

void bpf_add(struct bpf_code *c, int code, int dst, int src, int off, int32_t imm)
{
	struct bpf_insn insn = {.code = (uint8_t)code,
		.dst_reg = (uint8_t)(dst & 15),
		.src_reg = (uint8_t)(src & 15),
		.off = (int16_t)off,
		.imm = imm};

	vec_push(&c->insns, insn);
}

void bpf_mov_imm(struct bpf_code *c, int dst, int32_t imm)
{
	bpf_add(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

void bpf_mov(struct bpf_code *c, int dst, int src)
{
	bpf_add(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

void bpf_alu_imm(struct bpf_code *c, int op, int dst, int32_t imm)
{
	bpf_add(c, BPF_ALU64 | op | BPF_K, dst, 0, 0, imm);
}

void bpf_alu(struct bpf_code *c, int op, int dst, int src)
{
	bpf_add(c, BPF_ALU64 | op | BPF_X, dst, src, 0, 0);
}

void bpf_load(struct bpf_code *c, int size, int dst, int src, int16_t off)
{
	bpf_add(c, BPF_LDX | BPF_MEM | size, dst, src, off, 0);
}

void bpf_store(struct bpf_code *c, int size, int dst, int16_t off, int src)
{
	bpf_add(c, BPF_STX | BPF_MEM | size, dst, src, off, 0);
}

void bpf_load_map(struct bpf_code *c, int dst, int map_fd)
{
	bpf_add(c, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, map_fd);
	bpf_add(c, 0, 0, 0, 0, 0);
}

void bpf_load_map_value(struct bpf_code *c, int dst, int map_fd, uint32_t at)
{
	bpf_add(c, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_VALUE, 0, map_fd);
	bpf_add(c, 0, 0, 0, 0, (int32_t)at);
}

void bpf_load_imm64(struct bpf_code *c, int dst, uint64_t imm)
{
	bpf_add(c, BPF_LD | BPF_DW | BPF_IMM, dst, 0, 0, (int32_t)(uint32_t)imm);
	bpf_add(c, 0, 0, 0, 0, (int32_t)(uint32_t)(imm >> 32));
}

void bpf_store_imm(struct bpf_code *c, int size, int dst, int16_t off, int32_t imm)
{
	bpf_add(c, BPF_ST | BPF_MEM | size, dst, 0, off, imm);
}

void bpf_atomic(struct bpf_code *c, int op, int dst, int16_t off, int src)
{
	bpf_add(c, BPF_STX | BPF_ATOMIC | BPF_DW, dst, src, off, op);
}

void bpf_append(struct bpf_code *c, const struct bpf_insn *insns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vec_push(&c->insns, insns[i]);
}

void bpf_call(struct bpf_code *c, int helper)
{
	bpf_add(c, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

void bpf_exit(struct bpf_code *c)
{
	bpf_add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

void bpf_stack_address(struct bpf_code *c, int dst, int at)
{
	bpf_mov(c, dst, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, dst, at);
}

void bpf_find(struct bpf_code *c, int map_fd, int at)
{
	bpf_load_map(c, BPF_REG_1, map_fd);
	bpf_stack_address(c, BPF_REG_2, at);
	bpf_call(c, BPF_FUNC_map_lookup_elem);
}

void bpf_read_kernel(struct bpf_code *c, int at, int32_t n)
{
	bpf_stack_address(c, BPF_REG_1, at);
	bpf_mov_imm(c, BPF_REG_2, n);
	bpf_call(c, BPF_FUNC_probe_read_kernel);
}

void bpf_return_0(struct bpf_code *c)
{
	bpf_mov_imm(c, BPF_REG_0, 0);
	bpf_exit(c);
}

int bpf_label(struct bpf_code *c)
{
	vec_push(&c->labels, -1);
	return (int)c->labels.n - 1;
}

/* Offsets count from the instruction after the jump. */
void bpf_place(struct bpf_code *c, int label)
{
	size_t n = 0;

	assert(c->labels.v[label] < 0);
	c->labels.v[label] = (int32_t)c->insns.n;
	for (size_t i = 0; i < c->jumps.n; i++) {
		struct bpf_insn *jump = &c->insns.v[c->jumps.v[i]];

		if (jump->off != label) {
			c->jumps.v[n++] = c->jumps.v[i];
			continue;
		}
		c->is_too_long |= c->insns.n - c->jumps.v[i] - 1 > INT16_MAX;
		jump->off = (int16_t)(c->insns.n - c->jumps.v[i] - 1);
	}
	c->jumps.n = n;
}

bool bpf_label_is_used(const struct bpf_code *c, int label)
{
	for (size_t i = 0; i < c->jumps.n; i++)
		if (c->insns.v[c->jumps.v[i]].off == label)
			return true;
	return false;
}

static void add_jump(struct bpf_code *c, int code, int dst, int src, int32_t imm, int label)
{
	int32_t place = c->labels.v[label];

	if (place < 0)
		vec_push(&c->jumps, (uint32_t)c->insns.n);
	bpf_add(c, code, dst, src, place < 0 ? label : place - (int32_t)c->insns.n - 1, imm);
}

void bpf_jump_imm(struct bpf_code *c, int op, int dst, int32_t imm, int label)
{
	add_jump(c, BPF_JMP | op | BPF_K, dst, 0, imm, label);
}

void bpf_jump_reg(struct bpf_code *c, int op, int dst, int src, int label)
{
	add_jump(c, BPF_JMP | op | BPF_X, dst, src, 0, label);
}

void bpf_jump(struct bpf_code *c, int label)
{
	add_jump(c, BPF_JMP | BPF_JA, 0, 0, 0, label);
}
