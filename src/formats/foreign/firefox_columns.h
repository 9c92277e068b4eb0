/* SPDX-License-Identifier: MIT */
/* The tables of a processed profile: those of a thread, or (since version 56) some of all threads. */
#ifndef WEIR_FORMATS_FOREIGN_FIREFOX_COLUMNS_H
#define WEIR_FORMATS_FOREIGN_FIREFOX_COLUMNS_H

#include "base/map.h"
#include "base/mem.h"
#include "formats/foreign/foreign_trace.h"
#include "formats/foreign/json_reader.h"

#define FIREFOX_ENTRIES_MAX ((size_t)1 << 23) /* of a column */

/* A column of numbers; what is null is FIREFOX_NULL. */
struct firefox_column {
	VEC(double) v;
};
#define FIREFOX_NULL (-1.0)

struct firefox_columns {
	struct intern texts;
	VEC(uint32_t) strings; /* ids in texts */
	struct firefox_column frame_func, frame_line, frame_address;
	struct firefox_column func_name, func_file, func_resource;
	struct firefox_column resource_lib, resource_name;
	struct firefox_column stack_frame, stack_prefix, stack_offset;
};

/* Takes the value of this key when it is a table; false: it is none, and nothing was taken. */
bool firefox_columns_take(struct firefox_columns *t, struct json_reader *j, struct span key);
void firefox_columns_release(struct firefox_columns *t);
/* The column is replaced by the array that comes. */
void firefox_column_take(struct firefox_column *c, struct json_reader *j);
double firefox_column_get(const struct firefox_column *c, double row); /* FIREFOX_NULL: none */
struct span firefox_columns_string(const struct firefox_columns *t, double number);

#endif
