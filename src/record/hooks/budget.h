/* SPDX-License-Identifier: MIT */
/* Which functions are called too often to be worth their hooks (`--budget PCT`). */
#ifndef WEIR_RECORD_HOOKS_BUDGET_H
#define WEIR_RECORD_HOOKS_BUDGET_H

#include <stddef.h>
#include <stdint.h>

struct budget_function {
	uint32_t id;
	uint64_t calls;	     /* in the time looked at */
	uint64_t elapsed_ns; /* of those that ended, with what they called */
	double pair_ns;	     /* what an entry and an exit cost (budget_pair_ns) */
};

/* What a breakpoint and its handler cost here, in ns: it is tried. Uses SIGTRAP meanwhile. */
double budget_measure_trap(void);
/* What an entry and an exit cost by that method (enum hook_method), where a breakpoint costs trap_ns. */
double budget_pair_ns(uint8_t method, double trap_ns);

/*
 * Puts those that have to go in front, in the order in which they go: the least duration for what its hooks
 * cost first, until what the hooks of the rest cost is at most `percent` of `running_ns`. A function
 * that costs next to nothing is left alone. Returns how many go.
 */
size_t budget_choose(
	struct budget_function *functions, size_t n, uint64_t running_ns, double percent);

#endif
