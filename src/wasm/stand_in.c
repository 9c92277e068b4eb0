/* SPDX-License-Identifier: MIT */
/* What weir takes from the C library or the system and a page does not have. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

/* The trace of a page is in memory. */
void file_map_release(struct file_map *map)
{
	map->bytes = (struct span){NULL, 0};
}

bool file_map_is_cut(const struct file_map *map)
{
	(void)map;
	return false;
}

/* Merging from below, so what is equal stays in order, as glibc's does. */
void qsort_r(void *base, size_t n, size_t bytes, int (*compare)(const void *, const void *, void *),
	void *context)
{
	char *from = base, *to = mem_alloc(n * bytes + 1), *spare = to;

	for (size_t run = 1; run < n; run *= 2) {
		for (size_t start = 0; start < n; start += 2 * run) {
			size_t middle = start + run < n ? start + run : n,
			       end = middle + run < n ? middle + run : n;
			size_t a = start, b = middle;

			for (size_t k = start; k < end; k++) {
				bool takes_a = a < middle && (b == end || compare(from + a * bytes,
										  from + b * bytes,
										  context) <= 0);

				memcpy(to + k * bytes, from + (takes_a ? a++ : b++) * bytes, bytes);
			}
		}
		char *swap = from;
		from = to;
		to = swap;
	}
	if (from != base)
		memcpy(base, from, n * bytes);
	free(spare);
}
