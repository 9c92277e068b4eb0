/* SPDX-License-Identifier: MIT */
/*
 * For assembler: functions, and registers and flags that are kept around what they call, so that
 * unwinders know at each instruction where the caller's are. lahf and seto keep the flags: pushf and
 * popf cost ten times as much.
 */
#ifndef WEIR_RT_BASE_REGISTERS_H
#define WEIR_RT_BASE_REGISTERS_H
#ifdef __ASSEMBLER__ /* clang-format off */

#ifdef __x86_64__
#define WORD 8
#define RAX  rax
#define RSP  rsp
#define RBP  rbp
#else
#define WORD 4
#define RAX  eax
#define RSP  esp
#define RBP  ebp
#endif

	.macro function name
	.globl \name
	.hidden \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

	.macro save reg
	push %\reg
	.cfi_adjust_cfa_offset WORD
	.cfi_rel_offset \reg, 0
	.endm
	.macro restore reg
	pop %\reg
	.cfi_adjust_cfa_offset -WORD
	.cfi_restore \reg
	.endm

	/* rax is another one afterwards. */
	.macro save_flags
	lahf
	seto %al
	push %RAX
	.cfi_adjust_cfa_offset WORD
	.endm
	.macro restore_flags
	pop %RAX
	.cfi_adjust_cfa_offset -WORD
	add $0x7f, %al
	sahf
	.endm

	/* Calls a C function, from any stack alignment. */
	.macro call_aligned function
	save RBP
	mov %RSP, %RBP
	.cfi_def_cfa_register RBP
	and $-16, %RSP
	cld
	call \function
	mov %RBP, %RSP
	.cfi_def_cfa_register RSP
	restore RBP
	.endm

	/* Several, in this order; restored in the opposite one, which has to be said. */
	.macro save_all regs:vararg
	.irp reg, \regs
	save \reg
	.endr
	.endm
	.macro restore_all regs:vararg
	.irp reg, \regs
	restore \reg
	.endr
	.endm

	/* What a C function may change. */
	.macro save_call_clobbered
#ifdef __x86_64__
	save_all rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
#else
	save_all ecx, edx, eax
#endif
	.endm
	.macro restore_call_clobbered
#ifdef __x86_64__
	restore_all r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
#else
	restore_all eax, edx, ecx
#endif
	.endm

#endif
#endif
