/* SPDX-License-Identifier: MIT */
/*
 * Language-specific data areas as C++ and its relatives use them (.gcc_except_table; Itanium C++
 * ABI, "Exception Handling Tables"):
 *
 *	landing pad base	encoding, address; usually omitted: the start of the function
 *	type table		encoding, distance to its end
 *	call sites		encoding, length; then start, length, landing pad, action of each
 *	actions, types		what follows; nothing in it speaks of code
 */
#ifndef WEIR_DWARF_LSDA_H
#define WEIR_DWARF_LSDA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* Places are offsets in the bytes that it was read from; encodings are EH_*. */
struct lsda {
	uint64_t offset;
	uint8_t pointer_bytes;	   /* of EH_ABSPTR */
	uint8_t pad_base_encoding; /* EH_OMIT: landing pads count from the start of the function */
	uint64_t pad_base_at;
	uint8_t type_encoding, site_encoding;
	uint64_t types_at; /* the distance to the end of the types, from behind this field */
	uint64_t sites_encoding_at; /* = types_at when there are none */
	uint64_t types_end;	    /* 0 when there are none */
	uint64_t length_at;	    /* of the call sites */
	uint64_t sites_at, sites_end;
	uint64_t actions_at; /* = sites_end, unless the reader's caller knows better */
};

/* Reads all but the call sites. NULL, or what is wrong with it. */
const char *lsda_read(struct lsda *l, struct span bytes, uint64_t offset, uint8_t pointer_bytes);

/* A call site as it is written. */
struct lsda_site {
	uint64_t at, action_at, end; /* its own place, and that of its action */
	uint64_t start, size;	     /* of the calls, from the start of the function */
	uint64_t pad;		     /* from the base of the landing pads; 0 = none */
};
/* The one at `at`, which is before sites_end; false when it is damaged. */
bool lsda_site_read(struct lsda_site *s, struct span bytes, const struct lsda *l, uint64_t at);

#endif
