/* SPDX-License-Identifier: MIT */
/* What an instruction is to someone who looks for performance (over Zydis). */
#ifndef WEIR_STEPS_TABLES_INSN_CLASS_H
#define WEIR_STEPS_TABLES_INSN_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "steps/read/steps.h"

/* Each instruction is in exactly one class. */
enum insn_class {
	INSN_CLASS_UNKNOWN, /* its bytes are not known, or are no instruction */
	INSN_CLASS_MOVE,    /* mov, movzx, cmovcc, xchg, bswap, cltq */
	INSN_CLASS_STACK,   /* push, pop, enter, leave */
	INSN_CLASS_ADDRESS, /* lea */
	INSN_CLASS_INTEGER, /* add, and, cmp, setcc, xadd, ... */
	INSN_CLASS_BITS,    /* shifts, rotations, single bits, bit counts */
	INSN_CLASS_MULTIPLY,
	INSN_CLASS_DIVIDE,
	INSN_CLASS_BRANCH, /* conditional */
	INSN_CLASS_JUMP,
	INSN_CLASS_CALL,
	INSN_CLASS_INDIRECT_JUMP,
	INSN_CLASS_INDIRECT_CALL,
	INSN_CLASS_RETURN,
	INSN_CLASS_STRING, /* movs, stos, ..., repeated or not */
	INSN_CLASS_X87,	   /* from here to AVX512 the later one wins, by the registers named */
	INSN_CLASS_MMX,
	INSN_CLASS_SSE,
	INSN_CLASS_AVX,
	INSN_CLASS_AVX512,
	INSN_CLASS_NOP,	    /* endbr too */
	INSN_CLASS_CACHE,   /* prefetches, flushes, fences, pause */
	INSN_CLASS_SYSCALL, /* syscall, sysenter, int */
	INSN_CLASS_SYSTEM,  /* cpuid, rdtsc, xsave, ud2, ... */
	INSN_CLASS_OTHER,
};
#define INSN_N_CLASSES 25

/* What it does to memory, the stack included; a store that may not happen counts. */
enum insn_memory {
	INSN_MEMORY_NONE,
	INSN_MEMORY_LOAD,
	INSN_MEMORY_STORE,
	INSN_MEMORY_BOTH,
};
#define INSN_N_MEMORIES 4

/* What SSE and AVX instructions compute with. */
enum insn_vector {
	INSN_VECTOR_NONE, /* all other instructions */
	INSN_VECTOR_SCALAR_FLOAT,
	INSN_VECTOR_PACKED_FLOAT,
	INSN_VECTOR_INTEGER, /* and bits */
};
#define INSN_N_VECTORS 4

struct insn_traits {
	uint8_t class;	/* enum insn_class */
	uint8_t memory; /* enum insn_memory */
	uint8_t vector; /* enum insn_vector */
	bool is_locked; /* lock prefix, or xchg with memory */
	bool is_repeated;
	uint16_t width;	       /* bits of the widest operand; 0 = it has none */
	const char *mnemonic;  /* "movzx"; "" when not known */
	const char *prefix;    /* "rep ", "repne " or "" */
	const char *extension; /* "BASE", "SSE2", ...; "" when not known */
};
void insn_traits_get(struct insn_traits *traits, const struct step_insn *insn);

#endif
