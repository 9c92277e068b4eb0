/* SPDX-License-Identifier: MIT */
/*
 * Steps as counts (translate/counts.h): what a translator would tell of its program is found out from one instruction
 * after another. A block is what was executed from an address on, up to the end of a block or where something came in
 * between; there are no faults in their midst. Which jumps are entries is decided by the translator's rules
 * (rt/translate/dispatch.c, regions.c), since the figures of 32-bit and 64-bit programs are to mean the same.
 */
#ifndef WEIR_STEPS_ENGINE_COUNTED_STEPS_H
#define WEIR_STEPS_ENGINE_COUNTED_STEPS_H

#include "steps/record/step_internal.h"

struct count_session;
struct counted_steps;

extern const struct step_sink counted_steps_sink; /* its ctx is this: */
struct counted_steps *counted_steps_new(struct count_session *s);
/* Programs that have not ended are in the trace with what they did. */
void counted_steps_free(struct counted_steps *c);

#endif
