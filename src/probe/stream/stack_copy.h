/* SPDX-License-Identifier: MIT */
/*
 * User stacks by call-frame information: what the code of a stream and its reader agree on.
 *
 * The code walks a stack by rules that it finds in a map (STREAM_MAP_RULES), one for each address at
 * which a frame may stand. When one is missing it hands the registers, the frames that it has and a copy
 * of the rest of the stack to the reader (STREAM_MAP_COPIES), who walks on with the tables of the
 * program and puts the rules that he needed into the map. So each address is told once, and the stack
 * of a hot place is walked where it is hit.
 *
 * A stack that was walked by the code has an odd id, a hash of its addresses; one that is with the reader
 * an even one, which is not used twice.
 */
#ifndef WEIR_PROBE_STREAM_STACK_COPY_H
#define WEIR_PROBE_STREAM_STACK_COPY_H

#include <stdint.h>

#define STACK_PAGE_BYTES   4096
#define STACK_PAGES_SMALL  4
#define STACK_PAGES_MEDIUM 16
#define STACK_PAGES_LARGE  60 /* there is a bit for each in `present` */
#define STACK_RED_ZONE	   128
#define STACK_REGS	   21  /* words of the kernel's struct pt_regs */
#define STACK_FRAMES_ROOM  128 /* STREAM_STACK_FRAMES and one */
#define STACK_RETURNS	   8
#define STACK_HASH	   0x9e3779b97f4a7c15ull /* 2^64 / golden ratio, odd */
#define STACK_RULES_MAX	   65536

/* Places of struct pt_regs of x86-64, in bytes. */
enum { STACK_REG_BP = 32, STACK_REG_IP = 128, STACK_REG_SP = 152 };

struct stack_rule_key {
	uint64_t space; /* address of the kernel's struct mm_struct: another one after each exec */
	uint64_t pid;
	uint64_t address; /* of the frame; of a caller's, 1 before where it returns to */
};

enum stack_rule_flags {
	STACK_RULE_OUTERMOST = 1, /* nobody called it */
	STACK_RULE_EXACT = 2,	  /* the caller was interrupted: a signal. Its stack may be any */
	STACK_RULE_DEREF = 4,	  /* the CFA is in memory, where the rule leads to */
	STACK_RULE_GUESS = 8	  /* believed only when the caller has a rule, too */
};

/*
 * All masks are ones or zeros:
 *   cfa = (bp & cfa_bp | sp & ~cfa_bp) + cfa_at
 *   ra  = *((cfa & ra_cfa | sp & ~ra_cfa) + ra_at)
 *   bp  = *((cfa & bp_cfa | bp & bp_bp | sp & ~(bp_cfa | bp_bp)) + bp_at) when bp_saved, else bp
 */
struct stack_rule {
	uint64_t flags;
	uint64_t cfa_bp, cfa_at;
	uint64_t ra_cfa, ra_at;
	uint64_t bp_cfa, bp_bp, bp_at, bp_saved;
};

struct stack_copy {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t id;
	struct stack_rule_key stuck; /* the rule that was missing */
	uint64_t ip, sp, bp;	     /* of the frame that it was missing for */
	uint32_t clause_i, bits;
	uint64_t n_frames; /* walked, that one too: when it is 1, the registers are its own */
	uint64_t n_wanted;
	/* Where the kernel has put the address of its own code instead of return addresses, for return
	 * probes, and what the next ones were; 0 = nowhere, no more. */
	uint64_t trampoline;
	uint64_t returns[STACK_RETURNS];
	uint64_t start; /* of the bytes: a page */
	uint64_t n_pages;
	uint64_t present; /* a bit for each page that could be read */
	uint64_t regs[STACK_REGS];
	uint64_t frames[STACK_FRAMES_ROOM];
	uint8_t bytes[];
};

/* One address more. */
static inline uint64_t stack_hash_add(uint64_t hash, uint64_t address)
{
	hash = (hash ^ address) * STACK_HASH;
	return hash ^ hash >> 29;
}

#endif
