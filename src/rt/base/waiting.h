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

/* Not by nanosleep: the kernel keeps one note about how to go on with a timed wait, and a thread that does this for us
 * may be in the midst of one (restart_syscall(2)). nanosleep takes the note as soon as it begins, ppoll never. */
static inline void wait_ns(long ns)
{
	struct wait_time limit = {0, ns};

	raw_call(SYS_ppoll, 0, 0, &limit, 0, 8);
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
