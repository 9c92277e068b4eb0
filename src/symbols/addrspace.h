/* SPDX-License-Identifier: MIT */
/*
 * The executable mappings of one process at the current point of the trace. Records are applied in
 * order of time, so a look-up answers for "now". A child shares its parent's table until one of
 * them changes it.
 */
#ifndef WEIR_SYMBOLS_ADDRSPACE_H
#define WEIR_SYMBOLS_ADDRSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct mapping {
	uint64_t start, end; /* vaddr, end exclusive */
	struct foff offset;  /* of `start` in the file */
	uint32_t image;	     /* the owner's number for what is mapped */
	uint64_t bias;	     /* vaddr - iaddr; 0 for images addressed by vaddr */
	bool at_start;	     /* it was there before the recording began */
};

struct addrspace;

struct addrspace *addrspace_new(void);
/* A second owner; copied when either owner changes it. */
struct addrspace *addrspace_share(struct addrspace *a);
void addrspace_free(struct addrspace *a);

/* Adds a mapping; whatever it covers of older ones is cut away. *a may be replaced (copy on
 * write). Returns how many older mappings ended or were cut. */
size_t addrspace_map(struct addrspace **a, const struct mapping *m);
/* NULL when nothing executable is known there. O(log n). */
const struct mapping *addrspace_find(const struct addrspace *a, struct vaddr addr);
size_t addrspace_n(const struct addrspace *a);
const struct mapping *addrspace_get(const struct addrspace *a, size_t i); /* by address */
/* Changes whenever the content does; never the same for two different contents. */
uint64_t addrspace_generation(const struct addrspace *a);

#endif
