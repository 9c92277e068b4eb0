/* SPDX-License-Identifier: MIT */
/* The lines of a method's bytecodes, in HotSpot's compressed form. */
#ifndef WEIR_JVM_BYTECODE_LINES_H
#define WEIR_JVM_BYTECODE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/span.h"

struct line_entry {
	uint16_t bci, line; /* from this bytecode on */
};
/* In the order of the class file, which need not be that of bytecodes. */
struct line_entries {
	struct line_entry *v;
	size_t n, cap;
};

/* Appends what is in `stream`, up to its end mark. What does not fit class files (bytecode 65535 is
 * passed) ends it, too. `least`: see unsigned5.h. */
void line_entries_read(struct line_entries *to, struct span stream, unsigned least);
/* The line of the bytecode; 0 = not known. */
uint32_t line_entries_find(const struct line_entries *lines, uint32_t bci);

#endif
