/* SPDX-License-Identifier: MIT */
/* What opening (steps.c) and walking (step_cursor.c) share. Inside src/steps only. */
#ifndef WEIR_STEPS_READ_STEPS_INTERNAL_H
#define WEIR_STEPS_READ_STEPS_INTERNAL_H

#include "base/mem.h"
#include "steps/read/step_insns.h"
#include "steps/read/step_places.h"
#include "steps/read/steps.h"
#include "steps/read/way_steps.h"

struct steps {
	const struct trace_reader *r;
	uint32_t *minors; /* of step records, by the trace's kind; 0: no step record */
	struct step_insns insns;
	struct way_blocks blocks;
	struct step_places places;
	VEC(struct step_thread) threads;
	uint64_t total;
	uint32_t n_damaged;
	char *damaged; /* the first sentence; NULL when there is none */
};

/* The number of the next step as far as a record of a thread tells: of a run the first one's, of a
 * mark its place. False for other records and damaged ones. *behind is the number behind it. */
bool steps_record_number(uint32_t minor, struct span payload, uint64_t *number, uint64_t *behind);

#endif
