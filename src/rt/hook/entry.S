/* SPDX-License-Identifier: MIT */
/*
 * The way from patched code into C and back. Every register and the flags are as before; the C
 * functions keep the registers.
 *
 * The region: address space whose code and data chains.c fills in, one block at a time. It belongs to
 * this library's image, so any unwinder (of libgcc, gdb, ours) finds this FDE for it: a frame without
 * any stack of its own, whose return address is the first word of the slot's entry:
 *
 *   entry = (pc & ~0xffff) + 0x8000 + ((pc & 0x3ff0) << 1)
 *
 * The CFA must differ from the callee's (libgcc compares them): so it is said to be one word higher,
 * and the stack pointer one word below the CFA.
 */
#include "../base/registers.h"

	.section .weir_region, "ax", @nobits
	.p2align 16
	.globl weir_region
	.hidden weir_region
	.type weir_region, @function
weir_region:
	.cfi_startproc
#ifdef __x86_64__
	.cfi_def_cfa rsp, 8
	.cfi_val_offset rsp, -8
	/* DW_CFA_expression rip: drop; breg16 0; const2u 0x3ff0; and; lit1; shl; breg16 0;
	 * const4s -0x10000; and; plus; plus_uconst 0x8000 */
	.cfi_escape 0x10, 16, 22, 0x13, 0x80, 0x00, 0x0a, 0xf0, 0x3f, 0x1a, 0x31, 0x24, 0x80, 0x00, 0x0d, 0x00, 0x00, 0xff, 0xff, 0x1a, 0x22, 0x23, 0x80, 0x80, 0x02
	.skip 256 << 20
#else
	.cfi_def_cfa esp, 4
	.cfi_val_offset esp, -4
	.cfi_escape 0x10, 8, 22, 0x13, 0x78, 0x00, 0x0a, 0xf0, 0x3f, 0x1a, 0x31, 0x24, 0x78, 0x00, 0x0d, 0x00, 0x00, 0xff, 0xff, 0x1a, 0x22, 0x23, 0x80, 0x80, 0x02
	.skip 32 << 20
#endif
	.cfi_endproc
	.size weir_region, . - weir_region

	.text
/*
 * Called by a trampoline, of which no unwinder knows anything: the function's caller is said to be the
 * one that called the stub. The function has only been entered, so nothing of it is left out that an
 * exception or a cancelled thread would have to clean up.
 */
	.macro skip_trampoline
	.cfi_adjust_cfa_offset WORD
	.endm

/* When something is out of the ordinary: all registers are kept for the fast function that calls it. */
	.macro slow name, function
function \name
	save_call_clobbered
	call_aligned \function
	restore_call_clobbered
	ret
end \name
	.endm
	slow weir_enter_slow, weir_enter_late
	slow weir_leave_slow, weir_leave_late
	/* The dynamic loader says that its list of modules has changed. */
	slow weir_debug_stub, modules_changed

#ifdef __x86_64__
	/* Into struct hook_regs on the stack, from byte `at` on: 64-bit fields. */
	.macro put_all at, regs:vararg
	.set place, \at
	.irp reg, \regs
	mov %\reg, place(%rsp)
	.set place, place + 8
	.endr
	.endm

/* Called by a trampoline: (%rsp) behind its call, 8(%rsp) the function's return address. */
	.macro enter_stub name, handler
function \name
	skip_trampoline
	save_all rdi, rsi, rax
	save_flags
	mov 32(%rsp), %rdi
	lea 40(%rsp), %rsi
	call \handler
	restore_flags
	restore_all rax, rsi, rdi
	ret
end \name
	.endm

/* Called by a slot: (%rsp) in the slot, in the word that held the return address. The jump goes
 * through that word, which now lies in the red zone: no register is left to jump through, and a ret
 * would be predicted to go to the slot. */
	.macro leave_stub name, handler
function \name
	save_all rdi, rax
	save_flags
	lea 24(%rsp), %rdi
	call \handler
	restore_flags
	restore_all rax, rdi
	lea 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	jmp *-8(%rsp)
end \name
	.endm

/* Entry with all registers for C to read: struct hook_regs, in DWARF's order, on the stack. */
	.macro with_registers name, handler
function \name
	skip_trampoline
	save rax
	save_flags
	mov 8(%rsp), %rax
	lea -144(%rsp), %rsp
	.cfi_adjust_cfa_offset 144
	put_all 0, rax, rdx, rcx, rbx, rsi, rdi, rbp
	lea 168(%rsp), %rax
	put_all 56, rax, r8, r9, r10, r11, r12, r13, r14, r15
	movq $0, 128(%rsp)
	mov 160(%rsp), %rdi
	lea 168(%rsp), %rsi
	mov %rsp, %rdx
	call_aligned \handler
	mov 8(%rsp), %rdx
	mov 16(%rsp), %rcx
	mov 32(%rsp), %rsi
	mov 40(%rsp), %rdi
	mov 64(%rsp), %r8
	mov 72(%rsp), %r9
	mov 80(%rsp), %r10
	mov 88(%rsp), %r11
	lea 144(%rsp), %rsp
	.cfi_adjust_cfa_offset -144
	restore_flags
	restore rax
	ret
end \name
	.endm

/* The kernel returns here from our signal handler. No FDE: unwinders know these bytes. */
	.globl weir_sigreturn
	.hidden weir_sigreturn
	.p2align 4
	nop
weir_sigreturn:
	mov $15, %rax
	syscall
#else
	.macro enter_stub name, handler
function \name
	skip_trampoline
	save_all edx, eax
	save_flags
	mov 12(%esp), %eax
	lea 16(%esp), %edx
	call \handler
	restore_flags
	restore_all eax, edx
	ret
end \name
	.endm

/* There is no red zone in 32-bit programs: the last word is popped by a ret. */
	.macro leave_stub name, handler
function \name
	save eax
	save_flags
	lea 8(%esp), %eax
	call \handler
	restore_flags
	restore eax
	ret
end \name
	.endm

	.macro put_all at, regs:vararg
	.set place, \at
	.irp reg, \regs
	mov %\reg, place(%esp)
	movl $0, place + 4(%esp)
	.set place, place + 8
	.endr
	.endm
	/* In DWARF's order for i386: eax ecx edx ebx esp ebp esi edi eip. */
	.macro with_registers name, handler
function \name
	skip_trampoline
	save eax
	save_flags
	mov 4(%esp), %eax
	lea -144(%esp), %esp
	.cfi_adjust_cfa_offset 144
	put_all 0, eax, ecx, edx, ebx
	lea 156(%esp), %eax
	put_all 32, eax, ebp, esi, edi
	movl $0, 64(%esp)
	movl $0, 68(%esp)
	mov 152(%esp), %eax
	lea 156(%esp), %edx
	mov %esp, %ecx
	call_aligned \handler
	mov 8(%esp), %ecx
	mov 16(%esp), %edx
	lea 144(%esp), %esp
	.cfi_adjust_cfa_offset -144
	restore_flags
	restore eax
	ret
end \name
	.endm

	.globl weir_sigreturn
	.hidden weir_sigreturn
	.p2align 4
	nop
weir_sigreturn:
	mov $173, %eax
	int $0x80
/* From a handler without SA_SIGINFO, whose frame is of the old kind. */
	.globl weir_sigreturn_old
	.hidden weir_sigreturn_old
	.p2align 4
	nop
weir_sigreturn_old:
	pop %eax
	mov $119, %eax
	int $0x80
#endif

	enter_stub weir_enter_stub, weir_enter
	leave_stub weir_leave_stub, weir_leave
	enter_stub weir_enter_tree_stub, weir_enter_tree
	leave_stub weir_leave_tree_stub, weir_leave_tree
	with_registers weir_enter_args_stub, weir_enter_args
	with_registers weir_note_stub, weir_note

	.section .note.GNU-stack, "", @progbits
