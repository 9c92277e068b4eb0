/* SPDX-License-Identifier: MIT */
/* Members, base classes and bit-fields of a structure. */
#include <stdlib.h>

#include "probe/types/dwarf_type_build.h"
#include "probe/types/source_types.h"

#define FIELDS_MAX     65535
#define ALIGN_MAX      65536
#define OFFSET_MAX     ((uint64_t)1 << 40) /* bytes */
#define OP_PLUS_UCONST 0x23
#define PASS_BY_REFERENCE 0x04 /* DW_CC_pass_by_reference */

/* DW_AT_data_member_location: bytes, or in DWARF 2 an expression that adds them. False when it is
 * only known when the program runs (virtual base classes). */
static bool member_offset(const struct die *d, uint64_t *out)
{
	struct span block;
	struct cursor c;

	if (!die_says(d, DIE_MEMBER_LOCATION)) {
		*out = 0; /* members of unions, and of bit-fields by DW_AT_data_bit_offset */
		return true;
	}
	if (die_number(d, DIE_MEMBER_LOCATION, out))
		return *out <= OFFSET_MAX;
	if (!die_block(d, DIE_MEMBER_LOCATION, &block))
		return false;
	c = cursor_of(block);
	if (cursor_u8(&c) != OP_PLUS_UCONST)
		return false;
	*out = cursor_uleb(&c);
	return !c.failed && !cursor_left(&c) && *out <= OFFSET_MAX;
}

/* Where a bit-field is. Until DWARF 3 DW_AT_bit_offset counts from the highest bit of the storage
 * unit, whose size is DW_AT_byte_size or that of the type (DWARF 5 section 5.7.6). */
static bool bit_field(const struct die *d, struct type_field *f)
{
	uint64_t size, bit, storage = f->type->size, from_top;

	if (!die_number(d, DIE_BIT_SIZE, &size))
		return true;
	if (!size || size > 64)
		return false;
	if (!die_number(d, DIE_DATA_BIT_OFFSET, &bit)) {
		die_number(d, DIE_BYTE_SIZE, &storage);
		if (!die_number(d, DIE_BIT_OFFSET, &from_top))
			return true; /* a whole member that says its bits */
		if (storage > 16)
			return false;
		bit = f->offset * 8 + storage * 8 - from_top - size;
	} else {
		bit += f->offset * 8;
	}
	if (bit > OFFSET_MAX * 8)
		return false;
	f->offset = bit / 8;
	f->bit_offset = bit % 8;
	f->bit_size = (uint8_t)size;
	return true;
}

static bool read_field(struct dwarf_builder *b, const struct die *d, struct type_field *f)
{
	struct dwarf_text name = {"", 0};

	if (d->tag != DIE_TAG_MEMBER && d->tag != DIE_TAG_INHERITANCE)
		return false;
	/* Static members of C++ have no place in the structure. */
	if (die_flag(d, DIE_DECLARATION) || die_flag(d, DIE_EXTERNAL))
		return false;
	*f = (struct type_field){0};
	if (!member_offset(d, &f->offset))
		return false;
	if (d->tag == DIE_TAG_MEMBER)
		die_text(d, DIE_NAME, &name);
	f->name = dwarf_build_text(b, name);
	f->type = dwarf_type_of(b, d, true);
	if (!source_is_whole(f->type))
		f->type = types_bad(b->types);
	return bit_field(d, f);
}

void dwarf_fill_struct(struct dwarf_builder *b, const struct die *d, struct type *s)
{
	VEC(struct type_field) fields = {0};
	uint64_t size = s->size, align = 0, convention;
	struct type_field f;
	struct die child;

	EACH_CHILD(b, d, child)
	{
		if (fields.n == FIELDS_MAX)
			break;
		if (read_field(b, &child, &f))
			vec_push(&fields, f);
	}
	if (!die_number(d, DIE_ALIGNMENT, &align) || align > ALIGN_MAX || !align)
		align = source_fields_align(fields.v, fields.n, size);
	if (die_number(d, DIE_CALLING_CONVENTION, &convention))
		s->is_by_reference = convention == PASS_BY_REFERENCE;
	types_fill_struct(b->types, s, fields.v, (uint32_t)fields.n, size, (uint32_t)align);
	vec_release(&fields);
}
