/* SPDX-License-Identifier: MIT */
/* BLAKE2b (RFC 7693) with 256 bits: names of things by what they contain. */
#ifndef WEIR_INSERT_CONTENT_HASH_H
#define WEIR_INSERT_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define CONTENT_HASH_BYTES 32
#define CONTENT_HASH_BLOCK 128

struct content_hash {
	uint64_t h[8];
	uint64_t n_bytes; /* hashed so far, without those in `block` */
	uint8_t block[CONTENT_HASH_BLOCK];
	size_t n_block;
};

void content_hash_init(struct content_hash *s);
void content_hash_add(struct content_hash *s, struct span bytes);
/* Length first, so that neighbouring texts cannot be taken for each other. */
void content_hash_add_text(struct content_hash *s, const char *text);
void content_hash_add_u64(struct content_hash *s, uint64_t v);
/* 64 hexadecimal digits and a NUL; the state is used up. */
void content_hash_hex(struct content_hash *s, char hex[2 * CONTENT_HASH_BYTES + 1]);

#endif
