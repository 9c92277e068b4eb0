/* SPDX-License-Identifier: MIT */
/*
 * Bytes from outside are a span; they are read only through a cursor, which cannot overrun: past
 * the end every read gives 0 and the cursor stays failed.
 */
#ifndef WEIR_BASE_SPAN_H
#define WEIR_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const uint8_t *p;
	size_t n;
};

/* The part [offset, offset + n) of `s`, or an empty span (p == NULL) when it does not fit. */
static inline struct span span_sub(struct span s, uint64_t offset, uint64_t n)
{
	if (!s.p || offset > s.n || n > s.n - offset)
		return (struct span){NULL, 0};
	return (struct span){s.p + offset, (size_t)n};
}

static inline bool span_equal(struct span a, struct span b)
{
	return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n));
}

/* True when `s` holds the offset and a NUL ends the text there. */
static inline const char *span_cstr(struct span s, uint64_t offset)
{
	if (offset >= s.n || !memchr(s.p + offset, 0, s.n - (size_t)offset))
		return NULL;
	return (const char *)s.p + offset;
}

/* The same when the NUL is one of the next `max` bytes: what is bad costs no search to the end. */
static inline const char *span_short_cstr(struct span s, uint64_t offset, size_t max)
{
	if (offset < s.n && s.n - offset > max)
		s.n = (size_t)offset + max;
	return span_cstr(s, offset);
}

struct cursor {
	const uint8_t *p;   /* next byte */
	const uint8_t *end; /* one past the last byte */
	bool failed;	    /* a read went past the end, or a number did not fit */
};

static inline struct cursor cursor_of(struct span s)
{
	static const uint8_t nothing[1]; /* C has no arithmetic on NULL, not even adding 0 */

	if (!s.p)
		s = (struct span){nothing, 0};
	return (struct cursor){s.p, s.p + s.n, false};
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline bool cursor_take(struct cursor *c, void *to, size_t n)
{
	if (c->failed || cursor_left(c) < n) {
		c->failed = true;
		memset(to, 0, n);
		return false;
	}
	memcpy(to, c->p, n);
	c->p += n;
	return true;
}

#define CURSOR_READER(bits)                                                                        \
	static inline uint##bits##_t cursor_u##bits(struct cursor *c)                              \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
                                                                                                   \
		cursor_take(c, &v, sizeof(v));                                                     \
		return v;                                                                          \
	}
CURSOR_READER(8)
CURSOR_READER(16)
CURSOR_READER(32)
CURSOR_READER(64)
#undef CURSOR_READER

/* The next n bytes, borrowed from the underlying span; empty and failed when they are not there. */
static inline struct span cursor_bytes(struct cursor *c, uint64_t n)
{
	struct span s;

	if (c->failed || n > cursor_left(c)) {
		c->failed = true;
		return (struct span){NULL, 0};
	}
	s = (struct span){c->p, (size_t)n};
	c->p += n;
	return s;
}

static inline void cursor_skip(struct cursor *c, uint64_t n)
{
	cursor_bytes(c, n);
}

/* LEB128; more than 64 bits fail. */
uint64_t cursor_uleb_long(struct cursor *c);
static inline uint64_t cursor_uleb(struct cursor *c)
{
	/* Most numbers have one byte. */
	return c->p < c->end && *c->p < 0x80 && !c->failed ? *c->p++ : cursor_uleb_long(c);
}

int64_t cursor_sleb(struct cursor *c);

/* A NUL-terminated text, NUL consumed; NULL and failed when there is no NUL. */
const char *cursor_cstr(struct cursor *c);

/* How much of UTF-8 is at `p`: the bytes of one character (1 to 4), or 0 when they are not UTF-8. */
size_t utf8_bytes(const char *p, size_t n);

#endif
