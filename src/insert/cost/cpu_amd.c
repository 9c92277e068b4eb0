/* SPDX-License-Identifier: MIT */
/*
 * Zen 2 (and older), 3 and 4. Zen 4's figures are measured by bench/cost; those of the others
 * follow AMD's "Software Optimization Guide" for families 17h and 19h and are not measured.
 */
#include "insert/cost/model.h"

#define A0  0x0001u /* integer units */
#define A1  0x0002u
#define A2  0x0004u
#define A3  0x0008u
#define BR  0x0010u /* branches that are taken or not, besides A0 */
#define G0  0x0020u /* addresses */
#define G1  0x0040u
#define G2  0x0080u
#define F0  0x0100u /* vectors */
#define F1  0x0200u
#define F2  0x0400u
#define F3  0x0800u
#define F4  0x1000u /* vector data to memory and to general registers */
#define F5  0x2000u
#define SD  0x4000u /* data of stores */
#define SE  0x8000u
#define ALL (A0 | A1 | A2 | A3)
#define FV  (F0 | F1 | F2 | F3)

/* clang-format off */
static const struct cost_row zen4_rows[COST_CLASS_COUNT] = {
	ROW(OTHER, 1, 1, ON(ALL, 1)),
	ROW(ALU, 1, 1, ON(ALL, 1)),
	ROW(MOVE, 1, 1, ON(ALL, 1)),
	ROW(EXTEND, 1, 1, ON(ALL, 1)),
	ROW(SIGN, 1, 1, ON(A1 | A2, 1)),
	ROW(LEA, 1, 1, ON(ALL, 1)),
	ROW_GENERAL(LEA_LONG, 1, 1, 2, ON(ALL, 1), ON(ALL, 1)),
	ROW(CARRY, 1, 1, ON(ALL, 1)),
	ROW(SHIFT, 1, 1, ON(A1 | A2, 1)),
	ROW(SHIFT_CL, 1, 1, ON(A1 | A2, 1)),
	ROW(ROTATE, 1, 1, ON(A1 | A2, 1)),
	ROW(ROTATE_CL, 1, 1, ON(A1 | A2, 1)),
	ROW(ROTATE_CARRY, 1, 1, ON(A1 | A2, 1)),
	ROW(SHIFT_DOUBLE, 2, 9, ON(A1, 1), ON(ALL, 1)),
	ROW(SHIFT_DOUBLE_CL, 2, 9, ON(A1, 1), ON(ALL, 1)),
	ROW(BIT_TEST, 1, 1, ON(A1 | A2, 1)),
	ROW(BIT_SET, 2, 2, ON(A1 | A2, 1), ON(A1 | A2, 1)),
	ROW(BIT_COUNT, 1, 1, ON(ALL, 1)),
	ROW(BIT_ZEROS, 1, 1, ON(ALL, 1)),
	ROW(BIT_SCAN, 1, 1, ON(A1, 1)),
	ROW(BIT_FIELD, 1, 1, ON(A1 | A2, 1)),
	ROW(BIT_LOW, 1, 1, ON(ALL, 1)),
	ROW(BIT_DEPOSIT, 3, 1, ON(A1, 1)),
	ROW(SWAP_32, 1, 1, ON(ALL, 1)),
	ROW(SWAP_64, 1, 1, ON(ALL, 1)),
	ROW(CMOV, 1, 1, ON(A0 | A3, 1)),
	ROW(CMOV_TWO, 1, 1, ON(A0 | A3, 1)),
	ROW(SET, 1, 1, ON(A0 | A3, 1)),
	ROW(SET_TWO, 1, 1, ON(A0 | A3, 1)),
	ROW(MUL, 3, 1, ON(A1, 1)),
	ROW(MUL_WIDE, 3, 2, ON(A1, 1)),
	ROW(MUL_WIDE_64, 3, 2, ON(A1, 1)),
	ROW(DIV_8, 9, 2, ON(A2, 6)),
	ROW(DIV_16, 9, 2, ON(A2, 6)),
	ROW(DIV_32, 9, 2, ON(A2, 6)),
	ROW(DIV_64, 9, 2, ON(A2, 7)),
	ROW(EXCHANGE, 0, 2),
	ROW(EXCHANGE_ADD, 1, 4, ON(ALL, 1)),
	ROW(COMPARE_EXCHANGE, 3, 5, ON(ALL, 1), ON(ALL, 1), ON(ALL, 1)),
	ROW(CRC, 3, 1, ON(A1, 1)),
	ROW(FLAG, 0, 1),
	ROW(FLAGS_AH, 1, 1, ON(ALL, 1)),
	ROW(NOP, 0, 1),
	ROW(JUMP, 1, 1, ON(A0 | BR, 1)),
	ROW(JUMP_FAR, 1, 1, ON(A0 | BR, 1)),
	ROW(BRANCH, 1, 1, ON(A0 | BR, 1)),
	ROW(BRANCH_COUNT, 1, 2, ON(A0 | BR, 1), ON(ALL, 1)),
	ROW(CALL, 1, 2, ON(A0 | BR, 1)),
	ROW(RETURN, 1, 1, ON(A0 | BR, 1)),
	ROW(PUSH, 0, 1),
	ROW(POP, 0, 1),
	ROW(LEAVE, 0, 2),
	ROW(STRING, 1, 3, ON(ALL, 3)),
	ROW(STRING_REP, 20, 40, ON(ALL, 10), ON(ALL, 10)),
	ROW(V_MOVE, 1, 1, ON(FV, 1)),
	ROW(V_MERGE, 1, 1, ON(FV, 1)),
	ROW(V_LOGIC, 1, 1, ON(FV, 1)),
	ROW(V_INT, 1, 1, ON(FV, 1)),
	ROW(V_COMPARE, 1, 1, ON(FV, 1)),
	ROW(V_SHIFT, 1, 1, ON(F1 | F2, 1)),
	ROW(V_SHIFT_COUNT, 2, 1, ON(F1 | F2, 1)),
	ROW(V_SHIFT_EACH, 1, 1, ON(F1 | F2, 1)),
	ROW(V_MUL, 3, 1, ON(F0 | F3, 1)),
	ROW(V_MUL_32, 3, 1, ON(F0 | F3, 1)),
	ROW(V_MUL_64, 3, 1, ON(F0 | F3, 1)),
	ROW(V_SAD, 3, 1, ON(F0 | F3, 1)),
	ROW(V_SHUFFLE_BYTES, 2, 1, ON(F1 | F2, 1)),
	ROW(V_INT_SLOW, 2, 1, ON(F0 | F3, 1)),
	ROW(V_INSERT_LANE, 1, 1, ON(F1 | F2, 1)),
	ROW(V_SHUFFLE, 1, 1, ON(F1 | F2 | F3, 1)),
	ROW(V_FP_SHUFFLE, 1, 1, ON(F1 | F2 | F3, 1)),
	ROW(V_LANES, 4, 1, ON(F1 | F2, 1)),
	ROW(V_EXTRACT_LANE, 3, 1, ON(F1 | F2, 1)),
	ROW(V_EXTEND, 2, 1, ON(F1 | F2, 1)),
	ROW(V_TWO_SHUFFLE, 4, 2, ON(F2, 1), ON(F1 | F2, 1)),
	ROW(V_BROADCAST, 1, 1, ON(F1 | F2, 1)),
	ROW(V_BLEND_BY, 1, 1, ON(F0 | F1, 1)),
	ROW(V_MASK_OF, 4, 1, ON(F4, 1)),
	ROW(V_TEST, 5, 2, ON(F4, 1), ON(F1 | F2, 1)),
	ROW(V_FROM_GENERAL, 3, 1, ON(F5, 1)),
	ROW(V_TO_GENERAL, 4, 1, ON(F4, 1)),
	ROW_GENERAL(V_INSERT, 3, 1, 2, ON(F5, 1), ON(F1 | F2, 1)),
	ROW(V_EXTRACT, 4, 2, ON(F4, 1), ON(F1 | F2, 1)),
	ROW(V_HORIZONTAL, 2, 4, ON(F1 | F2, 2), ON(F1 | F2, 2)),
	ROW(V_STRING, 8, 6, ON(F1, 2), ON(F2, 2), ON(FV, 2)),
	ROW(F_ADD, 3, 1, ON(F2 | F3, 1)),
	ROW(F_MUL, 3, 1, ON(F0 | F1, 1)),
	ROW(F_FMA, 4, 1, ON(F0 | F1, 1)),
	ROW(F_COMPARE_FLAGS, 5, 2, ON(F2 | F3, 1), ON(F4, 1)),
	ROW(F_MIN, 2, 1, ON(F2 | F3, 1)),
	ROW(F_DIV_S, 11, 1, ON(F1, 3)),
	ROW(F_DIV_D, 13, 1, ON(F1, 5)),
	ROW(F_ROOT_S, 15, 1, ON(F1, 5)),
	ROW(F_ROOT_D, 21, 1, ON(F1, 9)),
	ROW(F_ESTIMATE, 4, 1, ON(F0 | F1, 1)),
	ROW(F_ROUND, 3, 1, ON(F2 | F3, 1)),
	ROW(F_CONVERT, 3, 1, ON(F2 | F3, 1)),
	ROW(F_CONVERT_SIZE, 3, 1, ON(F2 | F3, 1)),
	ROW_GENERAL(F_FROM_INT, 3, 3, 2, ON(F5, 1), ON(F2 | F3, 1)),
	ROW(F_TO_INT, 6, 2, ON(F2 | F3, 1), ON(F4, 1)),
	ROW(F_HORIZONTAL, 4, 4, ON(F1 | F2, 2), ON(F2 | F3, 2)),
	ROW(F_DOT, 11, 8, ON(F2 | F3, 4), ON(F2 | F3, 4)),
	ROW(CRYPT_AES, 4, 1, ON(F0 | F1, 1)),
	ROW(CRYPT_AES_KEY, 4, 2, ON(F0 | F1, 1)),
	ROW(CRYPT_CLMUL, 4, 4, ON(F0, 2)),
	ROW(CRYPT_SHA, 4, 1, ON(F2, 2)),
	ROW(CRYPT_SHA_MESSAGE, 3, 2, ON(F0 | F1 | F2, 1), ON(FV, 1)),
	ROW(GATHER, 12, 30, ON(G0 | G1 | G2, 8), ON(FV, 4), ON(FV, 4)),
	ROW(SCATTER, 20, 40, ON(G0 | G1, 16), ON(FV, 8)),
	ROW(MASK, 1, 1, ON(F0 | F1, 1)),
	ROW(MASK_MOVE, 4, 1, ON(F4, 1)),
	ROW(MASK_COMPARE, 3, 1, ON(F0 | F1, 1)),
	ROW(MASK_TEST, 5, 2, ON(F4, 1)),
	ROW(COMPRESS, 5, 2, ON(F2, 2)),
	ROW(ZERO_UPPER, 0, 1, ON(F0, 1)),
	ROW(X_LOAD, 1, 1, ON(F0 | F1, 1)),
	ROW(X_STORE, 1, 1, ON(F4 | F5, 1)),
	ROW(X_ADD, 7, 1, ON(F0, 1)),
	ROW(X_MUL, 7, 1, ON(F0, 1)),
	ROW(X_DIV, 15, 1, ON(F1, 6)),
	ROW(X_ROOT, 22, 1, ON(F1, 10)),
	ROW(X_SIGN, 1, 1, ON(F0 | F1, 1)),
	ROW(X_CONTROL, 3, 3, ON(FV, 3), ON(ALL, 2)),
	ROW(X_SLOW, 60, 60, ON(FV, 20), ON(FV, 20)),
	ROW(LOCKED, 4, 4, ON(A0, 8)),
	ROW(FENCE, 40, 10, ON(A0, 40)),
	ROW(FENCE_LOAD, 8, 1, ON(A0, 8)),
	ROW(FENCE_STORE, 1, 1, ON(A0, 1)),
	ROW(PAUSE, 40, 2, ON(A0, 60)),
	ROW(CLOCK, 36, 30, ON(A0, 36)),
	ROW(MXCSR, 12, 10, ON(FV, 12)),
	ROW(SAVE, 80, 100, ON(A0, 80)),
	ROW(SYSTEM, 80, 40, ON(A0, 80)),
	ROW(SLOW, 60, 40, ON(A0, 60)),
};
/* clang-format on */

static const struct cost_row zen_old_rows[COST_CLASS_COUNT] = {
	ROW(DIV_64, 17, 2, ON(A2, 12)),
};

/* What all of them have in common. */
#define ZEN                                                                                        \
	.vector_load_ports = G0 | G1, .vector_data_ports = SD, .load_latency = 4,                  \
	.index_latency = 1, .vector_latency = 3, .forward_latency = 6, .blocked_latency = 18,      \
	.moves_are_free = true

const struct cost_cpu cost_cpu_zen4 = {
	ZEN,
	.name = "zen4",
	.rows = zen4_rows,
	.width = 6,
	.rob = 320,
	.load_ports = G0 | G1 | G2,
	.store_ports = G0 | G1,
	.data_ports = SD | SE,
	.wide = COST_WIDE_TWICE,
	.renames = COST_RENAMES_ALL,
	.fuses_nops = true,
	.long_immediates_take_two = true,
	.chunks_take_turns = true,
	.fuses_all = true,
};

const struct cost_cpu cost_cpu_zen3 = {
	ZEN,
	.name = "zen3",
	.rows = zen_old_rows,
	.other = &cost_cpu_zen4,
	.width = 6,
	.rob = 256,
	.load_ports = G0 | G1 | G2,
	.store_ports = G0 | G1,
	.data_ports = SD | SE,
	.wide = COST_WIDE_SPLIT,
	.renames = COST_RENAMES_STACK,
	.chunks_take_turns = true,
	.fuses_all = true,
};

const struct cost_cpu cost_cpu_zen2 = {
	ZEN,
	.name = "zen2",
	.rows = zen_old_rows,
	.other = &cost_cpu_zen4,
	.width = 5,
	.rob = 224,
	.load_ports = G0 | G1,
	.store_ports = G2,
	.data_ports = SD,
	.wide = COST_WIDE_SPLIT,
	.renames = COST_RENAMES_STACK,
};
