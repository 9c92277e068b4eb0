/* SPDX-License-Identifier: MIT */
/*
 * Instructions of 64-bit code, as far as a translator needs to know that copies most of them as they are:
 * how long they are, where control goes behind them, what in them depends on their own address, and which
 * status flags they read and write. Tables of bits, no text, nothing that has to be relocated.
 *
 * Whatever is not known for sure is INSN_UNKNOWN: the translator then leaves the program, it never guesses.
 * A test compares every encoding with Zydis (tests/unit/rt/translate/insn_test.c).
 */
#ifndef WEIR_RT_TRANSLATE_INSN_H
#define WEIR_RT_TRANSLATE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_BYTES_MAX 15

enum insn_kind {
	INSN_UNKNOWN, /* not an instruction, or none that may be copied; `length` is 0 when it is not known */
	INSN_PLAIN,   /* goes on behind itself, and may be copied when its rip-relative operand is mended */
	INSN_BRANCH,  /* jcc, rel8 or rel32 */
	INSN_COUNTED, /* loop, loope, loopne, jrcxz, jecxz: rel8 */
	INSN_JUMP,    /* jmp rel8, rel32 */
	INSN_CALL,    /* call rel32 */
	INSN_JUMP_INDIRECT, /* jmp r/m64 (FF /4) */
	INSN_CALL_INDIRECT, /* call r/m64 (FF /2) */
	INSN_RETURN,	    /* ret, rep ret, bnd ret; `imm` = bytes that it removes besides (C2) */
	INSN_SYSCALL,	    /* 0F 05 */
	INSN_INT,	    /* int3, int1, int n: `imm` is n; never copied */
	INSN_STOP,	    /* hlt, ud0, ud1, ud2, in, out, cli, ...: raises a fault: run as it is, at its place */
	INSN_XBEGIN,	    /* C7 F8 rel32 */
};

/* Status flags, as they are in rflags. */
#define INSN_FLAG_CF 0x001u
#define INSN_FLAG_PF 0x004u
#define INSN_FLAG_AF 0x010u
#define INSN_FLAG_ZF 0x040u
#define INSN_FLAG_SF 0x080u
#define INSN_FLAG_OF 0x800u
#define INSN_FLAGS   0x8d5u

struct insn {
	uint8_t length;
	uint8_t kind;		/* enum insn_kind */
	uint8_t n_prefixes;	/* legacy prefixes and REX, in front of the opcode; of VEX, EVEX, XOP: those in front */
	uint8_t modrm_at;	/* 0: it has none */
	uint8_t disp_at;	/* of a rip-relative disp32; 0: it has no such operand (64-bit addresses only) */
	uint8_t opcode_at;	/* of the last opcode byte (behind 0F, 0F38, 0F3A, VEX, ...) */
	uint8_t condition;	/* of INSN_BRANCH: the opcode's low four bits; of INSN_COUNTED: the opcode */
	bool has_gs;		/* an operand in memory relative to gs */
	bool reads_segment_base;/* rdgsbase, wrgsbase, mov to or from gs, swapgs, push/pop gs, lgs: means gs itself */
	bool is_string_repeated;/* movs, stos, cmps, scas, lods, ins, outs with rep, repe or repne */
	bool is_nop;		/* any nop, endbr64 too */
	bool writes_stack_pointer_oddly; /* unused by decoders that cannot tell; false */
	uint16_t registers;	/* bit n: general register n (as in encodings: rax rcx rdx rbx rsp rbp rsi rdi r8..r15)
				   is or may be used or changed by it, implied ones too; all bits when not known */
	uint16_t flags_read;	/* INSN_FLAG_*; all of them when not known */
	uint16_t flags_written; /* all that it always writes, or leaves undefined; 0 when not known */
	uint64_t target;	/* of a direct branch, jump or call, and of xbegin */
	uint32_t imm;		/* see above */
};

/* The instruction at the start of the n bytes at p, which stand at `address` in the program. Reads no
 * further than n. `insn` is filled in either way; false: INSN_UNKNOWN. */
bool insn_decode(struct insn *insn, const uint8_t *p, size_t n, uint64_t address);

#endif
