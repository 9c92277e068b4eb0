/* SPDX-License-Identifier: MIT */
/*
 * Record codes: every record has a major and a minor code. docs/format/records.md lists them with
 * their payloads; this header and that table change together. Codes that a reader does not know
 * are counted and skipped.
 */
#ifndef WEIR_TRACE_RECORDS_H
#define WEIR_TRACE_RECORDS_H

enum record_major {
	RECORD_MAJOR_INTERRUPT = 0x04,
	RECORD_MAJOR_THREAD = 0x10,
	RECORD_MAJOR_MODULE = 0x19,
	RECORD_MAJOR_INTERPRETED = 0x30,
	RECORD_MAJOR_STACK_SAMPLE = 0x40,
	RECORD_MAJOR_STACK_EVENT = 0x41,
	RECORD_MAJOR_ROUTINE = 0x50,
	RECORD_MAJOR_HOOK = 0x51,
	RECORD_MAJOR_TREE = 0x54,
	RECORD_MAJOR_COUNT = 0x55,
	RECORD_MAJOR_PROBE = 0x56,
	RECORD_MAJOR_STEP = 0x57,
	RECORD_MAJOR_PROCESS = 0x60,
	RECORD_MAJOR_SWITCH = 0x61,
	RECORD_MAJOR_RESOURCE = 0x62,
	RECORD_MAJOR_PHASE = 0x70,
	RECORD_MAJOR_LOSS = 0x71
};

/* Added to the minor code of an entry to make its exit. */
#define RECORD_MINOR_EXIT 0x80000000u
/* The minor code of both stack unwinds. */
#define RECORD_MINOR_STACK 0x7fffffffu

enum record_minor_thread {
	RECORD_THREAD_TICK = 0x03,    /* pc only: thread, frame, metric, weight */
	RECORD_THREAD_CREATED = 0xAB, /* thread, runtime tid, system? */
	RECORD_THREAD_IDLE = 0xAC,    /* thread */
	RECORD_THREAD_GC = 0xAD,      /* thread */
	RECORD_THREAD_NAMED = 0xAE,   /* thread, runtime tid, system?, name string */
	RECORD_THREAD_ENDED = 0xAF    /* thread */
};

/* "system?" of a thread: which one of a language's runtime it is. */
enum record_thread_role {
	RECORD_THREAD_IS_PROGRAM = 0,
	RECORD_THREAD_IS_RUNTIME = 1,
	RECORD_THREAD_IS_COMPILER = 2,
	RECORD_THREAD_IS_COLLECTOR = 3
};

enum record_minor_module {
	/* pid, process start, address, length, protection, image, file offset, at start?, bias */
	RECORD_MODULE_LOAD = 0x38,
	RECORD_MODULE_UNLOAD = 0x39, /* pid, process start, address, length, enum module_end */
	/* A mapping in the snapshot of a process, at the start or at the end of the recording or of
	 * the process: pid, process start, address, length, image, bias, 0 = start 1 = end */
	RECORD_MODULE_SNAPSHOT = 0x3A,
	/* A class that a language's runtime knows: pid, process start, loader, name string, at start? */
	RECORD_MODULE_CLASS_LOAD = 0x3B,
	RECORD_MODULE_CLASS_UNLOAD = 0x3C, /* pid, process start, loader, name string */
	RECORD_MODULE_JIT_UNLOAD = 0x44	   /* pid, process start, address, length */
};

#define RECORD_ROUTINE_ENTER 0x10u /* + RECORD_MINOR_EXIT: leave; payload: frame */
#define RECORD_ROUTINE_OPEN  0x11u /* was entered before: no call is counted; payload: frame */

enum record_minor_hook {
	/* frame, method (docs), reason string, hits, time of unhooking + 1 (0: never), number of the
	 * cost of its calls (0: not known) */
	RECORD_HOOK_FUNCTION = 0x01,
	RECORD_HOOK_CHAIN = 0x02, /* chain: the thread of this stream runs on that stack now */
	/* number, name string, how often measured, inner, outer, deviation in ps */
	RECORD_HOOK_COST = 0x03,
	RECORD_HOOK_FRAME = 0x04 /* frame: that of samples within hooks */
};

enum record_minor_tree {
	/* thread, node, parent, frame, calls, elapsed, minimum, maximum */
	RECORD_TREE_NODE = 0x01,
	/* thread, nodes folded into their parents, their calls, calls that had no node at all */
	RECORD_TREE_PRUNED = 0x02,
	/* thread: its tree is over, what it keeps from here on is another one (exec) */
	RECORD_TREE_OVER = 0x03
};

/* What a program counted that was linked by `weir count`. "+ 1": 0 = not measured. */
enum record_minor_count {
	/* thread, node, parent, frame, calls + 1, instructions, hundredths of cycles + 1, minimum,
	 * maximum, time + 1, site */
	RECORD_COUNT_NODE = 0x01,
	/* frame, bytes, reason string (0: counted), blocks, RECORD_COUNT_*, object string */
	RECORD_COUNT_FUNCTION = 0x02,
	/* function's frame, address, end, instructions, hundredths of cycles (0: no model), count
	 */
	RECORD_COUNT_BLOCK = 0x03,
	/* of the block before: file string, line, instructions, address */
	RECORD_COUNT_LINE = 0x04,
	/* thread, frame, instructions, hundredths of cycles + 1 */
	RECORD_COUNT_SUM = 0x05
};
#define RECORD_COUNT_FRAGMENT 1u /* split off by the compiler, entered by jumps only */
#define RECORD_COUNT_GLOBAL   2u
#define RECORD_COUNT_OBJECT   8u /* stands for all functions of an object */
#define RECORD_COUNT_UNMISSED 4u /* left alone on purpose: counts without it are whole */

/* What a script printed and counted that ran beside the recording (`weir record --probe`): in the
 * life stream of this number. */
#define RECORD_PROBE_STREAM 1
enum record_minor_probe {
	RECORD_PROBE_LINE = 0x01, /* pid, tid, clause, text string */
	RECORD_PROBE_MAP = 0x02	  /* name string, text string, JSON string */
};

/* Executed instructions (`weir steps`); trace/step_records.h has the payloads. Runs, marks and data
 * are in the stream of their thread, code and places are in the life stream of this number. */
#define RECORD_STEP_CODE_STREAM 2
enum record_minor_step {
	RECORD_STEP_RUN = 0x01,
	RECORD_STEP_CODE = 0x02,
	RECORD_STEP_MARK = 0x03,
	RECORD_STEP_DATA = 0x04,
	RECORD_STEP_PLACE = 0x05,
	/* Where counts stand for the steps: kind (0: instructions, else enum step_mark_kind), how
	 * many, string. In the stream of its thread. */
	RECORD_STEP_TOLD = 0x06,
	RECORD_STEP_BLOCKS =
		0x07, /* with the code; trace/step_ways.h has the payloads of these three */
	RECORD_STEP_SHORT_WAY = 0x08, /* as older versions wrote it: guesses by fewer blocks */
	RECORD_STEP_WAY = 0x09
};

enum record_minor_process {
	RECORD_PROCESS_START = 0x01, /* pid, parent pid, start time, command-line string */
	RECORD_PROCESS_FORK = 0x02,  /* pid, parent pid */
	RECORD_PROCESS_EXEC = 0x03,  /* pid, name string */
	RECORD_PROCESS_END = 0x04    /* pid, wait status + 1 (0: not known) */
};

enum record_minor_switch {
	RECORD_SWITCH_OUT = 0x01, /* thread, preempted? */
	RECORD_SWITCH_IN = 0x02	  /* thread */
};

#define RECORD_RESOURCE_ADD 0x01u /* metric, amount: used by the current routine of this stream */

enum record_minor_phase {
	RECORD_PHASE_STARTED = 0x01, /* start-up records are complete */
	RECORD_PHASE_ENDED = 0x02    /* the run is over; what follows is the end snapshot */
};

/* Minor code of a loss record = what was lost; payload: count, reason string. */
enum record_minor_loss {
	RECORD_LOSS_SAMPLES = 0x01,
	RECORD_LOSS_EVENTS = 0x02,
	RECORD_LOSS_RECORDS = 0x03, /* side-band records: mmap, comm, fork, switch */
	RECORD_LOSS_NOTE = 0x04,    /* nothing lost, but an imperfection to be shown */
	RECORD_LOSS_PART = 0x05	    /* parts of the trace that this one was made of */
};

#endif
