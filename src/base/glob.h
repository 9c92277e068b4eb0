/* SPDX-License-Identifier: MIT */
/*
 * Names with wildcards, as a shell has them:
 *
 *	*	any text, also none, also with slashes
 *	?	any one letter
 *	[a-z_]	one of these; [!a-z] or [^a-z] one that is none of them; [[:digit:]] one of a class
 *	\*	the letter itself; so \? and \[
 *
 * "[]" and a bracket that is never closed stand for themselves: operator[] is a name.
 */
#ifndef WEIR_BASE_GLOB_H
#define WEIR_BASE_GLOB_H

#include <stdbool.h>

/* Is any of these in it? */
bool glob_has(const char *pattern);
/* The whole text. O(length of both) for a pattern without sets and with one *, never worse than
 * the product. */
bool glob_match(const char *pattern, const char *text);

#endif
