/* SPDX-License-Identifier: MIT */
/*
 * Where a parameter of a 32-bit function is when the function is entered. The convention says: on
 * the stack; regparm, fastcall, and gcc for functions that nobody else calls, say: in registers.
 * Nothing but the location of the parameter tells them apart (DWARF 5 section 2.6):
 *
 *   DW_OP_fbreg N             above the return address, or a copy that the function makes of it
 *   a register, in a list     of its first entry: the one it came in
 *
 * Without optimisation parameters have no lists, and one that came in a register is a copy too:
 * it cannot be told from others, and is looked for on the stack.
 */
#include "dwarf/attr_form.h"
#include "probe/types/dwarf_type_build.h"

#define OP_REG0	       0x50
#define I386_REGISTERS 8
#define ENTRIES_MAX    16 /* of a list, before the first that has a location */

enum {
	LLE_END,
	LLE_BASE_X,
	LLE_START_END_X,
	LLE_START_LENGTH_X,
	LLE_OFFSETS,
	LLE_DEFAULT,
	LLE_BASE,
	LLE_START_END,
	LLE_START_LENGTH,
	LLE_VIEWS
};

/* DWARF 5 section 7.7.3. */
static struct span first_of_loclist(struct cursor c, uint8_t addr_bytes)
{
	for (int i = 0; i < ENTRIES_MAX && !c.failed; i++) {
		uint8_t kind = cursor_u8(&c);

		switch (kind) {
		case LLE_VIEWS:
			cursor_uleb(&c);
			cursor_uleb(&c);
			continue;
		case LLE_BASE_X:
			cursor_uleb(&c);
			continue;
		case LLE_BASE:
			cursor_bytes(&c, addr_bytes);
			continue;
		case LLE_START_END_X:
		case LLE_START_LENGTH_X:
		case LLE_OFFSETS:
			cursor_uleb(&c);
			cursor_uleb(&c);
			break;
		case LLE_START_END:
			cursor_bytes(&c, 2 * addr_bytes);
			break;
		case LLE_START_LENGTH:
			cursor_bytes(&c, addr_bytes);
			cursor_uleb(&c);
			break;
		case LLE_DEFAULT:
			break;
		default:
			return (struct span){0};
		}
		return cursor_bytes(&c, cursor_uleb(&c));
	}
	return (struct span){0};
}

/* DWARF 4 section 2.6.2, with addresses of 4 bytes. */
static struct span first_of_loc(struct cursor c)
{
	for (int i = 0; i < ENTRIES_MAX && !c.failed; i++) {
		uint32_t from = cursor_u32(&c), to = cursor_u32(&c);

		if (!from && !to)
			break;
		if (from != UINT32_MAX)
			return cursor_bytes(&c, cursor_u16(&c));
	}
	return (struct span){0};
}

static struct span first_location(const struct dwarf_builder *b, const struct die *d)
{
	uint64_t at = d->value[DIE_LOCATION];
	bool is_5 = d->unit->sizes.version >= 5;
	struct span list = b->locations[is_5], block;

	if (die_block(d, DIE_LOCATION, &block))
		return block;
	if (!die_says(d, DIE_LOCATION) || d->form[DIE_LOCATION] != FORM_SEC_OFFSET || at >= list.n)
		return (struct span){0};
	list = span_sub(list, at, list.n - at);
	return is_5 ? first_of_loclist(cursor_of(list), d->unit->sizes.addr)
		    : first_of_loc(cursor_of(list));
}

uint64_t dwarf_parameter_place(const struct dwarf_builder *b, const struct die *d)
{
	struct cursor c;
	uint8_t op;

	if (types_mode(b->types) != MODE_32)
		return PARAMETER_BY_CONVENTION;
	c = cursor_of(first_location(b, d));
	if (!cursor_left(&c))
		return PARAMETER_BY_CONVENTION;
	op = cursor_u8(&c);
	if (op >= OP_REG0 && op < OP_REG0 + I386_REGISTERS && !cursor_left(&c))
		return PARAMETER_IN_REGISTER + (op - OP_REG0);
	return PARAMETER_BY_CONVENTION;
}
