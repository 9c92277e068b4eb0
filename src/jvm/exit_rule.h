/* SPDX-License-Identifier: MIT */
/*
 * How a piece of generated code is left from an instruction on: the code is followed, without being
 * run, to the first return, the first jump out of it, or the place where it builds its frame. What it
 * takes from the stack on the way tells where the return address is and what the caller's registers
 * are. That holds in prologues, in epilogues and in code without any frame; there is no table of it.
 */
#ifndef WEIR_JVM_EXIT_RULE_H
#define WEIR_JVM_EXIT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/x86_transfer.h"
#include "base/span.h"

/* In terms of the registers at the instruction; these have their numbers in encodings, and EXIT_LOADED is
 * the stack pointer that the code loads from memory on its way. */
#define EXIT_LOADED 17
enum exit_value_kind {
	EXIT_UNKNOWN,
	EXIT_REGISTER, /* reg + disp */
	EXIT_MEMORY    /* the word at reg + disp */
};
struct exit_value {
	enum exit_value_kind kind;
	uint8_t reg;
	int64_t disp;
};

enum exit_how {
	EXIT_BY_RETURN,
	EXIT_BY_JUMP, /* to other code, with the caller's return address on top of the stack */
	EXIT_BY_FRAME /* push rbp; mov rbp, rsp: there is no frame yet */
};

struct exit_rule {
	enum exit_how how;
	struct exit_value ret;	    /* the return address: what is on top of the stack then */
	struct exit_value sp;	    /* the stack pointer behind the return */
	struct exit_value regs[16]; /* the other registers then */
	struct exit_value loaded;   /* what EXIT_LOADED is */
	struct exit_value target;   /* of a jump through a register */
	struct exit_value pushed;   /* EXIT_BY_FRAME: the first register pushed into the frame */
};

/* A routine, of which a part may be known only: what lies between low and high and not in `bytes` is
 * not followed, and what lies elsewhere is other code. */
struct exit_code {
	struct span bytes;
	uint64_t base; /* address of the bytes */
	uint64_t low, high;
};

/* Follows the code from `pc` on, for at most `max` instructions. False when nothing of these comes. */
bool exit_rule_find(
	struct exit_rule *rule, const struct exit_code *code, uint64_t pc, unsigned max);

/* Where a compiled method is in building its frame, told by what comes next; frames have `frame_bytes`
 * with the return address, below which rbp is saved. False when it is not (any more). */
bool exit_rule_find_prologue(struct exit_rule *rule, const struct exit_code *code, uint64_t pc,
	int32_t frame_bytes, unsigned max);

/* The state of a frame of the interpreter at an instruction of one of its codelets. */
enum codelet_state {
	CODELET_BEFORE, /* a method's entry that has not built the frame */
	CODELET_BUILT,	/* rbp is the frame */
	CODELET_GONE	/* the frame was left, the code goes on for a moment */
};
/* `code`: the codelet up to the instruction, at `base`. */
enum codelet_state codelet_state_at_end(struct span code, uint64_t base, bool is_entry);

#endif
