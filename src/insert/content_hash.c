/* SPDX-License-Identifier: MIT */
#include "insert/content_hash.h"

#include <stdio.h>
#include <string.h>

static const uint64_t initial[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b,
	0x5be0cd19137e2179};

static const uint8_t order[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static inline uint64_t rotate(uint64_t v, int n)
{
	return v >> n | v << (64 - n);
}

/* RFC 7693 section 3.1 */
static inline void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
	*a += *b + x;
	*d = rotate(*d ^ *a, 32);
	*c += *d;
	*b = rotate(*b ^ *c, 24);
	*a += *b + y;
	*d = rotate(*d ^ *a, 16);
	*c += *d;
	*b = rotate(*b ^ *c, 63);
}

/* RFC 7693 section 3.2 */
static void compress(struct content_hash *s, const uint8_t *block, bool is_last)
{
	uint64_t v[16], m[16];

	memcpy(m, block, sizeof(m));
	memcpy(v, s->h, sizeof(s->h));
	memcpy(v + 8, initial, sizeof(initial));
	v[12] ^= s->n_bytes;
	if (is_last)
		v[14] = ~v[14];
	for (int i = 0; i < 12; i++) {
		const uint8_t *o = order[i % 10];

		mix(&v[0], &v[4], &v[8], &v[12], m[o[0]], m[o[1]]);
		mix(&v[1], &v[5], &v[9], &v[13], m[o[2]], m[o[3]]);
		mix(&v[2], &v[6], &v[10], &v[14], m[o[4]], m[o[5]]);
		mix(&v[3], &v[7], &v[11], &v[15], m[o[6]], m[o[7]]);
		mix(&v[0], &v[5], &v[10], &v[15], m[o[8]], m[o[9]]);
		mix(&v[1], &v[6], &v[11], &v[12], m[o[10]], m[o[11]]);
		mix(&v[2], &v[7], &v[8], &v[13], m[o[12]], m[o[13]]);
		mix(&v[3], &v[4], &v[9], &v[14], m[o[14]], m[o[15]]);
	}
	for (int i = 0; i < 8; i++)
		s->h[i] ^= v[i] ^ v[i + 8];
}

void content_hash_init(struct content_hash *s)
{
	memset(s, 0, sizeof(*s));
	memcpy(s->h, initial, sizeof(initial));
	s->h[0] ^= 0x01010000 ^ CONTENT_HASH_BYTES;
}

void content_hash_add(struct content_hash *s, struct span bytes)
{
	while (bytes.n) {
		size_t room = CONTENT_HASH_BLOCK - s->n_block;
		size_t n = bytes.n < room ? bytes.n : room;

		/* The last block is compressed otherwise, so a full one waits for more. */
		if (!room) {
			s->n_bytes += CONTENT_HASH_BLOCK;
			compress(s, s->block, false);
			s->n_block = 0;
			continue;
		}
		memcpy(s->block + s->n_block, bytes.p, n);
		s->n_block += n;
		bytes.p += n;
		bytes.n -= n;
	}
}

void content_hash_add_u64(struct content_hash *s, uint64_t v)
{
	content_hash_add(s, (struct span){(const uint8_t *)&v, sizeof(v)});
}

void content_hash_add_text(struct content_hash *s, const char *text)
{
	content_hash_add_u64(s, strlen(text));
	content_hash_add(s, (struct span){(const uint8_t *)text, strlen(text)});
}

void content_hash_hex(struct content_hash *s, char hex[2 * CONTENT_HASH_BYTES + 1])
{
	const uint8_t *bytes = (const uint8_t *)s->h;

	s->n_bytes += s->n_block;
	memset(s->block + s->n_block, 0, CONTENT_HASH_BLOCK - s->n_block);
	compress(s, s->block, true);
	for (int i = 0; i < CONTENT_HASH_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}
