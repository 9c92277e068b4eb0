/* SPDX-License-Identifier: MIT */
/* What the sources of types (DWARF, BTF) have in common. */
#ifndef WEIR_PROBE_TYPES_SOURCE_TYPES_H
#define WEIR_PROBE_TYPES_SOURCE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/types/type.h"

/* An integer under the name that compilers give it, of n bytes; gcc's "long unsigned int" becomes
 * "unsigned long". Sizes that no script can work with become arrays. */
const struct type *source_int(
	struct types *t, const char *name, size_t n, uint64_t bytes, bool is_signed);
const struct type *source_bytes(struct types *t, uint64_t n);
/* True for a type that a structure can hold. What is not complete although it was asked for
 * contains itself, or is too deep, and would never end for whoever walks it. */
bool source_is_whole(const struct type *type);
/* The alignment of a structure, which debug information does not say: the largest one that fields
 * ask for, as far as their places and the size keep to it: packed structures have less. */
uint32_t source_fields_align(const struct type_field *fields, size_t n, uint64_t size);

#endif
