/* SPDX-License-Identifier: MIT */
/* Places in the source of addresses of one image, out of its debug information. */
#ifndef WEIR_PROBE_PRINT_SOURCE_LINES_H
#define WEIR_PROBE_PRINT_SOURCE_LINES_H

#include "elf/elf_file.h"
#include "probe/print/printer.h"

struct source_lines;
/* Borrows `elf`; `path` may be NULL. Debug information is looked for when the first address is. */
struct source_lines *source_lines_new(const struct elf_file *elf, const char *path);
void source_lines_free(struct source_lines *l);

/* The places of an address of the image, innermost first: each but the last is in a function that was
 * inlined into that of the next one. 0 when nothing is known. Texts live until the next call. The first
 * address of a unit costs reading the unit. */
size_t source_lines_at(
	struct source_lines *l, uint64_t iaddr, struct printer_place *out, size_t max);

#endif
