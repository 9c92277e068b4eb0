/* SPDX-License-Identifier: MIT */
/*
 * The memory that one hooked process shares with the recorder (rt/hook/hook_abi.h): a memfd that
 * the recorder makes, sealed so that the process cannot shrink it under our feet. The process can
 * write anything into it: sizes and positions are therefore ours, never read back.
 */
#ifndef WEIR_RECORD_HOOKS_AREA_H
#define WEIR_RECORD_HOOKS_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "rt/hook/hook_abi.h"

struct hook_area_options {
	bool is_64;	   /* of the program */
	bool tree;	   /* HOOK_MODE_TREE */
	size_t ring_bytes; /* of one thread, a power of two; 0 = choose */
	uint32_t prune_permille;
	bool counts_bytes; /* of Java threads */
};

struct hook_area {
	int fd;
	uint8_t *base;	   /* up to rings_offset; the rings are mapped as they are asked for */
	size_t bytes;	   /* of all */
	size_t head_bytes; /* that the program maps at first */
	uint32_t n_threads;
	size_t ring_bytes, rings_offset;
	uint64_t ring_mask; /* of a record's number */
	struct hook_control *control;
	struct hook_thread *threads;
	uint32_t window_threads; /* rings in a window */
	uint8_t **windows;	 /* mapped, each with so many rings; NULL = not yet */
};

/* Shared memory, all zero, that nobody can make smaller; NULL, with errno, when there is none. */
void *hook_memory_open(size_t bytes, int *fd);

int hook_area_open(struct hook_area *a, const struct hook_area_options *options, struct err *err);
/* An area that was never opened must have fd -1. */
void hook_area_close(struct hook_area *a);

/* Entries that the program has ever taken: those behind need not be looked at. */
static inline uint32_t hook_area_n_used(const struct hook_area *a)
{
	/* Pairs with the library, which counts an entry before it fills it. */
	uint32_t n = __atomic_load_n(&a->control->n_used, __ATOMIC_ACQUIRE);

	return n < a->n_threads ? n : a->n_threads;
}

/* The ring (or the tree) of the thread's entry. Any thread. NULL when it cannot be mapped, which it then is
 * for good. */
struct hook_record *hook_area_ring(const struct hook_area *a, uint32_t thread_i);

/* Whether a thread has it, or had it and has ended. */
static inline bool hook_area_has_thread(const struct hook_area *a, uint32_t thread_i)
{
	uint32_t state = __atomic_load_n(&a->threads[thread_i].state, __ATOMIC_ACQUIRE);

	return state == HOOK_THREAD_LIVE || state == HOOK_THREAD_GONE;
}

/* The entry is for another thread, which begins with zeros; its memory is given back. */
void hook_area_free_thread(const struct hook_area *a, uint32_t thread_i);

/* The function is to be unhooked in this process. False when the list is full. */
bool hook_area_turn_off(struct hook_area *a, uint32_t id);

#endif
