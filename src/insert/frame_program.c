/* SPDX-License-Identifier: MIT */
/* The instructions of frame programs: how long each is (DWARF 5 section 7.24). */
#include "insert/eh_frame.h"
#include "insert/eh_pointer.h"

/* Signed or not, whatever the value: a cursor that has failed gives 0. */
static void skip_lebs(struct cursor *c, int n)
{
	while (n--)
		while (cursor_u8(c) & 0x80)
			;
}

static void skip_block(struct cursor *c)
{
	cursor_skip(c, cursor_uleb(c));
}

/* The operands of an opcode whose upper two bits are zero, but for the advances. */
static bool skip_operands(struct cursor *c, uint8_t opcode, const struct frame_cie *cie)
{
	switch (opcode) {
	case FRAME_CFA_NOP:
	case 0x0a: /* remember_state */
	case 0x0b: /* restore_state */
		return true;
	case FRAME_CFA_SET_LOC:
		cursor_skip(c, eh_format_bytes(cie->pointer_encoding));
		return true;
	case 0x06: /* restore_extended */
	case 0x07: /* undefined */
	case 0x08: /* same_value */
	case 0x0d: /* def_cfa_register */
	case 0x0e: /* def_cfa_offset */
	case 0x13: /* def_cfa_offset_sf */
	case 0x2e: /* GNU_args_size */
		skip_lebs(c, 1);
		return true;
	case 0x05: /* offset_extended */
	case 0x09: /* register */
	case 0x0c: /* def_cfa */
	case 0x11: /* offset_extended_sf */
	case 0x12: /* def_cfa_sf */
	case 0x14: /* val_offset */
	case 0x15: /* val_offset_sf */
	case 0x2f: /* GNU_negative_offset_extended */
		skip_lebs(c, 2);
		return true;
	case 0x0f: /* def_cfa_expression */
		skip_block(c);
		return true;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		skip_lebs(c, 1);
		skip_block(c);
		return true;
	default:
		return false;
	}
}

bool frame_step_read(struct frame_step *s, struct span section, const struct frame_cie *cie,
	uint64_t at, uint64_t end)
{
	struct cursor c = cursor_of(span_sub(section, at, end - at));
	uint8_t opcode = cursor_u8(&c);

	*s = (struct frame_step){.at = at, .opcode = opcode};
	if (opcode & 0xc0) {
		s->opcode = opcode & 0xc0;
		s->advance = opcode & 0x3f;
		if (s->opcode == 0x80) /* offset */
			skip_lebs(&c, 1);
	} else if (opcode == FRAME_CFA_ADVANCE1) {
		s->advance = cursor_u8(&c);
	} else if (opcode == FRAME_CFA_ADVANCE2) {
		s->advance = cursor_u16(&c);
	} else if (opcode == FRAME_CFA_ADVANCE4) {
		s->advance = cursor_u32(&c);
	} else if (!skip_operands(&c, opcode, cie)) {
		return false;
	}
	s->end = end - cursor_left(&c);
	return !c.failed;
}
