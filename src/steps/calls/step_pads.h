/* SPDX-License-Identifier: MIT */
/*
 * Where exceptions land: by the tables (.eh_frame, .gcc_except_table) of the images that ran, read
 * from their files when these are at hand. Needed where a function is open several times, to know
 * which of its calls an exception came to.
 */
#ifndef WEIR_STEPS_CALLS_STEP_PADS_H
#define WEIR_STEPS_CALLS_STEP_PADS_H

#include "base/mem.h"
#include "elf/elf_file.h"
#include "steps/read/steps.h"

/* Code that has an FDE, and its language-specific data area. */
struct step_pad_function {
	uint64_t start, end, lsda; /* addresses in the image; lsda 0: it has none */
};

/* The tables of one image. Zero-initialise. */
struct step_pad_table {
	VEC(struct step_pad_function) functions; /* by start */
};
void step_pad_table_init(struct step_pad_table *t, const struct elf_file *elf);
void step_pad_table_release(struct step_pad_table *t);
/* The landing pad of the call that has the byte at `addr` (0: it has none); false when that is not
 * known. `elf` as above. */
bool step_pad_table_find(
	const struct step_pad_table *t, const struct elf_file *elf, uint64_t addr, uint64_t *pad);

/* The tables of all images of a trace, read when they are first needed. */
struct step_pads;
/* Both are borrowed. */
struct step_pads *step_pads_new(const struct steps *s, const struct trace_reader *r);
void step_pads_free(struct step_pads *p);

/* Whether an exception that leaves the call which returns to `ret` lands at this instruction, which
 * is of the same image: 1 yes, 0 no, -1 not known. */
int step_pads_lands(void *pads, uint32_t insn, uint64_t ret);

#endif
