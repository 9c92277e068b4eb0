/* SPDX-License-Identifier: MIT */
/*
 * What hooks cost, as the hook libraries have measured it while the programs ran (rt/hook/self_cost.c), over
 * all processes of a recording, and as records of the trace (0x51/0x03).
 */
#ifndef WEIR_RECORD_HOOKS_HOOK_COST_H
#define WEIR_RECORD_HOOKS_HOOK_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "rt/hook/hook_tree.h"
#include "trace/writer.h"

/* In 16ths of a tick. */
struct hook_cost_sum {
	uint64_t n;
	double inner, outer, squares; /* of trees, which have sums */
	VEC(uint64_t) seen;	      /* each HOOK_COST; the last of them when they are many */
};

struct hook_costs {
	struct hook_cost_sum of[2][HOOK_COST_N]; /* 32- and 64-bit programs; enum hook_cost_kind */
};

void hook_costs_release(struct hook_costs *c);

/* `data` is a HOOK_COST; one that makes no sense is left out. */
void hook_costs_add(struct hook_costs *c, bool is_64, uint64_t data);
void hook_costs_add_tree(
	struct hook_costs *c, bool is_64, const struct hook_tree_cost costs[HOOK_COST_N]);

/* The number of the record that holds for calls hooked in this way; 0 = it was not measured. */
uint32_t hook_costs_number(
	const struct hook_costs *c, bool is_64, enum hook_method method, enum hook_action action);

/* What was measured. `hz`: of the counter. */
void hook_costs_write(const struct hook_costs *c, struct trace_writer *w, uint32_t stream,
	uint64_t time, double hz, bool is_tree);

#endif
