/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a pprof profile: one for each image that locations are in. Readers take the first one
 * for the program, and look an address up in all of them, so that they may not overlap. In one process they
 * do not; a trace has many, at addresses that say nothing to others. So the program keeps the linker's
 * addresses, as the trace has them, and other images the lower half of theirs: each is moved by
 * the first multiple of 4 GiB that is free. The kernel and code made at run time stay where they are.
 */
#ifndef WEIR_FORMATS_PPROF_MAPPINGS_H
#define WEIR_FORMATS_PPROF_MAPPINGS_H

#include "base/mem.h"
#include "trace/reader.h"

struct pprof_mapping {
	uint32_t id;	    /* in the profile, from 1; once they are settled */
	uint32_t image;	    /* in the trace */
	uint64_t low, high; /* addresses in the image: the first page, behind the last one */
	uint64_t shift;	    /* from those to the profile's */
	uint64_t offset;    /* in the file, of the first page */
	uint64_t n_begun;   /* samples whose outermost function of a program is in it */
};

struct pprof_mappings {
	const struct trace_reader *reader;
	uint32_t *place_of; /* by image: its place in `v` + 1; 0 = not used */
	VEC(struct pprof_mapping)
	v; /* in order of first use; once they are settled, of their ids */
};

void pprof_mappings_init(struct pprof_mappings *m, const struct trace_reader *r);
void pprof_mappings_release(struct pprof_mappings *m);
/* A location is there. Nothing for image 0. */
void pprof_mappings_add(struct pprof_mappings *m, uint32_t image, uint64_t addr);
/* So many samples come from a program in this image: that of most of them is the first mapping. */
void pprof_mappings_begin(struct pprof_mappings *m, uint32_t image, uint64_t n);
/* Whether an image is a program, as far as its name tells, not one of its libraries. */
bool pprof_is_program(const struct trace_reader *r, uint32_t image);
/* Chooses the first one and all addresses. */
void pprof_mappings_settle(struct pprof_mappings *m);
/* NULL for images without locations. */
const struct pprof_mapping *pprof_mapping_find(const struct pprof_mappings *m, uint32_t image);

#endif
