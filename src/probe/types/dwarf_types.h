/* SPDX-License-Identifier: MIT */
/*
 * Types of a probed file, out of its DWARF (its own, that of its separate debug file, compressed,
 * or split), put into the struct types of the file's mode when they are asked for by name.
 * Opening is cheap; names are looked up through .debug_names, .gdb_index or .debug_pubtypes where
 * there is one, and by one pass over the units otherwise, which is kept.
 */
#ifndef WEIR_PROBE_TYPES_DWARF_TYPES_H
#define WEIR_PROBE_TYPES_DWARF_TYPES_H

#include "base/err.h"
#include "probe/types/type.h"

struct dwarf_types;
/* Fails when the file cannot be read; a file without debug information gives NULL in `out` and
 * ERR_NOT_FOUND. `types` is borrowed and must have the file's mode. */
int dwarf_types_open(
	struct types *types, const char *path, struct dwarf_types **out, struct err *err);
void dwarf_types_close(struct dwarf_types *d);
struct type_source dwarf_types_source(struct dwarf_types *d);

#endif
