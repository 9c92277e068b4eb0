/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel enters and leaves us.
 *
 * The stubs: a system call of the program is made here, in the stub of its thread, because the trap
 * behind a `syscall` instruction comes one instruction late. That instruction is our nop, and the
 * program's next one is looked at before it runs, like every other. A new thread finds its state by
 * the stub that it comes out of.
 */
	.text
	.globl	weir_steps_entry
	.type	weir_steps_entry, @function
	.p2align 4
weir_steps_entry:
	jmp	steps_handle
	.p2align 3, 0xcc
	.type	steps_restorer, @function
	.globl	steps_restorer
	.hidden	steps_restorer
steps_restorer:
	movl	$15, %eax		/* rt_sigreturn */
	syscall
	ud2
	.size	weir_steps_entry, . - weir_steps_entry

	.globl	steps_stubs
	.hidden	steps_stubs
	.p2align 4
steps_stubs:
	.rept	1024			/* STEPS_N_STATES */
	syscall
	nop
	ud2
	.byte	0xcc, 0xcc, 0xcc
	int	$0x80			/* STUB_32: a call by the i386 table */
	nop
	ud2
	.byte	0xcc, 0xcc, 0xcc
	.endr

	.section .note.GNU-stack, "", @progbits
