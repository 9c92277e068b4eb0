/* SPDX-License-Identifier: MIT */
/*
 * What all threads of a Firefox profile share: strings, functions with their libraries and source files, frames,
 * stacks. Rows are in the order of the export's stacks: frame i is place i + 1, stack i is node i + 1.
 */
#ifndef WEIR_FORMATS_FIREFOX_TABLES_H
#define WEIR_FORMATS_FIREFOX_TABLES_H

#include "base/json.h"
#include "base/map.h"
#include "formats/export_stacks.h"

/* Rows of meta.categories; subcategory 0 of each is "Other". */
enum firefox_category {
	FIREFOX_CATEGORY_OTHER,
	FIREFOX_CATEGORY_NATIVE,
	FIREFOX_CATEGORY_KERNEL,
	FIREFOX_CATEGORY_JITTED,
	FIREFOX_CATEGORY_INTERPRETED,
	FIREFOX_N_CATEGORIES
};

struct firefox_function {
	uint32_t routine;
	uint32_t image;	  /* of the trace; 0 = not known */
	const char *file; /* NULL = not known */
};

struct firefox_tables {
	const struct export_stacks *stacks;
	struct intern strings;
	VEC(struct firefox_function) functions;
	VEC(uint32_t) function_of; /* by routine: its function + 1 */
	VEC(uint32_t) images;	   /* libraries, which are resources too */
	uint32_t *library_of;	   /* by image: its place in `images` + 1 */
	struct intern files;
};

/* Once all stacks are known. */
void firefox_tables_init(struct firefox_tables *t, const struct export_stacks *stacks);
void firefox_tables_release(struct firefox_tables *t);
void firefox_put_categories(struct json *j);
/* "libs" */
void firefox_put_libraries(const struct firefox_tables *t, struct json *j);
/* "shared": at last, since it has all strings. */
void firefox_put_shared(struct firefox_tables *t, struct json *j);

#endif
