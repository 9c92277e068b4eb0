/* SPDX-License-Identifier: MIT */
/* The few instructions of 64-bit code that stepping has to know: told by their bytes, no decoder.
 */
#ifndef WEIR_RT_STEPS_WATCHED_INSN_H
#define WEIR_RT_STEPS_WATCHED_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline unsigned n_prefixes(const uint8_t *b, size_t n)
{
	unsigned i = 0;

	for (; i < n; i++) {
		switch (b[i]) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0x66:
		case 0x67:
		case 0xf2:
		case 0xf3:
			continue;
		}
		if ((b[i] & 0xf0) != 0x40)
			break;
	}
	return i;
}

/* Length of the system call at the start of `b`; 0 when it is none. */
static inline unsigned syscall_length(const uint8_t *b, size_t n, bool *is_32)
{
	unsigned i = n_prefixes(b, n);

	*is_32 = i + 1 < n && b[i] == 0xcd && b[i + 1] == 0x80;
	return i + 1 < n && (*is_32 || (b[i] == 0x0f && b[i + 1] == 0x05)) ? i + 2 : 0;
}

/* Whether the instruction may lead to itself: a round of a string instruction, a jump, call or
 * return. */
static inline bool may_stay(const uint8_t *b, size_t n)
{
	unsigned i = n_prefixes(b, n);
	uint8_t opcode = i < n ? b[i] : 0, second = i + 1 < n ? b[i + 1] : 0;

	if (opcode == 0x0f)
		return (second & 0xf0) == 0x80;
	return (opcode & 0xf0) == 0x70 || (opcode >= 0x6c && opcode <= 0x6f) ||
	       (opcode >= 0xa4 && opcode <= 0xaf && opcode != 0xa8 && opcode != 0xa9) ||
	       (opcode >= 0xe0 && opcode <= 0xe3) || opcode == 0xe8 || opcode == 0xe9 ||
	       opcode == 0xeb || opcode == 0xff || opcode == 0xc2 || opcode == 0xc3;
}

static inline bool is_repeated_string(const uint8_t *b, size_t n)
{
	unsigned n_before = n_prefixes(b, n);
	uint8_t opcode = n_before < n ? b[n_before] : 0;
	bool is_repeated = false;

	for (unsigned i = 0; i < n_before; i++)
		is_repeated |= b[i] == 0xf2 || b[i] == 0xf3;
	return is_repeated && ((opcode >= 0x6c && opcode <= 0x6f) ||
				      (opcode >= 0xa4 && opcode <= 0xaf && opcode != 0xa8 && opcode != 0xa9));
}

/* Bytes of an operand in memory by its ModRM byte at b[0]. */
static inline unsigned modrm_bytes(const uint8_t *b, size_t n)
{
	unsigned mod = b[0] >> 6, rm = b[0] & 7, bytes = 1;

	if (mod == 3)
		return 1;
	if (rm == 4) {
		bytes++;
		if (mod == 0 && n > 1 && (b[1] & 7) == 5)
			return bytes + 4;
	}
	if (mod == 0)
		return rm == 5 ? bytes + 4 : bytes;
	return bytes + (mod == 1 ? 1 : 4);
}

/* Length of a mov to ss, behind which the trap waits for one more instruction; else 0. */
static inline unsigned shadow_length(const uint8_t *b, size_t n)
{
	unsigned i = n_prefixes(b, n);

	if (i + 1 >= n || b[i] != 0x8e || (b[i + 1] >> 3 & 7) != 2)
		return 0;
	return i + 1 + modrm_bytes(b + i + 1, n - i - 1);
}

#endif
