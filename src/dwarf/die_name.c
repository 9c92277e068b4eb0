/* SPDX-License-Identifier: MIT */
/*
 * The entry of a piece of code mostly has no name but leads to one that has: an inlined function to
 * its abstract instance, that to its declaration in a class, which may be in another unit or file.
 */
#include "dwarf/die_walk.h"

#include <stdlib.h>

#define HOPS_MAX  16	     /* real chains have 3; also the guard against circles */
#define PLAIN	  (1u << 31) /* in a slot's name */
#define NAMES_MAX (PLAIN - 1)

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

static struct name_slot *slot_for(const struct name_table *t, uint64_t key)
{
	size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (t->cap - 1);

	while (t->slots[i].round == t->round && t->slots[i].key != key)
		i = (i + 1) & (t->cap - 1);
	return &t->slots[i];
}

static void grow(struct name_table *t)
{
	struct name_table old = *t;

	t->cap = old.cap ? old.cap * 2 : 256;
	t->slots = mem_calloc(t->cap, sizeof(*t->slots));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].round == t->round)
			*slot_for(t, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

static struct die_name add_name(struct name_table *t, struct dwarf_text text, bool is_plain)
{
	if (text.n > t->budget || !t->budget || t->out->names.n > NAMES_MAX)
		t->is_cut = true;
	if (!text.n || t->is_cut)
		return (struct die_name){0, false};
	t->budget -= text.n;
	vec_push(&t->out->names, text);
	return (struct die_name){(uint32_t)(t->out->names.n - 1), is_plain};
}

static bool next_entry(const struct debug_unit *u, const struct die_attrs *a, struct die_ref *ref)
{
	enum die_slot slot =
		die_has(a, SLOT_ABSTRACT_ORIGIN) ? SLOT_ABSTRACT_ORIGIN : SLOT_SPECIFICATION;

	return die_has(a, slot) && debug_unit_ref(u, a->form[slot], a->value[slot], ref);
}

/* The name of a chain of entries; `plain` is the nearest plain name so far. */
static struct die_name follow(struct name_table *t, const struct debug_unit *u, struct die_ref ref,
	struct dwarf_text plain)
{
	bool mangles = u->has_linkage_names;
	const struct abbrev *entry;
	struct dwarf_text text;
	struct die_attrs a;
	uint64_t n_bytes;

	for (int hop = 0; hop < HOPS_MAX; hop++) {
		if (ref.set != u->set || ref.offset < u->first_die || ref.offset >= u->end)
			u = unit_set_find(ref.set, ref.offset);
		if (!u)
			break;
		entry = debug_unit_entry(u, ref.offset, &a, &n_bytes);
		t->budget -= n_bytes < t->budget ? n_bytes : t->budget;
		if (!entry)
			break;
		if (debug_unit_slot_text(u, &a, SLOT_LINKAGE_NAME, &text))
			return add_name(t, text, false);
		if (!plain.n && debug_unit_slot_text(u, &a, SLOT_NAME, &text))
			plain = text;
		if (!next_entry(u, &a, &ref))
			break;
	}
	return add_name(t, plain, mangles);
}

struct die_name name_table_get(
	struct name_table *t, const struct debug_unit *u, const struct die_attrs *a)
{
	struct dwarf_text text, plain = {NULL, 0};
	struct name_slot *slot;
	struct die_name name;
	struct die_ref ref;
	uint64_t key;

	if (t->is_cut)
		return (struct die_name){0, false};
	if (debug_unit_slot_text(u, a, SLOT_LINKAGE_NAME, &text))
		return add_name(t, text, false);
	debug_unit_slot_text(u, a, SLOT_NAME, &plain);
	if (!next_entry(u, a, &ref))
		return add_name(t, plain, u->has_linkage_names);
	if (plain.n) /* rare: a name of its own beside what it leads to */
		return follow(t, u, ref, plain);
	if ((t->n + 1) * 4 > t->cap * 3)
		grow(t);
	key = ref.offset << 1 | (ref.set != u->set);
	slot = slot_for(t, key);
	if (slot->round != t->round) {
		name = follow(t, u, ref, plain);
		*slot = (struct name_slot){key, name.id | (name.is_plain ? PLAIN : 0), t->round};
		t->n++;
	}
	return (struct die_name){slot->name & ~PLAIN, slot->name & PLAIN};
}
