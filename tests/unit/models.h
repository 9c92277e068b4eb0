/* SPDX-License-Identifier: MIT */
/* Single figures of the models that reports are made from, for tests. */
#ifndef WEIR_TESTS_UNIT_MODELS_H
#define WEIR_TESTS_UNIT_MODELS_H

#include <stddef.h>
#include <string.h>

#include "calltree/code_counts.h"
#include "calltree/flat.h"
#include "steps/tables/insn_mix.h"

/* The row of one routine; all 0 when it has no node. */
static inline struct flat_row flat_sum_routine(const struct calltree *t, uint32_t routine)
{
	struct flat_row row = {.routine = routine};
	struct flat flat;

	flat_init(&flat, t);
	for (size_t i = 0; i < flat.n_rows; i++)
		if (flat.rows[i].routine == routine)
			row = flat.rows[i];
	flat_release(&flat);
	return row;
}

/* The first function from index `from` on that has this very name, readable or not; -1 when there
 * is none. */
static inline ptrdiff_t code_counts_find(const struct code_counts *c, const char *name, size_t from)
{
	for (size_t i = from; i < c->n_functions; i++)
		if (!strcmp(c->functions[i].name, name) ||
			!strcmp(c->functions[i].linkage_name, name))
			return (ptrdiff_t)i;
	return -1;
}

/* Of a finished mix: 0 when there is no such row. */
static inline uint64_t insn_mix_count(
	const struct insn_mix *mix, enum mix_group group, const char *name)
{
	for (size_t i = 0; i < mix->rows.n; i++)
		if (mix->rows.v[i].group == group && !strcmp(mix->rows.v[i].name, name))
			return mix->rows.v[i].count;
	return 0;
}

#endif
