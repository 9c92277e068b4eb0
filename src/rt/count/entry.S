/* SPDX-License-Identifier: MIT */
/*
 * What inserted code calls. Each event has a fast way here for what nearly always happens: the thread
 * is set up, runs on the stack it ran on last, nobody is at work, no frame is gone, the child is known.
 * Whatever else goes to count_event() (count_events.c), which does all of it again, in full; a fast way
 * writes nothing but `busy` before it is sure.
 *
 * All registers are kept, and the flags by those that promise it. Nothing below the stack pointer is in
 * use when these are called.
 */
#include "../base/registers.h"

#define PAGE	     4096
#define STATE_BYTES  147456
#define CACHE	     16384
#define CACHE_FACTOR 0x5bd1e995

/* struct state */
#define HOT	    1024
#define COST	    (HOT + 0)
#define CYCLES	    (HOT + 32)
#define LOW	    (HOT + 64)
#define SIZE	    (HOT + 72)
#define BUSY	    (HOT + 80)
#define TOP	    (HOT + 88)
#define LAST_COST   (HOT + 96)
#define LAST_CYCLES (HOT + 104)
#define TAIL_SP	    (HOT + 112)
#define NODES	    (HOT + 120)
#define TAIL_RET    (HOT + 128)
#define TAIL_NODE   (HOT + 136)
#define LIMIT	    (HOT + 144)
#define SITE_MASK   (HOT + 152)
#define SELF	    (HOT + 160)

/* struct frame */
#define FRAME_NODE  0
#define FRAME_SP    8
#define FRAME_TICKS 16
#define FRAME_SELF  24
#define FRAME_BYTES 32

/* struct count_node */
#define NODE_KEY    8
#define NODE_CALLS  16
#define NODE_COST   24
#define NODE_CYCLES 32
#define NODE_SITE   40
#define NODE_MIN    48
#define NODE_MAX    56

/* struct count_thread lies one page in front of the nodes */
#define THREAD_CURRENT (24 - PAGE)

/* struct cache_line */
#define CACHE_PARENT 0
#define CACHE_KEY    8
#define CACHE_NODE   16
#define CACHE_ROOT   24
#define CACHE_LINE   64
#define KEY_TAIL_BIT 62
#define CACHE_SHIFT  20
#define CACHE_MASK   0x1ffc0 /* 64 * (N_CACHE - 1) */

/* enum event */
#define EVENT_ENTER	   0
#define EVENT_LEAVE	   1
#define EVENT_TAIL	   2
#define EVENT_RESYNC	   3
#define EVENT_FOREIGN	   4
#define EVENT_FOREIGN_DONE 5
#define EVENT_CYCLES	   16

/* enum gate */
#define GATE_PRCTL   0
#define GATE_SYSCALL 1
#define GATE_LOAD    2

#define S(field) %gs:weir_count_state + (field)(%rip)

	.section weir_state, "aw", @nobits
	.p2align 12
	.globl weir_count_state, weir_count_cost, weir_count_cycles
	.hidden weir_count_state, weir_count_cost, weir_count_cycles
	.type weir_count_state, @object
	.size weir_count_state, STATE_BYTES
	.type weir_count_cost, @object
	.size weir_count_cost, 32
	.type weir_count_cycles, @object
	.size weir_count_cycles, 32
weir_count_state:
	.skip HOT
weir_count_cost:
	.skip 32
weir_count_cycles:
	.skip 32
	.skip STATE_BYTES - HOT - 64

	.text
	/* pushed: bytes below the address behind the call. What the event is about, the stack pointer in
	 * front of that call, is the next word. */
	.macro begin name, flags, rsi=0
function \name
	save rax
	.if \flags
	save_flags
	.set pushed, 32
	.else
	.set pushed, 24
	.endif
	save rcx
	save rdx
	.if \rsi
	save rsi
	.set pushed, pushed + 8
	.endif
	.endm

	/* The way out; the code behind it is where `begin` ended. */
	.macro out name, flags, rsi=0
.Lout_\name:
	.cfi_remember_state
	.if \rsi
	restore rsi
	.endif
	restore rdx
	restore rcx
	.if \flags
	restore_flags
	.endif
	restore rax
	ret
	.cfi_restore_state
	.endm

	/* The way into C. */
	.macro slow name, event, cycles, rsi=0
.Lbusy_\name:
	movq $0, S(BUSY)
.Lslow_\name:
	.set more, pushed + 48
	.ifeq \rsi
	save rsi
	.set more, more + 8
	.endif
	save_all rdi, r8, r9, r10, r11
	pushfq
	.cfi_adjust_cfa_offset 8
	mov S(SELF), %rdi
	mov $(\event + EVENT_CYCLES * \cycles), %esi
	lea more + 8(%rsp), %rdx
	mov more(%rsp), %rcx
	call_aligned count_event
	popfq
	.cfi_adjust_cfa_offset -8
	restore_all r11, r10, r9, r8, rdi
	.ifeq \rsi
	restore rsi
	.endif
	jmp .Lout_\name
end \name
	.endm

	/* Holds handlers off. One on a stack of its own may have come just before: then the open frame is
	 * another. */
	.macro take name
	cmpq $0, S(BUSY)
	jne .Lslow_\name
	mov %rsp, S(BUSY)
	cmp S(TOP), %rcx
	jne .Lbusy_\name
	.endm

	/* rax = stack pointer of the event, rcx = open frame; goes away unless the fast way is open.
	 * The bounds come first: until they hold, the state may be that of the thread that created this
	 * one. */
	.macro look name
	lea pushed + 8(%rsp), %rax
	mov %rax, %rcx
	sub S(LOW), %rcx
	cmp S(SIZE), %rcx
	jae .Lslow_\name
	mov S(TOP), %rcx
	take \name
	.endm

	/* The same for an event that ends the open frame, whose stack pointer is this one's, less some: so it
	 * is this thread's and this stack's. */
	.macro look_at_end name, less
	cmpq $0, S(SIZE)
	je .Lslow_\name
	lea pushed + 8 - \less(%rsp), %rax
	mov S(TOP), %rcx
	cmp %rax, FRAME_SP(%rcx)
	jne .Lslow_\name
	take \name
	.endm

	/* to = cost since the last event, which from now on counts as charged. What is stored does not depend on
	 * what was there: adding to it would make each event wait for the one before it. */
	.macro take_sum sums, last, to, with
	mov S(\sums), %\to
	add S(\sums + 8), %\to
	add S(\sums + 16), %\to
	add S(\sums + 24), %\to
	mov S(\last), %\with
	mov %\to, S(\last)
	sub %\with, %\to
	.endm

	/* rdx = the node that blocks are for from now on. */
	.macro finish name, clear_tail
	mov S(NODES), %rax
	mov %rdx, THREAD_CURRENT(%rax)
	.if \clear_tail
	cmpq $0, S(TAIL_SP)
	jne .Lclear_\name
.Lcleared_\name:
	.endif
	movq $0, S(BUSY)
	.endm
	/* Rare: a load costs less than the store. */
	.macro clear_tail name
.Lclear_\name:
	movq $0, S(TAIL_SP)
	jmp .Lcleared_\name
	.endm

	.macro load_key foreign
	mov pushed(%rsp), %rax
	.if \foreign
	bts $63, %rax
	.endif
	.endm
	/*
	 * rcx open frame, rdx parent -> rsi = child, by the cache, which is empty where call sites are kept
	 * apart. To ask first for the child that was entered last would cost a mispredicted branch whenever
	 * it is another. Little is done behind the load of the parent: calls that follow each other wait for
	 * it. Behind a jump the parent is not the open frame's node, and both must be the same. What another child
	 * has driven out of its line is in the line beside it.
	 */
	.macro find_child name, foreign, tail
	load_key \foreign
	.if \tail
	bts $KEY_TAIL_BIT, %rax
	.endif
	imul $CACHE_FACTOR, %rax, %rsi
	shr $CACHE_SHIFT, %rsi
	xor %rdx, %rsi
	and $CACHE_MASK, %esi
	add S(SELF), %rsi
	cmp %rdx, CACHE + CACHE_PARENT(%rsi)
	jne .Lbeside\tail\()_\name
	cmp %rax, CACHE + CACHE_KEY(%rsi)
	jne .Lbeside\tail\()_\name
.Lline\tail\()_\name:
	.if \tail
	mov FRAME_NODE(%rcx), %rax
	cmp %rax, CACHE + CACHE_ROOT(%rsi)
	jne .Lbusy_\name
	.endif
	mov CACHE + CACHE_NODE(%rsi), %rsi
	cmp S(LIMIT), %rcx
	jae .Lbusy_\name
	.endm

	.macro find_beside name, tail
.Lbeside\tail\()_\name:
	xor $CACHE_LINE, %rsi
	cmp %rdx, CACHE + CACHE_PARENT(%rsi)
	jne .Lbusy_\name
	cmp %rax, CACHE + CACHE_KEY(%rsi)
	jne .Lbusy_\name
	jmp .Lline\tail\()_\name
	.endm

	/* Charges the open frame's node, and writes a frame for the child in rsi behind it. */
	.macro push_frame cycles, less
	.ifeq \less
	mov pushed + 8(%rsp), %rax
	mov %rax, FRAME_BYTES + FRAME_TICKS(%rcx)
	.endif
	take_sum COST, LAST_COST, rax, rdx
	mov FRAME_NODE(%rcx), %rdx
	add %rax, NODE_COST(%rdx)
	add %rax, FRAME_SELF(%rcx)
	.if \cycles
	take_sum CYCLES, LAST_CYCLES, rax, rdx
	mov FRAME_NODE(%rcx), %rdx
	add %rax, NODE_CYCLES(%rdx)
	.endif
	incq NODE_CALLS(%rsi)
	lea pushed + 8 - \less(%rsp), %rax
	mov %rsi, FRAME_BYTES + FRAME_NODE(%rcx)
	mov %rax, FRAME_BYTES + FRAME_SP(%rcx)
	movq $0, FRAME_BYTES + FRAME_SELF(%rcx)
	.endm
	.macro open_frame name, clear_tail
	add $FRAME_BYTES, %rcx
	mov %rcx, S(TOP)
	mov %rsi, %rdx
	finish \name, \clear_tail
	.endm

	/* rcx frame, rdx its node, rax self cost of the call: min and max, then the frame is gone. */
	.macro pop_frame name
	cmp NODE_MIN(%rdx), %rax
	jb .Lmin_\name
.Lnot_min_\name:
	cmp NODE_MAX(%rdx), %rax
	ja .Lmax_\name
.Lnot_max_\name:
	.endm
	.macro extremes name
.Lmin_\name:
	mov %rax, NODE_MIN(%rdx)
	jmp .Lnot_min_\name
.Lmax_\name:
	mov %rax, NODE_MAX(%rdx)
	jmp .Lnot_max_\name
	.endm

	.macro enter_event name, flags, cycles
	begin \name, \flags, 1
	look \name
	cmp %rax, FRAME_SP(%rcx)
	jbe .Lbusy_\name
	mov FRAME_NODE(%rcx), %rdx
	cmpq $0, S(TAIL_SP)
	jne .Ltail_\name
.Lchild_\name:
	find_child \name, 0, 0
.Lfound_\name:
	push_frame \cycles, 0
	open_frame \name, 0
	out \name, \flags, 1
	/* A function has jumped; if it was called from here, and no block has been executed since, this one is
	 * its child. Else it has jumped to code that is not counted, which has returned. */
.Ltail_\name:
	cmp S(TAIL_SP), %rax
	jne .Lnot_tail_\name
	mov pushed + 8(%rsp), %rax
	cmp S(TAIL_RET), %rax
	jne .Lnot_tail_\name
	mov S(COST), %rax
	add S(COST + 8), %rax
	add S(COST + 16), %rax
	add S(COST + 24), %rax
	cmp S(LAST_COST), %rax
	jne .Lnot_tail_\name
	mov S(TAIL_NODE), %rdx
	find_child \name, 0, 1
	movq $0, S(TAIL_SP)
	jmp .Lfound_\name
.Lnot_tail_\name:
	movq $0, S(TAIL_SP)
	jmp .Lchild_\name
	find_beside \name, 0
	find_beside \name, 1
	slow \name, EVENT_ENTER, \cycles, 1
	.endm

	.macro leave_event name, flags, cycles, tail
	begin \name, \flags
	look_at_end \name, 0
	.if \cycles
	take_sum CYCLES, LAST_CYCLES, rax, rdx
	mov FRAME_NODE(%rcx), %rdx
	add %rax, NODE_CYCLES(%rdx)
	.endif
	take_sum COST, LAST_COST, rax, rdx
	mov FRAME_NODE(%rcx), %rdx
	add %rax, NODE_COST(%rdx)
	add FRAME_SELF(%rcx), %rax
	pop_frame \name
	.if \tail
	mov %rdx, S(TAIL_NODE)
	mov pushed + 8(%rsp), %rdx
	mov %rdx, S(TAIL_RET)
	mov FRAME_SP(%rcx), %rdx
	mov %rdx, S(TAIL_SP)
	.endif
	sub $FRAME_BYTES, %rcx
	mov FRAME_NODE(%rcx), %rdx
	mov %rcx, S(TOP)
	finish \name, "1-\tail"
	out \name, \flags
	extremes \name
	.if \tail
	slow \name, EVENT_TAIL, \cycles
	.else
	clear_tail \name
	slow \name, EVENT_LEAVE, \cycles
	.endif
	.endm

	.macro resync_event name, cycles
	begin \name, 0
	look \name
	cmp %rax, FRAME_SP(%rcx)
	jb .Lbusy_\name
	movq $0, S(TAIL_SP)
	movq $0, S(BUSY)
	out \name, 0
	slow \name, EVENT_RESYNC, \cycles
	.endm

	.macro ticks
	rdtsc
	shl $32, %rdx
	or %rdx, %rax
	.endm

	.macro foreign_event name, cycles
	begin \name, 0, 1
	look \name
	cmp %rax, FRAME_SP(%rcx)
	jb .Lbusy_\name
	mov FRAME_NODE(%rcx), %rdx
	find_child \name, 1, 0
	push_frame \cycles, 1
	ticks
	mov %rax, FRAME_BYTES + FRAME_TICKS(%rcx)
	open_frame \name, 1
	out \name, 0, 1
	clear_tail \name
	find_beside \name, 0
	slow \name, EVENT_FOREIGN, \cycles, 1
	.endm

	/* The cycle sums wait for the caller's next event: a foreign node has ticks in their place. */
	.macro foreign_done_event name, cycles
	begin \name, 0
	look_at_end \name, 1
	take_sum COST, LAST_COST, rax, rdx
	mov FRAME_NODE(%rcx), %rdx
	add %rax, NODE_COST(%rdx)
	ticks
	mov FRAME_NODE(%rcx), %rdx
	sub FRAME_TICKS(%rcx), %rax
	add %rax, NODE_CYCLES(%rdx)
	add FRAME_SELF(%rcx), %rax
	pop_frame \name
	sub $FRAME_BYTES, %rcx
	mov FRAME_NODE(%rcx), %rdx
	mov %rcx, S(TOP)
	finish \name, 1
	out \name, 0
	extremes \name
	clear_tail \name
	slow \name, EVENT_FOREIGN_DONE, \cycles
	.endm

	enter_event weir_count_enter, 0, 0
	enter_event weir_count_enter_flags, 1, 0
	enter_event weir_count_enter_cycles, 0, 1
	enter_event weir_count_enter_flags_cycles, 1, 1
	leave_event weir_count_leave, 0, 0, 0
	leave_event weir_count_leave_flags, 1, 0, 0
	leave_event weir_count_leave_cycles, 0, 1, 0
	leave_event weir_count_leave_flags_cycles, 1, 1, 0
	leave_event weir_count_tail, 1, 0, 1
	leave_event weir_count_tail_cycles, 1, 1, 1
	resync_event weir_count_resync, 0
	resync_event weir_count_resync_cycles, 1
	foreign_event weir_count_foreign, 0
	foreign_event weir_count_foreign_cycles, 1
	foreign_done_event weir_count_foreign_done, 0
	foreign_done_event weir_count_foreign_done_cycles, 1

	/* In front of a call by which a program may give up system calls or the time-stamp counter: its
	 * arguments are looked at. All registers and flags are kept. */
	.macro gate name, kind
function \name
	save_call_clobbered
	pushfq
	.cfi_adjust_cfa_offset 8
	mov %rcx, %r8
	mov %rdx, %rcx
	mov %rsi, %rdx
	mov %rdi, %rsi
	mov $\kind, %edi
	call_aligned count_gate
	popfq
	.cfi_adjust_cfa_offset -8
	restore_call_clobbered
	ret
end \name
	.endm

	gate weir_count_gate_prctl, GATE_PRCTL
	gate weir_count_gate_syscall, GATE_SYSCALL
	gate weir_count_gate_load, GATE_LOAD

/* void weir_count_switch_stack(void (*f)(void *), void *arg, void *stack_end) */
function weir_count_switch_stack
	save rbp
	mov %rsp, %rbp
	.cfi_def_cfa_register rbp
	mov %rdx, %rsp
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	mov %rbp, %rsp
	.cfi_def_cfa_register rsp
	restore rbp
	ret
end weir_count_switch_stack

	.section .note.GNU-stack, "", @progbits
