/* SPDX-License-Identifier: MIT */
/* System calls without libc: the program's errno, locks and cancellation points stay untouched. */
#ifndef WEIR_RT_COUNT_RAW_CALL_H
#define WEIR_RT_COUNT_RAW_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Results of system calls that are looked at. */
#define RAW_EPERM	 1
#define RAW_ENOENT	 2
#define RAW_ESRCH	 3
#define RAW_EINTR	 4
#define RAW_EACCES	 13
#define RAW_EEXIST	 17
#define RAW_ENOTDIR	 20
#define RAW_EISDIR	 21
#define RAW_EINVAL	 22
#define RAW_EMFILE	 24
#define RAW_EFBIG	 27
#define RAW_ENOSPC	 28
#define RAW_EROFS	 30
#define RAW_ENAMETOOLONG 36
#define RAW_ENOSYS	 38
#define RAW_EOPNOTSUPP	 95
#define RAW_EDQUOT	 122

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

#define raw_call(n, ...) RAW_CALL_(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW_CALL_(n, a, b, c, d, e, f, ...)                                                        \
	raw_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int raw_failed(const void *p)
{
	return (uintptr_t)p > (uintptr_t)-4096;
}

#endif
