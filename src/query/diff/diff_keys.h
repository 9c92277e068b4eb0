/* SPDX-License-Identifier: MIT */
/*
 * What is the same thing in several runs. A function is the same when its name and the last part of its image's path are:
 * programs are installed elsewhere, and addresses say nothing from one build to the next. A line is the same when its
 * file's name, its number and the image are. Functions of before that the user says have another name now are
 * given that. A stack is a function below a stack.
 */
#ifndef WEIR_QUERY_DIFF_DIFF_KEYS_H
#define WEIR_QUERY_DIFF_DIFF_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "query/diff/name_map.h"

struct diff_path {
	uint32_t parent; /* path; 0: none */
	uint32_t key;
};

struct diff_keys {
	struct intern names;	     /* id + 1 = key: name, NUL, image */
	VEC(struct diff_path) paths; /* [0] is the empty one */
	struct map path_of;	     /* parent << 32 | key -> path */
	const struct name_map *map;  /* borrowed; NULL: none */
};

void diff_keys_init(struct diff_keys *k, const struct name_map *map);
void diff_keys_release(struct diff_keys *k);

/* `image` is a path; "" when it is not known. With `is_before` the name may have another one now. */
uint32_t diff_key(struct diff_keys *k, const char *name, const char *image, bool is_before);
const char *diff_key_name(const struct diff_keys *k, uint32_t key);
const char *diff_key_image(const struct diff_keys *k, uint32_t key); /* last part; "" = not known */
size_t diff_keys_n(const struct diff_keys *k); /* valid ones are below; 0 is none */

uint32_t diff_path(struct diff_keys *k, uint32_t parent, uint32_t key);
/* Outermost first, with ';' between; a longer one than 1024 names shows its ends. */
void diff_path_put(const struct diff_keys *k, uint32_t path, struct buf *out);

#endif
