/* SPDX-License-Identifier: MIT */
#include "cmd/report/values.h"

#include <inttypes.h>
#include <stdio.h>
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
