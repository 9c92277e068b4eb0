/* SPDX-License-Identifier: MIT */
#include "arch/x86_code.h"

/* Bytes of `ff /2` with this ModRM byte: opcode, ModRM, SIB, displacement; 0 when it is no call. */
static size_t indirect_call_bytes(uint8_t modrm, uint8_t sib)
{
	unsigned mod = modrm >> 6, reg = modrm >> 3 & 7, rm = modrm & 7;
	size_t n = 2;

	if (reg != 2)
		return 0;
	if (mod == 3)
		return n;
	if (rm == 4)
		n++;
	if (mod == 1)
		return n + 1;
	if (mod == 2 || rm == 5 || (rm == 4 && (sib & 7) == 5))
		return n + 4;
	return n;
}

bool x86_follows_call(const uint8_t *end, size_t n)
{
	if (n >= 5 && end[-5] == 0xe8)
		return true;
	for (size_t length = 2; length <= X86_CALL_BYTES_MAX && length <= n; length++) {
		const uint8_t *p = end - length;

		if (p[0] == 0xff && indirect_call_bytes(p[1], length > 2 ? p[2] : 0) == length)
			return true;
	}
	return false;
}
