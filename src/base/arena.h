/* SPDX-License-Identifier: MIT */
/* Memory that is freed all at once: trees of scripts, types. Never gives NULL (base/mem.h). */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include <stddef.h>

struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a);

void *arena_zalloc(struct arena *a, size_t bytes); /* aligned to 16, zeroed */
void *arena_dup(struct arena *a, const void *p, size_t bytes);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
