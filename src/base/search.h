/* SPDX-License-Identifier: MIT */
/* Binary search, written once. */
#ifndef WEIR_BASE_SEARCH_H
#define WEIR_BASE_SEARCH_H

#include <stddef.h>

/*
 * The first index in [from, to) for which `is_before`, an expression in `i`, does not hold; `to` when it
 * holds for all. Those for which it holds stand first.
 *
 *   at = SEARCH(0, n, i, v[i].addr < addr)     the first at or behind addr
 *   at = SEARCH(0, n, i, v[i].addr <= addr)    the one behind the last at or before it
 */
#define SEARCH(from, to, i, is_before)                                                             \
	({                                                                                         \
		size_t search_low_ = (from), search_high_ = (to);                                  \
                                                                                                   \
		while (search_low_ < search_high_) {                                               \
			size_t i = search_low_ + (search_high_ - search_low_) / 2;                 \
                                                                                                   \
			if (is_before)                                                             \
				search_low_ = i + 1;                                               \
			else                                                                       \
				search_high_ = i;                                                  \
		}                                                                                  \
		search_low_;                                                                       \
	})

#endif
