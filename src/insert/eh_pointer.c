/* SPDX-License-Identifier: MIT */
#include "insert/eh_pointer.h"

uint8_t eh_format_bytes(uint8_t encoding)
{
	static const uint8_t bytes[EH_FORMAT + 1] = {[EH_ABSPTR] = EH_POINTER_BYTES,
		[EH_UDATA2] = 2,
		[EH_SDATA2] = 2,
		[EH_UDATA4] = 4,
		[EH_SDATA4] = 4,
		[EH_UDATA8] = 8,
		[EH_SDATA8] = 8};

	return bytes[encoding & EH_FORMAT];
}

bool eh_number_put(struct buf *b, uint8_t encoding, uint64_t value)
{
	uint8_t format = encoding & EH_FORMAT;
	uint8_t bytes = eh_format_bytes(encoding);
	unsigned bits =
		8u * bytes - (format == EH_SDATA2 || format == EH_SDATA4 || format == EH_SDATA8);

	if (value > INT64_MAX || (bytes && value >> (bits - 1) > 1))
		return false;
	if (bytes == 2)
		buf_put_u16(b, (uint16_t)value);
	else if (bytes == 4)
		buf_put_u32(b, (uint32_t)value);
	else if (bytes == 8)
		buf_put_u64(b, value);
	else if (format == EH_ULEB128)
		buf_put_uleb(b, value);
	else if (format == EH_SLEB128)
		buf_put_sleb(b, (int64_t)value);
	else
		return false;
	return true;
}

static bool type_fits(uint32_t type, uint8_t encoding)
{
	bool is_pcrel = (encoding & EH_RELATION) == EH_PCREL;

	switch (eh_format_bytes(encoding)) {
	case 4:
		return is_pcrel ? type == R_X86_64_PC32
				: type == R_X86_64_32 || type == R_X86_64_32S;
	case 8:
		return type == (is_pcrel ? R_X86_64_PC64 : R_X86_64_64);
	default:
		return false;
	}
}

enum eh_target eh_field_target(const struct elf_object *o, uint32_t section, uint64_t offset,
	uint8_t encoding, struct code_place *place)
{
	const struct object_section *s = &o->sections.v[section];
	const struct object_symbol *symbol;
	const struct object_reloc *r;
	size_t i = object_section_reloc_at(s, offset);

	if (i == s->relocs.n || s->relocs.v[i].offset != offset)
		return EH_TARGET_NONE;
	r = &s->relocs.v[i];
	if (r->type == R_X86_64_NONE)
		return EH_TARGET_NONE;
	if (!type_fits(r->type, encoding) ||
		(i + 1 < s->relocs.n && s->relocs.v[i + 1].offset == offset) ||
		r->symbol >= o->symbols.n ||
		((encoding & EH_RELATION) && (encoding & EH_RELATION) != EH_PCREL) ||
		encoding & EH_INDIRECT)
		return EH_TARGET_UNKNOWN;
	symbol = &o->symbols.v[r->symbol];
	if (!symbol->section || symbol->section >= o->sections.n)
		return EH_TARGET_OUTSIDE;
	*place = (struct code_place){symbol->section, symbol->value + (uint64_t)r->addend};
	return EH_TARGET_SECTION;
}
