/* SPDX-License-Identifier: MIT */
/*
 * Who calls whom in a program that counts itself, by function: two functions of one name are two
 * here, where the call tree has one routine for both. Sums are exact: they are over the nodes of
 * the trees.
 */
#ifndef WEIR_CALLTREE_CODE_CALLS_H
#define WEIR_CALLTREE_CODE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "calltree/code_counts.h"

#define CODE_NO_FUNCTION UINT32_MAX

/* What calls or is called: a function of the model, one that is not counted, or a thread. */
struct code_party {
	uint32_t frame;		  /* 0: a thread, which calls what it begins with */
	uint32_t function;	  /* index in the model, else CODE_NO_FUNCTION */
	const char *name, *image; /* owned; "" for a thread */
	uint64_t own_cost; /* hundredths of cycles that its nodes were charged with themselves */
};

struct code_call {
	uint32_t caller, callee; /* indexes into parties */
	uint64_t site; /* address behind the call in the caller; 0: not known, or from all places */
	uint64_t calls;
	/* Of the callee with all below it, every instance of a recursion; cost in hundredths. */
	uint64_t instructions, cost;
};

struct code_calls {
	struct code_party *parties; /* [0] is the thread */
	size_t n_parties;
	struct code_call *calls; /* by caller, callee, site */
	size_t n_calls;
	bool has_cost; /* the program summed cycles by node */
	struct intern names;
};

/* Without a call tree there are no calls: not a failure. `counts` must be that of `r`. */
int code_calls_build(struct code_calls **out, const struct trace_reader *r,
	const struct code_counts *counts, struct err *err);
void code_calls_free(struct code_calls *c);
/* The party that is this function; 0 when it was never called. */
size_t code_calls_find(const struct code_calls *c, uint32_t function);

/* By function: the index of the one that it is a part of (.cold), else its own. free() it. */
uint32_t *code_counts_owners(const struct code_counts *c);

#endif
