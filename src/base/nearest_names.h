/* SPDX-License-Identifier: MIT */
/* What somebody may have meant who asked for a name that is not there. */
#ifndef WEIR_BASE_NEAREST_NAMES_H
#define WEIR_BASE_NEAREST_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Changes of one letter, and swaps of two neighbours, that lead from one name to the other; more
 * than `max` gives max + 1. Names beyond 128 bytes are never near. A * in `a` stands for any text
 * and a ? for any letter, at no cost. */
unsigned name_distance(const char *a, const char *b, unsigned max);

/* Keeps the names nearest to one that is not there. */
#define NEAREST_NAMES_MAX  3
#define NEAREST_NAME_BYTES 128
struct nearest_names {
	const char *wanted; /* may have wildcards */
	size_t n;
	struct {
		unsigned distance;
		char name[NEAREST_NAME_BYTES];
	} v[NEAREST_NAMES_MAX];
	size_t n_demangled; /* names that were made readable to be compared, see function_pattern.h */
};
/* Zero-initialise apart from `wanted`. */
void nearest_names_add(struct nearest_names *near, const char *name);
/* "'malloc', 'calloc' or 'valloc'" into `to`; false when nothing is near. */
bool nearest_names_text(const struct nearest_names *near, char *to, size_t bytes);

#endif
