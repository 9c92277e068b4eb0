/* SPDX-License-Identifier: MIT */
/*
 * Blocks and source lines with exact counts of the functions of a trace of steps: formats/counted_code.h
 * has the rules.
 *
 * Blocks of a function that are not executed come from the file, too; without it a function has
 * those alone that were executed, and a note says so.
 */
#ifndef WEIR_STEPS_CALLS_STEP_BLOCKS_H
#define WEIR_STEPS_CALLS_STEP_BLOCKS_H

#include <stdint.h>

#include "steps/calls/step_functions.h"
#include "trace/writer.h"

struct step_blocks_of {
	const struct steps *steps;
	const struct step_functions *functions;
	const uint32_t *frames;	  /* by function: in the writer */
	const uint64_t *executed; /* by instruction: how often */
	struct trace_reader *r;
	struct trace_writer *w; /* has all strings of `r` with the same ids */
	bool lines_only;	/* not of foreign libraries, nor of functions without lines */
	uint32_t stream;
	uint64_t time;
};

void step_blocks_write(const struct step_blocks_of *of);

/* Frame in the writer for a function: a name of its own, so that it is told from the frames of
 * instructions. */
uint32_t step_function_frame(struct trace_writer *w, const struct step_function *f);

#endif
