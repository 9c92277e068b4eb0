/* SPDX-License-Identifier: MIT */
/*
 * What inserted code (src/insert/), the run-time library (libweircount.a, this folder) and the
 * reader of count files (src/formats/import_counts.c) agree upon. docs/format/count.md explains it.
 *
 * Counters and the thread's state are addressed as `%gs:symbol(%rip)`: gs base + link-time
 * distance. With gs base 0, as every program starts, that is the symbol itself; a thread gets its
 * own copy of both sections somewhere else in memory and the distance to it as its gs base. So code
 * counts rightly before anything is set up (IFUNC resolvers, static start-up code), needs no
 * register, no TLS and no lock, and a thread's counters outlive it.
 */
#ifndef WEIR_RT_COUNT_COUNT_ABI_H
#define WEIR_RT_COUNT_COUNT_ABI_H

#include <stdint.h>

/* Sections of inserted objects. The names are C identifiers, so that linkers give __start_NAME and
 * __stop_NAME. */
#define COUNT_SECTION_COUNTERS  "weir_counters"	 /* SHT_NOBITS, alloc, write: a u64 for each block */
#define COUNT_SECTION_FUNCTIONS "weir_functions" /* SHT_PROGBITS, alloc: struct count_unit ... */

/*
 * Called by inserted code; all registers and flags but those named are preserved, nothing but the
 * stack below rsp is written. At a function's entry and before its returns and tail jumps rsp
 * points to the return address and nothing below it is live.
 *
 *	weir_count_enter	first thing in a function (behind endbr64). flags may change
 *	weir_count_enter_flags	the same, flags kept (hand-written code that takes flags)
 *	weir_count_leave	in front of ret. flags may change
 *	weir_count_leave_flags	the same, flags kept (hand-written code that returns flags)
 *	weir_count_tail		in front of a jump to another function that may be an inserted one:
 *				leaves, and the next entry at this stack pointer is a child of
 *				this function. flags kept
 *	weir_count_resync	mid-function, at landing pads and behind calls that return twice:
 *				drops the frames below rsp. flags may change
 *	weir_count_foreign	in front of the call of a foreign function: pushes a frame of kind
 *				foreign, keyed by this very address, and notes the time. flags may
 *				change
 *	weir_count_foreign_done	behind that call: pops it, adds the time. flags may change
 *
 *	weir_count_gate_prctl, weir_count_gate_syscall, weir_count_gate_load
 *				in front of a call of prctl, syscall or seccomp_load: the program may
 *				be about to give up system calls or the time-stamp counter. flags kept
 *
 * The function (or the foreign call) is identified by the address behind the `call`, which the
 * unit describes (entry, foreign site).
 * With --metrics cycles the names are weir_count_enter_cycles, weir_count_enter_flags_cycles and so
 * on: those sum weir_count_cycles too.
 */

/*
 * Per-thread sums that blocks add their costs to, striped so that no add waits for the one before it:
 *	addq $n, %gs:weir_count_cost + 8 * (block & 3)(%rip)
 */
#define COUNT_STRIPES	    4
#define COUNT_SYMBOL_COST   "weir_count_cost"	/* instructions */
#define COUNT_SYMBOL_CYCLES "weir_count_cycles" /* hundredths of modelled cycles */

/* ---- weir_functions: a sequence of units, each 8-byte aligned ---- */

#define COUNT_UNIT_MAGIC   0x54494e55u /* "UNIT" */
#define COUNT_UNIT_VERSION 1

/* One unit describes one text section of one object. Distances marked (pc) are from the field's own
 * address to the thing: R_X86_64_PC32. */
struct count_unit {
	uint32_t magic, version;
	uint32_t bytes;	      /* of the whole unit, padding included: the next one follows */
	uint32_t flags;	      /* COUNT_UNIT_* */
	int32_t text;	      /* (pc) start of the text section */
	int32_t counters;     /* (pc) start of its counters; 0 and no relocation: it has none */
	uint32_t text_bytes;  /* of the section, after insertion */
	uint32_t n_functions; /* struct count_function follow */
	uint32_t n_blocks;    /* then struct count_block, those of a function together */
	uint32_t n_foreign;   /* then struct count_foreign_site, by site */
	uint32_t names_bytes; /* then NUL-terminated names; offset 0 is "" */
	uint32_t object_name; /* name of the object or archive member, "" when not known */
};
#define COUNT_UNIT_CYCLES   1u /* inserted with cycle sums */
#define COUNT_UNIT_TREE	    2u /* inserted with call-tree code */
#define COUNT_UNIT_COMPILED 4u /* made by a compiler */
#define COUNT_UNIT_INSERTED 8u /* tells behind its names what was inserted */
#define COUNT_UNIT_CALLS    16u /* ends with its calls */

/* Functions, in order of their start. Those left alone are listed too. */
struct count_function {
	uint32_t start, bytes; /* in the section, after insertion */
	uint32_t entry;	       /* offset behind the call of weir_count_enter; 0: it has none */
	uint32_t name;
	uint32_t first_block, n_blocks;
	uint16_t reason; /* enum insert_reason; 0 = inserted */
	uint16_t flags;	 /* COUNT_FUNCTION_* */
};
#define COUNT_FUNCTION_FRAGMENT 1u /* a .cold part: counted, but entered by jumps only */
#define COUNT_FUNCTION_GLOBAL	2u
#define COUNT_FUNCTION_OBJECT	4u /* stands for all functions of an object that is left alone */

/* The counter of block i of the unit is the i-th word of its counters. */
struct count_block {
	uint32_t start, end;	 /* in the section, after insertion; from the first inserted byte */
	uint32_t old_start;	 /* in the section as it was before */
	uint16_t inserted_bytes; /* at its start, that are not the program's */
	uint16_t n_insns;	 /* of the program, in one execution; 0xffff: saturated */
};

struct count_foreign_site {
	uint32_t site; /* offset behind the call of weir_count_foreign */
	uint32_t name; /* of the function that is called */
};

/*
 * Behind the names, with COUNT_UNIT_INSERTED, numbers in uleb128:
 *
 *	for each block		how many bytes in front of its start are its own: endbr64, and
 *				instructions that take flags
 *	then			how many stretches of bytes were inserted
 *	for each of those	its distance from the end of the one before, its bytes
 *
 * A block's own instructions are what is left of [start - those in front, end) without the
 * stretches. A branch that was made into several instructions is the first of them.
 */

/*
 * With COUNT_UNIT_CALLS a unit's last word is a number, in 64 bits; in front of it are so many struct
 * count_call, by `end`. A block is counted when it begins: the instructions behind a call in it that
 * does not come back (an exception, longjmp, exit) were not executed. With call-tree code these are all
 * calls; without, those that return twice, and landing pads, which have no length: places that control
 * comes to when calls did not come back.
 */
struct count_call {
	uint32_t end;	 /* offset behind the call, where it returns to; of a landing pad: of it */
	uint16_t length; /* of the instruction */
	uint16_t rest;	 /* instructions of its block behind it; 0xffff: saturated */
};

/* ---- the count file: NAME.weir while the program runs, and afterwards ---- */

#define COUNT_FILE_MAGIC   "WEIRCNT1"
#define COUNT_FILE_VERSION 1
#define COUNT_FILE_AREAS   8184 /* rows of the directory */
#define COUNT_PATH_BYTES   1024
#define COUNT_PAGE	   4096u

enum count_area_kind {
	COUNT_AREA_NONE,
	COUNT_AREA_UNITS, /* a copy of the weir_functions section; first = its address in memory */
	COUNT_AREA_COUNTERS, /* one thread's copy of [counters_start, counters_end), page-aligned;
				first = the address in memory, in the program, that the area's first
				byte stands for */
	COUNT_AREA_NODES,    /* struct count_node; first = number of the first one */
	COUNT_AREA_THREAD,   /* struct count_thread */
};

struct count_area {
	uint32_t kind;	 /* written last, when the rest is right */
	uint32_t thread; /* slot number; 0 for UNITS */
	uint64_t offset, bytes;
	uint64_t first;
};

/* All little endian; addresses are those of this run. */
struct count_header {
	char magic[8]; /* written last */
	uint32_t version, header_bytes;
	uint32_t pid, parent;
	uint32_t flags;		 /* COUNT_FILE_* */
	uint32_t n_threads_lost; /* threads that had no memory or no room: counted together with
				    another */
	uint64_t start_ns, start_ticks; /* CLOCK_REALTIME, time stamp counter: at the start */
	uint64_t end_ns, end_ticks;	/* at exit, when the program ended by exit(); else 0 */
	uint64_t ticks_per_s;		/* measured by the reader when 0 */
	uint64_t base;			/* what is added to link-time addresses */
	uint64_t counters_start, counters_end;
	uint64_t calls_lost; /* calls that had no node (tree memory used up): in their callers' cost
			      */
	uint64_t exe_size, exe_mtime_ns, exe_inode;
	uint8_t build_id_bytes, build_id[39];
	char exe[COUNT_PATH_BYTES];		   /* absolute path of the program */
	char command[COUNT_PATH_BYTES];		   /* its arguments, blank separated, cut */
	struct count_area areas[COUNT_FILE_AREAS]; /* up to the first of kind NONE */
};
#define COUNT_FILE_CYCLES 1u
#define COUNT_FILE_TREE	  2u
#define COUNT_FILE_SITES  4u /* call sites are apart: count_node.site is set */
#define COUNT_FILE_ENDED  8u /* exit() was reached */
/* The program has given up system calls (seccomp): from then on trees do not grow, and new threads are
 * counted together with the first one. */
#define COUNT_FILE_CONFINED   16u
#define COUNT_FILE_TIMELESS   32u /* it has given up the time-stamp counter: foreign calls not timed */
#define COUNT_FILE_CHILD_LOST 64u /* a child of such a process has not been counted */
#define COUNT_FILE_CHILD_FAILED 128u /* a child could not make its file, and has not been counted */
#define COUNT_FILE_THREADS 256u /* without a tree: threads have shared the counters, or may have */

/* A thread, live or not. When there is no room for more rows, that of a thread that has ended is a later
 * one's, too. */
struct count_thread {
	uint32_t slot, tid;
	uint32_t n_nodes; /* in use, [0] included */
	uint32_t current; /* the node that what is not charged yet belongs to, where current_node is 0 */
	uint32_t n_shared; /* later threads in this row */
	uint32_t folded;   /* COUNT_FOLDED_*: the tree had become large */
	uint64_t current_node; /* the same by its address in memory */
	char name[16];
	uint64_t nodes; /* address of node 0; a record that ends in front of this has no current_node */
};
/* From this many nodes on a call that is recursive has no new node, but that of the nearest open one of the same
 * function by the same caller; from twice as many on, of the same function. */
#define COUNT_FOLD_NODES     65536u
#define COUNT_FOLDED_CALLS   1u
#define COUNT_FOLDED_CALLERS 2u


/* A node of a thread's call tree; node 0 is the thread itself. 64 bytes. */
struct count_node {
	uint32_t parent;
	uint32_t rest; /* with COUNT_KEY_LEFT: instructions of the block behind the call */
	uint64_t key;  /* address behind the call of enter or foreign: which function; bit 63:
				foreign */
	uint64_t calls;
	uint64_t cost;	 /* self, in instructions */
	uint64_t cycles; /* self, in hundredths of modelled cycles; of foreign nodes: time in ticks
			  */
	uint64_t site;	 /* return address of the call, when sites are apart, else 0 */
	uint64_t min, max; /* self cost (of foreign nodes: ticks) of the cheapest and the dearest
			      call that ended; min > max: none */
};
#define COUNT_KEY_FOREIGN (1ull << 63)
/* No call, but how often calls that the parent made from one place did not come back, less how often they
 * came back in a child of fork, which had not made them. The key is the address behind the call, or with
 * COUNT_KEY_FOREIGN that of the call. `calls` is signed, `cost` 0: the parent's own is right already. */
#define COUNT_KEY_LEFT (1ull << 61)

#endif
