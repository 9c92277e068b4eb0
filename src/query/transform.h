/* SPDX-License-Identifier: MIT */
/*
 * Transforms: what a person takes away from a tree to see the rest. A list of them is a text, the
 * same for reports, exports and viewers, applied from left to right:
 *
 *   focus=NAME         only what happens below NAME: each path begins at its outermost instance
 *   fold=NAME          NAME disappears; its own part is its caller's, and its callees are called by that
 *   drop=NAME          NAME and all below it disappear, with what they used
 *   fold-image=IMAGE   all functions of an image are folded
 *   merge-recursion    A > B > A > C becomes A > B, A > C: an inner instance is the outer one
 *
 * with ';' between them. NAME is a function's whole name, or /REGEX/ (extended) for all functions that
 * match. IMAGE is a path or the last part of one, or /REGEX/.
 *
 * Threads are never folded or dropped. Exact figures and estimates stay apart (calltree.h): what
 * samples say of a part of an exact node is not taken out of it when that part is dropped.
 */
#ifndef WEIR_QUERY_TRANSFORM_H
#define WEIR_QUERY_TRANSFORM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "calltree/build.h"

#define TRANSFORMS_MAX 64 /* as many as an uint64_t has bits */

struct transforms;

/* Fails with a sentence that quotes the part that is wrong. An empty text is an empty list. */
int transforms_parse(struct transforms **out, const char *text, struct err *err);
void transforms_free(struct transforms *t);
size_t transforms_n(const struct transforms *t); /* NULL: 0 */
const char *transforms_text(const struct transforms *t, size_t i); /* as it was given */

/* The profile's tree, total and threads become those that are left. A transform that meets no function
 * is a failure, since an answer to another question would follow. */
int transforms_apply(const struct transforms *t, struct profile *p, struct err *err);
/* For one of several profiles that are compared: where no function is meant there is nothing to do, or, with
 * focus, nothing left. Bit i says that transform i met a function here. */
uint64_t transforms_apply_any(const struct transforms *t, struct profile *p);

#endif
