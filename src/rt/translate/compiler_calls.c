/* SPDX-License-Identifier: MIT */
/* What the compiler calls by itself. */
#include "translate.h"

void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
#pragma GCC visibility push(hidden)
__attribute__((visibility("hidden"))) void *memcpy(void *to, const void *from, size_t n)
{
	bytes_copy(to, from, n);
	return to;
}

__attribute__((visibility("hidden"))) void *memset(void *to, int c, size_t n)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(c) : "memory");
	return to;
}
#pragma GCC visibility pop
