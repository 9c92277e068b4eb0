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
	uint64_t since;	     /* time of the record that told of it */
};

struct addrspace;

struct addrspace *addrspace_new(void);
/* A second owner; copied when either owner changes it. */
struct addrspace *addrspace_share(struct addrspace *a);
void addrspace_free(struct addrspace *a);

/* Adds a mapping; whatever it covers of older ones is cut away. *a may be replaced (copy on
 * write). Returns how many older mappings ended or were cut. */
size_t addrspace_map(struct addrspace **a, const struct mapping *m);
/* Cuts [start, end) away from the mappings it touches and returns how many those are; 0 leaves
 * everything, generation and owners too, as it is. *a may be replaced (copy on write). */
size_t addrspace_unmap(struct addrspace **a, uint64_t start, uint64_t end);
/* NULL when nothing executable is known there. O(log n). */
const struct mapping *addrspace_find(const struct addrspace *a, struct vaddr addr);
size_t addrspace_n(const struct addrspace *a);
const struct mapping *addrspace_get(const struct addrspace *a, size_t i); /* by address */
/* Index of the first mapping that ends after `addr`; addrspace_n when there is none. */
size_t addrspace_first_after(const struct addrspace *a, uint64_t addr);
/* Changes whenever the content does; never the same for two different contents. */
uint64_t addrspace_generation(const struct addrspace *a);

#endif
