/* SPDX-License-Identifier: MIT */
/* Which memory an instruction reads and writes, given the registers before it (over Zydis). */
#ifndef WEIR_ARCH_X86_MEMORY_H
#define WEIR_ARCH_X86_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define X86_ACCESSES_MAX 4

struct x86_registers {
	uint64_t general[16]; /* as they are encoded: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ...
			       */
	uint64_t fs_base, gs_base;
};

struct x86_access {
	uint64_t addr;
	uint32_t bytes;
	bool is_read, is_written;
};

/* The accesses of the instruction at the start of `code`, which lies at `addr`, one iteration of a
 * repeated one. Returns how many. Not told: what gathers and scatters touch, and the tables that
 * the processor reads by itself. */
size_t x86_accesses(struct x86_access accesses[X86_ACCESSES_MAX], struct span code, uint64_t addr,
	bool is_64, const struct x86_registers *before);

#endif
