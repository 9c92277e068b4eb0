/* SPDX-License-Identifier: MIT */
/* Maps of names of any bytes: refused with a sentence, or each old name finds its new one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "query/diff/name_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct name_map *m;
	struct err err = {0};

	if (name_map_parse(&m, (struct span){data, n}, "fuzz", &err) < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	for (size_t i = 0; i < name_map_n(m); i++)
		if (strcmp(name_map_find(m, name_map_old(m, i)), name_map_new(m, i)) != 0)
			abort();
	name_map_free(m);
	return 0;
}
