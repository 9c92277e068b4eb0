/* SPDX-License-Identifier: MIT */
/*
 * Code inserted into a relocatable object or an archive, so that the program linked from it counts
 * every block it executes and keeps its call tree (docs/format/count.md, rt/count/).
 */
#ifndef WEIR_INSERT_INSERT_H
#define WEIR_INSERT_INSERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

/* What is put into blocks and functions. */
enum insert_mode {
	INSERT_MODE_TREE,   /* block counters, cost sums, call tree */
	INSERT_MODE_COUNTS, /* block counters only */
	INSERT_MODE_NOPS, /* a one-byte nop at each block head: a test of everything but the code */
	INSERT_MODE_NOTHING, /* read and written again: must give the same bytes */
};

/* A question about a function of this name. */
typedef bool insert_asks(void *context, const char *name);

struct insert_options {
	enum insert_mode mode;
	bool with_cycles;	       /* the call tree sums modelled cycles too */
	const char *cpu;	       /* for them; NULL: this machine's */
	bool (*wants)(void *context, const char *name); /* of functions; NULL: all */
	void *wants_context;
	/* Of a symbol that the object leaves undefined: is there no inserted code for it in this link?
	 * NULL: only the functions that wait for the system are foreign. */
	insert_asks *is_foreign;
	/* Of what has no inserted code, in this object or elsewhere: are calls of it timed? NULL: yes. */
	insert_asks *is_timed;
	void *foreign_context;
	/* The machine code of objects made for link-time optimisation is not what is linked. */
	bool leaves_lto;
	const char *object_name; /* for the units; NULL: the source file that the object names */
};

/* Why a function was left alone. insert_reason_text gives the sentence. */
enum insert_reason {
	INSERT_REASON_DONE,	  /* it was not */
	INSERT_REASON_NOT_WANTED, /* --only, --skip */
	INSERT_REASON_EMPTY,
	INSERT_REASON_UNDECODABLE,  /* data or an unknown instruction within it */
	INSERT_REASON_SECTION_DATA, /* its section holds bytes that are no function, and refers to
				       them */
	INSERT_REASON_MIDDLE,	    /* something refers to the middle of an instruction of it */
	INSERT_REASON_OVERLAP,	    /* two functions share code */
	INSERT_REASON_INDIRECT,	    /* an indirect jump whose targets are not known */
	INSERT_REASON_TABLE,	    /* a jump table that is not understood */
	INSERT_REASON_NO_REGISTER, /* flags are live where code would go, and no register is free */
	INSERT_REASON_GS,	   /* uses the gs segment, which the counters are reached through */
	INSERT_REASON_TRANSACTION,
	INSERT_REASON_BOUND,	    /* means its own address in a way that cannot be moved */
	INSERT_REASON_LTO,	    /* no machine code: made for link-time optimisation */
	INSERT_REASON_SECTION_KIND, /* .init, .fini and the like: pieces put together by the linker
				     */
	INSERT_REASON_TABLES, /* exception tables of the object that are not understood */
	INSERT_REASON_OBJECT, /* of objects: inserting failed as a whole, or it is not known what is linked */
	INSERT_N_REASONS
};
const char *insert_reason_text(enum insert_reason reason);
/* Functions that are left alone for it are missed in the counts: reports tell of them. Not so what was
 * not asked for, has no code, or is a piece of .init and the like. */
bool insert_reason_is_told(enum insert_reason reason);

struct insert_function {
	char *name;   /* owned */
	char *member; /* of an archive, else NULL; owned */
	enum insert_reason reason;
	uint32_t n_blocks, n_insns;
	uint64_t old_bytes, new_bytes;
	bool is_compiled; /* by a compiler: the object says which (.comment) */
};

/* What was done; grows over the members of an archive. */
struct insert_report {
	VEC(struct insert_function) functions;
	uint64_t n_objects,
		n_left_alone; /* objects or members without x86-64 code are left alone */
	uint64_t n_blocks, old_text, new_text;
	VEC(char *) left_names; /* global ones of functions that are missed in the counts; owned */
	VEC(char *) notes; /* sentences, owned: debug information that was dropped, and the like */
};
void insert_report_release(struct insert_report *r);
/* As bytes, for the cache. */
void insert_report_put(const struct insert_report *r, struct buf *out);
/* `r` must be empty. Fails when the bytes are not what insert_report_put writes. */
int insert_report_get(struct insert_report *r, struct span bytes, struct err *err);

/* Functions by what became of them. */
struct insert_totals {
	uint64_t n_functions, n_inserted;
	uint64_t n_compiled, n_compiled_inserted; /* of them, those made by a compiler */
	uint64_t by_reason[INSERT_N_REASONS];
};
void insert_totals_add(struct insert_totals *t, const struct insert_report *r);

/* One object. Fails only when it is not a sound object at all; what cannot be inserted is in the
 * report, and the output is then the input; with units, where there are functions that the reports of
 * the program have to tell of. */
int insert_object(struct span in, const struct insert_options *options, struct buf *out,
	struct insert_report *report, struct err *err);
/* An object or an archive, by its first bytes; `path` is where it is, for a thin archive's
 * members are relative to that. Members that are no x86-64 objects are copied. */
int insert_file(struct span in, const char *path, const struct insert_options *options,
	struct buf *out, struct insert_report *report, struct err *err);

#endif
