/* SPDX-License-Identifier: MIT */
/*
 * Where fields lie, as gcc places them for System V i386 and x86-64 (place_field and
 * update_alignment_for_field in its stor-layout.c). What differs between the two is in the
 * alignment of the types: nothing is aligned to more than 4 in i386.
 *
 * Bit-fields. One of W bits of a type of S bits with alignment A goes to the next free bit, unless
 * it would then touch more units of A bits than S / A: then to the next multiple of A. Packed ones
 * never move. A width of 0 goes to the next multiple of A, packed or not. Only bit-fields with a
 * name make the structure as aligned as their type.
 */
#include "probe/types/type_store.h"

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* In bytes; what the field asks of its place. */
static uint32_t field_align(const struct layout_field *f)
{
	uint32_t align = f->is_packed ? 1 : f->field.type->align;

	return larger(larger(align, f->align), 1);
}

static bool spans_too_many_units(uint64_t bit, uint64_t bits, uint64_t type_bits, uint64_t align)
{
	return (bit % align + bits + align - 1) / align > type_bits / align;
}

/* Gives the bit where the field begins; the next free one is behind its width. */
static uint64_t place_bit_field(const struct layout_field *f, uint64_t bit, uint32_t *align)
{
	uint64_t type_align = (uint64_t)f->field.type->align * 8;

	if (!f->bits)
		return round_up(bit, type_align);
	if (f->align)
		bit = round_up(bit, (uint64_t)f->align * 8);
	if (!f->is_packed &&
		spans_too_many_units(bit, f->bits, f->field.type->size * 8, type_align))
		bit = round_up(bit, type_align);
	if (f->field.name)
		*align = larger(*align, field_align(f));
	return bit;
}

bool layout_fields(struct layout *layout, struct layout_field *fields, size_t n)
{
	uint64_t bit = 0, end = 0; /* next free one; end of the longest field of a union */
	uint32_t align = larger(layout->align, 1);

	for (size_t i = 0; i < n; i++) {
		struct layout_field *f = &fields[i];
		uint64_t bits = f->is_bit_field ? f->bits : f->field.type->size * 8;

		if (layout->is_union)
			bit = 0;
		if (f->is_bit_field) {
			bit = place_bit_field(f, bit, &align);
			f->field.bit_offset = (uint8_t)(bit % 8);
			f->field.bit_size = f->bits;
		} else {
			bit = round_up(bit, (uint64_t)field_align(f) * 8);
			align = larger(align, field_align(f));
		}
		f->field.offset = bit / 8;
		bit += bits;
		if (bit > end)
			end = bit;
		/* Types are below the limit themselves, so that no sum here overflows. */
		if (end / 8 > TYPE_BYTES_MAX)
			return false;
	}
	layout->align = align;
	layout->size = round_up((end + 7) / 8, align);
	return layout->size <= TYPE_BYTES_MAX;
}
