/* SPDX-License-Identifier: MIT */
/* The SSE 4.2 instruction where the CPU has it, else bit by bit (old machines, the page's engine, and the
 * test that compares). */
#include "base/crc32c.h"

#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <nmmintrin.h>
#endif

#define POLYNOMIAL_REFLECTED 0x82f63b78u

static uint32_t by_bits(uint32_t crc, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL_REFLECTED : 0);
	}
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(
	uint32_t crc32, const uint8_t *p, size_t n)
{
	uint64_t crc = crc32;
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		crc = _mm_crc32_u64(crc, word);
	}
	for (; n; p++, n--)
		crc = _mm_crc32_u8((uint32_t)crc, *p);
	return (uint32_t)crc;
}

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#else
#define by_instruction by_bits

static bool has_instruction(void)
{
	return false;
}
#endif

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
	crc = ~crc;
	crc = has_instruction() ? by_instruction(crc, p, n) : by_bits(crc, p, n);
	return ~crc;
}
