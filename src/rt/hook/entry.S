/* SPDX-License-Identifier: MIT */
/*
 * The way from patched code into C and back. Every register and the flags are as before; the C
 * functions keep the registers.
 *
 * The region: address space whose code and data chains.c fills in, one block at a time. It belongs to
 * this library's image, so any unwinder (of libgcc, gdb, ours) finds this FDE for it: a frame without
 * any stack of its own, whose return address is the first word of the slot's entry:
 *
 *   entry = (pc & ~0x3fff) + 0x2000 + ((pc & 0xff0) << 1)
 *
 * The CFA must differ from the callee's (libgcc compares them): so it is said to be one word higher,
 * and the stack pointer one word below the CFA.
 */
#include "../base/registers.h"

	.section .weir_region, "ax", @nobits
	.p2align 14
	.globl weir_region
	.hidden weir_region
	.type weir_region, @function
weir_region:
	.cfi_startproc
#ifdef __x86_64__
	.cfi_def_cfa rsp, 8
	.cfi_val_offset rsp, -8
	/* DW_CFA_expression rip: drop; breg16 0; const2u 0xff0; and; lit1; shl; breg16 0;
	 * const4s -0x4000; and; plus; plus_uconst 0x2000 */
	.cfi_escape 0x10, 16, 21, 0x13, 0x80, 0x00, 0x0a, 0xf0, 0x0f, 0x1a, 0x31, 0x24, 0x80, 0x00, 0x0d, 0x00, 0xc0, 0xff, 0xff, 0x1a, 0x22, 0x23, 0x80, 0x40
	.skip 224 << 20
#else
	.cfi_def_cfa esp, 4
	.cfi_val_offset esp, -4
	.cfi_escape 0x10, 8, 21, 0x13, 0x78, 0x00, 0x0a, 0xf0, 0x0f, 0x1a, 0x31, 0x24, 0x78, 0x00, 0x0d, 0x00, 0xc0, 0xff, 0xff, 0x1a, 0x22, 0x23, 0x80, 0x40
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

/*
 * Where the C functions that keep all registers have their arguments (KEEPS_REGISTERS in hook.h), and
 * what the stub of an entry keeps itself: in bytes with the flags, in order, and the other way round.
 */
#ifdef __x86_64__
#define ARG0	    rdi
#define ARG1	    rsi
#define ARG2	    rdx
#define KEPT	    rdi, rsi, rax
#define KEPT_BACK   rax, rsi, rdi
#define KEPT_BYTES  32
#else
#define ARG0	    eax
#define ARG1	    edx
#define ARG2	    ecx
#define KEPT	    edx, eax
#define KEPT_BACK   eax, edx
#define KEPT_BYTES  12
#endif
/* As in hook_abi.h; self_cost.c compares them. */
#define HOOK_COST_ID  0x3fffff
#define ACTION_CALL   1
#define ACTION_AMOUNT 3
#define REGS_BYTES  144 /* struct hook_regs: 64-bit fields, in DWARF's order */

	/* The fields from byte `at` on, which are on the stack. */
	.macro put_all at, regs:vararg
	.set place, \at
	.irp reg, \regs
	mov %\reg, place(%RSP)
#ifndef __x86_64__
	movl $0, place + 4(%RSP)
#endif
	.set place, place + 8
	.endr
	.endm
	.macro get_all at, regs:vararg
	.set place, \at
	.irp reg, \regs
	mov place(%RSP), %\reg
	.set place, place + 8
	.endr
	.endm

/* Called by a trampoline: behind what is kept the address behind its call, then the function's return
 * address. */
	.macro enter_stub name, handler
function \name
	skip_trampoline
	save_all KEPT
	save_flags
	mov KEPT_BYTES(%RSP), %ARG0
	lea KEPT_BYTES + WORD(%RSP), %ARG1
	call \handler
	restore_flags
	restore_all KEPT_BACK
	ret
end \name
	.endm

/* Called by a slot: (%rsp) in the slot, in the word that held the return address. The jump goes
 * through that word, which now lies in the red zone: no register is left to jump through, and a ret
 * would be predicted to go to the slot. There is no red zone in 32-bit programs: the last word is popped
 * by a ret. */
	.macro leave_stub name, handler
function \name
#ifdef __x86_64__
	save_all rdi, rax
	save_flags
	lea 24(%rsp), %rdi
	call \handler
	restore_flags
	restore_all rax, rdi
	lea 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	jmp *-8(%rsp)
#else
	save eax
	save_flags
	lea 8(%esp), %eax
	call \handler
	restore_flags
	restore eax
	ret
#endif
end \name
	.endm

/* Entry with all registers for C to read. */
	.macro with_registers name, handler
function \name
	skip_trampoline
	save RAX
	save_flags
	mov WORD(%RSP), %RAX
	lea -REGS_BYTES(%RSP), %RSP
	.cfi_adjust_cfa_offset REGS_BYTES
#ifdef __x86_64__
	put_all 0, rax, rdx, rcx, rbx, rsi, rdi, rbp
	lea REGS_BYTES + 3 * WORD(%rsp), %rax
	put_all 56, rax, r8, r9, r10, r11, r12, r13, r14, r15
	movq $0, 128(%rsp)
#else
	put_all 0, eax, ecx, edx, ebx
	lea REGS_BYTES + 3 * WORD(%esp), %eax
	put_all 32, eax, ebp, esi, edi
	movl $0, 64(%esp)
	movl $0, 68(%esp)
#endif
	mov REGS_BYTES + 2 * WORD(%RSP), %ARG0
	lea REGS_BYTES + 3 * WORD(%RSP), %ARG1
	mov %RSP, %ARG2
	call_aligned \handler
#ifdef __x86_64__
	get_all 8, rdx, rcx
	get_all 32, rsi, rdi
	get_all 64, r8, r9, r10, r11
#else
	get_all 8, ecx, edx
#endif
	lea REGS_BYTES(%RSP), %RSP
	.cfi_adjust_cfa_offset -REGS_BYTES
	restore_flags
	restore RAX
	ret
end \name
	.endm

/* The kernel returns here from our signal handler. No FDE: unwinders know these bytes. */
	.globl weir_sigreturn
	.hidden weir_sigreturn
	.p2align 4
	nop
weir_sigreturn:
#ifdef __x86_64__
	mov $15, %rax
	syscall
#else
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

/*
 * What self_cost.c calls: a function that does nothing, hooked as a program's is. The trampoline's call
 * has one byte in front, because its place is that of a longer one.
 */
	.macro hooked name, trampoline, action, stub
function \name
	jmp \trampoline
end \name
	.p2align 4
	.skip 8
	.long HOOK_COST_ID
	.byte \action, 0
	.word 0
	.globl \trampoline
	.hidden \trampoline
	.type \trampoline, @function
\trampoline:
	.cfi_startproc
	nop
	call \stub
	jmp \name\()_rest
end \trampoline
function \name\()_rest
	ret
end \name\()_rest
	.endm
	hooked weir_cost_call, weir_cost_trampoline, ACTION_CALL, weir_enter_stub
	hooked weir_cost_call_tree, weir_cost_trampoline_tree, ACTION_CALL, weir_enter_tree_stub
	hooked weir_cost_amount, weir_cost_trampoline_amount, ACTION_AMOUNT, weir_enter_args_stub

function weir_cost_trap
	int3
end weir_cost_trap

	.section .note.GNU-stack, "", @progbits
