/* SPDX-License-Identifier: MIT */
#include "trace/progress.h"

#include <stddef.h>

void progress_begin(struct progress *p, uint64_t whole)
{
	if (!p)
		return;
	atomic_store_explicit(&p->done, 0, memory_order_relaxed);
	atomic_store_explicit(&p->whole, whole, memory_order_relaxed);
}

void progress_add(struct progress *p, uint64_t n)
{
	if (p)
		atomic_fetch_add_explicit(&p->done, n, memory_order_relaxed);
}

void progress_end(struct progress *p)
{
	progress_begin(p, 0);
}

bool progress_is_unwanted(const struct progress *p)
{
	return p && p->is_unwanted && atomic_load_explicit(p->is_unwanted, memory_order_relaxed);
}

void progress_get(const struct progress *p, uint64_t *done, uint64_t *whole)
{
	*done = atomic_load_explicit(&p->done, memory_order_relaxed);
	*whole = atomic_load_explicit(&p->whole, memory_order_relaxed);
}
