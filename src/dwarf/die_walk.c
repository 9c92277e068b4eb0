/* SPDX-License-Identifier: MIT */
/*
 * One pass over the bytes of a unit. Nearly all entries are types, variables and call sites: they
 * are stepped over with what their abbreviation says, which has to be fast. Whether an entry may
 * have code is known from its abbreviation too: only subprograms with addresses and inlined
 * subroutines are read.
 *
 * Invariants:
 * 1. `around[depth]` says for the children of the open entry at that depth which site they are in,
 *    or that they are part of code that the linker dropped.
 * 2. Sites and ranges are added parents first.
 */
#include "dwarf/die_walk.h"

#define DEPTH_MAX 256	     /* real trees are up to 40 deep */
#define DROPPED	  (1u << 31) /* in `around`: this code is not in the program */
#define SITES_MAX (DROPPED - 1)

struct walk_state {
	struct die_walk *w;
	const struct debug_unit *unit;
	const uint8_t *p, *end;
	size_t depth;
	uint32_t around[DEPTH_MAX + 1];
};

/* The address at which the function is entered; the first range's when nothing else is said. */
static uint64_t entry_addr(const struct debug_unit *u, const struct die_attrs *a, uint64_t first)
{
	uint64_t addr;

	if (!die_has(a, SLOT_ENTRY_PC))
		return first;
	return debug_unit_slot_addr(u, a, SLOT_ENTRY_PC, &addr) ? addr : first + a->value[SLOT_ENTRY_PC];
}

/* What the function's children are in. */
static uint32_t add_function(struct walk_state *s, const struct die_attrs *a)
{
	struct die_walk *w = s->w;
	const struct addr_range *range;
	uint64_t entry;
	struct die_name name;

	if (!range_reader_entry(w->ranges, s->unit, a))
		return 0; /* an entry point only */
	if (!w->ranges->ranges.n)
		return DROPPED;
	name = name_table_get(w->names, s->unit, a);
	entry = entry_addr(s->unit, a, w->ranges->ranges.v[0].start);
	range = w->ranges->ranges.v;
	for (size_t i = 0; i < w->ranges->ranges.n; i++, range++) {
		vec_push(&w->out->functions,
			((struct dwarf_function){range->start, range->end, name.id,
				entry >= range->start && entry < range->end, name.is_plain}));
		painter_add(w->painter, range->start, range->end, 0);
	}
	return 0;
}

static uint32_t add_inlined(struct walk_state *s, const struct die_attrs *a, uint32_t parent)
{
	struct die_walk *w = s->w;
	struct dwarf_site site = {.parent = parent};
	const struct addr_range *range;
	uint32_t id = (uint32_t)w->out->sites.n;

	if (id >= SITES_MAX)
		return parent;
	range_reader_entry(w->ranges, s->unit, a);
	site.name = name_table_get(w->names, s->unit, a).id;
	if (die_has(a, SLOT_CALL_FILE))
		site.call_file = source_files_id(w->files, a->value[SLOT_CALL_FILE]);
	if (die_has(a, SLOT_CALL_LINE))
		site.call_line = (uint32_t)a->value[SLOT_CALL_LINE];
	vec_push(&w->out->sites, site);
	range = w->ranges->ranges.v;
	for (size_t i = 0; i < w->ranges->ranges.n; i++, range++)
		painter_add(w->painter, range->start, range->end, id);
	return id;
}

/* An entry that may have code. False when it cannot be read. */
static bool visit(struct walk_state *s, const struct abbrev *a, uint32_t *inside)
{
	uint32_t around = s->around[s->depth];
	struct die_attrs attrs;

	if (a->kind == ABBREV_KIND_INLINED && (around & DROPPED)) {
		s->p = abbrev_skip(s->unit->abbrevs, a, s->p, s->end);
		return s->p != NULL;
	}
	s->p = abbrev_read(s->unit->abbrevs, a, s->p, s->end, &attrs);
	if (!s->p)
		return false;
	*inside = a->kind == ABBREV_KIND_FUNCTION ? add_function(s, &attrs)
						  : add_inlined(s, &attrs, around);
	return true;
}

/* Jumps over the children of an entry that are no code. False when the sibling leads nowhere. */
static bool leap(struct walk_state *s, const struct abbrev *a, const uint8_t *p)
{
	const uint8_t *unit = s->unit->set->sections.of[DEBUG_INFO].p + s->unit->offset;
	uint64_t to;

	if ((size_t)(s->end - p) < a->fixed)
		return false;
	if (a->sibling_how == HOW_4)
		to = bytes_u32(p + a->sibling_at);
	else
		form_read(p + a->sibling_at, s->end, a->sibling_how, &to);
	if (to > (uint64_t)(s->end - unit) || unit + to <= p + a->fixed)
		return false;
	s->p = unit + to;
	return true;
}

/* False when the bytes do not make sense, s->p being where that was found. */
static bool walk(struct walk_state *s)
{
	const struct abbrev_table *table = s->unit->abbrevs;

	while (s->p < s->end) {
		const struct abbrev *a;
		const uint8_t *at = s->p, *p = at;
		uint32_t inside;
		uint64_t code = *p++;

		if (code >= 0x80) {
			p = form_uleb_long(at, s->end, &code);
			if (!p)
				return false;
		}
		if (!code) {
			s->p = p;
			if (s->depth <= 1)
				return true; /* what follows is padding */
			s->depth--;
			continue;
		}
		a = abbrev_table_find(table, code);
		if (!a)
			return false;
		if (a->kind == ABBREV_KIND_LEAP && leap(s, a, p))
			continue;
		inside = s->depth < DEPTH_MAX ? s->around[s->depth] : 0;
		if (a->kind < ABBREV_KIND_FUNCTION || s->depth >= DEPTH_MAX) {
			s->w->is_too_deep |= s->depth >= DEPTH_MAX;
			p = abbrev_skip(table, a, p, s->end);
			if (!p)
				return false;
			s->p = p;
		} else {
			s->p = p;
			if (!visit(s, a, &inside)) {
				s->p = at;
				return false;
			}
		}
		if (a->has_children) {
			if (++s->depth < DEPTH_MAX)
				s->around[s->depth] = inside;
		} else if (!s->depth) {
			return true; /* a unit that is only its root */
		}
	}
	return true; /* compilers may leave out the last null entries */
}

int die_walk_unit(struct die_walk *w, const struct debug_unit *u, struct err *err)
{
	struct span info = u->set->sections.of[DEBUG_INFO];
	struct walk_state s = {
		.w = w, .unit = u, .p = info.p + u->first_die, .end = info.p + u->end};

	if (!u->abbrevs)
		return err_set(err, ERR_FORMAT,
			".debug_info+0x%llx: the unit's abbreviations cannot be read",
			(unsigned long long)u->offset);
	if (!u->abbrevs->has_code)
		return 0;
	if (!walk(&s))
		return err_set(err, ERR_FORMAT, ".debug_info+0x%llx: the entry cannot be read",
			(unsigned long long)(s.p - info.p));
	return 0;
}
