/* SPDX-License-Identifier: MIT */
/* Numbers as text, quickly: exports have tens of millions of them. */
#ifndef WEIR_FORMATS_NUMBER_TEXT_H
#define WEIR_FORMATS_NUMBER_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static inline void put_number(FILE *out, uint64_t value)
{
	char digits[20], *p = digits + sizeof(digits);

	do {
		*--p = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	fwrite_unlocked(p, 1, (size_t)(digits + sizeof(digits) - p), out);
}

/* value / 10^places, exactly: 1234567 with 6 is 1.234567, 5000000 is 5. */
static inline void put_decimal(FILE *out, uint64_t value, unsigned int places)
{
	char digits[24], *p = digits + sizeof(digits);
	uint64_t scale = 1, part;
	unsigned int n = places;

	for (unsigned int i = 0; i < places; i++)
		scale *= 10;
	put_number(out, value / scale);
	part = value % scale;
	if (!part)
		return;
	for (; part % 10 == 0; n--)
		part /= 10;
	for (; n; n--, part /= 10)
		*--p = (char)('0' + part % 10);
	*--p = '.';
	fwrite_unlocked(p, 1, (size_t)(digits + sizeof(digits) - p), out);
}

/* Between the items of a list that is being written. */
static inline void put_comma(FILE *out, bool *is_next)
{
	if (*is_next)
		putc_unlocked(',', out);
	*is_next = true;
}

#endif
