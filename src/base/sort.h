/* SPDX-License-Identifier: MIT */
/* Sorting numbers, alone or with an index, by counting their digits. */
#ifndef WEIR_BASE_SORT_H
#define WEIR_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_pair {
	uint64_t key;
	uint32_t i;
};

/* By key; equal keys stay in their order. O(n). */
void sort_pairs(struct sort_pair *v, size_t n);
/* O(n log n); O(n) when they are in order. */
void sort_u64(uint64_t *v, size_t n);
/* Sorts them and keeps one of equal ones; returns how many are left. */
size_t sort_distinct_u64(uint64_t *v, size_t n);

#endif
