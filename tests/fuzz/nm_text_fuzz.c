/* SPDX-License-Identifier: MIT */
/* Any bytes as the output of nm. */
#include "text_source_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_text_reader(nm_text_read, data, n);
	return 0;
}
