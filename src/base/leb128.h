/* SPDX-License-Identifier: MIT */
/* Numbers of variable length, where a buffer or a cursor would cost too much. */
#ifndef WEIR_BASE_LEB128_H
#define WEIR_BASE_LEB128_H

#include <stdint.h>

#define ULEB_BYTES_MAX 10

/* Writes an unsigned LEB128 at `p` (room for ULEB_BYTES_MAX) and returns the place behind it. */
static inline uint8_t *uleb_put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* Signed numbers: 0, -1, 1, -2, ... are 0, 1, 2, 3, ... */
static inline uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

static inline uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ -(v & 1);
}

#endif
