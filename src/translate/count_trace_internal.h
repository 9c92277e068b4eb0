/* SPDX-License-Identifier: MIT */
/*
 * What the files behind count_trace.h share.
 *
 *	count_trace.c	the object; what is told beside the figures
 *	traced_code.c	which function code is of; blocks of all programs added up, and written
 *	traced_trees.c	the call trees of a program
 */
#ifndef WEIR_TRANSLATE_COUNT_TRACE_INTERNAL_H
#define WEIR_TRANSLATE_COUNT_TRACE_INTERNAL_H

#include "base/map.h"
#include "base/mem.h"
#include "translate/count_trace.h"
#include "translate/counts_internal.h"

/* A function that something was executed of. */
struct traced_function {
	uint64_t start, bytes; /* in the image; bytes 0: it has no bounds */
	uint32_t image;	       /* index in `images` */
	uint32_t frame;	       /* in the writer */
	const char *linkage_name; /* NULL: it has none */
	bool is_part;
	/* Of the thread that is worked on: instructions by its blocks, by its nodes. */
	uint64_t blocks, nodes;
	bool is_touched;
};

/* The first `n_counted` instructions of a block, and how often they were executed. */
struct code_piece {
	uint64_t addr, count; /* in the image; count is signed while it is added up */
	uint32_t bytes, n_counted;
	uint32_t n_insns;
	bool is_32;  /* code */
	size_t code; /* place in `code`, plus 1; 0: its file has it */
};

struct traced_image {
	uint32_t number; /* of struct images; COUNTS_NO_IMAGE */
	uint32_t id;	 /* in the writer; 0: no image */
	enum frame_kind kind;
	struct map function_of; /* start -> number in functions */
	VEC(uint64_t) entries;	/* where functions begin that no table has; in order */
	struct intern keys;	/* of pieces: id = index */
	VEC(struct code_piece) pieces;
	VEC(uint8_t) code;
};

struct count_trace {
	struct trace_writer *w;
	uint32_t life; /* stream */
	struct images *process_images;
	struct function_tables *tables;
	struct code_files *files;
	VEC(struct traced_image) images; /* [0]: code in no image; else by number + 1 */
	VEC(struct traced_function) functions;
	struct map n_nodes_of; /* thread of the trace -> nodes that it has */
	struct count_totals totals;

	VEC(uint32_t) touched; /* functions, of the thread that is worked on */
	/* Over all threads: */
	uint64_t n_elsewhere;	 /* instructions that are in the cost of who jumped there */
	uint64_t most_elsewhere; /* of one function: */
	uint32_t elsewhere;
	uint64_t n_folded, n_folded_by_any, n_unasked, n_uneven, n_undecoded;
};

void count_trace_note(struct count_trace *t, uint64_t time, uint64_t n, const char *sentence);
void count_trace_lost(struct count_trace *t, uint64_t time, uint64_t n, const char *sentence);

/* traced_code.c */
/* Adds the blocks of a program up. The function of each row goes to *function_of, which the caller frees; where the row
 * was not executed, it is UINT32_MAX. */
void traced_code_add(struct count_trace *t, const struct counts *c, uint32_t **function_of);
/* The function at an address of an image (COUNTS_NO_IMAGE: of no image). */
uint32_t traced_code_function(struct count_trace *t, uint32_t image, uint64_t addr);
void traced_code_write(struct count_trace *t, uint64_t time);
void traced_image_release(struct traced_image *image);

/* traced_trees.c */
void traced_trees_write(struct count_trace *t, const struct counts *c, const struct process *p,
	const uint32_t *function_of, uint64_t time);

#endif
