/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BASE_CRC32C_H
#define WEIR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli), as in iSCSI and ext4: start with 0 and feed pieces in order. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

#endif
