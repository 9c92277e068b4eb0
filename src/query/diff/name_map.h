/* SPDX-License-Identifier: MIT */
/*
 * Functions that have another name now, as a user says in a text: a line for each, OLD NEW, with a tab between, or
 * with a blank when neither has one. Lines that begin with # and empty ones say nothing.
 */
#ifndef WEIR_QUERY_DIFF_NAME_MAP_H
#define WEIR_QUERY_DIFF_NAME_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define NAME_MAP_LINES_MAX ((size_t)1 << 20)

struct name_map;

/* Fails with the line that is wrong; `name` is the file's, for the sentence. */
int name_map_parse(struct name_map **out, struct span text, const char *name, struct err *err);
void name_map_free(struct name_map *m); /* NULL is fine */
/* NULL: it has the name that it had. */
const char *name_map_find(const struct name_map *m, const char *old);
/* How many there are, and the old and the new name of the i-th. */
size_t name_map_n(const struct name_map *m);
const char *name_map_old(const struct name_map *m, size_t i);
const char *name_map_new(const struct name_map *m, size_t i);

#endif
