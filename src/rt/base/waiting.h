/* SPDX-License-Identifier: MIT */
/*
 * Waiting, always for a limited time: whoever is to wake others may be gone, or stopped. All of it
 * returns early when a signal comes, so callers look again at what they wait for.
 */
#ifndef WEIR_RT_BASE_WAITING_H
#define WEIR_RT_BASE_WAITING_H

#include <linux/futex.h>

#include "raw_call.h"

/* As the kernel has it in 32-bit programs, too. Less than a second. */
struct wait_time {
	long seconds, ns;
};

static inline void wait_ns(long ns)
{
	const struct wait_time limit = {0, ns};

	raw_call(SYS_nanosleep, &limit, 0);
}

/* Until somebody wakes it, unless the word is not `seen` any more. `flags` are
 * FUTEX_PRIVATE_FLAG, or 0 for memory that is shared with other processes. */
static inline void futex_wait(const uint32_t *word, uint32_t seen, int flags, long ns)
{
	const struct wait_time limit = {0, ns};

	raw_call(SYS_futex, word, FUTEX_WAIT | flags, seen, &limit);
}

static inline void futex_wake_one(const uint32_t *word, int flags)
{
	raw_call(SYS_futex, word, FUTEX_WAKE | flags, 1);
}

#endif
