/* SPDX-License-Identifier: MIT */
/* The registers of a thread, under the DWARF numbers of x86-64; i386 registers are kept under the
 * same names (eax = RAX, ...). */
#ifndef WEIR_ARCH_CPU_REGS_H
#define WEIR_ARCH_CPU_REGS_H

#include <stdbool.h>
#include <stdint.h>

enum cpu_reg {
	CPU_REG_RAX,
	CPU_REG_RDX,
	CPU_REG_RCX,
	CPU_REG_RBX,
	CPU_REG_RSI,
	CPU_REG_RDI,
	CPU_REG_RBP,
	CPU_REG_RSP,
	CPU_REG_R8,
	CPU_REG_R9,
	CPU_REG_R10,
	CPU_REG_R11,
	CPU_REG_R12,
	CPU_REG_R13,
	CPU_REG_R14,
	CPU_REG_R15,
	CPU_REG_RIP,
	CPU_N_REGS
};

struct cpu_regs {
	uint64_t r[CPU_N_REGS];
	uint32_t known; /* bit per register: its value at this frame is known */
	bool is_64;
};

#endif
