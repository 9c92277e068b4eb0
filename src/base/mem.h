/* SPDX-License-Identifier: MIT */
/*
 * Allocation. These functions never return NULL: when memory runs out the hook set by cmd/ says
 * so and ends the process, which is safe because a trace on disk is readable up to its last whole
 * chunk. WEIR_FAIL_ALLOC=N in the environment makes the Nth allocation fail (fault tests).
 */
#ifndef WEIR_BASE_MEM_H
#define WEIR_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Called when memory runs out; must not return. The default aborts. */
void mem_set_failure_hook(void (*hook)(size_t bytes));

/* Much memory is used from here on, megabytes of it: the first of the heap come in huge pages, where the kernel has them on
 * request, since a fault for each small page would take a fifth of the time. Before threads are made. */
void mem_expect_much(void);
void *mem_alloc(size_t bytes); /* uninitialised; free with free() */
void *mem_zalloc(size_t bytes);
void *mem_calloc(size_t n, size_t bytes_each);
void *mem_realloc(void *p, size_t bytes);
void *mem_dup(const void *p, size_t bytes);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *mem_vprintf(const char *fmt, va_list ap);

/* A growing array of T: zero-initialise it, push with vec_push, free(vec.v). */
#define VEC(T)                                                                                     \
	struct {                                                                                   \
		T *v;                                                                              \
		size_t n, cap;                                                                     \
	}
void mem_grow(void **data, size_t *cap, size_t need, size_t elem_bytes);
#define vec_reserve(vec, need)                                                                     \
	((need) > (vec)->cap                                                                       \
			? mem_grow((void **)&(vec)->v, &(vec)->cap, (need), sizeof(*(vec)->v))     \
			: (void)0)
/* At least so many items: those that are new are zero. */
void mem_grow_zero(void **data, size_t *n, size_t *cap, size_t need, size_t elem_bytes);
#define vec_ensure_zero(vec, need)                                                                 \
	((need) > (vec)->n ? mem_grow_zero((void **)&(vec)->v, &(vec)->n, &(vec)->cap, (need),     \
				     sizeof(*(vec)->v))                                            \
			   : (void)0)
#define vec_push(vec, item)                                                                        \
	(vec_reserve((vec), (vec)->n + 1), (void)((vec)->v[(vec)->n++] = (item)))
/* The item becomes number `i`; those from there on move up. */
#define vec_insert(vec, i, item)                                                                   \
	(vec_reserve((vec), (vec)->n + 1),                                                         \
		memmove(&(vec)->v[(i) + 1], &(vec)->v[i], ((vec)->n++ - (i)) * sizeof(*(vec)->v)), \
		(void)((vec)->v[i] = (item)))
#define vec_sort(vec, compare)                                                                     \
	((vec)->n > 1 ? qsort((vec)->v, (vec)->n, sizeof(*(vec)->v), (compare)) : (void)0)
#define vec_release(vec) (free((vec)->v), (vec)->v = NULL, (vec)->n = (vec)->cap = 0)
/* Of pointers to heap blocks: frees these, too. */
#define vec_release_all(vec)                                                                       \
	do {                                                                                       \
		for (size_t vec_i_ = 0; vec_i_ < (vec)->n; vec_i_++)                               \
			free((void *)(vec)->v[vec_i_]);                                            \
		vec_release(vec);                                                                  \
	} while (0)

#endif
