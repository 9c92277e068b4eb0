/* SPDX-License-Identifier: MIT */
#include "steps/read/step_places.h"

#include <stdlib.h>

static struct place_rows *ensure_space(struct step_places *t, uint32_t number)
{
	bool is_new;
	uint64_t *i = map_ensure(&t->space_of, number, &is_new);

	if (is_new) {
		*i = t->spaces.n;
		vec_push(&t->spaces, (struct place_rows){.open.owner = (uint32_t)*i});
	}
	return &t->spaces.v[*i];
}

void step_places_add(struct step_places *t, const struct step_place *place, uint64_t time)
{
	struct module_space *space = &ensure_space(t, place->space)->open;
	struct module_piece piece = {.start = place->start,
		.end = place->start + place->bytes,
		.image = (uint32_t)t->all.n};

	module_rows_cut(&t->rows, space, piece.start, piece.end, time, MODULE_END_OVERLAP);
	if (place->kind == STEP_PLACE_NONE)
		return;
	vec_push(&t->all, *place);
	module_rows_open(&t->rows, space, &piece, time);
}

/* Rows are sorted by their space, for which the field of the process is free. */
void step_places_finish(struct step_places *t)
{
	struct trace_module_span *rows = t->rows.rows.v;
	size_t n = t->rows.rows.n;

	for (size_t i = 0; i < n; i++)
		rows[i].pid = t->rows.owners.v[i];
	vec_sort(&t->rows.rows, trace_module_span_compare);
	t->reaches = mem_calloc(n, sizeof(*t->reaches));
	for (size_t i = 0; i < n; i++) {
		struct place_rows *space = &t->spaces.v[rows[i].pid];

		if (!space->n++)
			space->first = i;
	}
	for (size_t i = 0; i < t->spaces.n; i++) {
		const struct place_rows *space = &t->spaces.v[i];

		module_tree_grow(rows + space->first, t->reaches + space->first, space->n);
	}
}

void step_places_release(struct step_places *t)
{
	for (size_t i = 0; i < t->spaces.n; i++)
		module_space_release(&t->spaces.v[i].open);
	vec_release(&t->spaces);
	vec_release(&t->all);
	map_release(&t->space_of);
	module_rows_release(&t->rows);
	free(t->reaches);
}

uint64_t step_places_n_lost(const struct step_places *t)
{
	return t->rows.n_lost;
}

const struct step_place *step_places_find(
	const struct step_places *t, uint32_t space, uint64_t addr, uint64_t time)
{
	const uint64_t *i = map_find(&t->space_of, space);
	const struct place_rows *s = i ? &t->spaces.v[*i] : NULL;
	const struct trace_module_span *row;

	if (!s || !s->n || time == UINT64_MAX)
		return NULL;
	row = module_tree_find(t->rows.rows.v + s->first, t->reaches + s->first, s->n,
		&(struct module_tree_query){addr, time, time + 1});
	return row ? &t->all.v[row->image] : NULL;
}
