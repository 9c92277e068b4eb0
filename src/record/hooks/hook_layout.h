/* SPDX-License-Identifier: MIT */
/*
 * Where things of the hook library are in one process: the region of replaced return addresses, the
 * library itself, and the moved first instructions of each hooked function. Immutable once made, so
 * that several threads and forked children may look at it; a change makes another one.
 */
#ifndef WEIR_RECORD_HOOKS_HOOK_LAYOUT_H
#define WEIR_RECORD_HOOKS_HOOK_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "record/hooks/plan.h"

/* One hooked function of the process; addresses are virtual. */
struct hook_moved {
	uint64_t code; /* its moved instructions; the call of the hook lies before them */
	uint32_t n_code;
	uint32_t n_patched;
	uint64_t function, site; /* its first byte, the first that was patched */
	/* Which of its instructions went where; owned by the planner. NULL: not told (functions
	 * that are watched for the library's own sake). */
	const struct planned_function *planned;
};

struct hook_module_at {
	uint64_t bias, start, end;
	const struct planned_image *image; /* NULL: it could not be read */
};

struct hook_layout {
	uint32_t n_refs; /* guarded by whoever hands it out */
	uint64_t region_start, region_bytes;
	VEC(struct hook_module_at) modules;
	VEC(struct hook_moved) moved; /* by code */
	VEC(uint32_t) by_site;	      /* indexes into moved, by address of the patched bytes */
};

/* With one reference; a copy of `old` unless that is NULL. */
struct hook_layout *hook_layout_new(const struct hook_layout *old);
void hook_layout_free(struct hook_layout *l);
/* Something else is at [start, end) now: modules and functions that were there, and moved code. To be sorted
 * afterwards. */
void hook_layout_drop(struct hook_layout *l, uint64_t start, uint64_t end);
/* After modules or moved functions were added. */
void hook_layout_sort(struct hook_layout *l);

/* Whether `pc` lies in a slot that a replaced return address can lead to. Entries are in the
 * region, too, and words on a stack may point to them. */
static inline bool hook_layout_is_slot(const struct hook_layout *l, uint64_t pc)
{
	return pc - l->region_start < l->region_bytes &&
	       (pc & (HOOK_BLOCK_BYTES - 1)) < HOOK_BLOCK_SLOTS * HOOK_SLOT_BYTES &&
	       (pc & (HOOK_BLOCK_BYTES - 1)) >= HOOK_SLOT_BYTES;
}

/* What the program would have had as its pc if it were not hooked: false when `pc` does not lie in
 * moved instructions or in the call before them. */
bool hook_layout_original_pc(const struct hook_layout *l, uint64_t pc, uint64_t *original);
/* Whether `pc` is the call of the hook, or the address right behind it: the function's entry. */
bool hook_layout_is_entry(const struct hook_layout *l, uint64_t pc);
/* Whether it is that call, of which nothing is the program's. */
bool hook_layout_is_trampoline(const struct hook_layout *l, uint64_t pc);
/* Whether it stands behind a breakpoint: in the kernel this is the way into the hook. */
bool hook_layout_is_trap(const struct hook_layout *l, uint64_t pc);
/* The other way: where a thread that stands inside patched bytes has to go on; `pc` itself when it
 * does not. */
uint64_t hook_layout_moved_pc(const struct hook_layout *l, uint64_t pc);
/* The function's module in this process; NULL when it is not there. */
const struct hook_module_at *hook_layout_module(
	const struct hook_layout *l, const struct planned_image *image);

#endif
