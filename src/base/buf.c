/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/leb128.h"
#include "base/mem.h"

void buf_release(struct buf *b)
{
	free(b->p);
	*b = (struct buf){NULL, 0, 0};
}

static uint8_t *reserve(struct buf *b, size_t n)
{
	if (b->n + n > b->cap)
		mem_grow((void **)&b->p, &b->cap, b->n + n, 1);
	return b->p + b->n;
}

void buf_put(struct buf *b, const void *bytes, size_t n)
{
	if (!n)
		return;
	memcpy(reserve(b, n), bytes, n);
	b->n += n;
}

void *buf_put_zeros(struct buf *b, size_t n)
{
	uint8_t *p = reserve(b, n + 1); /* some place even for none */

	memset(p, 0, n);
	b->n += n;
	return p;
}

void buf_put_u8(struct buf *b, uint8_t v)
{
	*reserve(b, 1) = v;
	b->n++;
}

void buf_put_u16(struct buf *b, uint16_t v)
{
	buf_put(b, &v, sizeof(v));
}

void buf_put_u32(struct buf *b, uint32_t v)
{
	buf_put(b, &v, sizeof(v));
}

void buf_put_u64(struct buf *b, uint64_t v)
{
	buf_put(b, &v, sizeof(v));
}

void buf_put_uleb(struct buf *b, uint64_t v)
{
	uint8_t *p = reserve(b, ULEB_BYTES_MAX);

	b->n += (size_t)(uleb_put(p, v) - p);
}

void buf_put_uleb_row(struct buf *b, const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(b, v[i]);
}

void buf_put_sleb(struct buf *b, int64_t v)
{
	for (;;) {
		uint8_t byte = (uint8_t)v & 0x7f;

		v >>= 7; /* arithmetic in gcc and clang */
		if ((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40))) {
			buf_put_u8(b, byte);
			return;
		}
		buf_put_u8(b, byte | 0x80);
	}
}

void buf_put_cstr(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_put_text(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s) + 1);
}

void buf_put_hex(struct buf *b, struct span bytes)
{
	for (size_t i = 0; i < bytes.n; i++)
		buf_printf(b, "%02x", bytes.p[i]);
}

void buf_put_shell_word(struct buf *b, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+./:,=@%";

	if (*word && strspn(word, plain) == strlen(word)) {
		buf_put_cstr(b, word);
		return;
	}
	buf_put_u8(b, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_put_cstr(b, "'\\''");
		else
			buf_put_u8(b, (uint8_t)*word);
	}
	buf_put_u8(b, '\'');
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	reserve(b, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf((char *)b->p + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

const char *buf_text(struct buf *b)
{
	*reserve(b, 1) = 0;
	return (const char *)b->p;
}
