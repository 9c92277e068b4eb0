/* SPDX-License-Identifier: MIT */
/* Numbers for people: plain integers by default, 1.2 ms when asked. */
#ifndef WEIR_CMD_REPORT_VALUES_H
#define WEIR_CMD_REPORT_VALUES_H

#include <stdint.h>

struct value_text {
	char s[32];
};

/* In the unit, with the scale that fits: "1.20 ms", "3.4 MB", "12.0 M". */
struct value_text value_human(uint64_t value, const char *unit);
/* Two decimals; "0.00" of nothing. */
struct value_text value_percent(uint64_t part, uint64_t whole);

#endif
