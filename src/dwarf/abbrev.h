/* SPDX-License-Identifier: MIT */
/*
 * Abbreviation tables (DWARF 5 section 7.5.3), compiled for the two things done with an entry:
 *
 *	skip:  `fixed` bytes, then for each step a value of variable size and again fixed bytes;
 *	       most entries have no step at all.
 *	read:  one op for each attribute that is wanted; what lies between is one op to skip it.
 *
 * So an entry costs no more than its bytes and the wanted attributes, however many attributes of no
 * bytes the abbreviation has.
 */
#ifndef WEIR_DWARF_ABBREV_H
#define WEIR_DWARF_ABBREV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"
#include "dwarf/attr_form.h"

enum dwarf_tag {
	TAG_ARRAY_TYPE = 0x01,
	TAG_CLASS_TYPE = 0x02,
	TAG_ENUMERATION_TYPE = 0x04,
	TAG_COMPILE_UNIT = 0x11,
	TAG_STRUCTURE_TYPE = 0x13,
	TAG_SUBROUTINE_TYPE = 0x15,
	TAG_UNION_TYPE = 0x17,
	TAG_INLINED_SUBROUTINE = 0x1d,
	TAG_SUBPROGRAM = 0x2e,
	TAG_PARTIAL_UNIT = 0x3c,
	TAG_CALL_SITE = 0x48,
	TAG_SKELETON_UNIT = 0x4a,
	TAG_GNU_CALL_SITE = 0x4109
};

/* The attributes that are read; all others are skipped. */
enum die_slot {
	SLOT_NONE,
	SLOT_NAME,
	SLOT_LINKAGE_NAME,
	SLOT_ABSTRACT_ORIGIN,
	SLOT_SPECIFICATION,
	SLOT_LOW_PC,
	SLOT_HIGH_PC,
	SLOT_RANGES,
	SLOT_ENTRY_PC,
	SLOT_CALL_FILE,
	SLOT_CALL_LINE,
	SLOT_STMT_LIST,
	SLOT_LANGUAGE,
	SLOT_COMP_DIR,
	SLOT_STR_OFFSETS_BASE,
	SLOT_ADDR_BASE,
	SLOT_RNGLISTS_BASE,
	SLOT_LOCLISTS_BASE,
	SLOT_GNU_RANGES_BASE,
	SLOT_DWO_NAME,
	SLOT_DWO_ID,
	N_SLOTS
};

/* The wanted attributes of one entry, as written: see debug_unit.h for what they mean. */
struct die_attrs {
	uint32_t has; /* bit per slot */
	uint16_t form[N_SLOTS];
	uint64_t value[N_SLOTS]; /* as form_read gives it */
};

static inline bool die_has(const struct die_attrs *a, enum die_slot slot)
{
	return a->has >> slot & 1;
}

/* What to do with an entry when looking for code. */
enum abbrev_kind {
	ABBREV_KIND_PLAIN,    /* skip it; code may be among its children */
	ABBREV_KIND_LEAP,     /* skip it with its children, which never are code, by its sibling */
	ABBREV_KIND_FUNCTION, /* a subprogram that has code */
	ABBREV_KIND_INLINED
};

struct abbrev_step {
	uint32_t fixed; /* bytes behind the value */
	uint8_t how;	/* enum form_how of the value, of variable size */
};

struct abbrev_read {
	int64_t implicit; /* the value, of FORM_IMPLICIT_CONST */
	uint32_t skip;	  /* bytes in front */
	uint16_t form;
	uint8_t how;
	uint8_t slot; /* SLOT_NONE: only stepped over */
};

struct abbrev {
	uint32_t fixed; /* bytes up to the first step */
	uint8_t kind;	/* enum abbrev_kind */
	bool has_children;
	uint16_t tag; /* 0: there is no such code */
	uint32_t first_step, n_steps;
	uint32_t first_read, n_reads;
	uint32_t sibling_at; /* bytes from the first value to DW_AT_sibling; of ABBREV_KIND_LEAP */
	uint8_t sibling_how;
};

/* Compiled for one combination of sizes. */
struct abbrev_table {
	uint64_t offset; /* in .debug_abbrev */
	struct form_sizes sizes;
	VEC(struct abbrev) direct; /* by code */
	VEC(struct abbrev) sparse; /* codes far apart: in order of `codes` */
	VEC(uint64_t) codes;	   /* sorted */
	VEC(struct abbrev_step) steps;
	VEC(struct abbrev_read) reads;
	bool has_code; /* some abbreviation is a function or an inlined one */
};

/* `bytes` begins with the table and ends where another begins, at the latest. */
int abbrev_table_init(struct abbrev_table *t, struct span bytes, uint64_t offset,
	struct form_sizes sizes, struct err *err);
void abbrev_table_release(struct abbrev_table *t);

const struct abbrev *abbrev_table_find_sparse(const struct abbrev_table *t, uint64_t code);

/* NULL when there is none. */
static inline const struct abbrev *abbrev_table_find(const struct abbrev_table *t, uint64_t code)
{
	if (code < t->direct.n) {
		const struct abbrev *a = &t->direct.v[code];

		return a->tag ? a : NULL;
	}
	return abbrev_table_find_sparse(t, code);
}

/* Steps over the values of an entry; NULL when they run out of bytes. */
static inline const uint8_t *abbrev_skip(
	const struct abbrev_table *t, const struct abbrev *a, const uint8_t *p, const uint8_t *end)
{
	const struct abbrev_step *step = t->steps.v + a->first_step;

	if ((size_t)(end - p) < a->fixed)
		return NULL;
	p += a->fixed;
	for (uint32_t n = a->n_steps; n; n--, step++) {
		/* Short blocks and numbers are nearly all there is. */
		if (p < end && *p < 0x80 && step->how == HOW_BLOCK_ULEB)
			p = (size_t)(end - p) > *p ? p + 1 + *p : NULL;
		else
			p = form_skip(p, end, step->how, t->sizes);
		if (!p || (size_t)(end - p) < step->fixed)
			return NULL;
		p += step->fixed;
	}
	return p;
}

/* A number for each abbreviation of the table, below abbrev_table_n. */
static inline size_t abbrev_number(const struct abbrev_table *t, const struct abbrev *a)
{
	uintptr_t into = (uintptr_t)a - (uintptr_t)t->direct.v;

	if (into < t->direct.n * sizeof(*a))
		return into / sizeof(*a);
	return t->direct.n + (size_t)(a - t->sparse.v);
}

static inline size_t abbrev_table_n(const struct abbrev_table *t)
{
	return t->direct.n + t->sparse.n;
}

/* One attribute of an abbreviation in .debug_abbrev. False at the end of them, and when the bytes
 * run out. */
struct abbrev_attr {
	uint64_t name, form; /* a form that is too large is 0 */
	int64_t implicit;
};
bool abbrev_next_attr(struct cursor *in, struct abbrev_attr *a);

/* Where values go: each has as many places as there are slots. */
struct abbrev_values {
	uint32_t *has; /* bit per slot */
	uint16_t *form;
	uint64_t *value;
};

/* A value whose form is in front of it. */
const uint8_t *abbrev_read_indirect(const uint8_t *p, const uint8_t *end, struct form_sizes sizes,
	uint16_t *form, uint64_t *value);

static inline const uint8_t *abbrev_run_reads(const struct abbrev_read *read, uint32_t n,
	struct form_sizes sizes, const uint8_t *p, const uint8_t *end,
	const struct abbrev_values *out)
{
	for (; n; n--, read++) {
		uint64_t value = 0;
		uint16_t form = read->form;

		if ((size_t)(end - p) < read->skip)
			return NULL;
		p += read->skip;
		if (read->how == HOW_INDIRECT)
			p = abbrev_read_indirect(p, end, sizes, &form, &value);
		else if (!read->slot)
			p = form_skip(p, end, read->how, sizes);
		else
			p = form_read(p, end, read->how, &value);
		if (!p)
			return NULL;
		out->value[read->slot] =
			form == FORM_IMPLICIT_CONST ? (uint64_t)read->implicit : value;
		out->form[read->slot] = form;
		*out->has |= 1u << read->slot;
	}
	return p;
}

/* Reads the wanted attributes of an entry and steps over all; NULL as above. */
const uint8_t *abbrev_read(const struct abbrev_table *t, const struct abbrev *a, const uint8_t *p,
	const uint8_t *end, struct die_attrs *out);

#endif
