/* SPDX-License-Identifier: MIT */
/* Profiles of pprof of any bytes. */
#include "foreign_check.h"
#include "formats/foreign/pprof_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return foreign_check(data, n, pprof_is, pprof_read);
}
