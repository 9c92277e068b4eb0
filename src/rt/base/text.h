/* SPDX-License-Identifier: MIT */
/* Bytes, zero-terminated texts and the environment, without libc. */
#ifndef WEIR_RT_BASE_TEXT_H
#define WEIR_RT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void bytes_copy(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static inline bool bytes_equal(const void *a, const void *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)a)[i] != ((const uint8_t *)b)[i])
			return false;
	return true;
}

/* NULL has none. */
static inline size_t text_length(const char *s)
{
	size_t n = 0;

	while (s && s[n])
		n++;
	return n;
}

static inline bool text_equals(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Cut off where there is no room for more; the rest of `to` is zero. */
static inline void text_copy(char *to, size_t max, const char *from)
{
	size_t i = 0;

	for (; from[i] && i + 1 < max; i++)
		to[i] = from[i];
	for (; i < max; i++)
		to[i] = 0;
}

/* What the first n bytes of the text end with. */
static inline bool text_ends_with(const char *text, size_t n, const char *end)
{
	size_t n_end = text_length(end);

	return n >= n_end && bytes_equal(text + n - n_end, end, n_end);
}

/* The decimal digits that it begins with; 0 for NULL, too. */
static inline unsigned text_number(const char *s)
{
	unsigned n = 0;

	for (; s && *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (unsigned)(*s - '0');
	return n;
}

/* A text that is being made in the caller's storage; cut off where that ends. */
struct text {
	char *at;
	size_t n, max;
};

static inline void text_add_char(struct text *t, char c)
{
	if (t->n + 1 < t->max)
		t->at[t->n++] = c;
	t->at[t->n] = 0;
}

static inline void text_add(struct text *t, const char *s)
{
	while (*s)
		text_add_char(t, *s++);
}

static inline void text_add_number(struct text *t, uint64_t v)
{
	char digits[20];
	int n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		text_add_char(t, digits[--n]);
}

/* The value of NAME=VALUE; NULL: there is none. */
static inline const char *environment_find(char *const *environment, const char *name)
{
	for (; environment && *environment; environment++) {
		const char *p = *environment;
		size_t i = 0;

		while (name[i] && p[i] == name[i])
			i++;
		if (!name[i] && p[i] == '=')
			return p + i + 1;
	}
	return NULL;
}

#endif
