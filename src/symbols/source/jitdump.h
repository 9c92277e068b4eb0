/* SPDX-License-Identifier: MIT */
/*
 * jitdump (jit-PID.dump), the kernel tools' format in which just-in-time compilers say what code
 * they made, when, and from which lines. A file that is still growing is read up to its last whole
 * record.
 */
#ifndef WEIR_SYMBOLS_SOURCE_JITDUMP_H
#define WEIR_SYMBOLS_SOURCE_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

struct jit_line {
	uint64_t addr;
	uint32_t line;
	const char *file; /* borrowed from the bytes */
};

/* One version of one method at one place. */
struct jit_code {
	uint64_t addr, bytes;
	uint64_t from_ns, to_ns; /* valid from its load until it was moved or its place used again;
				    UINT64_MAX = to the end. In the clock of the file. */
	uint64_t index;		 /* the compiler's number */
	uint32_t tid;
	const char *name;	      /* borrowed */
	struct span code;	      /* its instructions; empty when not there */
	const struct jit_line *lines; /* in the order of the file */
	size_t n_lines;
};

/* Which versions cover which part of the address space (jitdump.c). */
struct jit_index {
	uint64_t *bounds; /* starts and ends of codes, sorted, each once */
	size_t n_bounds;
	size_t n_leaves;      /* a power of two, at least n_bounds */
	uint32_t *node_first; /* of each node its part of `entries` */
	uint32_t *entries;    /* codes, by time within a node */
};

struct jitdump {
	uint32_t pid;
	uint16_t machine;
	bool uses_arch_clock;	    /* time stamps are cycle counts, not CLOCK_MONOTONIC */
	VEC(struct jit_code) codes; /* in order of load */
	VEC(struct jit_line) lines;
	size_t n_unknown, n_malformed;
	uint64_t bytes_read; /* up to the last whole record */
	struct jit_index index;
};

/* Both byte orders. `bytes` must outlive it. Records that contradict themselves are counted in
 * n_malformed and left out; one whose length cannot be right ends the reading. When it fails there
 * is nothing to release. */
int jitdump_init(struct jitdump *j, struct span bytes, struct err *err);
void jitdump_release(struct jitdump *j);
/* The version at `addr` at `time` (UINT64_MAX = the last one there, also when it was moved away).
 * NULL when none is. O(log^2 n). */
const struct jit_code *jitdump_find(const struct jitdump *j, uint64_t addr, uint64_t time);

#endif
