/* SPDX-License-Identifier: MIT */
/*
 * An object for the linker that tells the reader of the counts which objects of the link have no
 * counting code: a unit with a row for each of them in place of functions.
 */
#ifndef WEIR_INSERT_LEFT_OBJECTS_H
#define WEIR_INSERT_LEFT_OBJECTS_H

#include "base/buf.h"
#include "insert/insert.h"

/* Whoever links it has to refer to this name, else --gc-sections drops the unit. */
#define LEFT_OBJECTS_SYMBOL "weir_count_left_objects"

/* An object, an archive, or a linker script with all that it names. */
struct left_object {
	const char *path;
	enum insert_reason reason;
	const char *sentence; /* NULL, or more about the reason */
};
void left_objects_write(const struct left_object *objects, size_t n, struct buf *out);

#endif
