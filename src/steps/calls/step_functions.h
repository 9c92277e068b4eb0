/* SPDX-License-Identifier: MIT */
/*
 * Which function an executed instruction belongs to: the one that the names of the trace have
 * around it. Parts that the compiler split off (.cold) are functions of their own here, and know
 * whose part they are.
 *
 * Code without names is cut into functions where something is called: at the targets of direct
 * calls, and at endbr. It is named as the resolver names its first instruction.
 */
#ifndef WEIR_STEPS_CALLS_STEP_FUNCTIONS_H
#define WEIR_STEPS_CALLS_STEP_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "steps/read/steps.h"

struct step_function {
	uint32_t image; /* 0: code in no image */
	enum frame_kind kind;
	uint64_t start;	  /* in the image */
	uint64_t bytes;	  /* by the image's table, else up to the last executed instruction */
	const char *name; /* readable; all texts live as long as the table */
	const char *linkage_name;
	uint32_t owner; /* the function that this is a part of; else its own number */
	bool is_part;
	bool is_setjmp; /* returns a second time, when something jumps there */
	uint32_t first_place, n_places;
};

/* An instruction at its place in an image. */
struct step_place_in {
	uint64_t addr; /* in the image */
	uint32_t insn;
};

struct step_functions {
	VEC(struct step_function) v; /* [0]: code that was not captured; else by image, start */
	VEC(struct step_place_in) places; /* of a function together, by address */
	uint32_t *of_insn;		  /* by number of the instruction: the function */
	struct intern texts;
};

/* Zero-initialise. Reads the function tables of `r`, whose steps `s` are: one thread at a time. */
void step_functions_init(struct step_functions *f, const struct steps *s, struct trace_reader *r);
void step_functions_release(struct step_functions *f);

#endif
