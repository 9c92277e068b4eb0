/* SPDX-License-Identifier: MIT */
/*
 * Which functions are in executable memory: those that the translator is told, and that blocks and call trees
 * are named by. One answer for both, or else calls would be counted for other functions than their blocks.
 *
 * Functions of an image are its symbols (symbols/symtab.h: tables, separate debug file, stubs of the procedure
 * linkage table as NAME@plt), and where no symbol is, the ranges of .eh_frame. What a compiler split off a function
 * (.cold, or a range of .eh_frame that begins in the midst of a call) is told of here, but not to the translator:
 * a jump there is no call.
 */
#ifndef WEIR_TRANSLATE_REGION_FUNCTIONS_H
#define WEIR_TRANSLATE_REGION_FUNCTIONS_H

#include "base/mem.h"
#include "process/images.h"
#include "rt/translate/translate_abi.h"
#include "symbols/addrspace.h"

struct image_function {
	uint64_t start, bytes;	  /* in the image */
	const char *linkage_name; /* NULL: it has none; lives as long as the tables */
	bool is_part;		  /* split off: never called */
};

/* The functions of all images, read when first asked for. `images` is borrowed. */
struct function_tables;
struct function_tables *function_tables_new(struct images *images);
void function_tables_free(struct function_tables *t);

/* NULL when nothing is known there. Where functions nest, the one that starts later. */
const struct image_function *function_tables_find(struct function_tables *t, uint32_t image, uint64_t addr);
/* All of an image, by start; none for code that no file has. */
size_t function_tables_get(struct function_tables *t, uint32_t image, const struct image_function **v);

/* Those of a mapping, by start, in addresses of its process. */
struct region_functions {
	struct translate_function *v;
	size_t n, cap;
};
/* `m` is one of the process's mappings, with a number of `images`. Zero-initialise `f`. */
void region_functions_find(struct region_functions *f, struct function_tables *t, const struct mapping *m);
void region_functions_release(struct region_functions *f);

#endif
