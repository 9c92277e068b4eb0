/* SPDX-License-Identifier: MIT */
/* Stacks that were met lately, by the bytes that a file writes them with: most samples repeat some. Of fixed size. */
#ifndef WEIR_FORMATS_FOREIGN_STACK_CACHE_H
#define WEIR_FORMATS_FOREIGN_STACK_CACHE_H

#include <stdint.h>

#include "base/span.h"

struct stack_cache;
struct stack_cache *stack_cache_new(void);
void stack_cache_free(struct stack_cache *c); /* NULL is fine */

/* The stack of these bytes; 0: not known. */
uint32_t stack_cache_find(const struct stack_cache *c, struct span bytes);
void stack_cache_put(struct stack_cache *c, struct span bytes, uint32_t stack);

#endif
