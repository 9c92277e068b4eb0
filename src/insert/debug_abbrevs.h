/* SPDX-License-Identifier: MIT */
/*
 * Abbreviations compiled for one purpose: to find in each entry of .debug_info the values that
 * speak of code. Attributes of no interest are merged into bytes to step over, so that an entry
 * costs no more than its bytes. (dwarf/abbrev.h does the same for what names need; it does not tell
 * where a value is.)
 */
#ifndef WEIR_INSERT_DEBUG_ABBREVS_H
#define WEIR_INSERT_DEBUG_ABBREVS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"
#include "dwarf/attr_form.h"

/* What a value is for. */
enum debug_attr {
	DEBUG_ATTR_NONE,
	DEBUG_ATTR_LOW_PC,
	DEBUG_ATTR_HIGH_PC,
	DEBUG_ATTR_ENTRY_PC,
	DEBUG_ATTR_RANGES,
	DEBUG_ATTR_START_SCOPE,
	DEBUG_ATTR_ADDR_BASE,
	DEBUG_ATTR_LIST_BASE,		    /* of a table of lists of either kind */
	DEBUG_N_SINGLE,			    /* those above count only once in an entry */
	DEBUG_ATTR_OFFSET = DEBUG_N_SINGLE, /* of something in another section */
	DEBUG_ATTR_REF			    /* to another entry of the unit */
};

/* A value, and the bytes of no interest in front of it. */
struct debug_abbrev_step {
	uint32_t fixed;
	uint16_t form;
	uint8_t how;  /* enum form_how */
	uint8_t attr; /* enum debug_attr */
	int64_t implicit;
};

struct debug_abbrev {
	uint64_t code;
	uint32_t first_step, n_steps;
	bool is_unknown; /* has a form that is not known */
};

struct debug_abbrev_table {
	uint64_t offset; /* in .debug_abbrev */
	struct form_sizes sizes;
	VEC(struct debug_abbrev) abbrevs; /* by code */
	VEC(struct debug_abbrev_step) steps;
	bool has_blocks; /* some value is an expression or may be one */
};

/* The tables in use, each compiled once. */
struct debug_abbrevs {
	VEC(struct debug_abbrev_table) tables;
	struct map known; /* section, offset and sizes -> index */
	uint64_t n_bytes; /* compiled so far */
};
void debug_abbrevs_release(struct debug_abbrevs *a);

/* The table at an offset of a section; valid until the next call. */
int debug_abbrevs_get(struct debug_abbrevs *a, uint32_t section, struct span bytes, uint64_t offset,
	struct form_sizes sizes, const struct debug_abbrev_table **table, struct err *err);
/* NULL when there is none. */
const struct debug_abbrev *debug_abbrev_find(const struct debug_abbrev_table *t, uint64_t code);

#endif
