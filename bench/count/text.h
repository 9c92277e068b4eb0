/* SPDX-License-Identifier: MIT */
/* Something like text, the same each time, for the compressors. */
#ifndef WEIR_BENCH_COUNT_TEXT_H
#define WEIR_BENCH_COUNT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline size_t make_text(unsigned char *to, size_t n)
{
	static const char *const words[] = {"where", "is", "the", "time", "spent", "count", "block",
		"function", "every", "of", "branch", "in", "a", "program", "and", "its"};
	uint32_t x = 12345;
	size_t at = 0;

	while (at + 32 < n) {
		x = x * 1664525u + 1013904223u;
		if (x >> 28 == 7)
			at += (size_t)sprintf((char *)to + at, "%u\n", x >> 8);
		else
			at += (size_t)sprintf((char *)to + at, "%s ", words[x >> 20 & 15]);
	}
	return at;
}

#endif
