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
};

struct hook_area {
	int fd;
	uint8_t *base;
	size_t bytes;
	uint32_t n_threads;
	size_t ring_bytes, rings_offset;
	uint64_t ring_mask; /* of a record's number */
	struct hook_control *control;
	struct hook_thread *threads;
};

/* Shared memory, all zero, that nobody can make smaller; NULL, with errno, when there is none. */
void *hook_memory_open(size_t bytes, int *fd);

int hook_area_open(struct hook_area *a, const struct hook_area_options *options, struct err *err);
/* An area that was never opened must have fd -1. */
void hook_area_close(struct hook_area *a);

/* The ring (or the tree) of the thread's entry. */
static inline struct hook_record *hook_area_ring(const struct hook_area *a, uint32_t thread_i)
{
	return (struct hook_record *)(void *)(a->base + a->rings_offset +
					      (size_t)thread_i * a->ring_bytes);
}

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
