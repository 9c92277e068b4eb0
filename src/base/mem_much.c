/* SPDX-License-Identifier: MIT */
/* Apart from mem.c, which the engine of the page has, too: there is no such heap in WebAssembly. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/mem.h"

#define MUCH_BYTES	((size_t)31 << 20)
#define MMAP_BYTES	(32 << 20) /* the most that mallopt takes: what is larger is mapped apart */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

void mem_expect_much(void)
{
	uintptr_t first;
	void *p;

	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	mallopt(M_TRIM_THRESHOLD, 4 * MMAP_BYTES);
	p = malloc(MUCH_BYTES);
	if (!p)
		return;
	first = ((uintptr_t)p + HUGE_PAGE_BYTES - 1) & -HUGE_PAGE_BYTES;
	madvise((void *)first, ((uintptr_t)p + MUCH_BYTES - first) & -HUGE_PAGE_BYTES,
		MADV_HUGEPAGE);
	free(p); /* it stays the heap's */
}
