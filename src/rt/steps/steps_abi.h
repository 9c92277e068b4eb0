/* SPDX-License-Identifier: MIT */
/*
 * What the recorder and the stepping library (libweirsteps.so) agree on: where things lie in the
 * program, the memory that both share, and the records in it. docs/format/steps-inside.md says why.
 */
#ifndef WEIR_RT_STEPS_STEPS_ABI_H
#define WEIR_RT_STEPS_STEPS_ABI_H

#include <stdint.h>

#define STEPS_ABI_MAGIC	  0x70747377u /* "wstp" */
#define STEPS_ABI_VERSION 4
#define STEPS_MEMFD_NAME  "weir-steps"

/* --- the range that the program gets ------------------------------------------------------- */
/*
 * One piece of address space; everything is found from the library's own address.
 *
 *   0                   the library, from the memfd, private, read and execute
 *   STEPS_PRIVATE_AT    struct steps_config and what the library keeps of the process; private
 *   STEPS_STATES_AT     of each thread STEPS_STATE_BYTES: its state, and the stack of our handler
 *   STEPS_AREA_AT       struct steps_area, slots, rings; the memfd from STEPS_IMAGE_BYTES on,
 * shared
 */
#define STEPS_IMAGE_BYTES   0x10000u
#define STEPS_PRIVATE_AT    0x10000u
#define STEPS_PRIVATE_BYTES 0x70000u
#define STEPS_STATES_AT	    (STEPS_PRIVATE_AT + STEPS_PRIVATE_BYTES)
#define STEPS_STATE_BYTES   0x8000u
#define STEPS_N_STATES	    1024u
#define STEPS_AREA_AT	    (STEPS_STATES_AT + STEPS_N_STATES * STEPS_STATE_BYTES)

/* The library's entry point (e_entry) is the handler of SIGTRAP; this many bytes behind it is what
 * the handler returns to (sa_restorer). */
#define STEPS_RESTORER_AT 8u

/* A signal action as rt_sigaction(2) has it. */
struct steps_action {
	uint64_t handler, flags, restorer, mask;
};

#define STEPS_OWNER_UNKNOWN 0xffffffffu

/* At STEPS_PRIVATE_AT; written by the recorder before the program runs. */
struct steps_config {
	uint32_t magic, version;
	uint32_t pid;
	uint32_t n_threads; /* that the recorder put the library into */
	uint32_t is_over;   /* set while the program runs: all its threads leave at their next trap
			     */
	uint32_t reserved;
	struct steps_action trap_action; /* the program's own of SIGTRAP */
	/* For who takes the library out again; from here on the library writes: */
	uint64_t actions_at;  /* address of the program's own actions, by signal; 0: all are */
	uint32_t is_restored; /* the kernel has them again, but that of SIGTRAP */
	uint32_t is_shared;   /* another process that runs at the same time has this memory, too */
	uint32_t n_passing;   /* handlers of the program that were called from our code */
	uint32_t reserved2;
	uint32_t owners[STEPS_N_STATES]; /* tid of who uses the state, or used it until it left;
					    STEPS_OWNER_UNKNOWN = a thread to be; 0 = free */
};

/* At the start of a state; written by the recorder for threads that it puts the library into. */
struct steps_state_head {
	uint32_t tid;		    /* 0 = free */
	uint32_t is_begun;	    /* by the library */
	uint64_t alt_sp, alt_bytes; /* the program's own signal stack */
	uint32_t alt_flags;	    /* as in ucontext: SS_DISABLE, SS_AUTODISARM */
	uint32_t is_trap_blocked;   /* the program blocks SIGTRAP */
	uint64_t saved;		    /* address of the next instruction; 0 = not known */
	uint32_t is_out;	    /* the thread is not traced any more */
	uint32_t is_cloning;	    /* its call makes a thread or process */
	uint32_t has_own_trap;	    /* the program has set the trap flag itself */
	uint32_t is_trap_pending;   /* SIGTRAP came while the program blocks it */
	uint64_t call_at;  /* of the call that it makes in a stub: the instruction; 0 = none */
	uint64_t call_ret; /* and where it comes back to */
};

/* What the queued SIGTRAP that starts a thread carries (si_value). */
#define STEPS_START_VALUE 0x57e1507a12ull

/* --- the area ------------------------------------------------------------------------------ */

enum steps_slot_state {
	STEPS_SLOT_FREE = 0,
	STEPS_SLOT_TAKEN = 1, /* pid, tid, by_tid are being filled in */
	STEPS_SLOT_LIVE = 2,
	STEPS_SLOT_ENDED = 3, /* the last record is written; the recorder empties it, then FREE */
};

enum steps_slot_how {
	STEPS_HOW_START = 1,  /* the recorder put the library into the thread */
	STEPS_HOW_THREAD = 2, /* made by the thread by_tid of the same process */
	STEPS_HOW_FORK = 3,   /* a process made by the thread by_tid */
};

#define STEPS_REPLY_BYTES 16

/* A thread's: two cache lines each for who writes. */
struct steps_slot {
	/* The library: */
	uint32_t state; /* enum steps_slot_state; FREE -> TAKEN by compare and swap */
	uint32_t pid, tid, by_tid;
	uint32_t how;
	uint32_t kill_number; /* the thread sends a signal, by this call ... */
	uint64_t kill_addr;   /* ... at this address; 0 = it does not */
	uint32_t reserved[8];
	uint64_t head; /* records written; free running */
	uint64_t reserved2[7];
	/* The recorder: */
	uint64_t tail;	 /* records taken; free running */
	uint32_t moved;	 /* futex: changes when tail has moved far */
	uint32_t synced; /* futex: number of the last SYNC record that was answered */
	uint32_t reply_n;
	uint8_t reply[STEPS_REPLY_BYTES];
	uint8_t reserved3[92];
};

enum steps_area_flag {
	STEPS_FLAG_LOSSY = 1,	  /* a full ring drops and counts */
	STEPS_FLAG_NO_FOLLOW = 2, /* forked processes run untraced */
};

struct steps_area {
	uint32_t magic, version;
	uint32_t flags;
	uint32_t n_slots;
	uint32_t ring_records; /* a power of two */
	uint32_t recorder_pid;
	uint64_t slots_at, rings_at, ring_stride; /* from the area's start; bytes */
	/* Written by the recorder while the program runs: */
	uint32_t is_off;    /* 1: each thread leaves at its next trap; 2: and nobody reads */
	uint32_t heartbeat; /* moves while the recorder lives */
	uint32_t is_asleep; /* futex: 1 while the recorder waits; the library sets 0 and wakes it */
	/* Written by the library: */
	uint32_t n_slotless; /* threads that found no slot or no state, and run untraced */
	uint32_t n_foreign;  /* children that may be in another pid namespace, and run untraced */
};

enum steps_record_kind {
	STEPS_RECORD_STEP = 0,	  /* addr; bytes: of the instruction */
	STEPS_RECORD_SYSCALL = 1, /* addr: the result; a: the number; b: 1 = of the i386 table */
	STEPS_RECORD_SIGNAL = 2,  /* addr: of the fault; a: signal, b: si_code */
	STEPS_RECORD_FORK = 3,	  /* addr: the new tid; a: 1 = a thread of the same process */
	STEPS_RECORD_EXIT = 4,	  /* addr: of the call; a: wait status; b: 1 = the whole process;
				   the last one, unless a signal comes before the call is made */
	STEPS_RECORD_SYNC = 5,	  /* a: enum steps_sync, b: its number; addr: by kind */
	STEPS_RECORD_LOST = 6,	  /* addr: so many steps were not written */
	STEPS_RECORD_RESUME = 7,  /* a: enum step_why */
	STEPS_RECORD_PAUSE = 8,	  /* a: enum step_why; the last record */
};

enum steps_sync {
	STEPS_SYNC_MAPS = 1, /* mappings changed: waits until they are read */
	STEPS_SYNC_EXEC = 2, /* waits until it is seized by ptrace; then becomes another program by
				the call at addr, or not */
	STEPS_SYNC_READ = 3, /* wants the bytes at addr, as far as the kernel reads them: reply */
	STEPS_SYNC_NAME = 4, /* the thread has another name: waits until it is read */
	STEPS_SYNC_CODE = 5, /* memory has int3 at addr: wants the instruction that a uprobe of
				another observer is on, by the file: reply; none = it is int3 */
	STEPS_SYNC_FILTER = 6, /* is about to put itself under a seccomp filter: waits until all
				  other threads of the process are out; reply_n 0: they are not */
	STEPS_SYNC_CLAIM = 7, /* is about to trace the thread addr: waits until its process is out */
};
#define STEPS_SYNC_WHAT 0xffu
/* With STEPS_SYNC_FILTER: the memory is another process's, too, which is not meant. */
#define STEPS_FILTER_ALONE 0x100u
/* With STEPS_SYNC_EXEC: what the program does with SIGTRAP, and its next one inherits. */
#define STEPS_EXEC_TRAP_BLOCKED 0x100u
#define STEPS_EXEC_TRAP_IGNORED 0x200u

struct steps_record {
	uint64_t addr;
	uint8_t kind; /* high half: enum steps_record_kind; low half: bytes of the instruction */
	uint8_t bytes[15]; /* not STEP: a and b, 4 bytes each, at bytes + 3 */
};
#define STEPS_ARG_A 3
#define STEPS_ARG_B 7

#endif
