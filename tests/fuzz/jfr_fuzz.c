/* SPDX-License-Identifier: MIT */
/* Recordings of Java Flight Recorder of any bytes. */
#include "foreign_check.h"
#include "formats/foreign/jfr_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return foreign_check(data, n, jfr_is, jfr_read);
}
