/* SPDX-License-Identifier: MIT */
/*
 * The instructions that a trace has, for those who look at them afterwards: listings, trees, tables
 * of branches. Opening reads all code (each instruction once, decoded), not the steps; a cursor
 * then walks the steps of a thread from any point.
 *
 * Instructions have dense numbers, so that a consumer can keep its figures in an array. One number
 * stands for one address with one content in one space; code that is overwritten has several.
 */
#ifndef WEIR_STEPS_READ_STEPS_H
#define WEIR_STEPS_READ_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/x86_code.h"
#include "base/buf.h"
#include "base/err.h"
#include "trace/reader.h"
#include "trace/step_records.h"

struct step_insn {
	uint64_t addr;
	uint64_t target; /* of a direct jump, branch or call */
	uint32_t space;
	uint32_t generation; /* from which on it is there */
	uint32_t frame;	     /* trace_reader_symbol tells name, offset and line */
	uint8_t length;	     /* 0: not an instruction, or its bytes are not known */
	uint8_t n_bytes;
	uint8_t bytes[STEP_CODE_BYTES_MAX];
	uint8_t flow; /* enum x86_flow */
	bool has_target;
	bool is_64;
	bool is_string; /* a repeated string instruction */
};

struct step_thread {
	uint32_t thread; /* in the trace's table */
	uint32_t stream;
	uint32_t pid, tid;
	const char *name; /* "" when it never had one */
	uint64_t n_steps; /* known by the last run's head, without reading the others */
	uint64_t first_time, last_time;
};

struct steps;
/* `r` is borrowed. A trace without steps has no threads; that is not a failure. */
struct steps *steps_open(const struct trace_reader *r);
void steps_close(struct steps *s);
/* Records, of code above all, that could not be read when it was opened; what cannot be read of the
 * steps turns up in walking. `first` (may be NULL) gets the sentence of the first, or NULL. */
uint32_t steps_n_damaged(const struct steps *s, const char **first);

uint32_t steps_n_threads(const struct steps *s);
const struct step_thread *steps_thread(const struct steps *s, uint32_t i); /* by pid, tid */
/* Whether --thread means this one: its TID, PID_TID or name. */
bool step_thread_is(const struct step_thread *t, const char *wanted);
uint64_t steps_total(const struct steps *s);
const struct trace_reader *steps_reader(const struct steps *s);

/* Numbers are below it; 0 is "not captured". They are in order of space, address, generation. */
uint32_t steps_n_insns(const struct steps *s);
const struct step_insn *steps_insn(const struct steps *s, uint32_t number);
/* The instruction at an address in a generation of a space; 0 when there is none. */
uint32_t steps_find(const struct steps *s, uint32_t space, uint64_t addr, uint32_t generation);

/* Where in memory an access is. */
struct step_where {
	enum step_place_kind kind;
	uint32_t image;	 /* of VARIABLE and IMAGE */
	uint32_t name;	 /* string: of a variable or of memory, the path of a file */
	uint64_t offset; /* in the variable or file; of IMAGE the address in it */
};
/* Of an access of the run that was recorded at `time`; false when nothing is known, as in traces
 * without places. */
bool steps_where(const struct steps *s, uint32_t space, uint64_t addr, uint64_t time,
	struct step_where *where);
/* "prog(table+0x8)", "prog+0x4010" in no variable, "[stack]", "file+0x100". */
void step_where_put(struct buf *to, const struct steps *s, const struct step_where *where);

/* --- walking ------------------------------------------------------------------------------- */

/* One executed instruction. When its code was not captured the number is 0 and `addr` is all. */
struct step {
	uint64_t addr;
	uint32_t insn;
	uint32_t times; /* iterations of a string instruction (saturated), else 1 */
};

enum step_item_kind {
	STEP_ITEM_STEPS, /* a row of steps, without anything between them */
	STEP_ITEM_MARK,
	STEP_ITEM_DATA,	  /* of the run of steps in front of it */
	STEP_ITEM_DAMAGE, /* a record could not be read; `sentence` says which */
};

struct step_item {
	enum step_item_kind kind;
	uint64_t time;	/* of the trace's clock; when the last of the steps was recorded */
	uint64_t first; /* number of the first step, or of the step that comes next */
	uint32_t space, generation;
	const struct step *steps; /* valid until the next call */
	uint32_t n;		  /* at most STEP_ITEM_STEPS_MAX */
	struct step_mark mark;
	struct span data;     /* for step_data_open; has been looked at and is not damaged */
	const char *sentence; /* valid until the next call */
};
#define STEP_ITEM_STEPS_MAX 4096

struct step_cursor;
/* At the first step of thread number `i`. */
int step_cursor_open(struct step_cursor **out, const struct steps *s, uint32_t i, struct err *err);
void step_cursor_close(struct step_cursor *c);
/* 1: an item; 0: the end. A row of steps may be cut into several items. */
int step_cursor_next(struct step_cursor *c, struct step_item *item);
/* The next item begins with step number `step` exactly, or with the marks in front of it; where
 * that is missing, with what comes behind it. Damage on the way there is told first, and the data
 * of a run come whole, with those of steps in front. Reads a few chunks, however long the trace is.
 */
void step_cursor_seek(struct step_cursor *c, uint64_t step);
/* The same by time: the first item that is not before it. */
void step_cursor_seek_time(struct step_cursor *c, uint64_t time);

/* --- several threads ------------------------------------------------------------------------ */

/* The items of several threads in order of their times. A thread's cursor is open only from its
 * first item to its last. */
struct step_merge;
/* `threads` are `n` numbers of threads, or NULL for all. */
struct step_merge *step_merge_new(const struct steps *s, const uint32_t *threads, uint32_t n);
void step_merge_free(struct step_merge *m);
/* 1: an item of thread number *thread; 0: the end. */
int step_merge_next(struct step_merge *m, uint32_t *thread, struct step_item *item);
/* Before the first step_merge_next: the first item will be one that is not before `time`. */
void step_merge_seek_time(struct step_merge *m, uint64_t time);

#endif
