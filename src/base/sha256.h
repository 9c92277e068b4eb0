/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4) of bytes in memory: what sha256sum(1) prints of the same file. */
#ifndef WEIR_BASE_SHA256_H
#define WEIR_BASE_SHA256_H

#include <stdint.h>

#include "base/span.h"

#define SHA256_BYTES	 32
#define SHA256_HEX_CHARS (2 * SHA256_BYTES)

void sha256(struct span bytes, uint8_t digest[SHA256_BYTES]);
/* The digest in hexadecimal, with a NUL. */
void sha256_hex(struct span bytes, char text[SHA256_HEX_CHARS + 1]);

#endif
