/* SPDX-License-Identifier: MIT */
/* How often loops may turn. */
#ifndef WEIR_PROBE_COMPILE_LOOP_TURNS_H
#define WEIR_PROBE_COMPILE_LOOP_TURNS_H

#include "probe/compile/ir.h"

#define LOOP_TURNS_MAX 2000

/* Gives the loops whose number of turns is not known (ir_loop with 0) their limit: see the .c. The
 * verifier sees `n_clauses` such clauses one after the other. */
void loop_turns_set(struct ir *ir, uint32_t n_clauses);

#endif
