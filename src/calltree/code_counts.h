/* SPDX-License-Identifier: MIT */
/*
 * What a trace says about code below the level of functions: blocks with exact counts, and source
 * lines. Source, coverage, the callgrind and the lcov export start here. Made from records 0x55
 * (docs/format/records.md).
 */
#ifndef WEIR_CALLTREE_CODE_COUNTS_H
#define WEIR_CALLTREE_CODE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/reader.h"

/* A piece of a block that is of one source line; in order of addresses. */
struct code_line {
	uint32_t file;	  /* index into files; 0 = not known */
	uint32_t line;	  /* 0 = not known */
	uint32_t n_insns; /* of the program, in one execution */
	uint32_t cost; /* hundredths of modelled cycles in one execution: the block's, shared out by
			  instructions; 0 when there is no model */
	uint64_t address; /* in the image, of its first instruction */
};

struct code_block {
	uint64_t address, end; /* in the image */
	uint64_t count;	       /* executions, over all threads */
	uint32_t n_insns;
	uint32_t cost; /* hundredths of modelled cycles in one execution; 0: no model, or never
			  executed */
	uint32_t first_line, n_lines; /* into lines; at least one */
};

struct code_function {
	const char *name;	  /* readable; borrowed from the trace, as all texts */
	const char *linkage_name; /* as the linker has it; the same when it is not mangled */
	const char *image;	  /* path */
	const char *object;	  /* file or archive member that it came from; "" when not known */
	uint32_t frame;		  /* in the trace: nodes of call trees refer to it by this */
	uint32_t file, line;	  /* of its first instruction; 0 = not known */
	uint64_t address, bytes;
	uint32_t first_block, n_blocks;
	bool is_fragment;   /* split off by the compiler (.cold): never called, only jumped to */
	bool is_counted;    /* else `reason` says why it was left alone, and it has no blocks */
	const char *reason; /* "" when it was inserted */
	uint64_t calls;	    /* over all nodes of the trees */
	uint64_t instructions, cost; /* sums over its blocks of count times n_insns, cost */
};

struct code_counts {
	struct code_function *functions; /* by image, file, address */
	size_t n_functions;
	struct code_block *blocks; /* of a function together, by address */
	size_t n_blocks;
	struct code_line *lines;
	size_t n_lines;
	const char **files; /* paths; [0] = "" */
	size_t n_files;
	bool has_cost;
};

/* An empty model when the trace has no counts: not a failure. */
int code_counts_build(struct code_counts **out, const struct trace_reader *r, struct err *err);
void code_counts_free(struct code_counts *c);

/* All records of counts; those that cannot be read are left out: the profile counts them. */
int code_counts_walk(const struct trace_reader *r,
	void (*each)(void *ctx, const struct trace_record *record), void *ctx, struct err *err);

#endif
