/* SPDX-License-Identifier: MIT */
/*
 * The entries of one .eh_frame (LSB Core, "Exception Frames") or .debug_frame (DWARF 5 section
 * 6.4.1) of an object. Where code starts and where an LSDA lies is in relocations; how long ranges
 * are and how far each rule reaches are plain numbers, which have to be written anew.
 */
#ifndef WEIR_INSERT_EH_FRAME_H
#define WEIR_INSERT_EH_FRAME_H

#include "insert/exception_tables.h"
#include "insert/section_rewrite.h"

enum frame_kind { FRAME_KIND_CIE, FRAME_KIND_FDE, FRAME_KIND_END };

struct frame_entry {
	uint64_t offset, end; /* in the section; the length field is at `offset` */
	uint64_t id_at;	      /* of the CIE id or the pointer to the CIE */
	uint64_t id, body_at; /* that number, and what is behind it */
	uint8_t kind;	      /* enum frame_kind; FRAME_KIND_END is a length of zero */
	bool is_wide;	      /* 64-bit length */
	uint32_t index;	      /* in cies or fdes */
};

struct frame_cie {
	uint64_t offset;
	uint64_t code_align;
	int64_t data_align;
	uint64_t program_at, end; /* of the instructions that every FDE begins with */
	uint8_t pointer_encoding, lsda_encoding; /* EH_* */
	bool has_data;				 /* augmentation 'z' */
};

struct frame_fde {
	uint32_t cie; /* index in cies */
	bool is_here; /* `range` is code of this object; else nothing below is known */
	struct code_range range;
	uint64_t range_at; /* of the field with its size */
	uint64_t program_at;
	struct code_place lsda; /* section 0 = none */
};

struct frame_section {
	uint32_t section;
	bool is_eh; /* else .debug_frame */
	VEC(struct frame_entry) entries;
	VEC(struct frame_cie) cies;
	VEC(struct frame_fde) fdes;
};

/* On failure nothing is left to release. */
int frame_section_read(
	struct frame_section *f, const struct elf_object *o, uint32_t section, struct err *err);
void frame_section_release(struct frame_section *f);

/* Writes the section anew for code that went where `m` says. `w` has been initialised for it. */
int frame_section_move(const struct frame_section *f, const struct moved *m,
	struct section_rewrite *w, struct err *err);

/* One instruction of a frame program (DWARF 5 section 6.4.2). */
struct frame_step {
	uint64_t at, end; /* in the section */
	uint8_t opcode;	  /* DW_CFA_*; those with an operand in the low bits without it */
	uint64_t advance; /* of the advance_loc family, in units of the code alignment; else what
			   * the low bits are, where they are an operand */
};
#define FRAME_CFA_NOP		 0x00
#define FRAME_CFA_SET_LOC	 0x01
#define FRAME_CFA_ADVANCE1	 0x02
#define FRAME_CFA_ADVANCE2	 0x03
#define FRAME_CFA_ADVANCE4	 0x04
#define FRAME_CFA_SAME_VALUE	 0x08
#define FRAME_CFA_REMEMBER_STATE 0x0a
#define FRAME_CFA_RESTORE_STATE	 0x0b
#define FRAME_CFA_DEF_CFA	 0x0c
#define FRAME_CFA_DEF_CFA_EXPRESSION 0x0f
#define FRAME_CFA_ADVANCE_LOC	 0x40
#define FRAME_CFA_OFFSET	 0x80
#define FRAME_CFA_RESTORE	 0xc0

static inline bool frame_step_is_advance(const struct frame_step *s)
{
	return s->opcode == FRAME_CFA_ADVANCE_LOC ||
	       (s->opcode >= FRAME_CFA_ADVANCE1 && s->opcode <= FRAME_CFA_ADVANCE4);
}
/* The instruction at the offset; false when it is not known or leaves the entry. */
bool frame_step_read(struct frame_step *s, struct span section, const struct frame_cie *cie,
	uint64_t at, uint64_t end);

/*
 * The rules in force at a place, for the registers that calls keep (rbx, rbp, r12 to r15): where
 * each is (frame_state.c).
 */
#define FRAME_KEPT_REGS 6
enum frame_where { FRAME_IN_PLACE, FRAME_AT_OFFSET, FRAME_BY_EXPRESSION, FRAME_ELSEWHERE };
struct frame_rules {
	bool is_by_register; /* the CFA is a register and an offset, else an expression */
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct span cfa_expression;
	uint8_t where[FRAME_KEPT_REGS];	 /* enum frame_where */
	int64_t offset[FRAME_KEPT_REGS]; /* from the CFA: FRAME_AT_OFFSET */
};
struct frame_state {
	bool is_known; /* no longer, behind a program that is damaged */
	struct frame_rules now, first;
	VEC(struct frame_rules) remembered;
};
void frame_state_init(
	struct frame_state *s, struct span section, const struct frame_cie *cie);
void frame_state_release(struct frame_state *s);
void frame_state_apply(struct frame_state *s, struct span section, const struct frame_cie *cie,
	const struct frame_step *step);
/* Registers (bits by index) whose slots, by the rules, lie where a call in front of a return
 * writes. They have been restored by then. */
uint32_t frame_state_lost(const struct frame_state *s);
/* Frame instructions for the place from which on a value is elsewhere, and for that where it is back: none where the
 * CFA does not depend on it (frame_elsewhere.c). */
struct frame_elsewhere {
	struct buf away, back;
};
/* False when the CFA is an expression that is not understood, or is counted from a register whose value is nowhere. */
bool frame_elsewhere_find(
	struct frame_elsewhere *f, const struct frame_rules *r, const struct moved_value *v);
void frame_elsewhere_release(struct frame_elsewhere *f);
/* DWARF numbers of the registers that calls keep. */
extern const uint8_t frame_kept_registers[FRAME_KEPT_REGS];

#endif
