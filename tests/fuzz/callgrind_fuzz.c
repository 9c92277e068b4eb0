/* SPDX-License-Identifier: MIT */
/* Profiles of callgrind of any bytes. */
#include "foreign_check.h"
#include "formats/foreign/callgrind_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return foreign_check(data, n, callgrind_is, callgrind_read);
}
