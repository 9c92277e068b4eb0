/* SPDX-License-Identifier: MIT */
/* A thread's area: this page, the tables of jump targets, counters, events, two stacks. */
#ifndef WEIR_RT_TRANSLATE_THREAD_AREA_H
#define WEIR_RT_TRANSLATE_THREAD_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#include "translate_abi.h"

enum reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct signal_stack {
	uint64_t sp;
	int32_t flags;
	uint32_t unused;
	uint64_t size;
};

#define COPIES 4
#define SIGINFO_BYTES 128

struct thread {
	struct translate_thread a;
	uint64_t slot_rax, slot_rcx, slot_rdx, slot_any;
	uint64_t target, go;
	uint64_t enter, miss_ret, miss_jump;
	uint64_t stack;
	uint32_t exit, left;
	uint32_t pending, unused3; /* number of the signal */
	int64_t result;

	/* A signal that waits. */
	uint64_t waiting_mask; /* of the program, while all is blocked */
	uint8_t info[SIGINFO_BYTES];
	uint64_t context_flags;	     /* uc_flags, cs ... ss, err, trapno, cr2 of the kernel's frame */
	uint64_t segments, error, trap, cr2;
	uint8_t fp_words[48];	     /* sw_reserved of the kernel's frame */
	bool has_fp_words;
	bool is_sync;
	uint64_t kept_mask;	     /* SIGNALS_KEPT that the program has blocked */
	uint64_t held;		     /* those of them that have come meanwhile */
	struct signal_stack altstack; /* the program's */
	uint64_t new_mask;	     /* to be set when the program goes on */
	bool has_new_mask;
	uint32_t cannot;	     /* enum translate_why */
	uint32_t variant;	     /* of what is at pc */
	uint32_t fault_block;	     /* with is_sync: what is left of the block; TRANSLATE_NO_BLOCK: nothing */
	int32_t fault_rest;
	bool is_in_string; /* and the fault was in the midst of a repeated string instruction */
	const void *copy_of;	     /* struct group that is in a copy */
	uint64_t copy_at;
	/* How what handlers have interrupted is entered: by the address of their frames. */
	struct {
		uint64_t frame, pc;
		uint32_t variant;
	} resumes[8];
	uint32_t n_resumes;
	bool is_alone;	/* the instruction at pc is to be executed as it is now, and alone: it writes to its own page */
	bool is_guest; /* another process, in memory that its parent lends it */
	bool is_ending; /* the signal that waits kills the program */
	/* Copies of groups: room near the arena of the same number. */
	struct {
		uint64_t arena;
		uint8_t *room;
	} copies[COPIES];
	uint64_t kernel_stack; /* of signals: its low end */
	uint8_t frame_area[] __attribute__((aligned(64)));
};

#define THREAD_AT(member, at) _Static_assert(offsetof(struct thread, member) == (at), #member)
THREAD_AT(a.self, T_SELF);
THREAD_AT(a.cost, T_COST);
THREAD_AT(a.events_at, T_EVENTS_AT);
THREAD_AT(a.pc, T_PC);
THREAD_AT(a.regs, T_REGS);
THREAD_AT(a.flags, T_FLAGS);
THREAD_AT(a.outcome, T_OUTCOME);
THREAD_AT(a.call, T_CALL);
THREAD_AT(slot_rax, T_SLOT_RAX);
THREAD_AT(slot_any, T_SLOT_ANY);
THREAD_AT(target, T_TARGET);
THREAD_AT(go, T_GO);
THREAD_AT(enter, T_ENTER);
THREAD_AT(miss_ret, T_MISS_RET);
THREAD_AT(miss_jump, T_MISS_JUMP);
THREAD_AT(stack, T_STACK);
THREAD_AT(exit, T_EXIT);
THREAD_AT(left, T_LEFT);
THREAD_AT(pending, T_PENDING);
THREAD_AT(result, T_RESULT);
THREAD_AT(waiting_mask, T_WAITING_MASK);

/* What is where in an area. */
#define AREA_COUNTERS 0x201000u
#define COUNTER_ROOM  (8u << 21)
#define AREA_EVENTS   (AREA_COUNTERS + COUNTER_ROOM)
/* Two buffers, each in front of pages that cannot be written; they end with a whole event there. */
#define EVENTS_ROOM   0x100000u
#define EVENTS_BYTES  (EVENTS_ROOM - EVENTS_ROOM % TRANSLATE_EVENT_BYTES)
#define AREA_GUARD    (AREA_EVENTS + EVENTS_ROOM)
#define GUARD_ROOM    0x2000u
#define AREA_SPARE    (AREA_GUARD + GUARD_ROOM)
#define AREA_GUARD_2  (AREA_SPARE + EVENTS_ROOM)
#define AREA_STACK    (AREA_GUARD_2 + GUARD_ROOM)
#define STACK_ROOM    0x20000u
#define AREA_SIGNALS  (AREA_STACK + STACK_ROOM)
#define SIGNALS_ROOM  0x10000u
#define AREA_BYTES    (AREA_SIGNALS + SIGNALS_ROOM)

#pragma GCC visibility push(hidden)
/* A new area, or that of a thread that has ended; NULL: no memory, or too many threads. */
struct thread *thread_new(void);
bool threads_live(void); /* there are some that have neither ended nor left */
void threads_forget_others(struct thread *t); /* in a child of fork */
static inline struct thread *thread_self(void)
{
	struct thread *t;

	__asm__ volatile("mov %%gs:0, %0" : "=r"(t));
	return t;
}
#pragma GCC visibility pop

#endif
