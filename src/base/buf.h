/* SPDX-License-Identifier: MIT */
/* A growing byte buffer; zero-initialise it, release it with buf_release. */
#ifndef WEIR_BASE_BUF_H
#define WEIR_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct buf {
	uint8_t *p;
	size_t n, cap;
};

void buf_release(struct buf *b);
static inline void buf_reset(struct buf *b)
{
	b->n = 0;
}
static inline struct span buf_span(const struct buf *b)
{
	return (struct span){b->p, b->n};
}
void buf_put(struct buf *b, const void *bytes, size_t n);
/* n zero bytes, to be filled in until the next change. */
void *buf_put_zeros(struct buf *b, size_t n);
void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_u16(struct buf *b, uint16_t v);
void buf_put_u32(struct buf *b, uint32_t v);
void buf_put_u64(struct buf *b, uint64_t v);
void buf_put_uleb(struct buf *b, uint64_t v);
void buf_put_sleb(struct buf *b, int64_t v);
void buf_put_uleb_row(struct buf *b, const uint64_t *v, size_t n);
/* Numbers, one behind the other: buf_put_ulebs(b, addr, size, name). */
#define buf_put_ulebs(b, ...)                                                                      \
	buf_put_uleb_row((b), (const uint64_t[]){__VA_ARGS__},                                     \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
void buf_put_cstr(struct buf *b, const char *s);	  /* without the NUL */
void buf_put_text(struct buf *b, const char *s);	  /* with the NUL */
void buf_put_hex(struct buf *b, struct span bytes);	  /* two digits a byte */
void buf_put_shell_word(struct buf *b, const char *word); /* quoted when a shell needs that */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The content as a NUL-terminated text, owned by the buffer until the next change. */
const char *buf_text(struct buf *b);

#endif
