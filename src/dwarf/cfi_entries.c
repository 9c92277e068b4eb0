/* SPDX-License-Identifier: MIT */
/*
 * Finds the entries of .eh_frame (LSB Core, "Exception Frames") and .debug_frame (DWARF 5 section
 * 6.4.1). The two differ in how an FDE names its CIE and in how addresses are written.
 *
 * An entry that is not understood is counted and stepped over by its length; a length that does
 * not fit ends the section, for there is no next entry to find.
 */
#include "dwarf/cfi_entries.h"

#include <stdlib.h>

#include "dwarf/attr_form.h"
#include "dwarf/eh_number.h"

#define CFI_FDES_MAX (8u << 20) /* in one section; libLLVM has 0.1 million */
/* Hostile FDEs can name overlapping CIEs, so that the work on each CIE has to be small. */
#define CFI_AUGMENTATION_MAX	  15
#define CFI_CIE_PROGRAM_BYTES_MAX 4096

void cfi_entries_release(struct cfi_entries *e)
{
	vec_release(&e->cies);
	vec_release(&e->fdes);
	map_release(&e->cie_at);
	*e = (struct cfi_entries){0};
}

bool cfi_pointer_read(
	struct cursor *c, uint8_t encoding, const struct cfi_pointer_base *base, uint64_t *value)
{
	uint64_t v;

	if (encoding == EH_OMIT || encoding & EH_INDIRECT ||
		!eh_number_read(c, encoding, base->absptr_bytes, &v))
		return false;
	switch (encoding & EH_RELATION) {
	case 0:
		break;
	case EH_PCREL:
		v += base->addr;
		break;
	case EH_DATAREL:
		if (!base->data_addr)
			return false;
		v += base->data_addr;
		break;
	default:
		return false;
	}
	*value = base->absptr_bytes == 8 ? v : (uint32_t)v;
	return true;
}

/* The head of an entry: its body, and which CIE it names. */
struct entry {
	size_t offset;	    /* of the length field, from the start of the section */
	struct cursor body; /* behind the CIE id or pointer */
	bool is_cie;
	uint64_t cie_offset; /* of an FDE */
};

static size_t offset_of(const struct cfi_source *s, const struct cursor *c)
{
	return (size_t)(c->p - s->bytes.p);
}

/* Reads the entry at the cursor and steps over it. False at the end of the section or when there
 * is no next entry to find; a zero length gives an entry with an empty body. */
static bool entry_read(const struct cfi_source *s, struct cursor *c, struct entry *entry)
{
	uint64_t length, id, id_offset;
	uint8_t offset_bytes;
	struct span body;
	bool wide;

	entry->offset = offset_of(s, c);
	length = cursor_initial_length(c, &offset_bytes);
	wide = offset_bytes == 8;
	body = cursor_bytes(c, length);
	if (c->failed)
		return false;
	if (!length) {
		entry->body = (struct cursor){NULL, NULL, true};
		return true;
	}
	entry->body = cursor_of(body);
	id_offset = offset_of(s, &entry->body);
	/* .eh_frame keeps a 4-byte pointer even behind a 64-bit length. */
	id = wide && !s->is_eh ? cursor_u64(&entry->body) : cursor_u32(&entry->body);
	if (s->is_eh) {
		entry->is_cie = id == 0;
		entry->cie_offset = id_offset - id;
	} else {
		entry->is_cie = id == (wide ? UINT64_MAX : UINT32_MAX);
		entry->cie_offset = id;
	}
	return true;
}

/* The data behind a 'z' augmentation, whose letters say what is in it. */
static bool augmentation_read(const char *letters, struct cursor *data, struct cfi_cie *cie)
{
	uint64_t personality;
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = cursor_u8(data);
			break;
		case 'L':
			cie->lsda_encoding = cursor_u8(data);
			break;
		case 'P': /* only its length matters */
			encoding = cursor_u8(data);
			if (encoding != EH_OMIT &&
				!eh_number_read(data, encoding, cie->pointer_bytes, &personality))
				return false;
			break;
		case 'S':
			cie->is_signal = true;
			break;
		default: /* the length of 'z' lets us step over what we do not know */
			return !data->failed;
		}
	}
	return !data->failed;
}

static bool cie_read_augmentation(const char *letters, struct cursor *c, struct cfi_cie *cie)
{
	struct cursor data;

	if (letters[0] != 'z')
		return letters[0] == 0 || !strcmp(letters, "eh");
	cie->has_data_length = true;
	data = cursor_of(cursor_bytes(c, cursor_uleb(c)));
	return !c->failed && augmentation_read(letters + 1, &data, cie);
}

static bool letters_read(struct cursor *c, char letters[CFI_AUGMENTATION_MAX + 1])
{
	for (size_t i = 0; i <= CFI_AUGMENTATION_MAX; i++) {
		letters[i] = (char)cursor_u8(c);
		if (!letters[i])
			return !c->failed;
	}
	return false;
}

static bool cie_read(const struct cfi_source *s, struct entry *entry, struct cfi_cie *cie)
{
	struct cursor *c = &entry->body;
	uint8_t version = cursor_u8(c), address_bytes;
	char letters[CFI_AUGMENTATION_MAX + 1];
	uint64_t ra_column;

	if (!letters_read(c, letters) || (version != 1 && version != 3 && version != 4))
		return false;
	cie->is_386 = s->is_386;
	cie->addr_bias = s->addr - (uintptr_t)s->bytes.p;
	cie->data_addr = s->data_addr;
	cie->pointer_bytes = s->is_64 ? 8 : 4;
	cie->lsda_encoding = EH_OMIT;
	if (version == 4) {
		address_bytes = cursor_u8(c);
		if ((address_bytes != 4 && address_bytes != 8) || cursor_u8(c) != 0)
			return false; /* segment selectors are not for this machine */
		cie->pointer_bytes = address_bytes;
	}
	if (!strcmp(letters, "eh"))
		cursor_skip(c, cie->pointer_bytes);
	cie->code_align = cursor_uleb(c);
	cie->data_align = cursor_sleb(c);
	ra_column = version == 1 ? cursor_u8(c) : cursor_uleb(c);
	if (ra_column != (s->is_386 ? 8u : 16u) || !cie_read_augmentation(letters, c, cie))
		return false;
	cie->program = (struct span){c->p, cursor_left(c)};
	return !c->failed && cie->program.n <= CFI_CIE_PROGRAM_BYTES_MAX;
}

/* The CIE at an offset, read when it is first asked for; UINT32_MAX when there is no good one. */
static uint32_t cie_ensure(struct cfi_entries *e, const struct cfi_source *s, uint64_t offset)
{
	struct cfi_cie cie = {0};
	struct entry entry;
	struct cursor c;
	bool created;
	uint64_t *index;

	if (offset >= s->bytes.n)
		return UINT32_MAX;
	index = map_ensure(&e->cie_at, offset, &created);
	if (created) {
		*index = e->cies.n;
		c = cursor_of((struct span){s->bytes.p + offset, s->bytes.n - (size_t)offset});
		cie.is_good = entry_read(s, &c, &entry) && !entry.body.failed && entry.is_cie &&
			      cie_read(s, &entry, &cie);
		vec_push(&e->cies, cie);
	}
	return e->cies.v[*index].is_good ? (uint32_t)*index : UINT32_MAX;
}

/* The augmentation data of an FDE begin with it. A pointer whose bytes are zero is none, whatever
 * it is relative to. */
static uint64_t lsda_read(
	const struct cfi_source *s, const struct cfi_cie *cie, struct cursor *data)
{
	struct cfi_pointer_base base = {
		s->addr + offset_of(s, data), s->data_addr, cie->pointer_bytes};
	struct cursor bytes = *data;
	uint64_t plain, lsda;

	if (cie->lsda_encoding == EH_OMIT)
		return 0;
	if (!eh_number_read(&bytes, cie->lsda_encoding, cie->pointer_bytes, &plain))
		return CFI_LSDA_UNKNOWN;
	if (!plain)
		return 0;
	return cfi_pointer_read(data, cie->lsda_encoding, &base, &lsda) ? lsda : CFI_LSDA_UNKNOWN;
}

static bool fde_read(
	struct cfi_entries *e, const struct cfi_source *s, struct entry *entry, struct cfi_fde *fde)
{
	struct cursor *c = &entry->body;
	struct cfi_pointer_base base = {0, s->data_addr, 8};
	const struct cfi_cie *cie;

	fde->cie_i = cie_ensure(e, s, entry->cie_offset);
	if (fde->cie_i == UINT32_MAX)
		return false;
	cie = &e->cies.v[fde->cie_i];
	base.absptr_bytes = cie->pointer_bytes;
	base.addr = s->addr + offset_of(s, c);
	if (!cfi_pointer_read(c, cie->pointer_encoding, &base, &fde->start) ||
		!cfi_pointer_read(c, cie->pointer_encoding & EH_FORMAT, &base, &fde->size))
		return false;
	fde->lsda = 0;
	if (cie->has_data_length) {
		struct cursor data = cursor_of(cursor_bytes(c, cursor_uleb(c)));

		if (!c->failed && cursor_left(&data))
			fde->lsda = lsda_read(s, cie, &data);
	}
	fde->program = (struct span){c->p, cursor_left(c)};
	return !c->failed;
}

void cfi_entries_read(struct cfi_entries *e, const struct cfi_source *s)
{
	struct cursor c;
	struct entry entry;
	struct cfi_fde fde;

	if (!s->bytes.n)
		return;
	c = cursor_of(s->bytes);
	while (cursor_left(&c) >= 4) {
		if (!entry_read(s, &c, &entry)) {
			e->n_skipped += !s->ends_at_zero;
			break;
		}
		if (!entry.body.p) { /* linkers put terminators together from several files */
			if (s->ends_at_zero)
				break;
			continue;
		}
		if (entry.is_cie)
			continue; /* read when an FDE asks for it */
		if (e->fdes.n < CFI_FDES_MAX && !entry.body.failed && fde_read(e, s, &entry, &fde))
			vec_push(&e->fdes, fde);
		else
			e->n_skipped++;
	}
}
