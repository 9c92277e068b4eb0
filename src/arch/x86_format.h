/* SPDX-License-Identifier: MIT */
/* Instructions as text, with absolute addresses (over Zydis). */
#ifndef WEIR_ARCH_X86_FORMAT_H
#define WEIR_ARCH_X86_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define X86_TEXT_BYTES 128

enum x86_syntax { X86_SYNTAX_ATT, X86_SYNTAX_INTEL };

/* The instruction at the start of `code`, which lies at `addr`. False when it is none, and then
 * `text` is empty. */
bool x86_format_as(enum x86_syntax syntax, char text[X86_TEXT_BYTES], struct span code,
	uint64_t addr, bool is_64);
/* In AT&T syntax. */
bool x86_format(char text[X86_TEXT_BYTES], struct span code, uint64_t addr, bool is_64);

#endif
