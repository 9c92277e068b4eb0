/* SPDX-License-Identifier: MIT */
/* Instructions as text, in AT&T syntax with absolute addresses (over Zydis). */
#ifndef WEIR_ARCH_X86_FORMAT_H
#define WEIR_ARCH_X86_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define X86_TEXT_BYTES 128

/* The instruction at the start of `code`, which lies at `addr`. False when it is none, and then
 * `text` is empty. */
bool x86_format(char text[X86_TEXT_BYTES], struct span code, uint64_t addr, bool is_64);

#endif
