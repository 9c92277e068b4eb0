/* SPDX-License-Identifier: MIT */
/*
 * Where the parameters of a function are when the instruction at an address is about to run, out of
 * debug information: DWARF 5 sections 2.5, 2.6 and 3.3.5. What is not known for sure at that address
 * is VALUE_UNKNOWN with the reason, never a guess.
 */
#ifndef WEIR_PROBE_TYPES_DWARF_PLACE_H
#define WEIR_PROBE_TYPES_DWARF_PLACE_H

#include "arch/x86_entry.h"
#include "dwarf/cfi_table.h"
#include "dwarf/location_list.h"
#include "elf/elf_file.h"
#include "probe/types/call_abi.h"
#include "probe/types/dwarf_type_build.h"

/* What places of one file need; zero-initialise and fill in the first two. */
struct place_source {
	const struct elf_file *elf;   /* of the code: borrowed */
	const struct elf_file *debug; /* of its separate debug information, or NULL: borrowed */
	struct location_lists lists;
	struct cfi_table *cfi; /* made when it is first needed */
};

void place_source_release(struct place_source *s);

/* A function while the places at one of its addresses are found. */
struct place_finder {
	struct place_source *source;
	struct dwarf_builder *builder;
	enum mode mode;
	struct die function;
	uint64_t entry, addr; /* its first instruction, and the one that is asked about */
	/* Its first instructions: all that can be followed, and those in front of the address. */
	struct x86_entry settled, here;
	bool is_followed; /* both were */
	/* The place that was found last rests on a guess of what the stack pointer is in the function's
	 * body: it counts only when the calling convention says the same. */
	bool is_guess;
	bool is_unreadable; /* some place could not be read, so nothing can be said of the others */
};

/* The place of a parameter of this type. */
struct value_place dwarf_place(
	struct place_finder *f, const struct die *parameter, const struct type *type);

/* Whether a parameter that debug information knows only further on comes from the place that the calling
 * convention says: the instructions up to there show it. */
bool dwarf_place_comes_from(struct place_finder *f, const struct die *parameter,
	const struct type *type, const struct value_place *usual);
/* Whether debug information has no place for the value or a part of it, or none that is understood: callers
 * in the same file need not give what the function does not use. */
bool dwarf_place_is_gone(const struct value_place *place);
/* Fills in what `call` says beside its function; `places` has room for its parameters. */
void dwarf_call_places(struct place_finder *f, struct call_facts *call);

/* --- between dwarf_place.c and dwarf_expression.c ---------------------------------------------- */

/* A value that an expression computes, as far as it is looked at here: a sum. */
enum term_kind {
	TERM_CONSTANT, /* offset */
	TERM_LINKED,   /* an address that the linker gave: offset */
	TERM_REGISTER, /* what the register (DWARF's number) has now + offset */
	TERM_FRAME,    /* frame address (CFA) + offset */
	TERM_BEHIND    /* (the pointer at the frame address or register + inner) + offset */
};
struct term {
	enum term_kind kind;
	bool is_frame; /* BEHIND: inner is from the frame address, else from the register */
	uint8_t reg;
	int64_t inner, offset;
};

/* What an expression describes: as many pieces as it has DW_OP_piece, one without. */
enum piece_kind { PIECE_NOWHERE, PIECE_REGISTER, PIECE_MEMORY, PIECE_VALUE, PIECE_BYTES };
struct piece {
	enum piece_kind kind;
	uint8_t reg;	   /* REGISTER */
	struct term term;  /* MEMORY: its address; VALUE */
	struct span bytes; /* BYTES: as they are in memory */
	uint64_t n;	   /* bytes; 0: all */
};
struct expression_result {
	uint32_t n;
	struct piece pieces[VALUE_PARTS_MAX];
	const char *why; /* it is not understood: a literal, behind "'x' " */
};

void dwarf_expression_read(
	struct place_finder *f, struct span expression, struct expression_result *out);
/* The frame base (DW_AT_frame_base) as a term; false when it is not known at the address. */
bool dwarf_frame_base(struct place_finder *f, struct term *out);
/* Follows the first instructions of the function, once. */
void dwarf_place_follow(struct place_finder *f);

#endif
