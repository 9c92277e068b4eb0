/* SPDX-License-Identifier: MIT */
/* Any bytes as a perf map. */
#include <stdlib.h>

#include "symbols/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct symtab *t = symtab_new_perf_map_bytes((struct span){data, n});

	for (size_t i = 0; i < symtab_n(t); i++) {
		const struct symbol *s = symtab_get(t, i);
		const struct symbol *at = symtab_find(t, s->start + s->size - 1);

		/* Sorted, named, and no answer that does not cover the address. */
		if (!*s->name || !s->size || (i && symtab_get(t, i - 1)->start > s->start))
			abort();
		if (at && (at->start > s->start + s->size - 1 ||
				  s->start + s->size - 1 - at->start >= at->size))
			abort();
	}
	symtab_find(t, 0);
	symtab_find(t, UINT64_MAX);
	symtab_free(t);
	return 0;
}
