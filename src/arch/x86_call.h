/* SPDX-License-Identifier: MIT */
#ifndef WEIR_ARCH_X86_CALL_H
#define WEIR_ARCH_X86_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest call instruction that counts, without prefixes. */
#define X86_CALL_BYTES_MAX 7

/* Whether the bytes that end at `end` (of which `n` may be looked at) can be a near call: what
 * stands before every true return address, and before few other values that a stack holds. */
bool x86_follows_call(const uint8_t *end, size_t n);

#endif
