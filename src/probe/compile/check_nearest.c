/* SPDX-License-Identifier: MIT */
/* Which known name a misspelt one is nearest to, for hints. */
#include <string.h>

#include "probe/compile/checker.h"

#define NAME_MAX_COMPARED 40 /* longer names get no hint */

static uint32_t least(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Levenshtein distance: insertions, deletions and replacements. */
static uint32_t distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
	uint32_t row[NAME_MAX_COMPARED + 1];

	for (size_t j = 0; j <= b_n; j++)
		row[j] = (uint32_t)j;
	for (size_t i = 1; i <= a_n; i++) {
		uint32_t diagonal = row[0];

		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= b_n; j++) {
			uint32_t above = row[j];

			row[j] =
				least(row[j - 1] + 1, above + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_n];
}

void nearest_offer(struct nearest *n, const char *candidate)
{
	size_t a_n = strlen(n->name), b_n = strlen(candidate);
	uint32_t far = (uint32_t)(a_n < 6 ? 1 : a_n < 9 ? 2 : 3), d;

	if (a_n > NAME_MAX_COMPARED || b_n > NAME_MAX_COMPARED || a_n < 2)
		return;
	d = distance(n->name, a_n, candidate, b_n);
	if (d <= far && (!n->best || d < n->distance)) {
		n->best = candidate;
		n->distance = d;
	}
}
