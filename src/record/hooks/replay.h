/* SPDX-License-Identifier: MIT */
/*
 * The open calls of one hooked thread, as its events tell them, and with them what stands behind
 * each replaced return address when a stack of the thread is walked.
 *
 * The library keeps the true return address in the entry of a slot; slots of a chain are used in
 * order, 1 .. 1023 of a block, then those of the next block (the first of a block is no call). So
 * the place of a call among the open ones tells its slot's index, but not its block; which block is
 * whose is learned from walks that leave no doubt. A thread may have gone to another stack since
 * its last event, and a signal handler on a stack of its own has slots of another block, although
 * its calls belong to the same chain here. A walk meets slots from the innermost call outwards;
 * each is looked for by its index near the place where the last one was found, and taken by order
 * where the index says nothing. Where it may as well be another chain's, it is not known.
 */
#ifndef WEIR_RECORD_HOOKS_REPLAY_H
#define WEIR_RECORD_HOOKS_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"

struct replay_call {
	uint64_t ret;	/* true return address; in the region: that of a call below (tail call) */
	uint64_t ticks; /* when entered */
	uint32_t id;
	uint32_t slot_i; /* index of its slot in its block, as far as known */
};

struct replay_chain {
	uint32_t number;
	VEC(struct replay_call) calls; /* outermost first */
	size_t n_kept;	/* calls.v[calls.n .. n_kept) were left, and their slots not used again */
	uint64_t block; /* that its first slots are in; 0 = not known yet */
};

struct replay {
	VEC(struct replay_chain) chains;
	struct map numbers; /* of a chain -> index + 1 */
	size_t current;	    /* index; 0 is the thread's own */
	struct map blocks;  /* address -> chain number + 1, as far as known */
	uint64_t n_unmatched_leaves;
};

void replay_release(struct replay *r);
/* As after a fork: the child's open calls are those of the thread that made it. */
void replay_copy(struct replay *to, const struct replay *from);
void replay_reset(struct replay *r); /* nothing is open */

void replay_enter(struct replay *r, uint32_t id, uint64_t ret, uint64_t ticks);
/* Ends the innermost open call of `id` on the current chain, and all within it. Returns how many
 * calls that ended, 0 when there was none; *left is the one of `id`. */
size_t replay_leave(struct replay *r, uint32_t id, struct replay_call *left);
void replay_switch(struct replay *r, uint32_t chain_number);
size_t replay_depth(const struct replay *r); /* of the current chain */
uint32_t replay_chain_number(const struct replay *r);

/* One walk over a stack of the thread. */
struct replay_walk {
	struct replay *replay;
	uint64_t region_start, region_bytes;
	/* The next event is an entry with this return address, on this chain. */
	bool has_pending;
	uint32_t pending_chain;
	uint64_t pending_ret;
	/* Set by the walk: */
	struct replay_chain *chain;
	size_t at; /* calls.v[at - 1] is the next candidate */
	uint64_t last_block, last_i;
	bool has_last, is_lost;
};

/* What stands behind `pc`, an address in a slot; 0 when that is no longer known. */
uint64_t replay_walk_return(struct replay_walk *w, uint64_t pc, bool is_caller);

#endif
