/* SPDX-License-Identifier: MIT */
/*
 * The payloads of step records (0x57), to and from bytes. docs/format/steps.md is the text to this.
 *
 *   RUN    instructions that a thread executed one after the other, addresses only
 *   CODE   the bytes of instructions as they were when they were executed, and where they are from
 *   MARK   what happened between two steps: a system call, a signal, a gap
 *   DATA   what instructions of the run before read and wrote
 *   PLACE  what is in a stretch of memory that they may access: a variable, a stack, a file
 *
 * A step is one executed instruction; all iterations of a repeated string instruction are one step.
 * Steps are numbered from 0 in each thread, and what is lost or not traced has no numbers.
 *
 * Code has versions: a space (the memory of one process between two execs) counts generations. A
 * run is of one generation; the bytes of one of its addresses are those of the newest CODE entry of
 * its space for that address whose generation is not newer than the run's.
 */
#ifndef WEIR_TRACE_STEP_RECORDS_H
#define WEIR_TRACE_STEP_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define STEP_CODE_BYTES_MAX 15
#define STEP_DATA_BYTES_MAX 64
/* A run is best ended when it has so many bytes: packing gains little by more, and a listing from
 * any point decodes at most that. Records of more than 1 MiB are not written. */
#define STEP_RUN_BYTES_BEST (256u << 10)

/* --- runs --------------------------------------------------------------------------------- */

struct step_run_head {
	uint64_t first; /* number of its first step in the thread */
	uint32_t space;
	uint32_t generation;
	uint32_t n;	/* steps, at least 1 */
	uint64_t start; /* address of the first one */
};

/* Builds the payload of a run step by step. */
struct step_run_coder {
	struct step_run_head head;
	uint64_t last; /* address of the last step */
	uint64_t more; /* iterations of it behind the first that are not in `deltas` yet */
	struct buf deltas;
};
/* Empty and ready for its first step; keeps the buffer's memory. */
void step_run_begin(struct step_run_coder *c, uint64_t first, uint32_t space, uint32_t generation);
void step_run_add(struct step_run_coder *c, uint64_t addr);
/* The last step (a string instruction) went round so many times more. */
void step_run_again(struct step_run_coder *c, uint64_t times);
/* Appends the payload to `to`. */
void step_run_end(struct step_run_coder *c, struct buf *to);
void step_run_release(struct step_run_coder *c);
/* It is time to end the run. */
static inline bool step_run_is_full(const struct step_run_coder *c)
{
	return c->deltas.n >= STEP_RUN_BYTES_BEST;
}

/* One step as decoded. */
struct step_at {
	uint64_t addr;
	uint64_t times; /* iterations of a string instruction; else 1 */
};

/* Walks a payload. */
struct step_run_walk {
	struct step_run_head head;
	struct cursor c;
	uint32_t n_left; /* steps behind the current one */
	bool is_taken;	 /* step_run_take gave the current one */
	struct step_at at;
};
/* The head alone, for seeking. False when the payload is damaged. */
bool step_run_head(struct step_run_head *head, struct span payload);
/* At the first step. False when damaged. */
bool step_run_open(struct step_run_walk *w, struct span payload);
/* 1: at the next step; 0: there is none, and the payload ends there; -1: damaged. */
int step_run_next(struct step_run_walk *w);
/* The same many at a time: the current step and those behind it, up to `max`, for those who have to
 * look at a hundred million of them. Returns how many; 0: there are none, and the payload ends
 * there; -1: damaged, and the steps in front of the damage were given before. */
int step_run_take(struct step_run_walk *w, struct step_at *to, uint32_t max);

/* --- code --------------------------------------------------------------------------------- */

struct step_code {
	uint64_t addr;
	uint32_t frame; /* of the trace: image and address in it; its symbol has name and line */
	uint8_t n;	/* bytes of the instruction; 0: they could not be read */
	uint8_t bytes[STEP_CODE_BYTES_MAX];
};

struct step_code_head {
	uint32_t space, generation;
	uint32_t pid;
	bool is_64;
	uint32_t n; /* entries */
};

/* Payload = head, then entries. Entries are best in order of addresses. */
void step_code_encode(
	struct buf *to, const struct step_code_head *head, const struct step_code *entries);
struct step_code_walk {
	struct step_code_head head;
	struct cursor c;
	uint32_t n_left;
	uint32_t last_frame;
	uint64_t last_end; /* behind the entry before */
};
bool step_code_open(struct step_code_walk *w, struct span payload);
/* 1: an entry; 0: the end; -1: damaged. */
int step_code_next(struct step_code_walk *w, struct step_code *entry);

/* --- marks -------------------------------------------------------------------------------- */

enum step_mark_kind {
	STEP_MARK_SYSCALL = 1, /* made by the step before: number, result, STEP_CALL_* */
	STEP_MARK_SIGNAL = 2,  /* is given to the thread here: signal, si_code, faulting address */
	STEP_MARK_MAP = 3, /* executable memory changed: enum step_map_change, start, bytes; text */
	STEP_MARK_FORK = 4,   /* pid, tid of the new one, 1 = a thread of the same process */
	STEP_MARK_EXEC = 5,   /* becomes another program; new space; text: its path */
	STEP_MARK_EXIT = 6,   /* the thread's wait status */
	STEP_MARK_RESUME = 7, /* tracing begins or goes on here: enum step_why */
	STEP_MARK_PAUSE = 8,  /* the program runs on untraced: enum step_why */
	STEP_MARK_LOST = 9,   /* so many steps are missing here; 0 = not known how many */
};
#define STEP_N_MARKS 10

#define STEP_CALL_I386	    1 /* the number is of the i386 table */
#define STEP_CALL_NO_RETURN 2 /* the thread ended in it: there is no result */

enum step_map_change { STEP_MAP_ADDED = 0, STEP_MAP_REMOVED = 1, STEP_MAP_CHANGED = 2 };

enum step_why {
	STEP_WHY_START = 0,  /* the program or thread began, or was attached to */
	STEP_WHY_REGION = 1, /* --from, --to, --around */
	STEP_WHY_BURST = 2,  /* --every */
	STEP_WHY_USER = 3,   /* --user-code */
	STEP_WHY_MAX = 4,    /* --max */
	STEP_WHY_END = 5,    /* the recording ended */
	STEP_WHY_ENGINE = 6, /* the engine cannot trace this stretch; text says why */
};

struct step_mark {
	uint64_t at; /* number of the step that comes next */
	enum step_mark_kind kind;
	int64_t a, b, c; /* by kind; c of SIGNAL and b of MAP are addresses as they are */
	uint32_t text;	 /* string */
};
void step_mark_encode(struct buf *to, const struct step_mark *m);
bool step_mark_decode(struct step_mark *m, struct span payload);

/* --- data --------------------------------------------------------------------------------- */

#define STEP_DATA_READ	1u
#define STEP_DATA_WRITE 2u /* both: read, then written; the value is the written one */

struct step_datum {
	uint64_t at;   /* number of the step */
	uint64_t addr; /* effective address */
	uint8_t how;   /* STEP_DATA_* */
	uint8_t n;     /* bytes accessed; value holds them unless it could not be read */
	bool has_value;
	uint8_t value[STEP_DATA_BYTES_MAX];
};
/* `n` data, in order of steps; a value is of at most STEP_DATA_BYTES_MAX bytes. */
void step_data_encode(struct buf *to, const struct step_datum *data, uint32_t n);
struct step_data_walk {
	struct cursor c;
	uint32_t n_left;
	uint64_t at, addr;
};
bool step_data_open(struct step_data_walk *w, struct span payload);
/* 1: a datum; 0: the end; -1: damaged. */
int step_data_next(struct step_data_walk *w, struct step_datum *datum);

/* --- places ------------------------------------------------------------------------------- */

enum step_place_kind {
	STEP_PLACE_NONE = 0,	 /* nothing is known to be there any more */
	STEP_PLACE_VARIABLE = 1, /* of an image */
	STEP_PLACE_IMAGE = 2,	 /* of an image, in no variable that has a name */
	STEP_PLACE_MEMORY = 3,	 /* of no file: [stack], [heap], [anonymous], ... */
	STEP_PLACE_FILE = 4,	 /* a file that is no code of the program */
};
#define STEP_N_PLACES 5

/* From the record's time on this is what is there, in place of what earlier ones said. */
struct step_place {
	uint32_t space;
	enum step_place_kind kind;
	uint64_t start, bytes; /* not 0; both together stay below 2^64 */
	uint32_t image;	       /* of the trace; VARIABLE and IMAGE */
	uint64_t at;   /* of `start`: in the variable or file, or its address in the image */
	uint32_t name; /* string: of the variable or memory, path of the file */
};
void step_place_encode(struct buf *to, const struct step_place *p);
bool step_place_decode(struct step_place *p, struct span payload);

#endif
