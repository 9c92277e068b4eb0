/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a relocatable object. What opens keeps the promises of the header; it is written,
 * opens again, and has the same sections, relocations and symbols. So it does with sections and
 * symbols added, unless that is refused.
 */
#include <stdlib.h>

#include "elf/elf_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink; /* keeps reads from being optimised away */

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_section(const struct elf_object *o, uint32_t i)
{
	const struct object_section *s = &o->sections.v[i];

	sink += (uint8_t)s->name[0];
	if (s->data.n)
		sink += s->data.p[0] + s->data.p[s->data.n - 1];
	require(s->group < o->sections.n && s->rela < o->sections.n && s->symbol < o->symbols.n);
	require(!s->symbol || o->symbols.v[s->symbol].section == i);
	require(!(s->flags & SHF_LINK_ORDER) || s->link < o->sections.n);
	for (size_t r = 0; r < s->relocs.n; r++) {
		require(s->relocs.v[r].symbol < o->symbols.n);
		require(!r || s->relocs.v[r - 1].offset <= s->relocs.v[r].offset);
		require((s->flags & SHF_COMPRESSED) ||
			(s->relocs.v[r].offset <= s->size &&
				object_reloc_bytes(s->relocs.v[r].type) <=
					s->size - s->relocs.v[r].offset));
	}
}

static void check_promises(const struct elf_object *o)
{
	for (uint32_t i = 0; i < o->sections.n; i++)
		check_section(o, i);
	for (size_t i = 0; i < o->symbols.n; i++) {
		const struct object_symbol *s = &o->symbols.v[i];

		sink += (uint8_t)s->name[0];
		require(s->section < o->sections.n || s->section >= OBJECT_SECTION_OTHER);
	}
}

static bool same_symbol(const struct object_symbol *a, const struct object_symbol *b)
{
	return !strcmp(a->name, b->name) && a->bind == b->bind && a->type == b->type &&
	       a->other == b->other && a->section == b->section && a->value == b->value &&
	       a->size == b->size;
}

static bool same_relocs(const struct elf_object *o, const struct object_section *a,
	const struct elf_object *again, const struct object_section *b)
{
	if (a->relocs.n != b->relocs.n)
		return false;
	for (size_t i = 0; i < a->relocs.n; i++) {
		const struct object_reloc *x = &a->relocs.v[i], *y = &b->relocs.v[i];

		if (x->offset != y->offset || x->type != y->type || x->addend != y->addend ||
			!same_symbol(&o->symbols.v[x->symbol], &again->symbols.v[y->symbol]))
			return false;
	}
	return true;
}

static void check_same(const struct elf_object *o, const struct elf_object *again)
{
	require(again->sections.n == o->sections.n && again->symbols.n == o->symbols.n);
	require(again->symtab == o->symtab);
	for (size_t i = 1; i < o->sections.n; i++) {
		const struct object_section *a = &o->sections.v[i], *b = &again->sections.v[i];

		require(!strcmp(a->name, b->name) && a->type == b->type && a->flags == b->flags &&
			a->align == b->align && a->entsize == b->entsize && a->group == b->group);
		require(same_relocs(o, a, again, b));
		if (a->type == SHT_GROUP)
			require(same_symbol(&o->symbols.v[a->info], &again->symbols.v[b->info]));
		if (a->type == SHT_PROGBITS || a->type == SHT_NOBITS)
			require(a->size == b->size && a->link == b->link && a->info == b->info);
		if (a->type == SHT_PROGBITS && a->data.n)
			require(!memcmp(a->data.p, b->data.p, a->data.n));
	}
}

/* Returns the size of what was written. */
static size_t check_written(struct elf_object *o, bool may_refuse)
{
	struct elf_object again;
	struct buf out = {0};
	size_t n;

	if (elf_object_write(o, &out, NULL)) {
		require(may_refuse);
		buf_release(&out);
		return 0;
	}
	n = out.n;
	require(elf_object_open(&again, buf_span(&out), NULL) == 0);
	check_promises(&again);
	check_same(o, &again);
	elf_object_release(&again);
	buf_release(&out);
	return n;
}

static void change(struct elf_object *o)
{
	uint32_t anchor = elf_object_undefined(o, "f", STV_HIDDEN);
	size_t n = o->sections.n < 64 ? o->sections.n : 64;

	for (uint32_t i = 1; i < n; i++) {
		struct object_new_section wish = {.name = "added",
			.type = i % 2 ? SHT_PROGBITS : SHT_NOBITS,
			.align = 8,
			.nobits = 8,
			.data = {(const uint8_t *)"12345678", 8},
			.group = o->sections.v[i].group,
			.link_order = i};
		uint32_t added = elf_object_add_section(o, &wish);

		vec_push(&o->sections.v[added].relocs,
			((struct object_reloc){0, R_X86_64_64, anchor, 0}));
		if (o->sections.v[i].type == SHT_PROGBITS)
			vec_push(&o->sections.v[i].relocs,
				((struct object_reloc){
					0, R_X86_64_NONE, elf_object_section_symbol(o, added), 0}));
		object_section_sort_relocs(&o->sections.v[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span bytes = {data, n};
	struct elf_object o;
	struct err err = {0};

	if (elf_object_open(&o, bytes, &err)) {
		require(err.text[0] && !o.sections.v && !o.symbols.v && !o.arena);
		return 0;
	}
	require(elf_object_is(bytes));
	check_promises(&o);
	/* Nothing grew, but for sections that lay upon the headers. */
	require(check_written(&o, false) <= 2 * n + 128);
	change(&o);
	check_written(&o, true);
	elf_object_release(&o);
	return 0;
}
