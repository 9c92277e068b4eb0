/* SPDX-License-Identifier: MIT */
/*
 * Types of a probed file, out of its DWARF (its own, that of its separate debug file, compressed,
 * or split), put into the struct types of the file's mode when they are asked for by name.
 * Opening is cheap; the first name that is asked for costs one pass over the outer entries of all
 * units, which is kept. Types local to a function are not found. Of several static ones of one name
 * in different source files the first is taken.
 */
#ifndef WEIR_PROBE_TYPES_DWARF_TYPES_H
#define WEIR_PROBE_TYPES_DWARF_TYPES_H

#include "base/err.h"
#include "probe/types/call_abi.h"
#include "probe/types/type.h"

struct dwarf_types;
/* Names are as C and C++ write them: "item", "ns::Foo"; functions and variables also as linkers do.
 * A structure that is only declared is found too, and not complete; one that is many pointers away
 * is left to types_completed. The types live as long as
 * `types`, also after closing. */
/* Fails when the file cannot be read; a file without debug information gives NULL in `out` and
 * ERR_NOT_FOUND. `types` is borrowed and must have the file's mode. */
int dwarf_types_open(
	struct types *types, const char *path, struct dwarf_types **out, struct err *err);
void dwarf_types_close(struct dwarf_types *d);
/* The function that has code at an address of the linker, and where its arguments are when that
 * instruction is about to run; false when the debug information has no such function. The places live
 * until closing. */
bool dwarf_types_call(struct dwarf_types *d, uint64_t addr, struct call_facts *out);
struct type_source dwarf_types_source(struct dwarf_types *d);

#endif
