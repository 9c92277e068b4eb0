/* SPDX-License-Identifier: MIT */
/* Hexadecimal numbers in the text files of the kernel and of just-in-time compilers. */
#ifndef WEIR_SYMBOLS_HEX_H
#define WEIR_SYMBOLS_HEX_H

#include "base/span.h"

static inline int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes 1 to 16 digits; false when there are none or more. */
static inline bool hex_take(struct cursor *c, uint64_t *out)
{
	const uint8_t *start = c->p;
	uint64_t v = 0;
	int digit;

	for (; cursor_left(c) && (digit = hex_digit(*c->p)) >= 0; c->p++)
		v = v << 4 | (uint64_t)digit;
	*out = v;
	return c->p > start && c->p - start <= 16;
}

#endif
