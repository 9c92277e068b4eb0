/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*failure_hook)(size_t bytes);

/* Allocations left before the injected failure; -1 when none is asked for. Written by every
 * allocating thread, hence atomic; there is no pair, only the count matters. */
static atomic_long injected_left = -2;

void mem_set_failure_hook(void (*hook)(size_t bytes))
{
	failure_hook = hook;
}

static void *fail(size_t bytes)
{
	if (failure_hook)
		failure_hook(bytes);
	abort();
}

static int injected_failure(void)
{
	long left = atomic_load_explicit(&injected_left, memory_order_relaxed);

	if (left == -1)
		return 0;
	if (left == -2) {
		const char *s = getenv("WEIR_FAIL_ALLOC");

		left = s && *s ? strtol(s, NULL, 10) : -1;
		atomic_store_explicit(&injected_left, left, memory_order_relaxed);
		if (left == -1)
			return 0;
	}
	return atomic_fetch_sub_explicit(&injected_left, 1, memory_order_relaxed) == 1;
}

void *mem_alloc(size_t bytes)
{
	void *p = injected_failure() ? NULL : malloc(bytes ? bytes : 1);

	return p ? p : fail(bytes);
}

void *mem_zalloc(size_t bytes)
{
	return mem_calloc(1, bytes);
}

void *mem_calloc(size_t n, size_t bytes_each)
{
	void *p = injected_failure() ? NULL : calloc(n ? n : 1, bytes_each ? bytes_each : 1);

	return p ? p : fail(bytes_each);
}

void *mem_realloc(void *old, size_t bytes)
{
	void *p = injected_failure() ? NULL : realloc(old, bytes ? bytes : 1);

	return p ? p : fail(bytes);
}

void *mem_dup(const void *p, size_t bytes)
{
	void *copy = mem_alloc(bytes);

	if (bytes)
		memcpy(copy, p, bytes);
	return copy;
}

char *mem_strdup(const char *s)
{
	return mem_dup(s, strlen(s) + 1);
}

char *mem_strndup(const char *s, size_t n)
{
	char *copy = mem_alloc(n + 1);

	if (n)
		memcpy(copy, s, n);
	copy[n] = 0;
	return copy;
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	return text;
}

char *mem_vprintf(const char *fmt, va_list ap)
{
	va_list again;
	char *text;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = mem_alloc((size_t)n + 1);
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	return text;
}

void mem_grow(void **data, size_t *cap, size_t need, size_t elem_bytes)
{
	size_t want = *cap ? *cap : 8;

	while (want < need) {
		if (want > SIZE_MAX / 2 / elem_bytes)
			fail(SIZE_MAX);
		want *= 2;
	}
	*data = mem_realloc(*data, want * elem_bytes);
	*cap = want;
}

void mem_grow_zero(void **data, size_t *n, size_t *cap, size_t need, size_t elem_bytes)
{
	if (need > *cap)
		mem_grow(data, cap, need, elem_bytes);
	memset((char *)*data + *n * elem_bytes, 0, (need - *n) * elem_bytes);
	*n = need;
}
