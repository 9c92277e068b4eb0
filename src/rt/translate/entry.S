/* SPDX-License-Identifier: MIT */
/*
 * Ways in and out. gs points to the thread's area. Vector registers are the program's at any time.
 */
#include "layout.h"

#define SYS_RT_SIGRETURN 15
#define SYS_EXIT	 60
#define STATE_OFFSET	 12 /* of struct translate_thread's `state` */
#define STATE_ENDED	 2
#define TRANSLATE_MAGIC	  0x52545257
#define TRANSLATE_VERSION 4
#define HEADER_BYTES	  128
#define FLAG_AC		 0x40000 /* what is not aligned is a fault; JVMs try it */
#define REG(n)		 %gs:T_REGS + 8 * (n)

	.macro function name
	.globl \name
	.hidden \name
	.type \name, @function
	.p2align 4
\name:
	.endm
	.macro label name
	.globl \name
	.hidden \name
\name:
	.endm

	.text
label translate_image_start

	/* The first thread: rdi is the boot record. */
function translate_begin
	cld
	and $-16, %rsp
	xor %ebp, %ebp
	call translate_start
	ud2

	/* From translated code: all registers are the program's, T_EXIT says why. */
function translate_enter
	mov %rsp, REG(4)
	mov %gs:T_STACK, %rsp
	pushfq
	popq %gs:T_FLAGS
	testl $FLAG_AC, %gs:T_FLAGS
	jz 1f
	pushq $0x202
	popfq
1:	mov %rax, REG(0)
	mov %rcx, REG(1)
	mov %rdx, REG(2)
	mov %rbx, REG(3)
	mov %rbp, REG(5)
	mov %rsi, REG(6)
	mov %rdi, REG(7)
	mov %r8, REG(8)
	mov %r9, REG(9)
	mov %r10, REG(10)
	mov %r11, REG(11)
	mov %r12, REG(12)
	mov %r13, REG(13)
	mov %r14, REG(14)
	mov %r15, REG(15)
dispatch:
	cld
	mov %gs:T_SELF, %rdi
	call translate_dispatch
	/* A signal that comes before the first of these instructions is seen by it; one that comes
	 * later finds pc between these labels, and goes to translate_redispatch. */
label translate_leave_start
	cmpl $0, %gs:T_PENDING
	jne translate_redispatch
	pushq %gs:T_FLAGS
	popfq
	mov REG(0), %rax
	mov REG(1), %rcx
	mov REG(2), %rdx
	mov REG(3), %rbx
	mov REG(5), %rbp
	mov REG(6), %rsi
	mov REG(7), %rdi
	mov REG(8), %r8
	mov REG(9), %r9
	mov REG(10), %r10
	mov REG(11), %r11
	mov REG(12), %r12
	mov REG(13), %r13
	mov REG(14), %r14
	mov REG(15), %r15
	mov REG(4), %rsp
	jmp *%gs:T_GO
label translate_leave_end

function translate_redispatch
	movl $EXIT_PC, %gs:T_EXIT
	mov %gs:T_STACK, %rsp
	jmp dispatch

function translate_resume
	mov T_STACK(%rdi), %rsp
	jmp translate_redispatch

	/* A target is not in the thread's table. */
function translate_miss_return
	mov %gs:T_SLOT_RDX, %rdx
	mov %gs:T_SLOT_RAX, %rax
	mov %gs:T_SLOT_RCX, %rcx
	movl $EXIT_RETURN, %gs:T_EXIT
	jmp translate_enter
function translate_miss_jump
	mov %gs:T_SLOT_RDX, %rdx
	mov %gs:T_SLOT_RAX, %rax
	mov %gs:T_SLOT_RCX, %rcx
	movl $EXIT_JUMP, %gs:T_EXIT
	jmp translate_enter

	/* bool (t, regs) */
function translate_safe_call
	push %rbx
	mov %rdi, %rbx
	mov %rsi, %r11
	mov 8*0(%r11), %rax
	mov 8*7(%r11), %rdi
	mov 8*2(%r11), %rdx
	mov 8*10(%r11), %r10
	mov 8*8(%r11), %r8
	mov 8*9(%r11), %r9
	mov 8*6(%r11), %rsi
label translate_safe_start
	cmpl $0, T_PENDING(%rbx)
	jne translate_safe_abort
	syscall
label translate_safe_end
	mov %rax, T_RESULT(%rbx)
	mov $1, %eax
	pop %rbx
	ret
label translate_safe_abort
	xor %eax, %eax
	pop %rbx
	ret
	/* From translate_safe_end, by the recorder: (mask, outcome, call). */
function translate_asked
	mov %rdi, T_WAITING_MASK(%rbx)
	mov %rsi, T_OUTCOME(%rbx)
	mov %rdx, T_CALL(%rbx)
	movl $PENDING_LEAVE, T_PENDING(%rbx)
	jmp translate_safe_abort

	/* int64_t (number, args, child): the child uses no stack before it has its own. */
function translate_clone
	push %rbx
	mov %rdx, %rbx
	mov %rdi, %rax
	mov %rsi, %r11
	mov 8*0(%r11), %rdi
	mov 8*1(%r11), %rsi
	mov 8*2(%r11), %rdx
	mov 8*3(%r11), %r10
	mov 8*4(%r11), %r8
	mov 8*5(%r11), %r9
	syscall
	test %rax, %rax
	jz 1f
	pop %rbx
	ret
1:	mov T_STACK(%rbx), %rsp
	mov %rbx, %rdi
	xor %ebp, %ebp
	call translate_child
	ud2

	/* int64_t (number, a, b) */
function translate_service
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
label translate_service_at
	int3
	ret

	/* bool (to, from, n) */
function translate_copy
	mov %rdx, %rcx
label translate_copy_start
	rep movsb
label translate_copy_end
	mov $1, %eax
	ret
label translate_copy_failed
	xor %eax, %eax
	ret

	/* (t, event). Its first store may fault, with rcx at the end of the buffer. */
function translate_store_event
	mov T_EVENTS_AT(%rdi), %rcx
	mov (%rsi), %rax
	mov %rax, (%rcx)
	mov 8(%rsi), %rax
	mov %rax, 8(%rcx)
	mov 16(%rsi), %rax
	mov %rax, 16(%rcx)
	lea 24(%rcx), %rcx
	mov %rcx, T_EVENTS_AT(%rdi)
	ret

	/* (t, word): the same. */
function translate_store_word
	mov T_EVENTS_AT(%rdi), %rcx
	mov %esi, (%rcx)
	lea 4(%rcx), %rcx
	mov %rcx, T_EVENTS_AT(%rdi)
	ret

	/* The handler of all signals, on the thread's signal stack. The kernel leaves AC as the program has it. */
function translate_master
	pushq $0x202
	popfq
	jmp translate_signal

function translate_restorer
	mov $SYS_RT_SIGRETURN, %eax
	syscall
	ud2

	/* (sp) */
function translate_sigreturn
	mov %rdi, %rsp
	jmp translate_restorer

function translate_behind_sigreturn
	cld
	mov %gs:T_STACK, %rsp
	jmp translate_redispatch

	/* (t, status) */
function translate_thread_exit
	movl $STATE_ENDED, STATE_OFFSET(%rdi)
	mov %rsi, %rdi
	mov $SYS_EXIT, %eax
	syscall
	ud2

	/* (area, features) */
function translate_xsave
	mov %esi, %eax
	mov %rsi, %rdx
	shr $32, %rdx
	xsave64 (%rdi)
	ret
function translate_xrstor
	mov %esi, %eax
	mov %rsi, %rdx
	shr $32, %rdx
	xrstor64 (%rdi)
	ret

label translate_image_end

	/* struct translate_header. Addresses are distances from the field that has them until somebody has put
	 * the image into a program. */
	.data
	.globl weir_translate_header
	.type weir_translate_header, @object
	.size weir_translate_header, HEADER_BYTES
	.p2align 6
label translate_header
weir_translate_header:
	.long TRANSLATE_MAGIC, TRANSLATE_VERSION
	.quad translate_begin - .
	.quad translate_service_at - .
	.quad translate_safe_end - .
	.quad translate_asked - .
	.skip HEADER_BYTES - 40

	.section .note.GNU-stack, "", @progbits
