/* SPDX-License-Identifier: MIT */
/*
 * Reads the call trees that programs keep of themselves (rt/hook/hook_tree.h) out of the memory
 * they share with us, while they run, and writes them as records of a trace (0x54).
 *
 * The program may write anything into that memory at any time. Sizes are ours; an index out of it
 * is compared with them, a chain of parents that does not lead to the root is left out. A node that
 * is being entered or left is read again; a call that is half counted is taken as either.
 */
#ifndef WEIR_RECORD_HOOKS_TREE_SNAPSHOT_H
#define WEIR_RECORD_HOOKS_TREE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "rt/hook/hook_tree.h"
#include "trace/writer.h"

struct tree_node {
	uint32_t number; /* from 1; the same as long as the node is there */
	uint32_t parent; /* a number; 0 = the thread's root */
	uint32_t id;	 /* of the function; 0 = the branch of folded calls */
	bool is_folded;	 /* counts calls without a place: its time is in other nodes */
	bool is_open;	 /* some call has not returned */
	uint64_t calls;
	uint64_t elapsed; /* in ticks, with open calls up to now */
	uint64_t min, max;
};

/* One thread's tree at one moment. Zero-initialise it. */
struct tree_copy {
	VEC(struct tree_node) nodes; /* each behind its parent */
	uint64_t n_pruned;	     /* nodes, by the program and by tree_copy_prune */
	uint64_t pruned_calls, folded_calls;
	struct hook_tree_cost costs[HOOK_COST_N]; /* as the program says */
	uint32_t n_torn; /* nodes left out: they came or went while we read, or make no sense */
};

void tree_copy_release(struct tree_copy *c);
/* `tree` has `bytes` bytes. Open calls last until `now_ticks`, those of a thread that has ended
 * (`is_over`) until its last entry or exit. With TREE_NOW they last until the tree has been read:
 * none is too short, and a call that ended meanwhile is too long by at most the time of reading.
 * False, and an empty copy, when there is no tree. */
#define TREE_NOW 0u
bool tree_copy_read(
	struct tree_copy *c, const void *tree, size_t bytes, uint64_t now_ticks, bool is_over);
/* Takes away subtrees without open calls that have less than so many thousandths of their parent's
 * time, as the program does when its memory runs short. */
void tree_copy_prune(struct tree_copy *c, uint32_t permille);

/* Where trees go. */
struct tree_sink {
	struct trace_writer *w;
	uint64_t time;
	/* Trace ids: of a thread of the area (0 = leave it out), of the frame for a function (id 0: of
	 * the branch of folded calls, a marker). */
	uint32_t (*thread)(void *ctx, uint32_t tid);
	uint32_t (*frame)(void *ctx, uint32_t id);
	uint64_t (*ns)(void *ctx, uint64_t ticks); /* a duration */
	void *ctx;
};

void tree_copy_write(const struct tree_copy *c, const struct tree_sink *sink, uint32_t tid);
/* The thread's tree is complete: what comes later for the thread is another one. */
void tree_over_write(const struct tree_sink *sink, uint32_t tid);

#endif
