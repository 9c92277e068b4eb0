/* SPDX-License-Identifier: MIT */
/* Files of chrome of any bytes. */
#include "foreign_check.h"
#include "formats/foreign/chrome_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return foreign_check(data, n, chrome_is, chrome_read);
}
