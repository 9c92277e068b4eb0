/* SPDX-License-Identifier: MIT */
/*
 * What the files of a trace point know of types, functions and variables: debug information, and
 * for variables the symbol table after it. The code of a point is the same for all its files of one
 * mode, so what several files know differently counts as not known.
 */
#ifndef WEIR_PROBE_COMPILE_FILE_TYPES_H
#define WEIR_PROBE_COMPILE_FILE_TYPES_H

#include "probe/types/call_abi.h"
#include "probe/types/type.h"

/* All files that were ever asked, of both modes. */
struct file_types;
struct file_types *file_types_new(struct types *const *types); /* borrows the types of both modes */
void file_types_free(struct file_types *f);

/* The source for a set of files of one mode, in place of the last set of that mode. Files are
 * opened when something is asked, and once. */
void file_types_reset(struct file_types *f, enum mode mode);
void file_types_add(struct file_types *f, enum mode mode, const char *path);
/* The function at an address of a file, as its debug information has it. */
bool file_types_call(struct file_types *f, enum mode mode, const char *path, uint64_t addr,
	struct call_facts *out);
/* The linker's address of a variable by its symbol; false when the file has none or several. */
bool file_types_symbol(
	struct file_types *f, enum mode mode, const char *path, const char *name, uint64_t *iaddr);
/* Whether anything was taken from a file: then code depends on it. */
bool file_types_is_used(const struct file_types *f, enum mode mode, const char *path);
struct type_source file_types_source(struct file_types *f, enum mode mode);

#endif
