/* SPDX-License-Identifier: MIT */
#include "classfile/bytecode.h"

#include "classfile/class_file.h"

#define OP_IINC 0x84
#define OP_WIDE 0xc4

/* In order: instructions up to `last` have so many bytes; 0 = none of them, or it depends. */
static const struct {
	uint8_t last, bytes;
} lengths[] = {{0x0f, 1}, {0x10, 2}, {0x11, 3}, {0x12, 2}, {0x14, 3}, {0x19, 2}, {0x35, 1},
	{0x3a, 2}, {0x83, 1}, {0x84, 3}, {0x98, 1}, {0xa8, 3}, {0xa9, 2}, {0xab, 0}, {0xb1, 1},
	{0xb8, 3}, {0xba, 5}, {0xbb, 3}, {0xbc, 2}, {0xbd, 3}, {0xbf, 1}, {0xc1, 3}, {0xc3, 1},
	{0xc4, 0}, {0xc5, 4}, {0xc7, 3}, {0xc9, 5}, {0xff, 0}};

static uint64_t switch_length(struct span code, uint32_t at)
{
	uint32_t padding = bytecode_switch_padding(at);
	struct cursor in = cursor_of(span_sub(code, at, code.n - at));
	uint8_t op = cursor_u8(&in);
	int64_t low, high;

	cursor_skip(&in, padding + 4);
	low = (int32_t)cursor_be32(&in);
	if (op == BYTECODE_LOOKUPSWITCH)
		return in.failed || low < 0 ? 0 : 1 + (uint64_t)padding + 8 + 8 * (uint64_t)low;
	high = (int32_t)cursor_be32(&in);
	return in.failed || high < low
		       ? 0
		       : 1 + (uint64_t)padding + 12 + 4 * (uint64_t)(high - low + 1);
}

uint32_t bytecode_length(struct span code, uint32_t at)
{
	uint64_t n = 0;
	uint8_t op;

	if (at >= code.n)
		return 0;
	op = code.p[at];
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		if (op <= lengths[i].last) {
			n = lengths[i].bytes;
			break;
		}
	if (bytecode_is_switch(op))
		n = switch_length(code, at);
	else if (op == OP_WIDE && code.n - at > 1)
		n = code.p[at + 1] == OP_IINC ? 6 : 4;
	return n <= code.n - at ? (uint32_t)n : 0;
}
