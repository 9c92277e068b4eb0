/* SPDX-License-Identifier: MIT */
#include "probe/compile/settings.h"

#include <stddef.h>
#include <string.h>

#define STRING_BYTES_MAX 4096 /* as --strlen */
#define ENTRIES_MAX	 (1u << 28)

static const struct known {
	const char *name;
	size_t at; /* in struct settings */
	uint32_t max;
} known[] = {
	{"max_map_keys", offsetof(struct settings, max_entries), ENTRIES_MAX},
	{"max_strlen", offsetof(struct settings, string_bytes), STRING_BYTES_MAX},
};

static const struct known *find_known(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

/* missing_probes = error | warn | ignore, with or without quotes */
static void read_missing(const struct expr *value, struct settings *out, struct diags *diags)
{
	static const char *const words[] = {"error", "warn", "ignore"};
	const char *word = value->kind == EXPR_STRING ? value->text : value->name;

	for (int i = MISSING_ERROR; word && i <= MISSING_IGNORE; i++) {
		if (strcmp(word, words[i]))
			continue;
		out->missing = (enum missing_points)i;
		return;
	}
	diag_error(diags, value->place, "config", "'missing_probes' is error, warn or ignore");
}

void settings_read(const struct script *script, struct settings *out, struct diags *diags)
{
	for (const struct expr *e = script->config; e; e = e->next) {
		const struct known *k = find_known(e->a->name);

		if (!strcmp(e->a->name, "missing_probes")) {
			read_missing(e->b, out, diags);
			continue;
		}
		if (!k) {
			diag_warning(diags, e->a->place, "config",
				"the setting '%s' has no effect here", e->a->name);
			continue;
		}
		if (e->b->kind != EXPR_INT || e->b->value < 1 || e->b->value > k->max) {
			diag_error(diags, e->b->place, "config", "'%s' is a number from 1 to %u",
				k->name, k->max);
			continue;
		}
		*(uint32_t *)((char *)out + k->at) = (uint32_t)e->b->value;
	}
}
