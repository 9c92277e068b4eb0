/* SPDX-License-Identifier: MIT */
/* Names with wildcards, and the names that somebody may have meant instead. */
#ifndef WEIR_PROBE_POINTS_NAME_MATCH_H
#define WEIR_PROBE_POINTS_NAME_MATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Is one of * ? [set] in it? "[]" and a bracket that is never closed stand for themselves. */
bool glob_has(const char *pattern);
/* The whole text. O(length of both) for a pattern without sets and with one *, never worse than
 * the product. */
bool glob_match(const char *pattern, const char *text);

/* Changes of one letter, and swaps of two neighbours, that lead from one name to the other; more
 * than `max` gives max + 1. Names beyond 128 bytes are never near. */
unsigned name_distance(const char *a, const char *b, unsigned max);

/* Keeps the names nearest to one that is not there. */
#define NEAREST_NAMES_MAX  3
#define NEAREST_NAME_BYTES 128
struct nearest_names {
	const char *wanted;
	size_t n;
	struct {
		unsigned distance;
		char name[NEAREST_NAME_BYTES];
	} v[NEAREST_NAMES_MAX];
};
/* Zero-initialise apart from `wanted`. */
void nearest_names_add(struct nearest_names *near, const char *name);
/* "'malloc', 'calloc' or 'valloc'" into `to`; false when nothing is near. */
bool nearest_names_text(const struct nearest_names *near, char *to, size_t bytes);

#endif
