/* SPDX-License-Identifier: MIT */
#include "probe/types/dwarf_enumerators.h"

#include <string.h>

static void add(struct dwarf_enumerators *e, const struct die *d)
{
	struct dwarf_text name;
	uint64_t value, *slot;
	bool is_new;

	if (!die_text(d, DIE_NAME, &name) || !die_number(d, DIE_CONST_VALUE, &value))
		return;
	slot = map_ensure(&e->values, map_hash_bytes(name.p, name.n), &is_new);
	if (is_new)
		*slot = value;
}

/* Whether enumerations may be inside. */
static bool is_scope(const struct die *d)
{
	switch (d->tag) {
	case DIE_TAG_NAMESPACE:
	case TAG_ENUMERATION_TYPE:
		return true;
	case TAG_STRUCTURE_TYPE:
	case TAG_CLASS_TYPE:
	case TAG_UNION_TYPE:
		return d->unit->has_linkage_names; /* C's are all outside */
	default:
		return false;
	}
}

static void read_unit(struct dwarf_enumerators *e, struct die_reader *r, const struct debug_unit *u)
{
	size_t depth = 0;
	struct die d;

	if (!die_read(r, u, u->first_die, &d) || !d.has_children)
		return;
	for (uint64_t at = d.next; at && die_read(r, u, at, &d);) {
		if (d.tag == DIE_TAG_END && !depth--)
			return;
		if (d.tag == DIE_TAG_ENUMERATOR)
			add(e, &d);
		if (d.tag != DIE_TAG_END && d.has_children && is_scope(&d))
			depth++;
		else if (d.tag != DIE_TAG_END) {
			at = die_behind(r, &d);
			continue;
		}
		at = d.next;
	}
}

bool dwarf_enumerators_find(
	struct dwarf_enumerators *e, struct die_reader *r, const char *name, int64_t *value)
{
	const struct debug_unit *const *units;
	const uint64_t *found;

	for (int is_shared = 0; is_shared < 2 && !e->is_read; is_shared++) {
		size_t n = die_reader_units(r, is_shared, &units);

		for (size_t i = 0; i < n; i++)
			read_unit(e, r, units[i]);
	}
	e->is_read = true;
	found = map_find(&e->values, map_hash_bytes(name, strlen(name)));
	if (found)
		*value = (int64_t)*found;
	return found;
}

void dwarf_enumerators_release(struct dwarf_enumerators *e)
{
	map_release(&e->values);
}
