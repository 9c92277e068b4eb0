/* SPDX-License-Identifier: MIT */
/* The instructions of frame programs: how long each is (DWARF 5 section 7.24). */
#include "insert/eh_frame.h"
#include "insert/eh_pointer.h"

/* The operands of opcodes whose upper two bits are zero, a letter each. */
#define NUMBER	"n" /* LEB128, signed or not */
#define ADDRESS "a"
#define BLOCK	"b"
static const char *const operands[] = {
	[FRAME_CFA_NOP] = "",
	[FRAME_CFA_SET_LOC] = ADDRESS,
	[FRAME_CFA_ADVANCE1] = "1", /* bytes of the advance */
	[FRAME_CFA_ADVANCE2] = "2",
	[FRAME_CFA_ADVANCE4] = "4",
	[0x05] = NUMBER NUMBER, /* offset_extended */
	[0x06] = NUMBER,	/* restore_extended */
	[0x07] = NUMBER,	/* undefined */
	[FRAME_CFA_SAME_VALUE] = NUMBER,
	[0x09] = NUMBER NUMBER, /* register */
	[FRAME_CFA_REMEMBER_STATE] = "",
	[FRAME_CFA_RESTORE_STATE] = "",
	[FRAME_CFA_DEF_CFA] = NUMBER NUMBER,
	[0x0d] = NUMBER,	/* def_cfa_register */
	[0x0e] = NUMBER,	/* def_cfa_offset */
	[FRAME_CFA_DEF_CFA_EXPRESSION] = BLOCK,
	[0x10] = NUMBER BLOCK,	/* expression */
	[0x11] = NUMBER NUMBER, /* offset_extended_sf */
	[0x12] = NUMBER NUMBER, /* def_cfa_sf */
	[0x13] = NUMBER,	/* def_cfa_offset_sf */
	[0x14] = NUMBER NUMBER, /* val_offset */
	[0x15] = NUMBER NUMBER, /* val_offset_sf */
	[0x16] = NUMBER BLOCK,	/* val_expression */
	[0x2e] = NUMBER,	/* GNU_args_size */
	[0x2f] = NUMBER NUMBER, /* GNU_negative_offset_extended */
};

/* A cursor that has failed gives 0. */
static void take_operand(
	struct frame_step *s, struct cursor *c, char kind, const struct frame_cie *cie)
{
	if (kind == *NUMBER)
		while (cursor_u8(c) & 0x80)
			;
	else if (kind == *ADDRESS)
		cursor_skip(c, eh_format_bytes(cie->pointer_encoding));
	else if (kind == *BLOCK)
		cursor_skip(c, cursor_uleb(c));
	else
		s->advance = kind == '1'   ? cursor_u8(c)
			     : kind == '2' ? cursor_u16(c)
					   : cursor_u32(c);
}

bool frame_step_read(struct frame_step *s, struct span section, const struct frame_cie *cie,
	uint64_t at, uint64_t end)
{
	struct cursor c = cursor_of(span_sub(section, at, end - at));
	uint8_t opcode = cursor_u8(&c);
	const char *kinds =
		opcode < sizeof(operands) / sizeof(operands[0]) ? operands[opcode] : NULL;

	*s = (struct frame_step){.at = at, .opcode = opcode};
	if (opcode & 0xc0) {
		s->opcode = opcode & 0xc0;
		s->advance = opcode & 0x3f;
		kinds = s->opcode == FRAME_CFA_OFFSET ? NUMBER : "";
	}
	if (!kinds)
		return false;
	for (; *kinds; kinds++)
		take_operand(s, &c, *kinds, cie);
	s->end = end - cursor_left(&c);
	return !c.failed;
}
