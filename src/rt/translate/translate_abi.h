/* SPDX-License-Identifier: MIT */
/*
 * What the translator inside a program (this folder, libweirtranslate.so) and its recorder outside
 * (src/translate/) agree upon. docs/format/translate.md explains it.
 *
 * The recorder is the program's ptrace tracer from before its first instruction. It maps the translator's
 * image into the program, and lets the program begin in it. All memory is the program's own: the recorder
 * reads what it needs through /proc/PID/mem while a thread stands still.
 *
 * 1. The translator asks the recorder by int3 at header.service: rax is enum translate_service, rdi and
 *    rsi its arguments; the answer is in rax (negative: not done). Without a recorder it is -1.
 * 2. A thread's events go into a buffer that ends in front of a page that cannot be written. The SIGSEGV
 *    that its first write there raises (address and rcx are thread.events_end) is the recorder's: it lets the thread
 *    go on in thread.spare, rcx being there, and reads the full one meanwhile. Without a recorder the translator goes
 *    back to thread.events, and the events are lost (thread.n_lost_buffers).
 * 3. The recorder may send a thread SIGTRAP by rt_tgsigqueueinfo(2) with si_code SI_QUEUE and the header's address as its
 *    value: then all threads of the process ask to leave (TRANSLATE_LEAVE), each at the end of the block that it is
 *    in. One that waits in a system call of the program stands at header.waits (behind the instruction). It is let go on
 *    at header.asked instead, with all signals blocked: rdi is the mask that it had, rsi and rdx are for
 *    thread.outcome and thread.call. So what the kernel knows of its wait stays.
 * 4. Before execve, and at the end of a thread (PTRACE_EVENT_EXIT), the recorder reads the rest.
 */
#ifndef WEIR_RT_TRANSLATE_TRANSLATE_ABI_H
#define WEIR_RT_TRANSLATE_TRANSLATE_ABI_H

#include <stdint.h>

#define TRANSLATE_MAGIC	  0x52545257u /* "WRTR" */
#define TRANSLATE_VERSION 4

/* Of the image's header, which its dynamic symbol table names. */
#define TRANSLATE_HEADER_SYMBOL "weir_translate_header"

enum translate_service {
	TRANSLATE_REGION =
		1, /* rdi: struct translate_region *, `address` and the buffer are filled in by the
				  translator. 0: `start` .. `n_functions` are; 1: the same, but the buffer is too
				  small: n_functions tells how many there are */
	TRANSLATE_EXEC =
		2, /* the next system call is execve, which ends this memory if it succeeds. rdi: the
				  thread. The recorder reads all threads and blocks; if the call fails, goes on */
	TRANSLATE_LEAVE =
		3, /* this thread cannot go on translated. rdi: thread, whose `regs` and `pc` are the
				  program's (or its translate_boot, where there is no memory for a thread); rsi: enum
				  translate_why. The recorder lets it run on natively */
	TRANSLATE_FORKED =
		4, /* this is a new process, by fork: counters, events and trees begin anew. rdi: thread */
	TRANSLATE_MAPS = 6, /* rdi: thread: its last system call has changed what is mapped */
	TRANSLATE_FILE_CODE =
		7, /* rdi: struct translate_file_code *: what the file has that is mapped at `address`.
				    0: it is filled in */
	TRANSLATE_REPORT =
		5, /* rdi: a zero-terminated sentence: a defect of ours that did no harm */
};

enum translate_why {
	TRANSLATE_WHY_INSTRUCTION = 1, /* an instruction that is not known, at pc */
	TRANSLATE_WHY_GS,	       /* the program uses gs itself */
	TRANSLATE_WHY_TRACED,	/* it wants to be traced by another process (PTRACE_TRACEME) */
	TRANSLATE_WHY_MEMORY,	/* no memory for translated code */
	TRANSLATE_WHY_FAULT,	/* it dies: the instruction at pc is to fault natively */
	TRANSLATE_WHY_ASKED,	/* the recorder has asked for it */
	TRANSLATE_WHY_CONFINED, /* it is about to get a filter of system calls */
	TRANSLATE_WHY_BLOCKS,	/* more blocks than there are numbers */
};

/* Where another observer has put a breakpoint (a uprobe), memory is not what the program executes. */
struct translate_file_code {
	uint64_t address;
	uint32_t n; /* bytes: how many there are */
	uint8_t bytes[16];
};

/* Executable memory around an address. */
struct translate_region {
	uint64_t address;    /* asked for */
	uint64_t start, end; /* the mapping; equal: nothing executable is there */
	uint32_t flags;	     /* TRANSLATE_REGION_* */
	uint32_t n_functions;
	uint64_t functions; /* address of a buffer: struct translate_function, by start */
	uint64_t n_room;    /* of the buffer */
};
#define TRANSLATE_REGION_FILE	  1u /* of a file, private */
#define TRANSLATE_REGION_WRITABLE 2u
#define TRANSLATE_REGION_SHARED	  4u /* may change by another mapping */
#define TRANSLATE_REGION_VSYSCALL 8u

/* A function that the recorder has a name for, or the unwind tables tell of. Addresses of this run. */
struct translate_function {
	uint64_t start;
	uint32_t bytes;
	uint32_t flags;
};

/* What is executed as a whole, from its first instruction to its last, unless one of them faults. Rows are
 * never changed once they are counted in header.n_blocks, but for `flags`. */
struct translate_block {
	uint64_t pc;	/* of the first instruction, in the program */
	uint32_t bytes; /* of the program's instructions, which follow each other */
	uint16_t n_insns;
	uint16_t flags; /* TRANSLATE_BLOCK_* */
	uint64_t code;	/* address of a copy of these bytes, as they were when it was translated */
	uint64_t cache; /* where it is in translated code */
	uint32_t cache_bytes;
	uint32_t group; /* number of the first block of those that were translated together */
	uint32_t body;	/* how far behind `cache` its instructions begin */
	uint64_t target; /* where its jump or call leads, but for one that leads to the next row; 0: it has none, or
			    it is not direct */
};
#define TRANSLATE_BLOCK_ENTRY 1u /* has an event TRANSLATE_EVENT_ENTER: a function begins here */
#define TRANSLATE_BLOCK_LANDING                                                                    \
	2u /* has an event TRANSLATE_EVENT_LAND: a place behind a call that was jumped to */
#define TRANSLATE_BLOCK_RETURN                                                                     \
	4u /* ends with a return, which has an event TRANSLATE_EVENT_RETURN */
#define TRANSLATE_BLOCK_SYSCALL 8u  /* ends with a system call */
#define TRANSLATE_BLOCK_CALL	16u /* ends with a call */
#define TRANSLATE_BLOCK_STALE	32u /* its code has changed since, or is gone */
#define TRANSLATE_BLOCK_IMPLIED                                                                    \
	64u /* with TRANSLATE_OPTION_STEPS: it has no word when the row in front of it was executed, and did not
	       jump elsewhere */

/* What a thread did, in the order in which it did it. */
struct translate_event {
	uint64_t
		sp; /* rsp in front of the instruction: at an entry it points to the return address, at a
			   return too. Of TRANSLATE_EVENT_SIGNAL: rsp of what was interrupted; of _SIGRETURN: rsp that
			   it goes on with */
	uint64_t
		cost; /* the thread's sums of instructions together, which only grow: all blocks that were begun
			  before this event, its own block included for returns, not included for entries and
			  landings */
	uint32_t block; /* number of the block that it stands in */
	uint32_t kind;	/* enum translate_event_kind */
};
enum translate_event_kind {
	TRANSLATE_EVENT_ENTER = 1,
	TRANSLATE_EVENT_RETURN,
	TRANSLATE_EVENT_LAND,
	TRANSLATE_EVENT_SIGNAL, /* a handler is about to run; the block is its first one's, or TRANSLATE_NO_BLOCK */
	TRANSLATE_EVENT_SIGRETURN, /* a handler has ended */
	TRANSLATE_EVENT_FAULT, /* the block was left in front of an instruction that faulted: `sp` says how many of its
				  instructions were not executed (and are in the sums all the same) */
	TRANSLATE_EVENT_CALLED, /* block is that of a `fork` child: everything open is its parent's */
};
#define TRANSLATE_NO_BLOCK UINT32_MAX

/*
 * With TRANSLATE_OPTION_STEPS the buffer has 32-bit words in place of events: numbers of blocks that are begun, and these,
 * each with so many words behind it. Numbers of 64 bits are two words, the low one first.
 *
 * Behind a block whose number came, those rows that follow it and are TRANSLATE_BLOCK_IMPLIED were begun, too: up to the
 * one that leads to the address of the block whose number comes next. No two of a row lead to the same address (but for
 * two ways out of one block, the end of the last one included), so that is one at most; when it is none of them, it is
 * the last one. Where that cannot be said, TRANSLATE_WORD_LEFT says it.
 */
#define TRANSLATE_WORD_FIRST 0xff000000u
#define TRANSLATE_WORD_REPEAT                                                                      \
	0xff000001u /* 2: rcx in front of a repeated string instruction of the block */
#define TRANSLATE_WORD_REPEATED 0xff000002u /* 2: rcx behind it, or where it faulted */
#define TRANSLATE_WORD_FAULT                                                                       \
	0xff000003u /* 1: so many instructions of the block were not executed */
#define TRANSLATE_WORD_CALL                                                                        \
	0xff000004u /* 5: number, result; 1 = there is none, the thread or program ended in it */
#define TRANSLATE_WORD_SIGNAL                                                                      \
	0xff000005u /* 4: signal, si_code, address: a handler is about to run */
#define TRANSLATE_WORD_LEFT                                                                        \
	0xff000006u /* 3: row, address: of the blocks that were begun this is the last one, or with TRANSLATE_NO_BLOCK \
		       the one that leads to this address. A row in front of those: none of them was begun */

#define TRANSLATE_EVENT_BYTES 24u
_Static_assert(sizeof(struct translate_event) == TRANSLATE_EVENT_BYTES, "blocks write them");

/* Of instructions: blocks take turns, so that an add need not wait for the one before. */
#define TRANSLATE_SUMS 4u

/* A thread's own page; gs points to it while the thread is translated. Behind it are its tables and its
 * counters: a u64 for each block, at `counters`. */
struct translate_thread {
	uint64_t self;
	uint32_t tid;
	uint32_t state; /* enum translate_thread_state */
	uint64_t cost[TRANSLATE_SUMS];
	uint64_t events, events_end, events_at; /* the buffer that is written */
	uint64_t
		spare; /* the other one, of the same size; the recorder exchanges them when one is full */
	uint64_t counters;
	uint64_t n_lost_buffers;
	uint64_t pc;	   /* of the program; valid when it stands in a service */
	uint64_t regs[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15, the same */
	uint64_t flags;
	uint64_t program_gs;
	uint64_t
		mask; /* of signals, the program's; valid when it leaves, with all blocked until then */
	uint64_t vfork_of; /* address of the thread that waits for this one, 0 = none */
	/* Of the system call at pc, while the program was interrupted in it and has not made it again: what the kernel
	 * had in rax (-ERESTARTSYS and its like) and in orig_rax. 0: there is none. */
	int64_t outcome;
	int64_t call;
};
static inline uint64_t translate_thread_cost(const struct translate_thread *t)
{
	return t->cost[0] + t->cost[1] + t->cost[2] + t->cost[3];
}
enum translate_thread_state {
	TRANSLATE_THREAD_FREE,
	TRANSLATE_THREAD_LIVE,
	TRANSLATE_THREAD_ENDED, /* its counters are still to be read: the recorder then makes it FREE */
};

#define TRANSLATE_THREADS_MAX 4096

/* SIGSEGV and SIGTRAP: the translator itself raises them, so they are never blocked where it runs. */
#define TRANSLATE_SIGNALS_RAISED (1ull << (11 - 1) | 1ull << (5 - 1))

struct translate_mapping {
	uint64_t start, bytes;
};
struct translate_arena {
	uint64_t start, end;
};
#define TRANSLATE_ARENAS_MAX 32

struct translate_header {
	uint32_t magic, version;
	/* These four are distances from the field itself to what it means, in the file and in memory. */
	uint64_t
		start; /* where a thread begins in the translator: rsp is any stack of ours, rdi is struct
				  translate_boot * */
	uint64_t service; /* the int3 */
	uint64_t waits, asked;
	uint64_t cache_low,
		cache_high; /* all translated code is between these; not all of that is ours */
	uint64_t blocks;    /* address of struct translate_block[] */
	uint32_t n_blocks;
	uint32_t n_threads;    /* rows in use or not */
	uint64_t threads;      /* address of u64[]: struct translate_thread * */
	uint64_t options;      /* TRANSLATE_OPTION_*; the recorder writes it before the start */
	uint64_t n_left_alone; /* threads that have left */
	uint64_t
		arenas; /* address of struct translate_arena[]: executable memory of ours beside the image */
	uint64_t n_arenas;
	uint64_t
		mappings; /* address of struct translate_mapping[]: all that there is beside the image */
	uint64_t n_mappings;
};
#define TRANSLATE_MAPPINGS_MAX 8192u
_Static_assert(sizeof(struct translate_header) == 128, "entry.S has its size");
#define TRANSLATE_OPTION_COUNT 1u /* counters and cost sums in blocks */
#define TRANSLATE_OPTION_CALLS 2u /* events of calls and returns */
#define TRANSLATE_OPTION_STEPS                                                                     \
	4u /* a u32 number for each block that is begun, in place of events */

/* What the recorder hands to the first thread, or to each one that it attaches to. */
struct translate_boot {
	uint64_t regs[16]; /* as in translate_thread */
	uint64_t pc, flags;
	uint64_t gs_base;
	uint64_t
		mask; /* all signals are blocked until it is set, SIGTRAP and SIGSEGV only where they are in it */
	int64_t outcome, call; /* as in translate_thread */
	uint64_t is_attached;  /* not a new program */
	uint64_t
		has_rseq; /* the thread is registered for restartable sequences, as those that it makes will be */
};

#endif
