/* SPDX-License-Identifier: MIT */
/* Offsets in a thread's area that translated code and entry.S use, relative to gs. thread_area.h has the structure
 * and checks them. */
#ifndef WEIR_RT_TRANSLATE_LAYOUT_H
#define WEIR_RT_TRANSLATE_LAYOUT_H

#define T_SELF	    0
#define T_COST	    16 /* TRANSLATE_SUMS */
#define T_EVENTS_AT 64
#define T_PC	    96
#define T_REGS	    104 /* 16 */
#define T_FLAGS	    232
#define T_OUTCOME   264
#define T_CALL	    272
#define T_SLOT_RAX  280 /* what translated code has lent itself */
#define T_SLOT_RCX  288
#define T_SLOT_RDX  296
#define T_SLOT_ANY  304
#define T_TARGET    312 /* where an indirect jump goes, in the program */
#define T_GO	    320 /* where the translator goes on, in translated code */
#define T_ENTER	    328 /* pointers to the ways into the translator: entry.S */
#define T_MISS_RET  336
#define T_MISS_JUMP 344
#define T_STACK	    352 /* top of the translator's own stack for this thread */
#define T_EXIT	    360 /* u32: number of the exit that was taken */
#define T_LEFT                                                                                     \
	364 /* u32: with EXIT_TARGET: the block that was left; TRANSLATE_NO_BLOCK: it led to T_TARGET */
#define T_PENDING      368 /* u32: a signal waits to be given to the program */
#define T_RESULT       376
#define T_WAITING_MASK 384

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
