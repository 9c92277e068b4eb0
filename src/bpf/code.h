/* SPDX-License-Identifier: MIT */
/*
 * Building eBPF programs in memory: instructions are appended, jumps name labels that are placed
 * later. Register and helper numbers are those of linux/bpf.h.
 */
#ifndef WEIR_BPF_CODE_H
#define WEIR_BPF_CODE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bpf_code {
	VEC(struct bpf_insn) insns;
	VEC(int32_t) labels; /* place of each label, -1 = not placed yet */
	VEC(uint32_t) jumps; /* instructions whose offset is still a label number */
	bool is_too_long;    /* a jump goes further than its 16 bits can say */
};

void bpf_code_release(struct bpf_code *c);

/* Any instruction, by the fields that it has. */
void bpf_add(struct bpf_code *c, int code, int dst, int src, int off, int32_t imm);
/* dst = imm, dst = src, dst op= imm, dst op= src (op: BPF_ADD, BPF_AND, ...; 64 bit). */
void bpf_mov_imm(struct bpf_code *c, int dst, int32_t imm);
void bpf_mov(struct bpf_code *c, int dst, int src);
void bpf_alu_imm(struct bpf_code *c, int op, int dst, int32_t imm);
void bpf_alu(struct bpf_code *c, int op, int dst, int src);
/* dst = *(size *)(src + off) and *(size *)(dst + off) = src; size: BPF_DW, BPF_W, BPF_H, BPF_B. */
void bpf_load(struct bpf_code *c, int size, int dst, int src, int16_t off);
void bpf_store(struct bpf_code *c, int size, int dst, int16_t off, int src);
/* dst = the map behind the descriptor. */
void bpf_load_map(struct bpf_code *c, int dst, int map_fd);
/* dst = address of byte `at` in the one value of an array map. */
void bpf_load_map_value(struct bpf_code *c, int dst, int map_fd, uint32_t at);
void bpf_load_imm64(struct bpf_code *c, int dst, uint64_t imm);
/* *(size *)(dst + off) = imm */
void bpf_store_imm(struct bpf_code *c, int size, int dst, int16_t off, int32_t imm);
/* On 8 bytes at dst + off; op: BPF_ADD, BPF_CMPXCHG (compares with r0, which gets the old value).
 */
void bpf_atomic(struct bpf_code *c, int op, int dst, int16_t off, int src);
/* Instructions made elsewhere. */
void bpf_append(struct bpf_code *c, const struct bpf_insn *insns, size_t n);
void bpf_call(struct bpf_code *c, int helper);
void bpf_exit(struct bpf_code *c);

/* What is often written; `at` is a place of the stack, from r10. dst = its address; r0 = the map's value
 * for the key there, or NULL; n bytes of the kernel at r3 copied there, zeros when they cannot be;
 * return 0. */
void bpf_stack_address(struct bpf_code *c, int dst, int at);
void bpf_find(struct bpf_code *c, int map_fd, int at);
void bpf_read_kernel(struct bpf_code *c, int at, int32_t n);
void bpf_return_0(struct bpf_code *c);

int bpf_label(struct bpf_code *c);
void bpf_place(struct bpf_code *c, int label);
/* Whether a jump goes to a label that is not placed yet: the verifier refuses code that nothing
 * leads to. */
bool bpf_label_is_used(const struct bpf_code *c, int label);
/* if (dst op imm) goto label; op: BPF_JEQ, BPF_JNE, BPF_JGT, ... */
void bpf_jump_imm(struct bpf_code *c, int op, int dst, int32_t imm, int label);
/* if (dst op src) goto label */
void bpf_jump_reg(struct bpf_code *c, int op, int dst, int src, int label);
void bpf_jump(struct bpf_code *c, int label);

#endif
