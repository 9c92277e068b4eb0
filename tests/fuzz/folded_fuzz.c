/* SPDX-License-Identifier: MIT */
/* Folded stacks of any bytes. */
#include "foreign_check.h"
#include "formats/foreign/folded_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return foreign_check(data, n, folded_is, folded_read);
}
