/* SPDX-License-Identifier: MIT */
/*
 * One pass over the array for each byte in which keys differ, from the lowest, each pass keeping
 * the order of those with an equal byte.
 */
#include "base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SMALL 32 /* up to here moving them one by one is faster */

static bool is_sorted(const struct sort_pair *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (v[i].key < v[i - 1].key)
			return false;
	return true;
}

static void sort_small(struct sort_pair *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct sort_pair p = v[i];
		size_t k = i;

		for (; k && v[k - 1].key > p.key; k--)
			v[k] = v[k - 1];
		v[k] = p;
	}
}

static void sort_by_byte(
	struct sort_pair *to, const struct sort_pair *from, size_t n, unsigned shift)
{
	size_t at[256] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].key >> shift & 0xff]++;
	for (size_t b = 0; b < 256; b++) {
		size_t count = at[b];

		at[b] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].key >> shift & 0xff]++] = from[i];
}

void sort_pairs(struct sort_pair *v, size_t n)
{
	struct sort_pair *from = v, *to, *other;
	uint64_t differ = 0;

	if (is_sorted(v, n))
		return;
	if (n <= SMALL) {
		sort_small(v, n);
		return;
	}
	for (size_t i = 1; i < n; i++)
		differ |= v[i].key ^ v[0].key;
	other = to = mem_calloc(n, sizeof(*to));
	for (unsigned shift = 0; shift < 64; shift += 8) {
		struct sort_pair *swap = from;

		if (!(differ >> shift & 0xff))
			continue;
		sort_by_byte(to, from, n, shift);
		from = to;
		to = swap;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
	free(other);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void sort_u64(uint64_t *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (v[i] < v[i - 1]) {
			qsort(v, n, sizeof(*v), compare_u64);
			return;
		}
	}
}

size_t sort_distinct_u64(uint64_t *v, size_t n)
{
	size_t kept = 0;

	sort_u64(v, n);
	for (size_t i = 0; i < n; i++)
		if (!kept || v[kept - 1] != v[i])
			v[kept++] = v[i];
	return kept;
}
