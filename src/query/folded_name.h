/* SPDX-License-Identifier: MIT */
/* Names in folded stacks, where ';' and the end of the line mean something. */
#ifndef WEIR_QUERY_FOLDED_NAME_H
#define WEIR_QUERY_FOLDED_NAME_H

#include "base/buf.h"

/* A longer path shows its ends: a recursion 100,000 deep would make lines of a megabyte. */
#define FOLDED_NAMES_MAX 1024

void folded_name_put(struct buf *b, const char *name);

#endif
