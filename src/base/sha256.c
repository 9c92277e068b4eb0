/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES 64
#define N_ROUNDS    64

/* FIPS 180-4 section 4.2.2: from the cube roots of the first 64 primes. */
static const uint32_t round_constants[N_ROUNDS] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
	0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
	0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624,
	0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
	0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t v, int n)
{
	return v >> n | v << (32 - n);
}

static void make_schedule(const uint8_t *block, uint32_t w[N_ROUNDS])
{
	for (int t = 0; t < 16; t++)
		w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
		       (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
	for (int t = 16; t < N_ROUNDS; t++) {
		uint32_t a = w[t - 15], b = w[t - 2];

		w[t] = w[t - 16] + w[t - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) +
		       (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
}

/* FIPS 180-4 section 6.2.2; the letters a to h of the standard are v[0] to v[7]. */
static void take_block(uint32_t hash[8], const uint8_t *block)
{
	uint32_t w[N_ROUNDS], v[8];

	make_schedule(block, w);
	memcpy(v, hash, sizeof(v));
	for (int t = 0; t < N_ROUNDS; t++) {
		uint32_t sum_e = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
		uint32_t sum_a = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		uint32_t t1 = v[7] + sum_e + choice + round_constants[t] + w[t];

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + sum_a + majority;
	}
	for (int i = 0; i < 8; i++)
		hash[i] += v[i];
}

void sha256(struct span bytes, uint8_t digest[SHA256_BYTES])
{
	uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
		0x1f83d9ab, 0x5be0cd19};
	size_t n_whole = bytes.n / BLOCK_BYTES * BLOCK_BYTES, n_rest = bytes.n - n_whole;
	uint8_t last[2 * BLOCK_BYTES] = {0};
	size_t n_last = n_rest + 9 > BLOCK_BYTES ? 2 * BLOCK_BYTES : BLOCK_BYTES;

	for (size_t at = 0; at < n_whole; at += BLOCK_BYTES)
		take_block(hash, bytes.p + at);
	if (n_rest)
		memcpy(last, bytes.p + n_whole, n_rest);
	last[n_rest] = 0x80;
	for (int i = 0; i < 8; i++)
		last[n_last - 1 - (size_t)i] = (uint8_t)((uint64_t)bytes.n * 8 >> 8 * i);
	for (size_t at = 0; at < n_last; at += BLOCK_BYTES)
		take_block(hash, last + at);
	for (int i = 0; i < SHA256_BYTES; i++)
		digest[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(struct span bytes, char text[SHA256_HEX_CHARS + 1])
{
	uint8_t digest[SHA256_BYTES];

	sha256(bytes, digest);
	for (int i = 0; i < SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
}
