/* SPDX-License-Identifier: MIT */
#include "base/span.h"

uint64_t cursor_uleb_long(struct cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (;;) {
		uint8_t byte = cursor_u8(c);
		uint64_t bits = byte & 0x7f;

		if (c->failed)
			return 0;
		if (shift >= 64 ? bits != 0 : shift > 57 && bits >> (64 - shift)) {
			c->failed = true;
			return 0;
		}
		if (shift < 64)
			value |= bits << shift;
		if (!(byte & 0x80))
			return value;
		shift += 7;
		if (shift > 70) { /* padded LEB128 is legal, endless padding is not */
			c->failed = true;
			return 0;
		}
	}
}

int64_t cursor_sleb(struct cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (;;) {
		uint8_t byte = cursor_u8(c);

		if (c->failed)
			return 0;
		/* From bit 63 on there is only the sign, repeated. */
		if (shift >= 63 && (byte & 0x7f) != (shift == 63 ? (byte & 1 ? 0x7f : 0)
								 : (value >> 63 ? 0x7f : 0))) {
			c->failed = true;
			return 0;
		}
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if (shift < 64 && (byte & 0x40))
				value |= ~(uint64_t)0 << shift;
			return (int64_t)value;
		}
		if (shift > 70) {
			c->failed = true;
			return 0;
		}
	}
}

const char *cursor_cstr(struct cursor *c)
{
	const char *text = (const char *)c->p;
	const uint8_t *nul = c->failed || c->p == c->end ? NULL : memchr(c->p, 0, cursor_left(c));

	if (!nul) {
		c->failed = true;
		return NULL;
	}
	c->p = nul + 1;
	return text;
}

/* RFC 3629 section 4. */
size_t utf8_bytes(const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t need = !n	    ? 0
		      : p[0] < 0x80 ? 1
		      : p[0] < 0xc2 ? 0
		      : p[0] < 0xe0 ? 2
		      : p[0] < 0xf0 ? 3
				    : 4;

	if (!need || need > n || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return need;
}
