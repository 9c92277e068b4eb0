/* SPDX-License-Identifier: MIT */
/* Adds sections and symbols to an open object, and keeps relocations in order. */
#include "elf/elf_object.h"

#include <stdlib.h>

#include "base/search.h"
#include "base/sort.h"
#include "elf/elf_object_parts.h"

/* Names of a hostile file may share bytes, so that all of them together are long: only this much
 * of each is hashed. */
#define HASHED_BYTES 128

static const char *keep_name(struct elf_object *o, const char *name)
{
	return intern_get(&o->arena->names, intern_text(&o->arena->names, name));
}

void object_section_set(struct elf_object *o, uint32_t section, struct span data)
{
	struct object_section *s = &o->sections.v[section];
	struct buf owned = {0};

	buf_put(&owned, data.p,
		data.n); /* before the release: `data` may be a part of the old bytes */
	buf_release(&s->owned);
	s->owned = owned;
	s->data = buf_span(&s->owned);
	s->size = data.n;
}

uint32_t elf_object_add_section(struct elf_object *o, const struct object_new_section *n)
{
	uint32_t number = (uint32_t)o->sections.n;
	struct object_section s = {.name = keep_name(o, n->name),
		.type = n->type,
		.flags = n->flags,
		.align = n->align,
		.entsize = n->entsize,
		.size = n->nobits,
		.group = n->group,
		.link = n->link_order};

	if (n->group)
		s.flags |= SHF_GROUP;
	if (n->link_order)
		s.flags |= SHF_LINK_ORDER;
	vec_push(&o->sections, s);
	if (object_type_has_bytes(n->type))
		object_section_set(o, number, n->data);
	elf_object_section_symbol(o, number);
	return number;
}

uint32_t elf_object_add_symbol(struct elf_object *o, const struct object_symbol *symbol)
{
	struct object_symbol s = *symbol;

	s.name = keep_name(o, symbol->name);
	vec_push(&o->symbols, s);
	return (uint32_t)o->symbols.n - 1;
}

uint32_t elf_object_section_symbol(struct elf_object *o, uint32_t section)
{
	struct object_section *s = &o->sections.v[section];

	if (!s->symbol)
		s->symbol = elf_object_add_symbol(o, &(struct object_symbol){.name = "",
							     .bind = STB_LOCAL,
							     .type = STT_SECTION,
							     .section = section});
	return s->symbol;
}

static uint64_t hash_name(const char *name)
{
	return map_hash_bytes(name, strnlen(name, HASHED_BYTES));
}

/* Brings the index of global names up to the last symbol. */
static void index_names(struct elf_object *o)
{
	struct object_arena *a = o->arena;

	vec_reserve(&a->same_hash, o->symbols.n);
	while (a->same_hash.n < o->symbols.n) {
		uint32_t i = (uint32_t)a->same_hash.n;
		const struct object_symbol *s = &o->symbols.v[i];
		uint32_t before = 0;

		if (i && s->bind != STB_LOCAL) {
			uint64_t *last = map_ensure(&a->by_name, hash_name(s->name), NULL);

			before = (uint32_t)*last;
			*last = i;
		}
		vec_push(&a->same_hash, before);
	}
}

/* A definition, or else an undefined symbol; 0 = none. */
static uint32_t find_global(struct elf_object *o, const char *name)
{
	const uint64_t *last;
	uint32_t found = 0;

	index_names(o);
	last = map_find(&o->arena->by_name, hash_name(name));
	for (uint32_t i = last ? (uint32_t)*last : 0; i; i = o->arena->same_hash.v[i]) {
		const struct object_symbol *s = &o->symbols.v[i];

		if (s->bind == STB_LOCAL || strcmp(s->name, name))
			continue;
		if (s->section != SHN_UNDEF)
			return i;
		found = i;
	}
	return found;
}

uint32_t elf_object_undefined(struct elf_object *o, const char *name, uint8_t visibility)
{
	uint32_t i = find_global(o, name);
	struct object_symbol *s;

	if (!i)
		return elf_object_add_symbol(o, &(struct object_symbol){.name = name,
							.bind = STB_GLOBAL,
							.type = STT_NOTYPE,
							.other = visibility,
							.section = SHN_UNDEF});
	s = &o->symbols.v[i];
	if (s->section != SHN_UNDEF)
		return i;
	if (s->bind == STB_WEAK)
		s->bind = STB_GLOBAL;
	if (ELF64_ST_VISIBILITY(s->other) == STV_DEFAULT)
		s->other |= visibility;
	return i;
}

uint32_t elf_object_find_section(const struct elf_object *o, const char *name)
{
	for (uint32_t i = 1; i < o->sections.n; i++)
		if (!strcmp(o->sections.v[i].name, name))
			return i;
	return 0;
}

void object_section_sort_relocs(struct object_section *s)
{
	struct object_reloc *old = s->relocs.v;
	size_t n = s->relocs.n, sorted = 1;
	struct sort_pair *order;

	while (sorted < n && old[sorted - 1].offset <= old[sorted].offset)
		sorted++;
	if (sorted >= n)
		return;
	order = mem_alloc(n * sizeof(*order));
	for (size_t i = 0; i < n; i++)
		order[i] = (struct sort_pair){old[i].offset, (uint32_t)i};
	sort_pairs(order, n); /* of the relocations at one place the order matters, and stays */
	s->relocs.v = mem_alloc(n * sizeof(*old));
	s->relocs.cap = n;
	for (size_t i = 0; i < n; i++)
		s->relocs.v[i] = old[order[i].i];
	free(order);
	free(old);
}

size_t object_section_reloc_at(const struct object_section *s, uint64_t offset)
{
	return SEARCH(0, s->relocs.n, mid, s->relocs.v[mid].offset < offset);
}
