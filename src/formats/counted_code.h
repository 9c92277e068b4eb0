/* SPDX-License-Identifier: MIT */
/*
 * Functions, blocks and source lines of an image with exact counts, as records 0x55 have them: of every function of
 * which an instruction was executed, and of those that could have been. What was executed is the caller's to know,
 * instruction by instruction; what was not comes from the file.
 *
 * Which functions count as not executed: those of images of which something was executed, whose file is at hand and
 * the same, and has debug information in it: of these all that have lines. Of the program itself (the image with
 * `main`) debug information may be in a file of its own; when it has none, all that have a name.
 *
 * With `lines_only` other libraries are left out, and so are functions without lines; a note counts them. Coverage of
 * a program would be buried under that of the C library, whose debug information many systems have in files of its
 * own.
 */
#ifndef WEIR_FORMATS_COUNTED_CODE_H
#define WEIR_FORMATS_COUNTED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "formats/ran_file.h"
#include "trace/writer.h"

/* Addresses are those of the image. */
struct counted_insn {
	uint64_t addr;
	uint64_t target; /* of a jump, branch or call; 0: none */
	uint64_t count;
	uint32_t file, line, own_file, own_line; /* strings of the writer; 0: not known */
	uint8_t length, flow;			 /* flow: enum x86_flow */
	bool is_nop;
	bool is_target; /* of a jump in the function */
};

struct counted_function {
	uint64_t start, bytes;
	const char *name; /* readable; NULL: it has none, and its frame is named by whoever names frames */
	const char *linkage_name;
	uint32_t frame; /* in the writer */
	bool is_part;	/* split off by the compiler */
};

/* A function that the image has, executed or not. */
struct counted_known {
	uint64_t start, bytes;
	const char *name; /* as the linker has it */
};

struct counted_block {
	size_t first, n; /* in merged */
};

/* Zero-initialise; the first fields are the caller's to set. */
struct counted_code {
	struct trace_writer *w;
	uint32_t stream;
	uint64_t time;
	bool lines_only; /* not of foreign libraries, nor of functions without lines */

	uint64_t n_written; /* functions */
	uint64_t n_foreign; /* were left out with lines_only */

	/* The function that is worked on: */
	VEC(struct counted_insn) insns;
	VEC(struct counted_insn) merged;
	VEC(struct counted_block) blocks;
	struct ran_file *file; /* of its image; NULL: not at hand */
	size_t row_at;
	bool needs_lines;
	uint64_t bytes_decoded; /* of code that was not executed */
	uint64_t n_left_out;	/* functions, for want of room for more of these */
};

/* Tells what was left out, and releases. */
void counted_code_end(struct counted_code *c);

struct counted_image {
	uint32_t id;		/* in the writer */
	struct ran_file *file;	/* open, without rows; NULL: not at hand */
	const char *path;
	const struct counted_function *executed; /* all that were, by start */
	size_t n_executed;
	/* All that there are, by start; they are looked at only where counted_image_is_own(). */
	const struct counted_known *known;
	size_t n_known;
	/* Gives the executed instructions of a function of `executed` to counted_code_add(). */
	void (*insns)(void *ctx, struct counted_code *c, size_t function);
	void *ctx;
};
bool counted_image_is_own(const struct counted_image *image);
void counted_code_write(struct counted_code *c, const struct counted_image *image);

/* In any order, best by address; those of one address and length are one, whose counts add up. */
void counted_code_add(struct counted_code *c, const struct counted_insn *insn);
/* Its lines, by the image's file. */
void counted_code_place(struct counted_code *c, struct counted_insn *insn);

/* A function's frame has a name of its own, so that it is told from those of instructions. */
uint32_t counted_frame(struct trace_writer *w, const struct trace_frame *at, const char *linkage_name);

#endif
