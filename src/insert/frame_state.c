/* SPDX-License-Identifier: MIT */
/*
 * What a frame program has said up to a place (DWARF 5 section 6.4.2), and which of it a call that is
 * put in front of a return would make wrong.
 *
 * Compilers do not say that a register is back in its place when an epilogue has restored it: its slot is
 * below the stack pointer then, but nobody has written there yet, and the rule still finds it. A call in
 * front of the return does write there.
 */
#include <stdlib.h>

#include "insert/eh_frame.h"

#define REMEMBERED_MAX 64
#define REG_RSP	       7

const uint8_t frame_kept_registers[FRAME_KEPT_REGS] = {3, 6, 12, 13, 14, 15};

static void set_rule(struct frame_rules *r, uint64_t reg, enum frame_where where, int64_t offset)
{
	for (int i = 0; i < FRAME_KEPT_REGS; i++)
		if (frame_kept_registers[i] == reg) {
			r->where[i] = (uint8_t)where;
			r->offset[i] = offset;
		}
}

static void restore_rule(struct frame_state *s, uint64_t reg)
{
	for (int i = 0; i < FRAME_KEPT_REGS; i++)
		if (frame_kept_registers[i] == reg) {
			s->now.where[i] = s->first.where[i];
			s->now.offset[i] = s->first.offset[i];
		}
}

static void restore_state(struct frame_state *s)
{
	if (!s->remembered.n) {
		s->is_known = false;
		return;
	}
	s->now = s->remembered.v[--s->remembered.n];
}

static void remember_state(struct frame_state *s)
{
	if (s->remembered.n == REMEMBERED_MAX)
		s->is_known = false;
	else
		vec_push(&s->remembered, s->now);
}

static int64_t take_offset(struct cursor *c, uint8_t opcode, int64_t align)
{
	switch (opcode) {
	case FRAME_CFA_DEF_CFA:
	case 0x0e: /* def_cfa_offset */
		return (int64_t)cursor_uleb(c);
	case 0x11: /* offset_extended_sf */
	case 0x12: /* def_cfa_sf */
	case 0x13: /* def_cfa_offset_sf */
		return (int64_t)((uint64_t)cursor_sleb(c) * (uint64_t)align);
	case 0x2f: /* GNU_negative_offset_extended */
		return (int64_t)(cursor_uleb(c) * (uint64_t)align * UINT64_MAX);
	default:
		return (int64_t)(cursor_uleb(c) * (uint64_t)align);
	}
}

/* Opcodes whose upper two bits are zero, but for those about the state as a whole. */
static void apply_rule(struct frame_state *s, struct cursor *c, uint8_t opcode, int64_t align)
{
	struct frame_rules *r = &s->now;
	uint64_t reg;

	switch (opcode) {
	case FRAME_CFA_DEF_CFA:
	case 0x12: /* def_cfa_sf */
		r->is_by_register = true;
		r->cfa_register = cursor_uleb(c);
		/* fall through */
	case 0x0e: /* def_cfa_offset */
	case 0x13: /* def_cfa_offset_sf */
		r->cfa_offset = take_offset(c, opcode, align);
		break;
	case 0x0d: /* def_cfa_register */
		r->cfa_register = cursor_uleb(c);
		break;
	case FRAME_CFA_DEF_CFA_EXPRESSION:
		r->is_by_register = false;
		r->cfa_expression = cursor_bytes(c, cursor_uleb(c));
		break;
	case 0x05: /* offset_extended */
	case 0x11: /* offset_extended_sf */
	case 0x2f: /* GNU_negative_offset_extended */
		reg = cursor_uleb(c);
		set_rule(r, reg, FRAME_AT_OFFSET, take_offset(c, opcode, align));
		break;
	case 0x06: /* restore_extended */
		restore_rule(s, cursor_uleb(c));
		break;
	case FRAME_CFA_SAME_VALUE:
		set_rule(r, cursor_uleb(c), FRAME_IN_PLACE, 0);
		break;
	case 0x10: /* expression */
		set_rule(r, cursor_uleb(c), FRAME_BY_EXPRESSION, 0);
		break;
	case 0x07: /* undefined */
	case 0x09: /* register */
	case 0x14: /* val_offset */
	case 0x15: /* val_offset_sf */
	case 0x16: /* val_expression */
		set_rule(r, cursor_uleb(c), FRAME_ELSEWHERE, 0);
		break;
	default:
		break;
	}
}

void frame_state_apply(struct frame_state *s, struct span section, const struct frame_cie *cie,
	const struct frame_step *step)
{
	struct cursor c = cursor_of(span_sub(section, step->at + 1, step->end - step->at - 1));

	if (step->opcode == FRAME_CFA_OFFSET)
		set_rule(&s->now, step->advance, FRAME_AT_OFFSET,
			(int64_t)(cursor_uleb(&c) * (uint64_t)cie->data_align));
	else if (step->opcode == FRAME_CFA_RESTORE)
		restore_rule(s, step->advance);
	else if (step->opcode == FRAME_CFA_REMEMBER_STATE)
		remember_state(s);
	else if (step->opcode == FRAME_CFA_RESTORE_STATE)
		restore_state(s);
	else if (!frame_step_is_advance(step))
		apply_rule(s, &c, step->opcode, cie->data_align);
}

void frame_state_init(struct frame_state *s, struct span section, const struct frame_cie *cie)
{
	struct frame_step step;

	*s = (struct frame_state){.is_known = true};
	for (uint64_t at = cie->program_at; at < cie->end && s->is_known; at = step.end) {
		s->is_known = frame_step_read(&step, section, cie, at, cie->end);
		if (s->is_known)
			frame_state_apply(s, section, cie, &step);
	}
	s->first = s->now;
}

void frame_state_release(struct frame_state *s)
{
	vec_release(&s->remembered);
}

uint32_t frame_state_lost(const struct frame_state *s)
{
	const struct frame_rules *r = &s->now;
	bool is_at_return = r->cfa_offset == 8;
	uint32_t lost = 0;

	if (!s->is_known || !r->is_by_register || r->cfa_register != REG_RSP)
		return 0;
	for (int i = 0; i < FRAME_KEPT_REGS; i++) {
		/* An expression is relative to a frame that is gone (stacks that were realigned). */
		if (r->where[i] == FRAME_AT_OFFSET
				? (int64_t)((uint64_t)r->cfa_offset + (uint64_t)r->offset[i]) < 0
				: r->where[i] == FRAME_BY_EXPRESSION && is_at_return)
			lost |= 1u << i;
	}
	return lost;
}
