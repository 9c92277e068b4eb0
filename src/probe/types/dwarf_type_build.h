/* SPDX-License-Identifier: MIT */
/* Entries of debug information turned into types. */
#ifndef WEIR_PROBE_TYPES_DWARF_TYPE_BUILD_H
#define WEIR_PROBE_TYPES_DWARF_TYPE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "probe/types/dwarf_name_index.h"
#include "probe/types/type.h"

/* A structure whose fields are still to be read. */
struct struct_work {
	const struct debug_unit *unit;
	uint64_t offset;
	struct type *type;
	bool is_open; /* its fields are being read */
	bool is_done;
};

/* Zero-initialise and fill in the first three. */
struct dwarf_builder {
	struct types *types;		/* borrowed */
	struct die_reader *reader;	/* borrowed */
	struct dwarf_name_index *names; /* borrowed */
	struct arena *texts;		/* names of types and fields, during one look-up */
	struct map made;		/* where an entry's bytes are -> struct type * */
	struct map struct_of;		/* likewise -> which of `structs` */
	VEC(struct struct_work) structs;
	size_t n_finished;	  /* structs before this one have their fields */
	uint32_t depth;		  /* of types inside types, now */
};

void dwarf_builder_release(struct dwarf_builder *b);
/* The type that an entry is, complete with all structures that can be reached from it. */
const struct type *dwarf_build_type(struct dwarf_builder *b, const struct die *d);
/* The type that DW_AT_type of an entry, or of the one it completes, leads to. */
const struct type *dwarf_build_type_of(struct dwarf_builder *b, const struct die *d);
/* A subprogram as TYPE_FUNCTION; its parameters in the order in which the source has them. Copies
 * that a compiler made of a function may have them in another one, or not at all. */
const struct type *dwarf_build_function(struct dwarf_builder *b, const struct die *d);
#define DWARF_PARAMETERS_MAX 256
/* The entries of these parameters, as many as the type has fields: of each the one of `d` itself that
 * says where it is, or has no tag when there is none. */
uint32_t dwarf_function_parameters(
	struct dwarf_builder *b, const struct die *d, struct die parameters[DWARF_PARAMETERS_MAX]);

/* Only for the files of this builder. */
/* for each child of `d`, an entry of debug information; `child` is it */
#define EACH_CHILD(b, d, child)                                                                    \
	for (uint64_t at_ = (d)->has_children ? (d)->next : 0;                                     \
		at_ && die_read((b)->reader, (d)->unit, at_, &(child)) && (child).tag;             \
		at_ = die_behind((b)->reader, &(child)))
const struct type *dwarf_type_of(struct dwarf_builder *b, const struct die *d, bool is_by_value);
/* A copy of a text that lives until the look-up ends; NULL when it is empty. */
const char *dwarf_build_text(struct dwarf_builder *b, struct dwarf_text text);
/* Reads the fields of the structure at `d` into `s`. */
void dwarf_fill_struct(struct dwarf_builder *b, const struct die *d, struct type *s);

#endif
