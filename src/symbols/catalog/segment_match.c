/* SPDX-License-Identifier: MIT */
/* Which section of an image was loaded, from what the load record says of it. */
#include <string.h>

#include "symbols/catalog/match.h"

enum rule { RULE_NAME, RULE_ADDRESS, RULE_SIZE, N_RULES };

static bool holds(enum rule rule, const struct image_segment *loaded, const struct image_segment *s)
{
	bool is_named = loaded->name[0] && s->name[0];

	if (is_named && strcmp(loaded->name, s->name) != 0)
		return false;
	switch (rule) {
	case RULE_NAME:
		return is_named;
	case RULE_ADDRESS:
		return s->addr == loaded->addr;
	case RULE_SIZE:
		return s->mem_bytes && s->mem_bytes == loaded->mem_bytes;
	default:
		return false;
	}
}

/* Whether the rule and all that held for several before it hold. */
static bool hold_all(
	unsigned rules, const struct image_segment *loaded, const struct image_segment *s)
{
	for (int rule = 0; rule < N_RULES; rule++)
		if (rules & 1u << rule && !holds((enum rule)rule, loaded, s))
			return false;
	return true;
}

size_t segment_match(const struct image_segment *loaded, const struct image_segment *sections,
	size_t n, const char **how)
{
	static const char *const names[N_RULES] = {"name", "address", "size"};
	const char *unused;
	unsigned rules = 0;

	how = how ? how : &unused;
	if (n == 1 && !loaded->name[0] && !sections[0].name[0]) {
		*how = "only one";
		return 0;
	}
	for (int rule = 0; rule < N_RULES; rule++) {
		size_t n_found = 0, found = 0;

		for (size_t i = 0; i < n; i++)
			if (hold_all(rules | 1u << rule, loaded, &sections[i])) {
				n_found++;
				found = i;
			}
		if (n_found == 1) {
			*how = names[rule];
			return found;
		}
		if (n_found)
			rules |= 1u << rule;
	}
	*how = "no section matches";
	return SIZE_MAX;
}
