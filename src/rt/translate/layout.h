/* SPDX-License-Identifier: MIT */
/* Offsets in a thread's area that translated code and entry.S use, relative to gs. thread_area.h has the structure
 * and checks them. */
#ifndef WEIR_RT_TRANSLATE_LAYOUT_H
#define WEIR_RT_TRANSLATE_LAYOUT_H

#define T_SELF	    0
#define T_COST	    16 /* two */
#define T_EVENTS_AT 48
#define T_PC	    72
#define T_REGS	    80 /* 16 */
#define T_FLAGS	    208
#define T_OUTCOME   240
#define T_CALL	    248
#define T_SLOT_RAX  256 /* what translated code has lent itself */
#define T_SLOT_RCX  264
#define T_SLOT_RDX  272
#define T_SLOT_ANY  280
#define T_TARGET    288 /* where an indirect jump goes, in the program */
#define T_GO	    296 /* where the translator goes on, in translated code */
#define T_ENTER	    304 /* pointers to the ways into the translator: entry.S */
#define T_MISS_RET  312
#define T_MISS_JUMP 320
#define T_STACK	    328 /* top of the translator's own stack for this thread */
#define T_EXIT	    336 /* u32: number of the exit that was taken */
#define T_LEFT                                                                                     \
	340 /* u32: with EXIT_TARGET: the block that was left; TRANSLATE_NO_BLOCK: it led to T_TARGET */
#define T_PENDING      344 /* u32: a signal waits to be given to the program */
#define T_RESULT       352
#define T_WAITING_MASK 360

/* In T_PENDING: no signal, but the recorder wants the process to go on without us. */
#define PENDING_LEAVE 65

/* Values of T_EXIT that are no numbers. */
#define EXIT_RETURN 0xfffffff0 /* to T_TARGET, by ret */
#define EXIT_JUMP   0xfffffff1 /* to T_TARGET, by an indirect jump or call */
#define EXIT_PC	    0xfffffff2 /* to T_PC: again, or behind a signal */
#define EXIT_TARGET 0xfffffff3 /* to T_TARGET, directly: a block of a copy was left */

#define T_PAGE_BYTES 0x1000

/* Tables of jump targets: for each low 16 bits of an address the negated address and where to go. */
#define TABLE_ROWS    65536
#define T_RETURNS     0x1000
#define T_JUMPS	      0x101000
#define TABLE_TARGETS 0x80000 /* from the addresses to the targets */

#endif
