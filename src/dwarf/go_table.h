/* SPDX-License-Identifier: MIT */
/*
 * Go's table of its functions (.gopclntab): names, source lines and, at every address, how far the
 * stack pointer is from the frame's end. The runtime of a Go program walks stacks and prints them by
 * it, so that it is there in stripped programs, too. Go 1.2 to 1.15, 1.16 and 1.17, 1.18 and 1.19,
 * and 1.20 and later have four layouts (Go's debug/gosym and runtime/symtab.go).
 *
 *	header | functions {address, offset} by address, and the end | each function | texts, tables
 *
 * Tables of values are runs {zigzag difference of the value, bytes of code}, both LEB128.
 *
 * Everything is borrowed from the file; nothing is trusted. A function that cannot be read is left
 * out.
 */
#ifndef WEIR_DWARF_GO_TABLE_H
#define WEIR_DWARF_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/span.h"
#include "dwarf/source_map.h"
#include "elf/elf_file.h"

/* Where the table keeps addresses, a position-independent program has relocations instead. */
struct go_relocation {
	uint64_t at; /* from the table's start */
	uint64_t value;
};

struct go_table {
	struct span bytes;  /* from the header on */
	unsigned version;   /* the Go that brought the layout: 102, 116, 118, 120 */
	unsigned word;	    /* bytes of an address */
	uint64_t text;	    /* what addresses count from, from 1.18 on */
	uint64_t n;	    /* functions */
	struct span index;  /* of the functions: {address, offset}, and the last one's end */
	struct span bodies; /* what those offsets count from */
	struct span names, values, units, files;
	VEC(struct go_relocation) relocations; /* by place */
};

/* What a function is to one who walks the stack. */
enum go_role {
	GO_ROLE_PLAIN,
	GO_ROLE_OUTERMOST, /* begins a goroutine or a thread */
	GO_ROLE_BASE,	   /* goes on at the base of the thread's own stack, once it has switched */
	GO_ROLE_SWITCH,	   /* goes on somewhere on another stack, once it has switched */
	GO_ROLE_SIGNAL,	   /* is returned to by a signal handler, on a stack for signals */
	GO_ROLE_EXACT	   /* its return address was put there by hand and follows no call */
};

struct go_function {
	uint64_t start, size; /* linker address; bytes, never 0 */
	const char *name;
	uint32_t name_bytes;
	enum go_role role;
	uint32_t unit;			  /* what its file numbers count from */
	struct span frames, files, lines; /* tables of values; empty = none */
};

/* False when the image has no table that can be read; there is nothing to release then. */
bool go_table_init(struct go_table *t, const struct elf_file *elf);
void go_table_release(struct go_table *t);
/* The i-th function by address; false when it cannot be read. */
bool go_table_function(const struct go_table *t, uint64_t i, struct go_function *f);

/* One table of values of a function, run by run. */
struct go_values {
	struct cursor c;
	uint64_t at, end; /* of the run that comes next, and of the function */
	int32_t value;
	bool is_first;
};
void go_values_init(struct go_values *v, struct span table, const struct go_function *f);
/* The next run: `value` holds from *start up to *end. False when there is none. */
bool go_values_next(struct go_values *v, uint64_t *start, uint64_t *end, int32_t *value);

/* The lines of the functions that cover one of the sorted addresses (NULL = of all), as rows and
 * files of a unit without functions. Inlined calls are not told: a row has the line that the
 * instruction was made from. `out` is zero-initialised and borrows from the table's bytes. */
void go_table_lines(const struct go_table *t, const uint64_t *addrs, size_t n_addrs,
	struct dwarf_unit_map *out);

#endif
