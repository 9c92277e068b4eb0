/* SPDX-License-Identifier: MIT */
/*
 * Blocks and source lines with exact counts, as records 0x55 have them: of every function of which
 * an instruction was executed, and of those that could have been.
 *
 * Which functions count as not executed: those of images of which something was executed, whose
 * file is at hand and the same, and has debug information in it: of these all that have lines. Of
 * the program itself (the image with `main`) debug information may be in a file of its own; when it
 * has none, all that have a name.
 *
 * With `lines_only` other libraries are left out, and so are functions without lines; a note counts
 * them. Coverage of a program would be buried under that of the C library, whose debug information
 * many systems have in files of its own.
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
