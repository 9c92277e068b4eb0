/* SPDX-License-Identifier: MIT */
#include "insert/debug_stage.h"

#include <string.h>

#include "base/search.h"
#include "dwarf/attr_form.h"

#define ADDR_BYTES 8

size_t debug_first_ref(const struct debug_mover *d, uint32_t section)
{
	return SEARCH(0, d->refs.n, i, d->refs.v[i].section < section);
}

bool debug_reloc_target(
	const struct debug_mover *d, uint32_t section, uint64_t offset, struct code_place *target)
{
	const struct object_section *s = &d->o->sections.v[section];
	size_t i = object_section_reloc_at(s, offset);
	const struct object_reloc *r;
	const struct object_symbol *symbol;

	if (i >= s->relocs.n || s->relocs.v[i].offset != offset)
		return false;
	r = &s->relocs.v[i];
	*target = (struct code_place){0, (uint64_t)r->addend};
	if (r->symbol >= d->o->symbols.n)
		return true;
	symbol = &d->o->symbols.v[r->symbol];
	if (symbol->section < d->o->sections.n)
		target->section = symbol->section;
	target->offset += symbol->value;
	return true;
}

bool debug_index_target(const struct debug_mover *d, const struct debug_unit_base *unit,
	uint64_t index, struct code_place *target)
{
	if (!unit->addrs.section)
		return false;
	if (!debug_reloc_target(
		    d, unit->addrs.section, unit->addrs.offset + index * ADDR_BYTES, target))
		*target = (struct code_place){0};
	return true;
}

uint64_t debug_distance(const struct debug_mover *d, struct code_place from, uint64_t n)
{
	if (!from.section || !moved_has(d->code, from.section))
		return n;
	return moved_label(d->code, from.section, from.offset + n) -
	       moved_label(d->code, from.section, from.offset);
}

bool debug_unit_length(struct cursor *c, uint64_t *length, uint8_t *offset_bytes)
{
	*length = cursor_initial_length(c, offset_bytes);
	return !c->failed && *length <= cursor_left(c);
}

void stage_edit(struct debug_stage *s)
{
	if (!s->out.n)
		buf_put(&s->out, s->in.p, s->in.n);
}

bool stage_put_number(struct debug_stage *s, size_t at, int n, uint64_t value)
{
	if (n < 8 && value >> (n * 8))
		return false;
	for (int i = 0; i < n; i++)
		s->out.p[at + (size_t)i] = (uint8_t)(value >> (i * 8));
	return true;
}

void stage_put_leb(struct debug_stage *s, size_t at, size_t n, uint64_t value)
{
	for (; n--; value >>= 7)
		s->out.p[at++] = (uint8_t)((value & 0x7f) | (n ? 0x80 : 0));
}

void relay_mark(struct debug_mover *d, struct debug_stage *s, uint64_t old)
{
	struct moved_section *map = &d->relaid.sections[s->section];
	struct moved_row *last = map->rows.n ? &map->rows.v[map->rows.n - 1] : NULL;
	uint64_t now = s->out.n;

	if (last && last->old == old)
		last->label = last->place = now;
	else if (last ? now - old != last->place - last->old : now != old)
		moved_add(&d->relaid, s->section, old, now, now);
}

void relay_copy(struct debug_mover *d, struct debug_stage *s, uint64_t from, uint64_t to)
{
	relay_mark(d, s, from);
	buf_put(&s->out, s->in.p + from, (size_t)(to - from));
}

bool relay_put_length(struct debug_stage *s, size_t at, uint8_t offset_bytes)
{
	if (offset_bytes == 8)
		return stage_put_number(s, at + 4, 8, s->out.n - at - 12);
	/* From 0xfffffff0 on a length is an escape. */
	return s->out.n - at - 4 < 0xfffffff0 && stage_put_number(s, at, 4, s->out.n - at - 4);
}

int debug_fail(const struct debug_stage *s, uint64_t at, struct err *err, const char *what)
{
	return err_set(err, ERR_FORMAT, "%s+0x%llx: %s", s->name, (unsigned long long)at, what);
}
