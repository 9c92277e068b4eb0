/* SPDX-License-Identifier: MIT */
/* Files of firefox of any bytes. */
#include "foreign_check.h"
#include "formats/foreign/firefox_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return foreign_check(data, n, firefox_is, firefox_read);
}
