/* SPDX-License-Identifier: MIT */
/*
 * Answers that are arrays, as a page can use them without reading them: little-endian, each at a
 * multiple of 8 bytes. docs/format/view-answers.md has every byte.
 */
#ifndef WEIR_CMD_VIEW_VIEW_ARRAYS_H
#define WEIR_CMD_VIEW_VIEW_ARRAYS_H

#include "base/buf.h"

enum view_type { VIEW_U8 = 1, VIEW_U16 = 2, VIEW_U32 = 4, VIEW_F64 = 8 }; /* bytes of an element */

/* In front of the first array; then so many of them. */
void view_arrays_begin(struct buf *out, uint32_t n_arrays);
/* n elements of the type; the bytes may be filled in afterwards, until the next call. */
void *view_array(struct buf *out, const char *name, enum view_type type, size_t n);
/* Texts, one behind the other, each with its NUL. */
void view_texts(struct buf *out, const char *name, const struct buf *texts);

#endif
