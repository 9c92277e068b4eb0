/* SPDX-License-Identifier: MIT */
/*
 * Walks a user stack from a set of registers and a copy of the stack's bytes. Tables come through
 * a callback, so that this layer knows nothing of processes. Works for x86-64 and i386.
 *
 * At each frame: the CFI rule of the address; where there is none, the frame pointer if it leads
 * to a plausible caller (inside the stack, above the current frame, a return address in executable
 * memory, right after a call), or, for the innermost function only, the nearest return address on
 * the stack that leads into code with CFI. Start routines without CFI are stepped over: the return
 * address into the image's entry, or into code that ends the thread, is near.
 * Where CFI leads to an address that is no code, up to three words that hand-written code pushed
 * without saying so are stepped over.
 *
 * Code that a program makes while it runs has no CFI, and conventions of its own: whoever knows them
 * makes the step, before anything is guessed.
 */
#ifndef WEIR_UNWIND_UNWIND_H
#define WEIR_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/cpu_regs.h"
#include "base/addr.h"
#include "base/span.h"
#include "dwarf/cfi_table.h"

/* Where a code address lies. */
struct unwind_module {
	const struct cfi_table *cfi; /* NULL: none (JIT code, unreadable file) */
	uint64_t bias;		     /* vaddr - iaddr */
	struct iaddr entry;	     /* the image's entry point, 0 = none */
	uint32_t cookie;	     /* the caller's own, handed back in frames */
};

struct unwind_memory {
	struct vaddr start; /* of the stack copy: the stack pointer at the sample */
	struct span bytes;
	struct span
		below; /* what ends at `start`, as far as it is known: only rules that read there see it */
	bool from_caller; /* the registers are those of a frame that called: pc is where it returns to */
	/* Reads memory outside the copy (may be NULL): true when all n bytes were read. Used when
	 * the walk leaves the copy, so it can complete stacks deeper than the copy. Never asked for
	 * what lies just below the copy. `ctx` is that of the callbacks. */
	bool (*read)(void *ctx, uint64_t addr, void *to, size_t n);
};

/* The walked stack, for others: true when all n bytes were read. */
struct unwind_stack {
	bool (*read)(void *ctx, uint64_t addr, void *to, size_t n);
	void *ctx;
};

/* What a frame in generated code is; the numbers mean what step_generated says they do. */
struct unwind_place {
	uint32_t kind; /* 0 = not known */
	uint32_t code, at;
};

enum unwind_generated {
	UNWIND_GENERATED_UNKNOWN, /* none of the code that it knows; nothing was touched */
	UNWIND_GENERATED_STEPPED, /* the registers are the caller's */
	UNWIND_GENERATED_SHORT,	  /* the stack could not be read there */
	UNWIND_GENERATED_LOST	  /* its code, but the frame is not understood */
};

struct unwind_callbacks {
	/* False when `pc` lies in no executable mapping. */
	bool (*find_module)(void *ctx, struct vaddr pc, struct unwind_module *module);
	void *ctx;
	/* Whether `pc` can be a return address by the bytes before it; true when they are not
	 * known. May be NULL: then nothing is guessed beyond the top of the stack. */
	bool (*follows_call)(void *ctx, struct vaddr pc);
	/* Whether the code at `pc`, a return address, only ends the thread. May be NULL. */
	bool (*ends_thread)(void *ctx, struct vaddr pc);
	/* Whether `pc` lies where a tool has put something (moved instructions, places that
	 * replaced return addresses lead to); and what the program would have instead. *is_caller
	 * says whether that is a return address, before and after. 0 when it is no longer known.
	 * The walk asks once for each such address, from the innermost frame outwards. Both or
	 * neither; may be NULL. */
	bool (*is_replaced)(void *ctx, uint64_t pc);
	uint64_t (*true_pc)(void *ctx, uint64_t pc, bool *is_caller);
	/* The step from a frame whose code has no CFI to its caller, by somebody who knows that code
	 * (a JVM's); `is_caller`: the pc is a return address. `place` is zero, and may be filled
	 * whatever comes out. Asked at every such frame, since what is at an address changes. Marks
	 * the registers that it restores as known, and no others. May be NULL. */
	enum unwind_generated (*step_generated)(void *ctx, struct cpu_regs *regs, bool is_caller,
		const struct unwind_stack *stack, struct unwind_place *place);
};

/* Why a walk ended. The first is the only good end. */
enum unwind_end {
	UNWIND_END_COMPLETE = 0, /* the outermost frame: the thread's or process's start routine */
	UNWIND_END_STACK_SHORT,	 /* the stack is deeper than the copy */
	UNWIND_END_NO_MODULE,	 /* the next pc lies in no executable mapping */
	UNWIND_END_NO_CFI,	 /* code without CFI, and its frame pointer leads nowhere */
	UNWIND_END_BAD_CFI,	 /* a rule needs a register or an expression we cannot follow */
	UNWIND_END_NO_PROGRESS,	 /* the caller's frame is not above the callee's */
	UNWIND_END_TOO_DEEP,	 /* UNWIND_FRAMES_MAX reached */
	UNWIND_END_BELOW_COPY,	 /* a rule reads below the stack pointer, which is not known */
	UNWIND_END_ELSEWHERE,	 /* the caller is on another stack, and nothing says where */
	UNWIND_END_HOOKED,	 /* what a replaced return address stood for is not known */
	UNWIND_END_UPROBE,	 /* the innermost frame is in the kernel's copy of an instruction */
	UNWIND_END_GENERATED,	 /* step_generated does not understand the frame */
	UNWIND_N_ENDS
};
/* A phrase for people: "stack deeper than the copy", ... */
const char *unwind_end_reason(enum unwind_end end);

#define UNWIND_FRAMES_MAX 4096

struct unwind_frame {
	struct vaddr pc;
	bool is_caller; /* pc is a return address */
	bool has_module;
	uint32_t cookie;	   /* of the module */
	uint64_t bias;		   /* of the module: iaddr = pc - bias */
	struct vaddr sp;	   /* the stack pointer in this frame, */
	struct vaddr fp;	   /* and what the frame pointer register holds; 0 when not known */
	struct unwind_place place; /* by step_generated */
};

struct unwinder; /* holds the rule cache */
struct unwinder *unwinder_new(void);
void unwinder_free(struct unwinder *u);

/* Fills frames innermost first, at most `max` (>= 1); *n_frames >= 1, and only the first may have
 * no module. `generation` names the state of the address space: equal generations promise equal
 * find_module answers, and tables that are neither freed nor added to. Allocates nothing. */
enum unwind_end unwinder_walk(struct unwinder *u, const struct cpu_regs *regs,
	const struct unwind_memory *memory, const struct unwind_callbacks *callbacks,
	uint64_t generation, struct unwind_frame *frames, size_t max, size_t *n_frames);

#endif
