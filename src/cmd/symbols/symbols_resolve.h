/* SPDX-License-Identifier: MIT */
/*
 * weir symbols resolve, step by step: the addresses asked for (queries) are placed in images
 * (targets) by whoever knows where things are mapped; then each target gets its symbols once, for
 * all of its addresses; then each query is answered and printed in the order asked.
 */
#ifndef WEIR_CMD_SYMBOLS_SYMBOLS_RESOLVE_H
#define WEIR_CMD_SYMBOLS_SYMBOLS_RESOLVE_H

#include "base/addr.h"
#include "base/mem.h"
#include "cmd/symbols/symbols_verbs.h"
#include "symbols/catalog/find_symbols.h"
#include "symbols/catalog/merge.h"
#include "symbols/resolve/module_map.h"

#define RESOLVE_NO_TARGET SIZE_MAX

struct resolve_query {
	char *text;    /* as given; owned */
	bool is_valid; /* it is an address */
	bool has_pid, has_time;
	uint32_t pid;
	uint64_t time; /* ns after the start of the trace */
	uint64_t addr;
	/* Where it is. */
	size_t target;	    /* RESOLVE_NO_TARGET: nowhere */
	struct iaddr place; /* in the target */
	char *reason;	    /* why there is no target; owned */
};

/* One image that some address is in. Zero-initialise. */
struct resolve_target {
	char *path;	      /* as shown; owned */
	uint32_t trace_image; /* its number in the trace; 0 = not from a trace */
	struct image_identity identity;
	bool has_identity; /* symbols are searched by it */
	/* Else made from these files, as by merge (owned, NULL = none), ... */
	char *files[2];
	bool is_kernel;	   /* ... or from the running kernel, ... */
	struct buf memory; /* ... or from an ELF image in memory (a vdso), ... */
	bool is_named;	   /* ... or this image of the catalog, which the user named. */
	size_t catalog_i;
	VEC(uint64_t) addrs; /* in the image, of the queries that are not answered yet */
	bool is_whole;	     /* its symbols are there, for any address */
	/* The symbols. */
	struct catalog_image *image; /* NULL: none */
	enum match_rung rung;
	char *from;	   /* "catalog image 0123...", "/usr/bin/perl", ...; owned */
	char *reason;	   /* owned */
	char image_id[17]; /* of the catalog; "" = not from it */
	/* What owns `image`. */
	struct symbols_found found;
	struct merge *merge;
	struct buf bytes;
	struct catalog_image *own;
};

/* A frame of the trace; in order of the other fields. */
struct frame_key {
	uint32_t image;
	bool is_caller;
	uint64_t addr;
	uint32_t frame;
};

struct resolve {
	const struct symbols_call *call;
	struct catalog *catalog;	   /* may be NULL */
	VEC(struct resolve_query) queries; /* not answered yet */
	VEC(struct resolve_target) targets;
	size_t image_target; /* with --image */
	size_t n_unresolved; /* addresses without an answer */
	/* What is printed. */
	struct json json;
	bool has_begun;
	/* With --trace. */
	struct trace_reader *reader;
	struct module_map *modules;
	uint64_t trace_start;
	bool has_frames; /* those are made when first needed: */
	VEC(struct frame_key) frames;
	VEC(char *) names; /* made readable for answers */
};

size_t resolve_add_target(struct resolve *r, const char *path);
void resolve_query_place(struct resolve *r, struct resolve_query *q, size_t target, uint64_t place);
void resolve_query_refuse(struct resolve_query *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A target for the ELF file at `readable`, shown as `path`; refusal of the query when it is none.
 */
size_t resolve_add_file_target(
	struct resolve *r, const char *path, const char *readable, struct err *err);

/* Places all queries: symbols_process.c, symbols_trace.c. Fails when nothing can be placed. */
int resolve_place_in_process(struct resolve *r, pid_t pid, struct err *err);
int resolve_open_trace(struct resolve *r, const char *path, struct err *err);
int resolve_place_in_trace(struct resolve *r, const char *path, struct err *err);
void resolve_trace_release(struct resolve *r);

/* One answer; texts live until the targets or the reader are released. */
struct resolve_answer {
	struct catalog_level levels[SYMBOL_LEVELS_MAX]; /* innermost first */
	size_t n_levels;
	const char *symbol; /* the outermost name; NULL = none */
	uint64_t offset;    /* from its start */
	bool has_offset;
	const char *match; /* rung; NULL = not judged */
	bool is_exact;	   /* it stands on the highest */
	bool is_data;	   /* the symbol is a variable or constant */
	const char *from;  /* what answered; NULL = nothing did */
	char reason[700];
};

/* What the trace itself says of an address: its frames, then its functions. False: nothing. */
bool resolve_answer_from_trace(
	struct resolve *r, const struct resolve_query *q, struct resolve_answer *answer);
/* Prints the answers to all queries at once (symbols_answer.c), and what ends the output. */
void resolve_print(struct resolve *r);
void resolve_print_end(struct resolve *r);

#endif
