/* SPDX-License-Identifier: MIT */
/*
 * Skylake, Ice Lake (Sunny Cove) and Golden Cove. The figures follow Intel's "64 and IA-32
 * Architectures Optimization Reference Manual" (ports and widths of each core, tables of
 * latencies); see docs/design/cost-model.md for which of them were measured.
 */
#include "insert/cost/model.h"

#define P0   0x0001u
#define P1   0x0002u
#define P2   0x0004u
#define P3   0x0008u
#define P4   0x0010u
#define P5   0x0020u
#define P6   0x0040u
#define P7   0x0080u
#define P8   0x0100u
#define P9   0x0200u
#define P10  0x0400u
#define P11  0x0800u
#define ALL  (P0 | P1 | P5 | P6)
#define VEC  (P0 | P1 | P5)
#define LOAD (P2 | P3)

/* clang-format off */
static const struct cost_row skylake_rows[COST_CLASS_COUNT] = {
	ROW(OTHER, 1, 1, ON(ALL, 1)),
	ROW(ALU, 1, 1, ON(ALL, 1)),
	ROW(MOVE, 1, 1, ON(ALL, 1)),
	ROW(EXTEND, 1, 1, ON(ALL, 1)),
	ROW(SIGN, 1, 1, ON(P0 | P6, 1)),
	ROW(LEA, 1, 1, ON(P1 | P5, 1)),
	ROW(LEA_LONG, 3, 1, ON(P1, 1)),
	ROW(CARRY, 1, 1, ON(P0 | P6, 1)),
	ROW(SHIFT, 1, 1, ON(P0 | P6, 1)),
	ROW(SHIFT_CL, 2, 3, ON(P0 | P6, 1), ON(P0 | P6, 1), ON(P0 | P6, 1)),
	ROW(ROTATE, 1, 1, ON(P0 | P6, 1)),
	ROW(ROTATE_CL, 2, 3, ON(P0 | P6, 1), ON(P0 | P6, 1), ON(P0 | P6, 1)),
	ROW(ROTATE_CARRY, 2, 3, ON(P0 | P6, 1), ON(P0 | P6, 1), ON(ALL, 1)),
	ROW(SHIFT_DOUBLE, 3, 1, ON(P1, 1)),
	ROW(SHIFT_DOUBLE_CL, 4, 4, ON(P1, 1), ON(P0 | P6, 1), ON(P0 | P6, 1), ON(ALL, 1)),
	ROW(BIT_TEST, 1, 1, ON(P0 | P6, 1)),
	ROW(BIT_SET, 1, 1, ON(P0 | P6, 1)),
	ROW(BIT_COUNT, 3, 1, ON(P1, 1)),
	ROW(BIT_ZEROS, 3, 1, ON(P1, 1)),
	ROW(BIT_SCAN, 3, 1, ON(P1, 1)),
	ROW(BIT_FIELD, 2, 2, ON(P0 | P6, 1), ON(P1 | P5, 1)),
	ROW(BIT_LOW, 1, 1, ON(P1 | P5, 1)),
	ROW(BIT_DEPOSIT, 3, 1, ON(P1, 1)),
	ROW(SWAP_32, 1, 1, ON(P1 | P5, 1)),
	ROW(SWAP_64, 2, 2, ON(P1 | P5, 1), ON(P0 | P6, 1)),
	ROW(CMOV, 1, 1, ON(P0 | P6, 1)),
	ROW(CMOV_TWO, 2, 2, ON(P0 | P6, 1), ON(P0 | P6, 1)),
	ROW(SET, 1, 1, ON(P0 | P6, 1)),
	ROW(SET_TWO, 2, 2, ON(P0 | P6, 1), ON(P0 | P6, 1)),
	ROW(MUL, 3, 1, ON(P1, 1)),
	ROW(MUL_WIDE, 4, 3, ON(P1, 1), ON(ALL, 1), ON(ALL, 1)),
	ROW(MUL_WIDE_64, 4, 2, ON(P1, 1), ON(P5, 1)),
	ROW(DIV_8, 23, 10, ON(P0, 6), ON(ALL, 4)),
	ROW(DIV_16, 24, 10, ON(P0, 6), ON(ALL, 4)),
	ROW(DIV_32, 26, 10, ON(P0, 6), ON(ALL, 4)),
	ROW(DIV_64, 42, 36, ON(P0, 24), ON(ALL, 20), ON(ALL, 10)),
	ROW(EXCHANGE, 2, 3, ON(ALL, 1), ON(ALL, 1), ON(ALL, 1)),
	ROW(EXCHANGE_ADD, 2, 3, ON(ALL, 1), ON(ALL, 1), ON(ALL, 1)),
	ROW(COMPARE_EXCHANGE, 5, 6, ON(ALL, 1), ON(ALL, 1), ON(ALL, 1), ON(ALL, 1)),
	ROW(CRC, 3, 1, ON(P1, 1)),
	ROW(FLAG, 1, 1, ON(ALL, 1)),
	ROW(FLAGS_AH, 1, 1, ON(P0 | P6, 1)),
	ROW(NOP, 0, 1),
	ROW(JUMP, 1, 1, ON(P6, 1)),
	ROW(JUMP_FAR, 1, 1, ON(P6, 1)),
	ROW(BRANCH, 1, 1, ON(P0 | P6, 1)),
	ROW(BRANCH_COUNT, 2, 4, ON(P6, 1), ON(ALL, 1), ON(ALL, 1)),
	ROW(CALL, 1, 2, ON(P6, 1)),
	ROW(RETURN, 1, 2, ON(P6, 1)),
	ROW(PUSH, 0, 1),
	ROW(POP, 0, 1),
	ROW(LEAVE, 1, 3, ON(ALL, 1), ON(ALL, 1)),
	ROW(STRING, 1, 4, ON(ALL, 1), ON(ALL, 1)),
	ROW(STRING_REP, 25, 40, ON(ALL, 10), ON(ALL, 10)),
	ROW(V_MOVE, 1, 1, ON(VEC, 1)),
	ROW(V_MERGE, 1, 1, ON(VEC, 1)),
	ROW(V_LOGIC, 1, 1, ON(VEC, 1)),
	ROW(V_INT, 1, 1, ON(P0 | P1 | P5, 1)),
	ROW(V_COMPARE, 1, 1, ON(P0 | P1, 1)),
	ROW(V_SHIFT, 1, 1, ON(P0 | P1, 1)),
	ROW(V_SHIFT_COUNT, 2, 2, ON(P0 | P1, 1), ON(P5, 1)),
	ROW(V_SHIFT_EACH, 1, 1, ON(P0 | P1, 1)),
	ROW(V_MUL, 5, 1, ON(P0 | P1, 1)),
	ROW(V_MUL_32, 10, 2, ON(P0 | P1, 1), ON(P0 | P1, 1)),
	ROW(V_MUL_64, 15, 3, ON(P0 | P1, 1), ON(P0 | P1, 1), ON(P0 | P1, 1)),
	ROW(V_SAD, 3, 1, ON(P5, 1)),
	ROW(V_SHUFFLE_BYTES, 1, 1, ON(P5, 1)),
	ROW(V_INT_SLOW, 1, 1, ON(P0 | P1, 1)),
	ROW(V_INSERT_LANE, 3, 1, ON(P5, 1)),
	ROW(V_SHUFFLE, 1, 1, ON(P5, 1)),
	ROW(V_FP_SHUFFLE, 1, 1, ON(P5, 1)),
	ROW(V_LANES, 3, 1, ON(P5, 1)),
	ROW(V_EXTRACT_LANE, 3, 1, ON(P5, 1)),
	ROW(V_EXTEND, 1, 1, ON(P5, 1)),
	ROW(V_TWO_SHUFFLE, 3, 1, ON(P5, 1)),
	ROW(V_BROADCAST, 3, 1, ON(P5, 1)),
	ROW(V_BLEND_BY, 2, 2, ON(VEC, 1), ON(VEC, 1)),
	ROW(V_MASK_OF, 3, 1, ON(P0, 1)),
	ROW(V_TEST, 4, 2, ON(P0, 1), ON(P5, 1)),
	ROW(V_FROM_GENERAL, 2, 1, ON(P5, 1)),
	ROW(V_TO_GENERAL, 2, 1, ON(P0, 1)),
	ROW_GENERAL(V_INSERT, 1, 1, 2, ON(P5, 1), ON(P5, 1)),
	ROW(V_EXTRACT, 3, 2, ON(P0, 1), ON(P5, 1)),
	ROW(V_HORIZONTAL, 2, 3, ON(P5, 1), ON(P5, 1), ON(VEC, 1)),
	ROW(V_STRING, 11, 3, ON(P0, 3), ON(P5, 1)),
	ROW(F_ADD, 4, 1, ON(P0 | P1, 1)),
	ROW(F_MUL, 4, 1, ON(P0 | P1, 1)),
	ROW(F_FMA, 4, 1, ON(P0 | P1, 1)),
	ROW(F_COMPARE_FLAGS, 3, 1, ON(P0, 1)),
	ROW(F_MIN, 4, 1, ON(P0 | P1, 1)),
	ROW(F_DIV_S, 11, 1, ON(P0, 3)),
	ROW(F_DIV_D, 14, 1, ON(P0, 4)),
	ROW(F_ROOT_S, 12, 1, ON(P0, 3)),
	ROW(F_ROOT_D, 18, 1, ON(P0, 6)),
	ROW(F_ESTIMATE, 4, 1, ON(P0, 1)),
	ROW(F_ROUND, 8, 2, ON(P0 | P1, 1), ON(P0 | P1, 1)),
	ROW(F_CONVERT, 4, 1, ON(P0 | P1, 1)),
	ROW(F_CONVERT_SIZE, 5, 2, ON(P0 | P1, 1), ON(P5, 1)),
	ROW_GENERAL(F_FROM_INT, 1, 4, 2, ON(P0 | P1, 1), ON(P5, 1)),
	ROW(F_TO_INT, 6, 2, ON(P0, 1), ON(P0 | P1, 1)),
	ROW(F_HORIZONTAL, 6, 3, ON(P5, 1), ON(P5, 1), ON(P0 | P1, 1)),
	ROW(F_DOT, 13, 4, ON(P0 | P1, 1), ON(P0 | P1, 1), ON(P0 | P1, 1), ON(P5, 1)),
	ROW(CRYPT_AES, 4, 1, ON(P0, 1)),
	ROW(CRYPT_AES_KEY, 8, 2, ON(P0, 2)),
	ROW(CRYPT_CLMUL, 7, 1, ON(P5, 1)),
	ROW(CRYPT_SHA, 6, 2, ON(P5, 2)),
	ROW(CRYPT_SHA_MESSAGE, 5, 2, ON(P5, 1), ON(VEC, 1)),
	ROW(GATHER, 20, 5, ON(LOAD, 8), ON(LOAD, 8), ON(P0, 1), ON(P5, 1)),
	ROW(SCATTER, 20, 20, ON(P4, 8), ON(P0, 2), ON(P5, 2)),
	ROW(MASK, 1, 1, ON(P0, 1)),
	ROW(MASK_MOVE, 3, 1, ON(P5, 1)),
	ROW(MASK_COMPARE, 3, 1, ON(P5, 1)),
	ROW(MASK_TEST, 3, 1, ON(P0, 1)),
	ROW(COMPRESS, 5, 2, ON(P5, 2)),
	ROW(ZERO_UPPER, 0, 4),
	ROW(X_LOAD, 1, 1, ON(P0 | P5, 1)),
	ROW(X_STORE, 1, 1, ON(P5, 1)),
	ROW(X_ADD, 3, 1, ON(P5, 1)),
	ROW(X_MUL, 4, 1, ON(P0, 1)),
	ROW(X_DIV, 15, 1, ON(P0, 5)),
	ROW(X_ROOT, 21, 1, ON(P0, 7)),
	ROW(X_SIGN, 1, 1, ON(P0, 1)),
	ROW(X_CONTROL, 3, 3, ON(P0, 2), ON(P5, 1)),
	ROW(X_SLOW, 60, 60, ON(P0, 20), ON(P5, 20)),
	ROW(LOCKED, 18, 8, ON(P0, 18)),
	ROW(FENCE, 33, 4, ON(P0, 33)),
	ROW(FENCE_LOAD, 6, 2, ON(P0, 6)),
	ROW(FENCE_STORE, 6, 2, ON(P0, 6)),
	ROW(PAUSE, 140, 4, ON(P0, 140)),
	ROW(CLOCK, 25, 15, ON(P0, 25)),
	ROW(MXCSR, 6, 4, ON(P0, 3)),
	ROW(SAVE, 80, 100, ON(P0, 80)),
	ROW(SYSTEM, 80, 40, ON(P0, 80)),
	ROW(SLOW, 60, 40, ON(P0, 60)),
};

/* Sunny Cove: lea on every unit, shuffles on port 1 too, fast division, wide shifts. */
static const struct cost_row icelake_rows[COST_CLASS_COUNT] = {
	ROW(LEA, 1, 1, ON(ALL, 1)),
	ROW(LEA_LONG, 1, 1, ON(P1 | P5, 1)),
	ROW(SHIFT_CL, 2, 2, ON(P0 | P6, 1), ON(P0 | P6, 1)),
	ROW(DIV_8, 12, 4, ON(P1, 6), ON(ALL, 1)),
	ROW(DIV_16, 12, 4, ON(P1, 6), ON(ALL, 1)),
	ROW(DIV_32, 12, 4, ON(P1, 6), ON(ALL, 1)),
	ROW(DIV_64, 15, 4, ON(P1, 10), ON(ALL, 1)),
	ROW(V_SHUFFLE, 1, 1, ON(P1 | P5, 1)),
	ROW(V_SHUFFLE_BYTES, 1, 1, ON(P1 | P5, 1)),
	ROW(V_FP_SHUFFLE, 1, 1, ON(P1 | P5, 1)),
	ROW(V_EXTEND, 1, 1, ON(P1 | P5, 1)),
	ROW(CRYPT_AES, 3, 1, ON(P0 | P1, 1)),
	ROW(CRYPT_CLMUL, 6, 1, ON(P5, 1)),
};

/* Golden Cove: a fifth integer unit, floating-point adders of their own. */
static const struct cost_row goldencove_rows[COST_CLASS_COUNT] = {
	ROW(OTHER, 1, 1, ON(ALL | P10, 1)),
	ROW(ALU, 1, 1, ON(ALL | P10, 1)),
	ROW(MOVE, 1, 1, ON(ALL | P10, 1)),
	ROW(EXTEND, 1, 1, ON(ALL | P10, 1)),
	ROW(LEA, 1, 1, ON(ALL | P10, 1)),
	ROW(LEA_LONG, 2, 1, ON(P1 | P5, 1)),
	ROW(DIV_8, 10, 4, ON(P1, 6), ON(ALL, 1)),
	ROW(DIV_16, 10, 4, ON(P1, 6), ON(ALL, 1)),
	ROW(DIV_32, 10, 4, ON(P1, 6), ON(ALL, 1)),
	ROW(DIV_64, 13, 4, ON(P1, 8), ON(ALL, 1)),
	ROW(F_ADD, 3, 1, ON(P1 | P5, 1)),
	ROW(CRYPT_CLMUL, 3, 1, ON(P5, 1)),
};
/* clang-format on */

/* What all of them have in common. */
#define INTEL                                                                                      \
	.wide_ports = (uint16_t)~P1, .load_latency = 5, .vector_latency = 1,                       \
	.wide = COST_WIDE_FULL, .fuses_all = true, .long_prefix_stalls = true

/* and older, Cascade Lake */
const struct cost_cpu cost_cpu_skylake = {
	INTEL,
	.name = "skylake",
	.rows = skylake_rows,
	.width = 4,
	.rob = 224,
	.load_ports = LOAD,
	.vector_load_ports = LOAD,
	.store_ports = LOAD | P7,
	.data_ports = P4,
	.vector_data_ports = P4,
	.forward_latency = 4,
	.blocked_latency = 15,
	.moves_are_free = true,
};

/* Tiger Lake, Rocket Lake */
const struct cost_cpu cost_cpu_icelake = {
	INTEL,
	.name = "icelake",
	.rows = icelake_rows,
	.other = &cost_cpu_skylake,
	.width = 5,
	.rob = 352,
	.load_ports = LOAD,
	.vector_load_ports = LOAD,
	.store_ports = P7 | P8,
	.data_ports = P4 | P9,
	.vector_data_ports = P4 | P9,
	.forward_latency = 2,
	.blocked_latency = 17,
};

/* Alder Lake (large cores), Sapphire Rapids */
const struct cost_cpu cost_cpu_goldencove = {
	INTEL,
	.name = "goldencove",
	.rows = goldencove_rows,
	.other = &cost_cpu_icelake,
	.width = 6,
	.rob = 512,
	.load_ports = LOAD | P11,
	.vector_load_ports = LOAD | P11,
	.store_ports = P7 | P8,
	.data_ports = P4 | P9,
	.vector_data_ports = P4 | P9,
	.forward_latency = 0,
	.blocked_latency = 17,
	.moves_are_free = true,
};
