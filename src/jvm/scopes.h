/* SPDX-License-Identifier: MIT */
/*
 * Debug information of compiled code: descriptors (PcDesc) lead from offsets in the code to scopes,
 * scopes to those that they are inlined into. A scope is three compressed numbers: where the next
 * outer one is, the index of its method, and the bytecode.
 */
#ifndef WEIR_JVM_SCOPES_H
#define WEIR_JVM_SCOPES_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "jvm/vm_layout.h"

struct scopes {
	struct span pcs;      /* descriptors, by offset */
	struct span data;     /* compressed */
	struct span metadata; /* Method* and Klass* by index, 8 bytes each */
	unsigned least;	      /* see unsigned5.h */
};

struct scope {
	uint64_t method; /* Method* */
	int32_t bci;	 /* negative: the method's begin */
};

/* The scopes at an offset in the code, innermost first, at most `max`: of the first descriptor at or behind
 * it, which is exact for return addresses, else of the last one. 0 when there is none, or it is not what it should be; then
 * the method as a whole is all that is known. */
size_t scopes_find(const struct scopes *scopes, const struct vm_layout *layout, uint32_t offset,
	struct scope *to, size_t max);

#endif
