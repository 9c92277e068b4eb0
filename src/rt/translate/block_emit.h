/* SPDX-License-Identifier: MIT */
/*
 * Machine code of a group of blocks. A plan says what is in a group; the same plan gives the same code, byte
 * for byte, at any place of the same offset in a cache line: so a pc in the group is understood by emitting it
 * again, and the rest of a block is the same in a copy.
 */
#ifndef WEIR_RT_TRANSLATE_BLOCK_EMIT_H
#define WEIR_RT_TRANSLATE_BLOCK_EMIT_H

#include "translate.h"

#pragma GCC visibility push(hidden)

struct planned {
	uint64_t pc, next; /* behind the last instruction */
	const uint8_t *code;
	uint32_t number;
	uint16_t first_insn, n_insns;
	uint16_t count_at; /* the instruction in front of which the block is counted; PLAN_COUNT_AT_END */
	uint8_t variant;
	uint8_t why;	  /* it ends in front of what cannot be translated: enum translate_why */
	bool flags_dead;  /* there */
	bool goes_on;	  /* behind its end, or its jump, the next block of the group follows */
	bool is_implied;  /* TRANSLATE_BLOCK_IMPLIED */
};

#define PLAN_COUNT_AT_END 0xff /* by its way out */

struct plan {
	struct planned block[GROUP_BLOCKS];
	uint32_t n_blocks, n_insns;
	struct insn insns[GROUP_BLOCKS * BLOCK_INSNS];
};

/* From the program's memory; of is_alone one instruction, whose page may be written to. False: not even one is there. */
bool plan_make(struct thread *t, struct plan *plan, uint64_t pc, enum variant variant, bool is_alone);
/* Of a group, as it was made. */
void plan_again(struct plan *plan, const struct group *g);

/* Of the block's jump or call: struct translate_block's target. */
uint64_t plan_target(const struct plan *plan, const struct planned *b);

/* Where a program's instruction begins in emitted code, and which registers are elsewhere there. */
struct point {
	uint32_t offset;
	uint16_t block, insn;
	uint8_t state, reg; /* POINT_*; POINT_ANY: number of the register */
};
#define POINT_RCX 1u
#define POINT_RAX 2u
#define POINT_ANY 8u
#define N_POINTS  (GROUP_BLOCKS * (BLOCK_INSNS + 8))

struct emission {
	const struct plan *plan;
	uint8_t *to;	     /* is written */
	uint64_t address;    /* where it will stand */
	uint32_t room;
	uint32_t first_exit; /* number of the first exit; the others follow */
	uint32_t n_blocks;   /* of the plan; fewer: the copy for a signal, which links nowhere */
	bool is_copy;
	struct point *points; /* NULL: not wanted */

	/* Out. */
	uint32_t bytes, stubs_at, n_exits, n_points;
	uint64_t heads[GROUP_BLOCKS];
	uint64_t bodies[GROUP_BLOCKS]; /* where the block in front goes on to one that is implied; else as the heads */
	bool failed; /* no room */
};

void emit_group(struct emission *e);
/* Code that restores rax, rcx and rdx from their slots and goes to `target`. Returns its bytes. */
#define RESTORING_BYTES 32
uint32_t emit_restoring(uint8_t *to, uint64_t address, uint64_t target);
/* Code that goes to the translator for this address; `left` as T_LEFT. */
#define STALE_BYTES 64
uint32_t emit_stale(uint8_t *to, uint64_t pc, enum variant variant, uint32_t left);
#define HEAD_BYTES 5 /* a block begins with one instruction of at least so many */

#pragma GCC visibility pop

#endif
