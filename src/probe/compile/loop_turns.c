/* SPDX-License-Identifier: MIT */
/*
 * How often loops turn on kernels that do not count turns themselves (before Linux 6.9). There the
 * verifier follows every turn of a loop, and at each branch remembers the way not taken. It gives up
 * at 8,192 such ways, or at a million instructions; its time grows with the square of the turns. So
 * a loop that ends at a condition may turn as often as what it contains allows: often when it is
 * short, seldom when it is long. All such loops of a clause get the same number, the largest with
 * which the clause stays within the budget.
 */
#include <stdlib.h>

#include "probe/compile/ir.h"

#define TURNS_MIN      2  /* the kernel may refuse even these */
#define BRANCH_UNITS   32 /* as dear as so many other instructions */
#define BUDGET_UNITS   ((uint64_t)7000 * BRANCH_UNITS)
#define UNITS_SATURATE (BUDGET_UNITS + 1)

/* The limit itself leaves nothing to be remembered: its number is known at every turn. */
static uint64_t units_of(const struct ir_insn *i)
{
	if (i->op == IR_MAY_TURN)
		return 1;
	return i->op == IR_BRANCH || i->op == IR_SET ? BRANCH_UNITS : 1;
}

/* What the verifier has to do for the loops when those without a known end turn `turns` times. */
static uint64_t units_in_loops(const struct ir *ir, uint64_t turns)
{
	struct level {
		uint64_t turns, units;
	};
	VEC(struct level) levels = {0};
	uint64_t all = 0;

	for (size_t i = 0; i < ir->insns.n; i++) {
		const struct ir_insn *insn = &ir->insns.v[i];
		uint64_t units = units_of(insn);

		if (insn->op == IR_LOOP) {
			struct level level = {insn->imm ? (uint64_t)insn->imm : turns, 0};

			vec_push(&levels, level);
			continue;
		}
		if (insn->op == IR_LOOP_END) {
			struct level done = levels.v[--levels.n];

			units = done.turns * done.units;
			if (!levels.n)
				all += units;
		}
		if (levels.n)
			levels.v[levels.n - 1].units += units;
		if (levels.n && levels.v[levels.n - 1].units > UNITS_SATURATE)
			levels.v[levels.n - 1].units = UNITS_SATURATE;
		if (all > UNITS_SATURATE)
			all = UNITS_SATURATE;
	}
	vec_release(&levels);
	return all;
}

/* One whose number is not known. */
static bool is_limit(const struct ir_insn *i)
{
	return i->op == IR_MAY_TURN && !i->imm;
}

void loop_turns_set(struct ir *ir, uint32_t n_clauses)
{
	uint64_t low = TURNS_MIN, high = LOOP_TURNS_MAX;
	uint64_t budget = BUDGET_UNITS / (n_clauses ? n_clauses : 1);
	bool has_limits = false;

	for (size_t i = 0; i < ir->insns.n; i++)
		has_limits |= is_limit(&ir->insns.v[i]);
	if (!has_limits)
		return;
	while (low < high) {
		uint64_t middle = (low + high + 1) / 2;

		if (units_in_loops(ir, middle) <= budget)
			low = middle;
		else
			high = middle - 1;
	}
	for (size_t i = 0; i < ir->insns.n; i++)
		if (is_limit(&ir->insns.v[i]))
			ir->insns.v[i].imm = (int64_t)low;
}
