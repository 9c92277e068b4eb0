/* SPDX-License-Identifier: MIT */
/*
 * Reads the entries of a frame section of an object. Everything that moving it relies on is checked
 * here, so that what has been read can be written:
 *
 * 1. entries fill the section without gaps;
 * 2. each FDE's CIE is an entry of the section;
 * 3. each program is a sequence of known instructions that stays within the FDE's range;
 * 4. addresses have relocations, lengths and distances have none.
 */
#include "insert/eh_frame.h"

#include <stdlib.h>

#include "base/search.h"
#include "insert/eh_pointer.h"

#define FRAME_AUGMENTATION_MAX 15

/* What is read, and the name of it for sentences. */
struct frame_source {
	struct frame_section *f;
	const struct elf_object *o;
	const char *name;
	struct span bytes;
	struct err *err;
};

void frame_section_release(struct frame_section *f)
{
	vec_release(&f->entries);
	vec_release(&f->cies);
	vec_release(&f->fdes);
}

static int bad(const struct frame_source *s, uint64_t offset, const char *what)
{
	return err_set(
		s->err, ERR_FORMAT, "%s+0x%llx: %s", s->name, (unsigned long long)offset, what);
}

static uint64_t offset_of(const struct frame_source *s, const struct cursor *c)
{
	return (uint64_t)(c->p - s->bytes.p);
}

static struct cursor cursor_at(const struct frame_source *s, uint64_t at, uint64_t end)
{
	return cursor_of(span_sub(s->bytes, at, end - at));
}

static bool has_reloc(const struct frame_source *s, uint64_t at)
{
	const struct object_section *section = &s->o->sections.v[s->f->section];
	size_t i = object_section_reloc_at(section, at);

	return i < section->relocs.n && section->relocs.v[i].offset == at;
}

/* The heads of all entries. */
static int entries_read(const struct frame_source *s)
{
	struct cursor c = cursor_of(s->bytes);

	while (cursor_left(&c)) {
		struct frame_entry e = {.offset = offset_of(s, &c), .kind = FRAME_KIND_END};
		uint64_t length = cursor_u32(&c);
		struct cursor body;

		if (length == UINT32_MAX) {
			length = cursor_u64(&c);
			e.is_wide = true;
		}
		e.id_at = offset_of(s, &c);
		cursor_skip(&c, length);
		if (c.failed)
			return bad(s, e.offset, "an entry leaves the section");
		e.end = e.id_at + length;
		if (length) {
			/* .eh_frame keeps a 4-byte pointer even behind a 64-bit length. */
			bool is_wide_id = e.is_wide && !s->f->is_eh;

			body = cursor_at(s, e.id_at, e.end);
			e.id = is_wide_id ? cursor_u64(&body) : cursor_u32(&body);
			if (body.failed)
				return bad(s, e.offset, "an entry is too short");
			e.body_at = offset_of(s, &body);
			e.kind = FRAME_KIND_FDE;
			if (s->f->is_eh ? !e.id : e.id == (is_wide_id ? UINT64_MAX : UINT32_MAX))
				e.kind = FRAME_KIND_CIE;
		}
		vec_push(&s->f->entries, e);
	}
	return 0;
}

/* The data of augmentation "z...": each letter says what comes next. */
static bool augmentation_read(const char *letters, struct cursor *c, struct frame_cie *cie)
{
	uint64_t personality;
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = cursor_u8(c);
			break;
		case 'L':
			cie->lsda_encoding = cursor_u8(c);
			break;
		case 'P':
			encoding = cursor_u8(c);
			if (encoding != EH_OMIT &&
				!eh_number_read(c, encoding, EH_POINTER_BYTES, &personality))
				return false;
			break;
		case 'S': /* signal frames; what it means does not depend on where code is */
		case 'B':
			break;
		default:
			return false;
		}
	}
	return !c->failed;
}

static bool letters_read(struct cursor *c, char letters[FRAME_AUGMENTATION_MAX + 1])
{
	for (size_t i = 0; i <= FRAME_AUGMENTATION_MAX; i++) {
		letters[i] = (char)cursor_u8(c);
		if (!letters[i])
			return !c->failed;
	}
	return false;
}

static int cie_read(const struct frame_source *s, struct frame_entry *e)
{
	struct cursor c = cursor_at(s, e->body_at, e->end), data;
	struct frame_cie cie = {.offset = e->offset, .lsda_encoding = EH_OMIT};
	char letters[FRAME_AUGMENTATION_MAX + 1];
	uint8_t version;

	version = cursor_u8(&c);
	if (version != 1 && version != 3 && version != 4)
		return bad(s, e->offset, "the version of a CIE is not known");
	if (!letters_read(&c, letters))
		return bad(s, e->offset, "the augmentation of a CIE has no end");
	if (version == 4 && (cursor_u8(&c) != 8 || cursor_u8(&c)))
		return bad(s, e->offset, "a CIE whose addresses are not 64 bits wide");
	if (!strcmp(letters, "eh"))
		cursor_skip(&c, 8);
	cie.code_align = cursor_uleb(&c);
	cie.data_align = cursor_sleb(&c);
	if (version == 1)
		cursor_u8(&c);
	else
		cursor_uleb(&c);
	if (letters[0] == 'z') {
		cie.has_data = true;
		data = cursor_of(cursor_bytes(&c, cursor_uleb(&c)));
		if (c.failed || !augmentation_read(letters + 1, &data, &cie))
			return bad(s, e->offset, "the augmentation of a CIE is not known");
	} else if (letters[0] && strcmp(letters, "eh")) {
		return bad(s, e->offset, "the augmentation of a CIE is not known");
	}
	if (c.failed || !cie.code_align || cie.code_align > UINT16_MAX)
		return bad(s, e->offset, "a CIE is damaged");
	if (!eh_format_bytes(cie.pointer_encoding) || cie.pointer_encoding & EH_INDIRECT)
		return bad(s, e->offset, "addresses are written in a way that is not known");
	cie.program_at = offset_of(s, &c);
	cie.end = e->end;
	e->index = (uint32_t)s->f->cies.n;
	vec_push(&s->f->cies, cie);
	return 0;
}

/* The CIE at an offset, for entries are in order of theirs; cies.n when there is none. */
static size_t cie_find(const struct frame_section *f, uint64_t offset)
{
	size_t low = SEARCH(0, f->cies.n, mid, f->cies.v[mid].offset < offset);

	return low < f->cies.n && f->cies.v[low].offset == offset ? low : f->cies.n;
}

static int fde_find_cie(
	const struct frame_source *s, const struct frame_entry *e, struct frame_fde *fde)
{
	struct code_place place;
	size_t cie;

	if (s->f->is_eh) {
		if (has_reloc(s, e->id_at))
			return bad(s, e->id_at,
				"a relocation where the distance to a CIE is expected");
		cie = cie_find(s->f, e->id_at - e->id);
	} else {
		switch (eh_field_target(s->o, s->f->section, e->id_at,
			e->is_wide ? EH_UDATA8 : EH_UDATA4, &place)) {
		case EH_TARGET_NONE:
			cie = cie_find(s->f, e->id);
			break;
		case EH_TARGET_SECTION:
			cie = place.section == s->f->section ? cie_find(s->f, place.offset)
							     : s->f->cies.n;
			break;
		default:
			cie = s->f->cies.n;
		}
	}
	if (cie == s->f->cies.n)
		return bad(s, e->offset, "an FDE names a CIE that is not there");
	fde->cie = (uint32_t)cie;
	return 0;
}

/* The code that an FDE is about. */
static int fde_read_range(const struct frame_source *s, struct cursor *c, struct frame_fde *fde)
{
	uint8_t encoding = s->f->cies.v[fde->cie].pointer_encoding;
	uint64_t at = offset_of(s, c), ignored;
	struct code_place place;
	enum eh_target target = eh_field_target(s->o, s->f->section, at, encoding, &place);

	if (target == EH_TARGET_UNKNOWN)
		return bad(s, at, "the start of a range has a relocation that is not known");
	eh_number_read(c, encoding, EH_POINTER_BYTES, &ignored);
	fde->range_at = offset_of(s, c);
	if (!eh_number_read(c, encoding, EH_POINTER_BYTES, &fde->range.size))
		return bad(s, at, "an FDE is too short");
	if (target != EH_TARGET_SECTION || !(s->o->sections.v[place.section].flags & SHF_EXECINSTR))
		return 0; /* nothing that moves */
	if (has_reloc(s, fde->range_at))
		return bad(s, fde->range_at, "the length of a range has a relocation");
	fde->is_here = true;
	fde->range.section = place.section;
	fde->range.start = place.offset;
	if (place.offset > s->o->sections.v[place.section].size ||
		fde->range.size > s->o->sections.v[place.section].size - place.offset)
		return bad(s, at, "a range leaves its section");
	return 0;
}

static int fde_read_lsda(const struct frame_source *s, struct cursor *c, struct frame_fde *fde)
{
	uint8_t encoding = s->f->cies.v[fde->cie].lsda_encoding;
	struct cursor data;
	uint64_t value, at;

	data = cursor_of(cursor_bytes(c, cursor_uleb(c)));
	if (c->failed)
		return bad(s, fde->range_at, "the augmentation of an FDE leaves it");
	if (encoding == EH_OMIT || !cursor_left(&data))
		return 0;
	at = offset_of(s, &data);
	if (!eh_format_bytes(encoding) ||
		!eh_number_read(&data, encoding, EH_POINTER_BYTES, &value))
		return bad(s, at, "an LSDA's address is written in a way that is not known");
	switch (eh_field_target(s->o, s->f->section, at, encoding, &fde->lsda)) {
	case EH_TARGET_SECTION:
		return 0;
	case EH_TARGET_NONE:
		if (!value)
			return 0;
		/* fall through */
	default:
		return bad(s, at, "an LSDA that is not in the object");
	}
}

/* Only programs of code that can move have to be understood. */
static int program_check(
	const struct frame_source *s, const struct frame_entry *e, const struct frame_fde *fde)
{
	const struct frame_cie *cie = &s->f->cies.v[fde->cie];
	uint64_t end = fde->range.start + fde->range.size, location = fde->range.start;
	struct code_place place;
	struct frame_step step;

	for (uint64_t at = fde->program_at; at < e->end; at = step.end) {
		if (!frame_step_read(&step, s->bytes, cie, at, e->end))
			return bad(s, at, "a frame instruction that is not known");
		if (step.opcode == FRAME_CFA_SET_LOC) {
			if (eh_field_target(s->o, s->f->section, at + 1, cie->pointer_encoding,
				    &place) != EH_TARGET_SECTION ||
				place.section != fde->range.section || place.offset < location)
				return bad(s, at, "DW_CFA_set_loc to a place that is not known");
			location = place.offset;
		} else if (frame_step_is_advance(&step)) {
			location += step.advance * cie->code_align;
		}
		if (location > end)
			return bad(s, at, "a frame program leaves its range");
	}
	return 0;
}

static int fde_read(const struct frame_source *s, struct frame_entry *e)
{
	struct cursor c = cursor_at(s, e->body_at, e->end);
	struct frame_fde fde = {0};

	if (fde_find_cie(s, e, &fde) < 0 || fde_read_range(s, &c, &fde) < 0)
		return ERR_FORMAT;
	if (fde.is_here) {
		if (s->f->cies.v[fde.cie].has_data && fde_read_lsda(s, &c, &fde) < 0)
			return ERR_FORMAT;
		fde.program_at = offset_of(s, &c);
		if (program_check(s, e, &fde) < 0)
			return ERR_FORMAT;
	}
	e->index = (uint32_t)s->f->fdes.n;
	vec_push(&s->f->fdes, fde);
	return 0;
}

static int read_all(const struct frame_source *s)
{
	struct frame_entry *e;

	if (entries_read(s) < 0)
		return ERR_FORMAT;
	for (size_t i = 0; i < s->f->entries.n; i++) {
		e = &s->f->entries.v[i];
		if (e->kind == FRAME_KIND_CIE && cie_read(s, e) < 0)
			return ERR_FORMAT;
	}
	for (size_t i = 0; i < s->f->entries.n; i++) {
		e = &s->f->entries.v[i];
		if (e->kind == FRAME_KIND_FDE && fde_read(s, e) < 0)
			return ERR_FORMAT;
	}
	return 0;
}

int frame_section_read(
	struct frame_section *f, const struct elf_object *o, uint32_t section, struct err *err)
{
	const struct object_section *os = &o->sections.v[section];
	struct frame_source s = {f, o, os->name, os->data, err};

	*f = (struct frame_section){.section = section, .is_eh = strcmp(os->name, ".debug_frame")};
	if (os->flags & SHF_COMPRESSED)
		return err_set(err, ERR_UNSUPPORTED, "%s: compressed", os->name);
	if (read_all(&s) < 0) {
		frame_section_release(f);
		return ERR_FORMAT;
	}
	return 0;
}
