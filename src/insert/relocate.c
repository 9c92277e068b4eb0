/* SPDX-License-Identifier: MIT */
/*
 * Relocations and symbols, once everything has its new place. A relocation means symbol + addend;
 * what it means is found with the old numbers, looked up in the maps, and the addend is what is
 * then missing from the symbol's new value.
 */
#include "insert/object_code.h"

static uint64_t new_value(const struct code *c, const struct object_symbol *sym)
{
	if (sym->type == STT_SECTION || !sym->section || sym->section >= c->n_sections)
		return sym->value;
	return moved_label(&c->moved, sym->section, sym->value);
}

/* The addend that makes the relocation mean `label`, plus what is added to it anyway. */
static int64_t addend_for(
	const struct code *c, const struct object_reloc *r, uint64_t label, int64_t extra)
{
	return (int64_t)(label - new_value(c, &c->object->symbols.v[r->symbol]) + (uint64_t)extra);
}

void code_move_addend(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, struct object_reloc *r)
{
	struct code_target t = code_reloc_target(c, r, insn);
	int64_t extra = 0;
	uint64_t label;

	if (code_move_distance(c, s, insn, r) || !t.section || !moved_has(&c->moved, t.section) ||
		t.offset < 0)
		return;
	label = moved_label(&c->moved, t.section, (uint64_t)t.offset);
	if (insn && code_reloc_is_pc(r->type)) {
		/* The place from which it counts is as far from the end of the instruction as
		 * before, and 4 bytes in a branch that was written anew. */
		extra = insn->bits & (CODE_INSN_FALLS | CODE_INSN_EDGES)
				? -4
				: (int64_t)r->offset - (int64_t)(insn->offset + insn->length);
		if (insn->to_section == t.section && insn->to == (uint64_t)t.offset)
			label = code_branch_target(c, s, insn);
	}
	r->addend = addend_for(c, r, label, extra);
}

static void move_data_relocs(struct code *c, uint32_t section, size_t *entry)
{
	struct object_section *os = &c->object->sections.v[section];

	for (size_t k = 0; k < os->relocs.n; k++) {
		struct object_reloc *r = &os->relocs.v[k];
		struct code_target t = code_reloc_target(c, r, NULL);
		const struct code_function *inner = NULL;
		int64_t from_base = 0;
		uint64_t label;

		if (*entry < c->table_entries.n && c->table_entries.v[*entry].section == section &&
			c->table_entries.v[*entry].reloc == k) {
			from_base = c->table_entries.v[*entry].from_base;
			if (c->table_entries.v[(*entry)++].is_inner)
				inner = code_function_at(
					c, t.section, (uint64_t)(t.offset - from_base));
		}
		if (!t.section || !moved_has(&c->moved, t.section) || t.offset < from_base)
			continue;
		label = moved_label(&c->moved, t.section, (uint64_t)(t.offset - from_base));
		if (inner && inner->n_insns)
			label = code_inner_start(c, &c->sections[t.section], inner);
		r->addend = addend_for(c, r, label, from_base);
	}
}

/* Code that was left alone may still refer to code that moved. */
static void move_code_relocs(struct code *c, const struct code_section *s)
{
	struct object_section *os = &c->object->sections.v[s->number];

	for (size_t i = 0; i < s->insns.n; i++) {
		const struct code_insn *insn = &s->insns.v[i];

		for (size_t k = insn->reloc; code_insn_has_reloc(insn, os, k); k++)
			code_move_addend(c, s, insn, &os->relocs.v[k]);
	}
	for (size_t k = 0; k < os->relocs.n; k++) {
		const struct code_function *f =
			code_function_at(c, s->number, os->relocs.v[k].offset);

		if (!f || !f->is_decoded)
			if (code_reloc_is_address(os->relocs.v[k].type))
				code_move_addend(c, s, NULL, &os->relocs.v[k]);
	}
}

static void move_symbols(struct code *c)
{
	for (size_t i = 1; i < c->object->symbols.n; i++) {
		struct object_symbol *sym = &c->object->symbols.v[i];
		uint64_t value, end;

		if (sym->type == STT_SECTION || sym->type == STT_TLS || !sym->section ||
			sym->section >= c->n_sections || !moved_has(&c->moved, sym->section))
			continue;
		value = moved_label(&c->moved, sym->section, sym->value);
		end = moved_label(&c->moved, sym->section, sym->value + sym->size);
		if (sym->size)
			sym->size = end - value;
		sym->value = value;
	}
}

void code_relocate(struct code *c)
{
	size_t entry = 0;

	for (size_t n = 1; n < c->n_sections; n++) {
		if (!c->sections[n].is_code)
			move_data_relocs(c, (uint32_t)n, &entry);
		else if (!code_section_is_inserted(&c->sections[n]))
			move_code_relocs(c, &c->sections[n]);
	}
	move_symbols(c);
}
