/* SPDX-License-Identifier: MIT */
/*
 * What all code that runs inside other people's programs shares: the hook library (rt/hook), the
 * counting library (rt/count), and those to come.
 *
 *	raw_call.h	system calls, memory
 *	text.h		bytes, texts and how they are made, the environment
 *	waiting.h	futexes and short sleeps
 *	proc_text.h	/proc/self: what is mapped where, modules, gaps, filters, threads
 *	stack_bounds.h	where a signal stack, the program's first stack and a thread's stack are
 *	registers.h	for assembler: functions, registers and flags that are kept
 *
 * Rules of this folder:
 * 1. No libc but its headers: no errno, no allocation, no locks, no output. An error is the result.
 * 2. May be called by any thread at any time, by signal handlers, too: nothing here keeps a state.
 *    Storage is the caller's. The stack may be a coroutine's: at most 1 KiB of it is used.
 * 3. General registers only, and the direction flag is clear (RT_FLAGS in the Makefile).
 * 4. Nothing has to be relocated: no tables of pointers, every name hidden. It may run before a
 *    static-pie has relocated itself.
 * 5. For 32- and 64-bit programs. An address is a uintptr_t.
 * 6. Includes nothing of other folders.
 */
#ifndef WEIR_RT_BASE_INSIDE_H
#define WEIR_RT_BASE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw_call.h"
#include "text.h"
#include "waiting.h"

#define PAGE_BYTES   4096u
#define PAGE_DOWN(n) ((uintptr_t)(n) & ~(uintptr_t)(PAGE_BYTES - 1))
#define PAGE_UP(n)   PAGE_DOWN((uintptr_t)(n) + PAGE_BYTES - 1)

static inline uint64_t ticks_now(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* glibc's: what it calls around fork. In static programs it is there when fork is. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
	void *owner) __attribute__((weak, visibility("default")));

/* Of this thread, all of them. */
static inline void signals_block(uint64_t *old)
{
	uint64_t all = ~(uint64_t)0;

	raw_call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, old, sizeof(all));
}

static inline void signals_unblock(const uint64_t *old)
{
	raw_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, old, 0, sizeof(*old));
}

#endif
