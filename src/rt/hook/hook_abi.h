/* SPDX-License-Identifier: MIT */
/*
 * What the recorder and the hook library (libweir.so) agree on: the memory they share, the records
 * in it, and the messages by which functions are hooked. docs/format/hooks.md says why. All numbers
 * are little-endian, all structures have the same layout in 32- and 64-bit programs.
 *
 *   recorder                                     program with libweir.so
 *   server thread   <-- hello, modules ---       at start, after fork, after dlopen
 *                   --- plan, area ------->      patches the functions
 *                   <-- results -----------      and says what became of each
 *   drain thread    <== ring of each thread ==   hooks write, without a system call
 */
#ifndef WEIR_RT_HOOK_HOOK_ABI_H
#define WEIR_RT_HOOK_HOOK_ABI_H

#include <stdint.h>

#define HOOK_ABI_MAGIC	 0x6b6f6877u /* "whok" */
#define HOOK_ABI_VERSION 7

/*
 * The environment variable that says where the server is; set beside LD_PRELOAD. "@NAME:KEY" or
 * "@NAME:KEY:PATH": NAME is that of an abstract Unix socket, so that every user reaches it from
 * every root folder; KEY is what a hello must show, since everybody can see such names; PATH leads
 * to a second socket, for processes of another network namespace.
 */
#define HOOK_ENV	 "WEIR_HOOKS"
#define HOOK_KEY_BYTES	 32
#define HOOK_PLACE_BYTES 108 /* of the whole text, with its zero */
/* How many system call filters the recorder itself runs under: a program that has more of them does
 * not speak to it, since that may be forbidden and end the program. Not set: none. */
#define HOOK_ENV_FILTERS "WEIR_HOOKS_FILTERS"

/* --- the area: memory shared by one process and the recorder (a memfd of the recorder) ------- */
/*
 *   0                      struct hook_control
 *   threads_offset         struct hook_thread [n_threads]
 *   rings_offset           rings (or trees) of ring_bytes each, one for each struct hook_thread
 *
 * The program maps it up to the first slab_threads rings, and each slab of so many more when a thread
 * needs it: address space is what it may have little of (rt/hook/slabs.c).
 */
#define HOOK_SLABS_MAX 4096u

enum hook_thread_state {
	HOOK_THREAD_FREE = 0,  /* the library may take it (compare and swap to TAKEN) */
	HOOK_THREAD_TAKEN = 1, /* the library fills pid and tid */
	HOOK_THREAD_LIVE = 2,
	HOOK_THREAD_GONE = 3, /* the thread has ended; the recorder empties the ring, then FREE */
	HOOK_THREAD_NEW = 4,  /* needs_tids: waits for the recorder to set `tid`, then LIVE */
};

struct hook_thread {
	uint32_t state;	    /* futex, while NEW */
	uint32_t tid;	    /* as the recorder sees it */
	uint64_t consumed;  /* records taken so far, by the recorder; free running */
	uint64_t written;   /* records written so far, as of the last part's end, by the library */
	uint64_t n_dropped; /* records that were not written because the ring stayed full */
	uint64_t n_stalls;  /* times the thread waited for the recorder */
	uint64_t stalled_ticks; /* and how long, in ticks of the TSC */
	uint32_t is_waiting;	/* futex: 1 while the thread waits for `consumed` to move */
	uint32_t n_chains;	/* stacks (coroutines) seen so far */
	uint64_t n_unhooked; /* calls that were entered but could not be followed to their exit */
	uint64_t n_pruned;   /* tree: nodes folded into their parents */
	uint64_t start_ticks;
	uint64_t taken;	  /* the recorder takes what is before this: its heads are 0, or will be */
	uint32_t own_tid; /* as the process sees it: another one in a pid namespace */
	uint32_t reserved2;
	uint64_t
		n_jumped; /* calls that were taken to be over when one further up the stack began */
	uint64_t reserved[3];
};

enum hook_mode {
	HOOK_MODE_EVENTS = 0, /* rings of struct hook_record */
	HOOK_MODE_TREE = 1,   /* each thread keeps a tree (hook_tree.h) where its ring would be */
};

enum hook_stop {
	HOOK_STOP_NONE = 0,
	HOOK_STOP_FILTER = 1, /* the program forbids itself system calls (seccomp) */
};

#define HOOK_OFF_MAX 1024

struct hook_control {
	uint32_t magic, version;
	uint32_t mode;
	uint32_t n_threads;
	uint64_t area_bytes;
	uint64_t threads_offset, rings_offset;
	uint64_t ring_bytes; /* a power of two, a multiple of part_bytes */
	uint32_t part_bytes; /* the library looks around (stop? unhook? room?) once a part */
	uint32_t prune_permille;
	/* Written by the recorder, read by the library once a part: */
	uint32_t is_off;    /* 1: record nothing more; unhook everything at the next occasion */
	uint32_t heartbeat; /* moves while the recorder lives, several times a second */
	uint32_t n_off;	    /* so many entries of `off` are valid; only grows */
	uint32_t off[HOOK_OFF_MAX]; /* functions to unhook (--budget), by id */
	/* Written by the library: */
	uint32_t n_off_done;   /* so many of them are unhooked */
	uint32_t n_threadless; /* threads that found no free entry: their calls are not recorded */
	uint32_t needs_tids;   /* by the recorder: the process is in a pid namespace of its own */
	uint32_t serial;       /* by the recorder: names the process in the hello of its children */
	uint32_t stop_reason;  /* enum hook_stop: why it has unhooked everything by itself */
	uint32_t n_used;       /* entries from here on were never taken */
	uint32_t slab_threads; /* by the recorder: rings that are mapped together */
	uint64_t n_missed; /* calls of the threads without an entry or without memory, while so */
	uint32_t n_memoryless; /* threads for which no memory could be mapped; as n_threadless */
	uint32_t n_jvms_left;  /* JVMs that the agent (rt/java) could not work in */
	uint32_t
		n_classes_left; /* classes that the JVM did not let be changed, or that are too long */
	uint32_t has_virtual_threads;  /* of Java: calls on them go from one thread to another */
	uint32_t n_jvms_without_bytes; /* JVMs that do not tell how much their threads allocate */
	uint32_t counts_bytes;	       /* by the recorder: what Java threads allocate is wanted */
	uint32_t writes_archive;       /* a JVM that writes its classes to a file: left alone */
};

/* One page for the whole recording, mapped by every hooked process and, unlike the area, inherited
 * by their children: who cannot speak to the recorder can still count here. */
struct hook_family {
	uint32_t magic;
	uint32_t n_unheard[5]; /* exchanges that failed, by enum hook_hello_kind */
};
#define HOOK_FAMILY_BYTES 4096u

/*
 * A record of a ring. `head` is written last and is never 0; the recorder sets it back to 0 when it
 * has taken the record, so a record that is reserved but not yet written (a signal came in between)
 * is seen as such, and the order of the ring is the order of the reservations.
 */
struct hook_record {
	uint64_t head; /* see HOOK_HEAD */
	uint64_t data; /* ENTER: the caller's return address; LEAVE: 0; MORE: by code */
};

enum hook_record_kind {
	HOOK_RECORD_ENTER = 0,
	HOOK_RECORD_LEAVE = 1,
	HOOK_RECORD_AMOUNT = 2, /* data units were asked for by the function just entered (bytes) */
	HOOK_RECORD_MORE = 3,	/* the id field is an enum hook_more */
};

/* The recorder completes the time: a record was written after the ring was last found empty and
 * before it is read, which is less than 2^40 ticks (some minutes). By the counter it may seem to be
 * read a little before it was written (tick_clock_complete). */
#define HOOK_TIME_BITS 40
#define HOOK_ID_BITS   22
#define HOOK_ID_MASK   ((1u << HOOK_ID_BITS) - 1)
#define HOOK_ID_MAX    (HOOK_ID_MASK - 1)
#define HOOK_COST_ID   HOOK_ID_MASK /* calls of the library's own, by which it measures itself */
#define HOOK_HEAD(kind, id, ticks)                                                                 \
	((uint64_t)(kind) << 62 | (uint64_t)(id) << HOOK_TIME_BITS |                               \
		((uint64_t)(ticks) & ((1ull << HOOK_TIME_BITS) - 1)))
#define HOOK_HEAD_KIND(head)  ((enum hook_record_kind)((head) >> 62))
#define HOOK_HEAD_ID(head)    ((uint32_t)((head) >> HOOK_TIME_BITS) & HOOK_ID_MASK)
#define HOOK_HEAD_TICKS(head) ((head) & ((1ull << HOOK_TIME_BITS) - 1))

enum hook_more {
	HOOK_MORE_CHAIN = 1, /* from here on the thread runs on stack number `data` (0 = its own) */
	HOOK_MORE_STACK = 2, /* the stack at the entry just recorded: `data` bytes follow in the
				next (data + 15) / 16 records: struct hook_regs, then stack bytes */
	HOOK_MORE_PAD = 3,   /* `data` records follow that mean nothing */
	HOOK_MORE_COST = 4,  /* what a call costs just now: `data` is a HOOK_COST */
	HOOK_MORE_HEAP = 6,  /* the innermost open Java call has allocated `data` bytes more */
	HOOK_MORE_BYTECODES =
		5, /* the Java method that is left next has executed `data` of its bytecodes */
};

/*
 * What a hook adds to a call: `inner` between its two readings of the clock, which seems to be the
 * function's time, and `outer` before and after, which seems to be the caller's. In 16ths of a tick.
 */
enum hook_cost_kind {
	HOOK_COST_CALL = 0,	  /* through a jump: jump, nop and mcount */
	HOOK_COST_TRAP = 1,	  /* through int3 */
	HOOK_COST_AMOUNT = 2,	  /* through a jump, with an amount */
	HOOK_COST_INSTRUMENT = 3, /* by the program's own calls, -finstrument-functions */
	HOOK_COST_SLOW = 4,	  /* on top of each: what is done once for many records */
};
#define HOOK_COST_N    5
#define HOOK_COST_BITS 28
#define HOOK_COST_MAX  ((1u << HOOK_COST_BITS) - 1)
#define HOOK_COST(kind, inner, outer)                                                              \
	((uint64_t)(kind) << (2 * HOOK_COST_BITS) | (uint64_t)(inner) << HOOK_COST_BITS | (outer))
#define HOOK_COST_KIND(data)  ((uint32_t)((data) >> (2 * HOOK_COST_BITS)))
#define HOOK_COST_INNER(data) ((uint32_t)((data) >> HOOK_COST_BITS) & HOOK_COST_MAX)
#define HOOK_COST_OUTER(data) ((uint32_t)(data)&HOOK_COST_MAX)

/* Registers at the function's entry, by DWARF number of the program's kind (64: rax rdx rcx rbx rsi
 * rdi rbp rsp r8-r15 rip; 32: eax ecx edx ebx esp ebp esi edi eip). */
struct hook_regs {
	uint64_t r[17];
	uint64_t stack_addr; /* of the first stack byte that follows */
};

/* --- the region: where replaced return addresses lead ------------------------------------ */
/*
 * A stretch of libweir.so's own address range (so that its FDE is found by every unwinder), cut
 * into blocks. The return address of a hooked call is replaced by slot_address +
 * HOOK_RETURN_OFFSET; the slot's entry, at a fixed place in the same block, has the true one.
 *
 *   block + 0x0000   256 slots of 16 bytes: call *pointer
 *   block + 0x1000   struct hook_block (the pointer, the chain)
 *   block + 0x2000   256 entries of 32 bytes
 */
#define HOOK_BLOCK_BYTES   0x4000u
#define HOOK_BLOCK_SLOTS   256u
#define HOOK_SLOT_BYTES	   16u
#define HOOK_HEADER_OFFSET 0x1000u
#define HOOK_ENTRY_OFFSET  0x2000u
#define HOOK_RETURN_OFFSET 1u /* unwinders look up address - 1, which must lie in the same slot */

struct hook_entry {
	uint64_t ret;	 /* the true return address; first: the region's FDE reads it */
	uint64_t not_sp; /* ~address of the stack word that was replaced; 0 = not in use: an entry
			    that was taken and not yet filled then looks like one that is above all
			  */
	uint64_t ticks;	 /* when entered */
	uint32_t id;
	uint32_t node; /* tree */
};

/* --- messages ---------------------------------------------------------------------------- */
/* A connection is one exchange: hello, modules -> reply, plan -> results; then it is closed. */

enum hook_hello_kind {
	HOOK_HELLO_START = 1,	/* a program begins to be hooked: wants an area and a plan */
	HOOK_HELLO_FORK = 2,	/* the child of a hooked process: wants an area of its own */
	HOOK_HELLO_MODULES = 3, /* more modules were loaded: wants their plan */
	HOOK_HELLO_CLASSES =
		4, /* a JVM is about to load a class, or has loaded some: no modules, but
				   struct hook_classes */
};

/*
 * A class file, of which the answer is another one with calls in chosen methods (plan_bytes, no plans; status 1: it
 * stays as it is). With HOOK_CLASS_NAMES: for each class a byte (1 = of the JVM's own, else 2), its name as in
 * class files, and a zero; the answer has a byte for each of them, 1 = it may have chosen methods.
 */
enum hook_class_flags {
	HOOK_CLASS_OF_LIBRARY = 1, /* loaded by the JVM's own loader */
	HOOK_CLASS_NAMES = 2,
};
#define HOOK_CLASSES_BYTES_MAX (6u << 20)
struct hook_classes {
	uint32_t bytes; /* that follow */
	uint32_t flags; /* enum hook_class_flags */
	uint32_t n_names;
	uint32_t reserved;
};

struct hook_hello {
	uint32_t magic, version;
	uint32_t kind;
	uint32_t bits; /* 32 or 64 */
	uint32_t pid, tid;
	uint32_t parent_serial; /* FORK */
	uint32_t n_modules;	/* struct hook_module follow, each with its path */
	uint64_t region_start, region_bytes;
	uint64_t library_bias; /* load address of libweir.so */
	uint32_t refusal;      /* an enum hook_refusal that holds for the whole program; 0 = none */
	uint32_t reserved;
	char key[HOOK_KEY_BYTES];
};

struct hook_module {
	uint64_t bias;	     /* address in the process - address in the file (l_addr) */
	uint64_t start, end; /* of its mapping */
	uint32_t path_bytes; /* that follow this structure, without a zero; 0: the main program */
	uint32_t reserved;
};

struct hook_reply {
	uint32_t magic;
	uint32_t status;     /* 0 = go on; 1 = not wanted (nothing follows) */
	uint64_t plan_bytes; /* of struct hook_plan entries that follow */
	uint32_t n_plans;
	uint32_t has_area; /* 1: two descriptors come with this message (SCM_RIGHTS): the area's and
			      that of the page of struct hook_family */
	uint64_t area_bytes; /* to be mapped at first */
};

enum hook_method {
	HOOK_METHOD_JUMP = 1,	/* a jump in place of the first instructions */
	HOOK_METHOD_INT3 = 2,	/* a breakpoint, where no jump fits */
	HOOK_METHOD_NOP = 3,	/* a jump in place of nops left by -fpatchable-function-entry */
	HOOK_METHOD_MCOUNT = 4, /* in place of a call of mcount or __fentry__ (-pg) */
	HOOK_METHOD_CYGPROF =
		5, /* by the calls that -finstrument-functions left; nothing is patched */
	HOOK_METHOD_BYTECODE = 6, /* a Java method, by calls in its bytecode (rt/java) */
};

enum hook_action {
	HOOK_ACTION_CALL = 1,	 /* entry and exit */
	HOOK_ACTION_STACK = 2,	 /* entry, stack at the entry, exit */
	HOOK_ACTION_AMOUNT = 3,	 /* entry, amount, exit; `detail` says which arguments */
	HOOK_ACTION_REPLACE = 4, /* jump to the library's own function `detail` (enum hook_own) */
	HOOK_ACTION_NOTE = 5,	 /* no record: calls the library's `detail` (enum hook_own) first */
	HOOK_ACTION_TELL = 6,	 /* nothing is patched: the library calls the function once, for
				    `detail` (enum hook_own) */
	HOOK_ACTION_VARIABLE =
		7, /* the same of a variable at `site`: nothing of its page is touched */
};

/* detail of HOOK_ACTION_AMOUNT */
enum hook_amount {
	HOOK_AMOUNT_ARG0 = 0,	   /* malloc(n), operator new(n), valloc(n) */
	HOOK_AMOUNT_ARG1 = 1,	   /* realloc(p, n), aligned_alloc(a, n), memalign(a, n) */
	HOOK_AMOUNT_ARG2 = 2,	   /* posix_memalign(p, a, n) */
	HOOK_AMOUNT_ARG0_ARG1 = 3, /* calloc(n, size) */
	HOOK_AMOUNT_ARG1_ARG2 = 4, /* reallocarray(p, n, size) */
};

/* Functions of the library that stand in for, or watch, those of the program. */
enum hook_own {
	HOOK_OWN_CYG_ENTER = 1,	  /* __cyg_profile_func_enter */
	HOOK_OWN_CYG_EXIT = 2,	  /* __cyg_profile_func_exit */
	HOOK_OWN_SIGMASK = 3,	  /* sigprocmask, pthread_sigmask: never block SIGTRAP */
	HOOK_OWN_SIGACTION = 4,	  /* sigaction: the program's SIGTRAP handler is kept behind ours */
	HOOK_OWN_MAKECONTEXT = 5, /* makecontext: a stack that coroutines will run on (NOTE) */
	HOOK_OWN_RETURN_LOCATION = 6, /* V8's: who knows where return addresses are (TELL) */
	HOOK_OWN_PRCTL = 7,	      /* prctl: it may install a system call filter (NOTE) */
	HOOK_OWN_SYSCALL = 8,	      /* syscall: likewise, or what follows (NOTE) */
	HOOK_OWN_MPROTECT = 9,	      /* mprotect, pkey_mprotect: perhaps of patched code (NOTE) */
	HOOK_OWN_CREATE_JVM = 10,     /* JNI_CreateJavaVM: the JVM is told of the agent (NOTE) */
	HOOK_OWN_FIND_JVMS = 11,      /* JNI_GetCreatedJavaVMs, which the agent needs (TELL) */
	/* VARIABLEs of a JVM: where it has what, how long an entry of that is, and where in it the place is */
	HOOK_OWN_VM_STRUCTS = 12, /* gHotSpotVMStructs */
	HOOK_OWN_VM_STRIDE = 13,  /* gHotSpotVMStructEntryArrayStride */
	HOOK_OWN_VM_OFFSET = 14,  /* gHotSpotVMStructEntryOffsetOffset */
};

#define HOOK_ORIGINAL_MAX 32
#define HOOK_CODE_MAX	  255

/* A place in the moved code that needs the address of something in the module. The four bytes at
 * `at` become target + bias - (address of the byte `next`). */
struct hook_fixup {
	uint8_t at;   /* offset of the 32-bit field in the moved code */
	uint8_t next; /* offset of the end of its instruction */
	uint8_t reserved[6];
	uint64_t target; /* address in the file */
};

/*
 * One function. Behind it: n_code bytes of moved code (padded to a multiple of 8), then n_fixups
 * struct hook_fixup. The moved code is what has to be executed instead of the patched instructions,
 * its last instruction being a jump back (one of the fixups) unless it cannot be reached.
 */
struct hook_plan {
	uint32_t bytes;	   /* of this entry, with what is behind it */
	uint32_t id;	   /* 1 .. HOOK_ID_MAX; 0 for REPLACE and NOTE */
	uint32_t module_i; /* index into the hello's modules */
	uint8_t method;
	uint8_t action;
	uint8_t detail;
	uint8_t n_patched; /* bytes at `site` that are replaced: 1 (int3), 2 (short jump), 5 or more
			    */
	uint8_t n_original; /* bytes of `original` that must be found at `site` */
	uint8_t n_code;
	uint8_t n_fixups;
	uint8_t reserved;
	uint32_t reserved2;
	uint64_t site;	   /* address in the file of the first patched byte */
	uint64_t function; /* address in the file of the function (site may lie behind an endbr) */
	uint64_t pad_site; /* with a short jump: five bytes of padding that take the long one; else
			      0 */
	uint8_t original[HOOK_ORIGINAL_MAX];
	uint8_t pad_original[8];
};

enum hook_refusal {
	HOOK_REFUSAL_NONE = 0,
	HOOK_REFUSAL_CHANGED = 1,      /* the code in memory is not that of the file */
	HOOK_REFUSAL_NO_ROOM = 2,      /* no free memory near enough for the moved code */
	HOOK_REFUSAL_PROTECTED = 3,    /* the code's memory cannot be made writable */
	HOOK_REFUSAL_SHADOW_STACK = 4, /* the processor checks return addresses (CET) */
	HOOK_REFUSAL_REGION = 5,       /* the region for return addresses is not where it must be */
	HOOK_REFUSAL_SIGTRAP = 6, /* a breakpoint is needed, and SIGTRAP is blocked or in use */
	/* By the recorder, of a whole program that says so (HOOK_FAILED_MAGIC): */
	HOOK_REFUSAL_NO_MEMORY = 7,
	HOOK_REFUSAL_NO_FILES = 8,
	HOOK_REFUSAL_FAILED = 9,
	HOOK_REFUSAL_N,
};

/* The answer for each plan entry, in their order; preceded by struct hook_results. */
struct hook_result {
	uint32_t id;
	uint32_t refusal;    /* enum hook_refusal; 0 = hooked */
	uint64_t moved_code; /* address of the moved code in the process */
	uint64_t bias;
};

struct hook_results {
	uint32_t magic;
	uint32_t n_results;
};
/* As `magic`, after START: the library could not begin (no memory, no free descriptor), and n_results
 * is the error's number. Nothing follows. */
#define HOOK_FAILED_MAGIC 0x6c696177u /* "wail" */

/* Before the moved code, in this order: u32 id, u8 action, u8 detail, u16 0, then the call of the
 * hook (HOOK_CALL_BYTES), at which a program counter means "at the function's entry". */
#define HOOK_CALL_BYTES 6

#endif
