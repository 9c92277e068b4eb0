/* SPDX-License-Identifier: MIT */
/* System calls without libc: the program's errno, locks and cancellation points stay untouched. */
#ifndef WEIR_RT_RAW_CALL_H
#define WEIR_RT_RAW_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifdef __x86_64__
static inline long raw_call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#define RAW_MMAP SYS_mmap
#else
/* Six arguments take all registers, ebp too, which the compiler may need for the frame. */
static inline long raw_call6(long n, long a, long b, long c, long d, long e, long f)
{
	long args[2] = {a, f};
	long result;

	__asm__ volatile(
		"push %%ebx; push %%ebp; mov 4(%%ebx), %%ebp; mov (%%ebx), %%ebx; int $0x80; "
		"pop %%ebp; pop %%ebx"
		: "=a"(result)
		: "a"(n), "b"(args), "c"(b), "d"(c), "S"(d), "D"(e)
		: "memory");
	return result;
}
#define RAW_MMAP SYS_mmap2 /* offsets in pages */
#endif

#define raw_call(n, ...) RAW_CALL_(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW_CALL_(n, a, b, c, d, e, f, ...)                                                        \
	raw_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline void *raw_mmap(void *at, size_t n, int prot, int flags, int fd)
{
	return (void *)raw_call(RAW_MMAP, at, n, prot, flags, fd, 0);
}

static inline int raw_failed(const void *p)
{
	return (uintptr_t)p > (uintptr_t)-4096;
}

#endif
