/* SPDX-License-Identifier: MIT */
/* System calls without libc: the program's errno, locks and cancellation points stay untouched.
 * An error is a negative result: the kernel's number. */
#ifndef WEIR_RT_BASE_RAW_CALL_H
#define WEIR_RT_BASE_RAW_CALL_H

#include <asm/errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
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
#define raw_call(n, ...) RAW_CALL_(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW_CALL_(n, a, b, c, d, e, f, ...)                                                        \
	raw_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline void *raw_mmap(void *at, size_t n, int prot, int flags, int fd)
{
	return (void *)raw_call(SYS_mmap, at, n, prot, flags, fd, 0);
}
#else
/*
 * Five arguments. A sixth would be in ebp, which the compiler may need for the frame: so it would have
 * to be pushed, and unwinders, which come here when a thread is cancelled as its signals are unblocked,
 * know nothing of that. No call needs one.
 */
static inline long raw_call5(long n, long a, long b, long c, long d, long e)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(n), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return result;
}
#define raw_call(n, ...) RAW_CALL_(n, __VA_ARGS__, 0, 0, 0, 0, 0)
#define RAW_CALL_(n, a, b, c, d, e, ...)                                                           \
	raw_call5(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

/* The old call of this name takes its arguments from memory. */
static inline void *raw_mmap(void *at, size_t n, int prot, int flags, int fd)
{
	const long args[6] = {(long)at, (long)n, prot, flags, fd, 0};

	return (void *)raw_call(SYS_mmap, args);
}
#endif

static inline bool raw_failed(const void *p)
{
	return (uintptr_t)p > (uintptr_t)-4096;
}

/* Memory of this process alone, of no file; `flags` beside those. NULL: it is not to be had. */
static inline void *raw_memory(void *at, size_t n, int prot, int flags)
{
	void *p = raw_mmap(at, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1);

	return raw_failed(p) ? NULL : p;
}

/* A descriptor that no other program inherits, or a negative error. */
static inline int raw_open(const char *path, int flags)
{
	return (int)raw_call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0666);
}

static inline void raw_close(int fd)
{
	raw_call(SYS_close, fd);
}

static inline uint32_t raw_pid(void)
{
	return (uint32_t)raw_call(SYS_getpid, 0);
}

static inline uint32_t raw_tid(void)
{
	return (uint32_t)raw_call(SYS_gettid, 0);
}

#endif
