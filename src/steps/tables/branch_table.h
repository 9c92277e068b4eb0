/* SPDX-License-Identifier: MIT */
/*
 * How often each instruction was executed, and where branches went from it: one pass over the
 * steps. Tables of branches and of the instruction mix are made from it.
 *
 * Where a branch went is the address of the step behind it. When that step is not the one the
 * branch led to (a signal's handler, the other side of a gap) or is not there (the trace ends), the
 * outcome is not known: executed = taken + not taken + unknown, and the unknown are never guessed.
 * A conditional branch that a handler interrupts is decided when the handler has returned.
 */
#ifndef WEIR_STEPS_TABLES_BRANCH_TABLE_H
#define WEIR_STEPS_TABLES_BRANCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "steps/read/steps.h"

enum branch_kind {
	BRANCH_KIND_CONDITIONAL,   /* jcc, loop, jrcxz */
	BRANCH_KIND_INDIRECT_JUMP, /* through a register or memory */
	BRANCH_KIND_INDIRECT_CALL,
	BRANCH_KIND_RETURN, /* only when asked for */
};
#define BRANCH_N_KINDS	   4
#define BRANCH_WAITING_MAX 64 /* handlers within handlers; the oldest are given up beyond */

struct branch_target {
	uint64_t addr;
	uint64_t count;
	uint32_t insn; /* 0: its code was not captured */
};

struct branch {
	uint32_t insn;
	uint8_t kind; /* enum branch_kind */
	bool has_index;
	/* conditional ones: */
	uint64_t next, target; /* a branch to the next instruction counts as not taken */
	uint64_t taken, not_taken;
	/* the others: */
	VEC(struct branch_target) targets; /* most frequent first after branch_table_finish */
	uint64_t other;	      /* executions whose target is not among them (too many targets) */
	uint32_t last_target; /* that was met last */
	struct map index;     /* address -> target, once there are many */
};

struct branch_count {
	uint64_t executed;
	uint32_t branch; /* in `branches`; 0 = none */
};

struct branch_table {
	struct branch_count *counts; /* by instruction number; [0] counts what was not captured */
	uint64_t *again;	     /* by instruction number: iterations behind the first */
	uint32_t n_insns;
	VEC(struct branch) branches; /* [0] is none */
	size_t n_targets;	     /* of all branches together */
	uint64_t total;		     /* steps */
	uint64_t lost;		     /* steps that are missing, as far as marks say how many */
	uint64_t n_damaged;	     /* records that could not be read */
	bool wants_returns;	     /* targets of returns are counted, too */

	/* Where the walk is, in one thread. */
	uint32_t pending;    /* the branch that was the last step; 0 = none */
	bool is_interrupted; /* a signal came behind it */
	bool is_returning;   /* the last step returned from a signal's handler */
	uint64_t next_step;  /* the number that the next step has unless some are missing */
	uint32_t waiting[BRANCH_WAITING_MAX]; /* branches until a handler returns, newest last */
	size_t n_waiting;
};

void branch_table_init(struct branch_table *t, uint32_t n_insns, bool wants_returns);
void branch_table_release(struct branch_table *t);
/* Before the first step of it: what an instruction is. Numbers that are not described are counted
 * alone. */
void branch_table_describe(struct branch_table *t, uint32_t number, const struct step_insn *insn);
void branch_table_begin_thread(struct branch_table *t);
void branch_table_add(struct branch_table *t, const struct step_item *item);
/* Instruction `number` is the same as same_as[number] (lower or itself) in another process: counts
 * and targets are added there, and those of `number` become 0. addrs[number] is where it lies. */
void branch_table_fold(struct branch_table *t, const uint32_t *same_as, const uint64_t *addrs);
/* Sorts targets. Once, behind the last step. */
void branch_table_finish(struct branch_table *t);

uint64_t branch_executed(const struct branch_table *t, const struct branch *b);
uint64_t branch_unknown(const struct branch_table *t, const struct branch *b);
/* Of a conditional branch, the frequent side and the rare one. */
uint64_t branch_mainline(const struct branch *b);
uint64_t branch_exceptions(const struct branch *b);

/* The same for the steps of a trace: a table for all their instructions, to which items are added
 * thread by thread; and its end, where the same bytes at the same place of the same image become
 * one instruction, whatever processes it was mapped into, and targets are sorted. */
void branch_table_init_steps(struct branch_table *t, const struct steps *s, bool wants_returns);
void branch_table_finish_steps(struct branch_table *t, const struct steps *s);

#endif
