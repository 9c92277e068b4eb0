/* SPDX-License-Identifier: MIT */
#include "dwarf/die_units.h"

#include <stdlib.h>

#define SIGNATURE_BYTES 8

void die_units_init(struct die_units *u, struct dwarf_debug *debug)
{
	*u = (struct die_units){.debug = debug};
}

void die_units_release(struct die_units *u)
{
	vec_release_all(&u->owned);
	vec_release(&u->list);
	vec_release(&u->alt_list);
	map_release(&u->signed_sets);
	map_release(&u->by_signature);
	unit_set_release(&u->type_set);
}

static void add_note(void *ctx, const char *sentence)
{
	dwarf_debug_note(ctx, "type units: %s", sentence);
}

/*
 * The units of .debug_types (DWARF 4 section 7.5.1.2): the headers of .debug_info with a signature
 * and an offset behind them. The reader of .debug_info takes these for entries, so what it made of
 * the roots is thrown away; type units have nothing there that is needed.
 */
static void read_type_set(struct die_units *u)
{
	struct span bytes;
	struct err err;

	if (u->has_type_set)
		return;
	u->has_type_set = true;
	if (dwarf_file_section(&u->debug->file, ".debug_types", &bytes, &err) < 0) {
		add_note(u->debug, err.text);
		return;
	}
	if (!bytes.n)
		return;
	u->type_set.sections = u->debug->units.sections;
	u->type_set.sections.of[DEBUG_INFO] = bytes;
	u->type_set.alt = u->debug->units.alt;
	unit_set_read(&u->type_set, false, NULL);
	for (size_t i = 0; i < u->type_set.units.n; i++) {
		struct debug_unit *unit = &u->type_set.units.v[i];

		unit->root.has = 0;
		unit->type = UNIT_TYPE_TYPE;
		if (unit->sizes.version == 5) /* has its signature already */
			continue;
		unit->first_die += SIGNATURE_BYTES + unit->sizes.offset;
		if (unit->first_die > unit->end)
			unit->first_die = unit->end;
	}
}

static void list_units(struct die_units *u)
{
	const struct unit_set *set = &u->debug->units;

	u->is_listed = true;
	for (size_t i = 0; i < set->units.n; i++) {
		const struct debug_unit *unit = &set->units.v[i];
		struct debug_unit split;

		if (unit->type != UNIT_TYPE_SKELETON) {
			vec_push(&u->list, unit);
		} else if (split_unit_find(u->debug, unit, &split)) {
			struct debug_unit *copy = mem_dup(&split, sizeof(split));

			vec_push(&u->owned, copy);
			vec_push(&u->list, copy);
		}
	}
	/* Type units of the .dwo files, which no skeleton stands for. */
	for (size_t i = 0; i < u->debug->splits.n; i++) {
		const struct unit_set *split = &u->debug->splits.v[i]->units;

		for (size_t k = 0; k < split->units.n; k++)
			if (split->units.v[k].type == UNIT_TYPE_SPLIT_TYPE)
				vec_push(&u->list, &split->units.v[k]);
	}
	read_type_set(u);
	for (size_t i = 0; i < u->type_set.units.n; i++)
		vec_push(&u->list, &u->type_set.units.v[i]);
}

size_t die_units_list(struct die_units *u, bool is_shared, const struct debug_unit *const **units)
{
	if (!is_shared) {
		if (!u->is_listed)
			list_units(u);
		*units = u->list.v;
		return u->list.n;
	}
	if (!u->is_alt_listed && u->debug->units.alt)
		for (size_t i = 0; i < u->debug->alt_units.units.n; i++)
			vec_push(&u->alt_list, &u->debug->alt_units.units.v[i]);
	u->is_alt_listed = true;
	*units = u->alt_list.v;
	return u->alt_list.n;
}

uint64_t die_units_bytes(struct die_units *u)
{
	const struct debug_unit *const *units;
	const struct unit_set *last = NULL;
	uint64_t n_bytes = 0;

	for (int shared = 0; shared < 2; shared++)
		for (size_t i = die_units_list(u, shared, &units); i-- > 0;) {
			n_bytes += units[i]->end - units[i]->offset;
			if (units[i]->set != last)
				n_bytes += units[i]->set->sections.of[DEBUG_STR].n +
					   units[i]->set->sections.of[DEBUG_LINE_STR].n;
			last = units[i]->set;
		}
	return n_bytes;
}

static bool is_type_unit(const struct debug_unit *unit)
{
	return (unit->type == UNIT_TYPE_TYPE || unit->type == UNIT_TYPE_SPLIT_TYPE) &&
	       unit->first_die - unit->offset >= SIGNATURE_BYTES + (uint64_t)unit->sizes.offset;
}

static uint64_t key_of(const struct unit_set *set, uint64_t signature)
{
	return map_hash_mix(map_hash(signature), (uintptr_t)set);
}

/* The signature stands in front of the root entry, then the place of the type. */
static uint64_t signature_of(const struct debug_unit *unit)
{
	const uint8_t *info = unit->set->sections.of[DEBUG_INFO].p;

	return bytes_u64(info + unit->first_die - unit->sizes.offset - SIGNATURE_BYTES);
}

static const struct debug_unit *find_signature(
	struct die_units *u, const struct unit_set *set, uint64_t signature)
{
	const uint64_t *found;
	bool is_new;

	map_ensure(&u->signed_sets, (uintptr_t)set, &is_new);
	for (size_t i = 0; is_new && i < set->units.n; i++)
		if (is_type_unit(&set->units.v[i]))
			*map_ensure(&u->by_signature, key_of(set, signature_of(&set->units.v[i])),
				NULL) = (uintptr_t)&set->units.v[i];
	found = map_find(&u->by_signature, key_of(set, signature));
	return found ? (const struct debug_unit *)(uintptr_t)*found : NULL;
}

const struct debug_unit *die_units_by_signature(
	struct die_units *u, const struct unit_set *set, uint64_t signature, uint64_t *offset)
{
	const struct debug_unit *unit = find_signature(u, set, signature);

	if (!unit) {
		read_type_set(u);
		unit = find_signature(u, &u->type_set, signature);
	}
	if (!unit)
		return NULL;
	*offset = unit->offset + bytes_word(unit->set->sections.of[DEBUG_INFO].p + unit->first_die -
						    unit->sizes.offset,
					 unit->sizes.offset);
	return unit;
}
