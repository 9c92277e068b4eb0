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

/* `paths` of `n` objects or archives, all left alone for this reason. */
void left_objects_write(
	const char *const *paths, size_t n, enum insert_reason reason, struct buf *out);

#endif
