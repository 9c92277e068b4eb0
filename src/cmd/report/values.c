/* SPDX-License-Identifier: MIT */
#include "cmd/report/values.h"

#include <inttypes.h>
#include <string.h>

struct scale {
	const char *unit;
	double factor;
	const char *name;
};

/* Largest first for each unit. */
static const struct scale scales[] = {
	{"ns", 1e9, "s"},
	{"ns", 1e6, "ms"},
	{"ns", 1e3, "us"},
	{"ns", 1, "ns"},
	{"bytes", 1e9, "GB"},
	{"bytes", 1e6, "MB"},
	{"bytes", 1e3, "kB"},
	{"bytes", 1, "B"},
	{"1", 1e9, "G"},
	{"1", 1e6, "M"},
	{"1", 1e3, "k"},
};

struct value_text value_human(uint64_t value, const char *unit)
{
	struct value_text text;

	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		const struct scale *s = &scales[i];

		if (strcmp(s->unit, unit) || (double)value < s->factor)
			continue;
		snprintf(text.s, sizeof(text.s), s->factor > 1 ? "%.2f %s" : "%.0f %s",
			(double)value / s->factor, s->name);
		return text;
	}
	snprintf(text.s, sizeof(text.s), "%" PRIu64, value);
	return text;
}

struct value_text value_percent(uint64_t part, uint64_t whole)
{
	struct value_text text;

	snprintf(
		text.s, sizeof(text.s), "%.2f", whole ? 100.0 * (double)part / (double)whole : 0.0);
	return text;
}

void value_cell(struct table *t, const struct report *report, bool is_measured, uint64_t value)
{
	if (!is_measured)
		table_cell(t, ".");
	else if (report->options->human)
		table_cell(t, value_human(value, report->profile->unit).s);
	else
		table_number(t, value);
}

void count_cell(struct table *t, bool is_measured, uint64_t value)
{
	if (is_measured)
		table_number(t, value);
	else
		table_cell(t, ".");
}

void percent_cell(struct table *t, uint64_t part, uint64_t whole)
{
	table_cell(t, value_percent(part, whole).s);
}

void unit_head(struct table *t, const struct report *report, const char *name)
{
	const char *unit = report->profile->unit;

	if (report->options->human || !strcmp(unit, "1") || !*unit)
		table_cell(t, name);
	else
		table_cellf(t, "%s[%s]", name, unit);
}
