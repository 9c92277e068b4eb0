/* SPDX-License-Identifier: MIT */
/* Sorting numbers that come with an index, by counting their bytes. */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_SORT_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_pair {
	uint64_t key;
	uint32_t i;
};

/* By key; equal keys stay in their order. O(n). */
void sort_pairs(struct sort_pair *v, size_t n);

#endif
