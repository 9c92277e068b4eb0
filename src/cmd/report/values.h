/* SPDX-License-Identifier: MIT */
/* Numbers for people: plain integers by default, 1.2 ms when asked. */
#ifndef WEIR_CMD_REPORT_VALUES_H
#define WEIR_CMD_REPORT_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/report/report.h"
#include "cmd/report/table.h"

struct value_text {
	char s[32];
};

/* In the unit, with the scale that fits: "1.20 ms", "3.4 MB", "12.0 M". */
struct value_text value_human(uint64_t value, const char *unit);
/* Two decimals; "0.00" of nothing. */
struct value_text value_percent(uint64_t part, uint64_t whole);

/* A cell of the report's metric; "." when it was not measured. */
void value_cell(struct table *t, const struct report *report, bool is_measured, uint64_t value);
/* A cell that counts things, whatever the metric. */
void count_cell(struct table *t, bool is_measured, uint64_t value);
void percent_cell(struct table *t, uint64_t part, uint64_t whole);
/* A column's head with the metric's unit: "Base[ns]". */
void unit_head(struct table *t, const struct report *report, const char *name);

#endif
