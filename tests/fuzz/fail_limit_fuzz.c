/* SPDX-License-Identifier: MIT */
/* Limits of any text: refused with a sentence, or a percentage within bounds of a name that is a part of the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/diff/fail_limit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = mem_strndup((const char *)data, n);
	struct fail_limit limit;
	struct err err = {0};

	if (fail_limit_parse(&limit, text, &err) < 0) {
		if (!err.text[0])
			abort();
	} else if (!(limit.percent >= 0 && limit.percent <= FAIL_PERCENT_MAX) ||
		   (limit.name && (!limit.name_n || limit.name_n >= strlen(text)))) {
		abort();
	}
	free(text);
	return 0;
}
