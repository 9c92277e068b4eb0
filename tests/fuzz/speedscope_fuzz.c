/* SPDX-License-Identifier: MIT */
/* Files of speedscope of any bytes. */
#include "foreign_check.h"
#include "formats/foreign/speedscope_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return foreign_check(data, n, speedscope_is, speedscope_read);
}
