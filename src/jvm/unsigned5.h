/* SPDX-License-Identifier: MIT */
/*
 * The numbers of HotSpot's compressed streams: one to five bytes. A byte below 192 ends the number,
 * one from there on has 6 bits and goes on. From JDK 20 on no byte is 0, and each stands for one less.
 */
#ifndef WEIR_JVM_UNSIGNED5_H
#define WEIR_JVM_UNSIGNED5_H

#include "base/span.h"

#define UNSIGNED5_BYTES_MAX 5

/* `least` is the least value of a byte: 0, or 1 from JDK 20 on. */
static inline uint32_t unsigned5_read(struct cursor *c, unsigned least)
{
	unsigned high = 192; /* from here on a byte says that more follow */
	uint32_t sum = 0;

	for (unsigned i = 0; i < UNSIGNED5_BYTES_MAX; i++) {
		uint8_t byte = cursor_u8(c);

		if (byte < least) {
			c->failed = true;
			return 0;
		}
		sum += (uint32_t)(byte - least) << 6 * i;
		if (byte < high)
			break;
	}
	return sum;
}

static inline int32_t unsigned5_read_signed(struct cursor *c, unsigned least)
{
	uint32_t v = unsigned5_read(c, least);

	return (int32_t)(v >> 1 ^ -(v & 1));
}

#endif
