/* SPDX-License-Identifier: MIT */
/* Any bytes as the text of a trace point; patterns and names are matched with themselves. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/nearest_names.h"
#include "probe/points/point.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_spec(const struct point_spec *spec, struct arena *arena, struct diags *d)
{
	struct point_text again = {.text = spec->text};
	struct point_spec second;

	if (!spec->text || !*spec->text || spec->kind >= N_POINT_KINDS)
		abort();
	/* The long form means the same point. */
	if (!point_parse(&again, arena, &second, d) || second.kind != spec->kind ||
		strcmp(second.text, spec->text) != 0 || second.period_ns != spec->period_ns ||
		second.offset != spec->offset || second.address != spec->address ||
		second.count != spec->count)
		abort();
	if (spec->name && strcmp(spec->name, second.name) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *copy = mem_strndup((const char *)data, n);
	struct point_text text = {.text = copy, .place = {0, 0, (uint32_t)strlen(copy)}};
	struct sources sources = {0};
	struct arena *arena = arena_new();
	struct nearest_names near = {.wanted = copy};
	struct point_spec spec;
	struct diags d;

	sources_add(&sources, "point", (struct span){(const uint8_t *)copy, strlen(copy)});
	diags_init(&d, &sources);
	if (point_parse(&text, arena, &spec, &d))
		check_spec(&spec, arena, &d);
	else if (!d.n_errors)
		abort();
	for (size_t i = 0; i < d.v.n; i++)
		if (d.v.v[i].place.to > strlen(copy) && d.v.v[i].place.to)
			abort();
	if (!glob_has(copy) && !glob_match(copy, copy))
		abort();
	nearest_names_add(&near, copy);
	diags_release(&d);
	sources_release(&sources);
	arena_free(arena);
	free(copy);
	return 0;
}
