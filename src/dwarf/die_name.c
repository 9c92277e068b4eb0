/* SPDX-License-Identifier: MIT */
/*
 * The entry of a piece of code mostly has no name but leads to one that has: an inlined function to
 * its abstract instance, that to its declaration in a class, which may be in another unit or file.
 */
#include "dwarf/die_name.h"

#include <stdlib.h>

#define HOPS_MAX 16 /* real chains have 3; also the guard against circles */

void name_table_reset(struct name_table *t, struct dwarf_unit_map *out, uint64_t budget)
{
	if (!++t->round) { /* after 2^32 rounds old slots would look new */
		if (t->cap)
			memset(t->slots, 0, t->cap * sizeof(*t->slots));
		t->round = 1;
	}
	t->n = 0;
	t->out = out;
	t->budget = budget;
	t->is_cut = false;
}

void name_table_release(struct name_table *t)
{
	free(t->slots);
	*t = (struct name_table){0};
}

static struct name_slot *slot_for(const struct name_table *t, struct die_ref ref)
{
	size_t i = (size_t)((ref.offset * 0x9e3779b97f4a7c15u) >> 32) & (t->cap - 1);

	while (t->slots[i].round == t->round &&
		(t->slots[i].offset != ref.offset || t->slots[i].set != ref.set))
		i = (i + 1) & (t->cap - 1);
	return &t->slots[i];
}

static void grow(struct name_table *t)
{
	struct name_table old = *t;

	t->cap = old.cap ? old.cap * 2 : 256;
	t->slots = mem_calloc(t->cap, sizeof(*t->slots));
	for (size_t i = 0; i < old.cap; i++) {
		const struct name_slot *s = &old.slots[i];

		if (s->round == t->round)
			*slot_for(t, (struct die_ref){s->set, s->offset}) = *s;
	}
	free(old.slots);
}

static uint32_t add_name(struct name_table *t, struct dwarf_text text)
{
	if (text.n > t->budget) {
		t->is_cut = true;
		return 0;
	}
	t->budget -= text.n;
	vec_push(&t->out->names, text);
	return (uint32_t)(t->out->names.n - 1);
}

static bool next_entry(const struct debug_unit *u, const struct die_attrs *a, struct die_ref *ref)
{
	enum die_slot slot = die_has(a, SLOT_ABSTRACT_ORIGIN) ? SLOT_ABSTRACT_ORIGIN
							      : SLOT_SPECIFICATION;

	return die_has(a, slot) && debug_unit_ref(u, a->form[slot], a->value[slot], ref);
}

/* The name of a chain of entries; `plain` is the nearest plain name so far. */
static uint32_t follow(struct name_table *t, const struct debug_unit *u, struct die_ref ref,
	struct dwarf_text plain)
{
	struct dwarf_text text;
	struct die_attrs a;

	for (int hop = 0; hop < HOPS_MAX; hop++) {
		if (ref.set != u->set || ref.offset < u->first_die || ref.offset >= u->end)
			u = unit_set_find(ref.set, ref.offset);
		if (!u || !debug_unit_entry(u, ref.offset, &a))
			break;
		if (debug_unit_slot_text(u, &a, SLOT_LINKAGE_NAME, &text))
			return add_name(t, text);
		if (!plain.n && debug_unit_slot_text(u, &a, SLOT_NAME, &text))
			plain = text;
		if (!next_entry(u, &a, &ref))
			break;
	}
	return plain.n ? add_name(t, plain) : 0;
}

uint32_t name_table_get(struct name_table *t, const struct debug_unit *u, const struct die_attrs *a)
{
	struct dwarf_text text, plain = {NULL, 0};
	struct name_slot *slot;
	struct die_ref ref;

	if (t->is_cut)
		return 0;
	if (debug_unit_slot_text(u, a, SLOT_LINKAGE_NAME, &text))
		return add_name(t, text);
	debug_unit_slot_text(u, a, SLOT_NAME, &plain);
	if (!next_entry(u, a, &ref))
		return plain.n ? add_name(t, plain) : 0;
	if (plain.n) /* rare: a name of its own beside what it leads to */
		return follow(t, u, ref, plain);
	if ((t->n + 1) * 4 > t->cap * 3)
		grow(t);
	slot = slot_for(t, ref);
	if (slot->round != t->round) {
		*slot = (struct name_slot){
			ref.set, ref.offset, follow(t, u, ref, plain), t->round};
		t->n++;
	}
	return slot->name;
}
