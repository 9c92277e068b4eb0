/* SPDX-License-Identifier: MIT */
/*
 * Which entry of a file's debug information a name stands for: made by one pass over the outer
 * entries of all units when the first type is asked for, one when the first function or variable
 * is, one when the first enumerator is, and kept. Only a hash and a place are kept for each
 * distinct name, of all entries of one name the one that says most; of equals the first.
 */
#ifndef WEIR_PROBE_TYPES_DWARF_NAME_INDEX_H
#define WEIR_PROBE_TYPES_DWARF_NAME_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "dwarf/die_cursor.h"

/* Name spaces, as C has them. */
enum name_kind {
	NAME_KIND_STRUCT, /* and class */
	NAME_KIND_UNION,
	NAME_KIND_ENUM,
	NAME_KIND_TYPE, /* typedefs, base types; in C++ all of the above as well */
	NAME_KIND_FUNCTION,
	NAME_KIND_VARIABLE,
	NAME_KIND_LINKAGE,    /* functions by the name that linkers see */
	NAME_KIND_ENUMERATOR, /* by its plain name; those of functions' own types are not found */
	NAME_KIND_ENUM_WITH,  /* the enum that has such an enumerator */
	N_NAME_KINDS
};
/* What a pass over the entries looks for. */
enum name_pass { PASS_TYPES, PASS_CODE, PASS_ENUMERATORS, N_NAME_PASSES };

struct name_place {
	const struct debug_unit *unit;
	uint64_t offset;
	uint8_t rank; /* enum name_rank: how much the entry says */
};

/* The inside of a namespace or class that has types in it. */
struct name_scope {
	uint64_t start, end; /* in .debug_info */
	uint32_t name;	     /* in scope_names: "ns::Foo::" */
};

/* The code of a function: a part of it where it has several. */
struct code_place {
	uint64_t low, high;
	uint64_t entry; /* its first instruction */
	const struct debug_unit *unit;
	uint64_t offset;
};

/* Zero-initialise. */
struct dwarf_name_index {
	struct map places; /* hash of kind and full name -> index in entries */
	VEC(struct name_place) entries;
	VEC(struct name_scope) scopes; /* unit by unit, and there by their ends */
	struct map first_scope;	       /* struct debug_unit * -> index of its first scope */
	struct intern scope_names;
	VEC(struct code_place) code; /* by PASS_CODE; by address once it was searched */
	size_t n_sorted;
	bool has_own[N_NAME_PASSES], has_shared[N_NAME_PASSES]; /* which passes were made */
};

void dwarf_name_index_release(struct dwarf_name_index *x);
/* The entry that defines a name ("item", "ns::Foo", "_ZN2ns3FooE"); one that only declares it when
 * there is no better one. */
bool dwarf_name_index_find(struct dwarf_name_index *x, struct die_reader *r, enum name_kind kind,
	const char *name, struct die *out);
/* The function that has code at an address, and its first instruction. */
bool dwarf_name_index_code(struct dwarf_name_index *x, struct die_reader *r, uint64_t addr,
	struct die *out, uint64_t *entry);
/* The scope of an entry of a unit that was looked at: "ns::Foo::", or "" outside of all. */
const char *dwarf_name_index_scope(
	const struct dwarf_name_index *x, struct die_reader *r, const struct die *d);

#endif
