/* SPDX-License-Identifier: MIT */
/* Any bytes as a map of lld. */
#include "text_source_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_text_reader(lld_map_read, data, n);
	return 0;
}
