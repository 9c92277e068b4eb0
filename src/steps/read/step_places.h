/* SPDX-License-Identifier: MIT */
/*
 * What was where in the memory of each space, when: the places of a trace. First each is added, in
 * order of time, then the table is finished and asked.
 */
#ifndef WEIR_STEPS_READ_STEP_PLACES_H
#define WEIR_STEPS_READ_STEP_PLACES_H

#include "base/map.h"
#include "base/mem.h"
#include "symbols/resolve/module_rows.h"
#include "symbols/resolve/module_tree.h"
#include "trace/step_records.h"

struct place_rows {
	struct module_space open; /* while places are added */
	size_t first, n;	  /* then: rows of the space */
};

/* Zero-initialise; release. */
struct step_places {
	VEC(struct step_place) all;
	struct map space_of; /* number of a space -> index in `spaces` */
	VEC(struct place_rows) spaces;
	struct module_rows rows;      /* image: index in `all` */
	struct module_reach *reaches; /* beside the rows, which are by space and address then */
};

void step_places_add(struct step_places *t, const struct step_place *place, uint64_t time);
void step_places_finish(struct step_places *t);
void step_places_release(struct step_places *t);
/* Places that were left out: there were too many. */
uint64_t step_places_n_lost(const struct step_places *t);
/* The place that had the address when a run was recorded; NULL when none is known. */
const struct step_place *step_places_find(
	const struct step_places *t, uint32_t space, uint64_t addr, uint64_t time);

#endif
