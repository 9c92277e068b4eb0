/* SPDX-License-Identifier: MIT */
/*
 * Mapped files that others truncate. Reading beyond the new end of a mapping raises SIGBUS, which
 * would end us; where a mapping is guarded, zeros take the place of what is gone, and the mapping
 * says so. Readers of outside bytes cope with zeros; their owner asks map_guard_is_cut() and tells
 * why something is missing. A SIGBUS of any other origin does what it always did.
 */
#ifndef WEIR_BASE_MAP_GUARD_H
#define WEIR_BASE_MAP_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* False when there are too many already: then do not map, but read. */
bool map_guard_add(const void *start, size_t bytes);
/* Before the mapping goes away. */
void map_guard_remove(const void *start);
/* Whether bytes of the mapping around `p` turned out to be gone; false when it is not guarded. */
bool map_guard_is_cut(const void *p);
/* All signals but the one that a guarded mapping raises: for threads that leave signals to another
 * one. A blocked SIGBUS is deadly. */
void map_guard_fill_mask(sigset_t *mask);

#endif
