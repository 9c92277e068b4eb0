/* SPDX-License-Identifier: MIT */
/*
 * The pass goes over the children of each unit's root, and into namespaces and classes; the
 * children of everything else are stepped over, by DW_AT_sibling where compilers wrote it. So types
 * that are local to a function are not found.
 */
#include "probe/types/dwarf_name_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/order.h"
#include "base/search.h"
#include "dwarf/range_list.h"

#define SCOPES_MAX	32 /* namespaces and classes inside each other; deeper ones are left out */
#define SCOPE_BYTES_MAX 4096 /* of "a::b::" */
#define CODE_PARTS_MAX	64   /* of one function */
#define ORIGIN_HOPS_MAX 4    /* from a definition to the entry that has its name */

#define LANGUAGE_ASSEMBLER 0x8001 /* DW_LANG_Mips_Assembler */

enum name_rank {
	RANK_NONE,
	RANK_HINT,     /* another way to say the name: gives way to everything */
	RANK_DECLARED, /* known to exist */
	RANK_DEFINED
};

struct pass {
	struct dwarf_name_index *index;
	struct die_reader *reader;
	enum name_pass kind;
	bool keeps_scopes;
	struct buf scope; /* "a::b::" */
};

void dwarf_name_index_release(struct dwarf_name_index *x)
{
	map_release(&x->places);
	vec_release(&x->entries);
	vec_release(&x->scopes);
	map_release(&x->first_scope);
	intern_release(&x->scope_names);
	vec_release(&x->code);
}

static uint64_t key_of(enum name_kind kind, const void *name, size_t n)
{
	return map_hash_mix(map_hash_bytes(name, n), kind + 1);
}

static void add_key(struct pass *p, uint64_t key, enum name_rank rank, const struct die *d)
{
	struct name_place place = {d->unit, d->offset, (uint8_t)rank};
	bool is_new;
	uint64_t *at = map_ensure(&p->index->places, key, &is_new);

	if (is_new) {
		*at = p->index->entries.n;
		vec_push(&p->index->entries, place);
	} else if (p->index->entries.v[*at].rank < rank) {
		p->index->entries.v[*at] = place;
	}
}

/* The name alone, or behind the scope that the pass is in. */
static void add(struct pass *p, enum name_kind kind, struct dwarf_text name, enum name_rank rank,
	const struct die *d)
{
	size_t n_scope = p->scope.n;

	if (!name.n || !die_reader_spend(p->reader, n_scope + name.n))
		return;
	if (!n_scope) {
		add_key(p, key_of(kind, name.p, name.n), rank, d);
		return;
	}
	buf_put(&p->scope, name.p, name.n);
	add_key(p, key_of(kind, p->scope.p, p->scope.n), rank, d);
	p->scope.n = n_scope;
}

static void add_type(struct pass *p, enum name_kind kind, const struct die *d)
{
	enum name_rank rank = die_flag(d, DIE_DECLARATION) ? RANK_DECLARED : RANK_DEFINED;
	struct dwarf_text name;

	if (p->kind != PASS_TYPES || !die_text(d, DIE_NAME, &name))
		return;
	add(p, kind, name, rank, d);
	if (kind != NAME_KIND_TYPE && d->unit->has_linkage_names)
		add(p, NAME_KIND_TYPE, name, rank == RANK_DECLARED ? RANK_HINT : rank, d);
}

/* The names of a definition that leaves them to the declaration it completes. */
static bool names_of(
	struct pass *p, const struct die *d, struct dwarf_text *name, struct dwarf_text *linkage)
{
	/* Copies of a function lead by DW_AT_abstract_origin to the one that has the names; of a
	 * variable there is one such entry, when it was optimized at link time. */
	bool is_variable = d->tag == DIE_TAG_VARIABLE;
	struct die at = *d;

	*name = *linkage = (struct dwarf_text){"", 0};
	for (int hop = 0; hop < ORIGIN_HOPS_MAX; hop++) {
		struct die next;

		if (!name->n)
			die_text(&at, DIE_NAME, name);
		if (!linkage->n)
			die_text(&at, DIE_LINKAGE_NAME, linkage);
		if (!die_follow(p->reader, &at, DIE_SPECIFICATION, &next) &&
			!(is_variable && die_follow(p->reader, &at, DIE_ABSTRACT_ORIGIN, &next)))
			break;
		at = next;
	}
	return name->n || linkage->n;
}

/* Where code was split into parts the list of ranges has that with the first instruction first. */
static void add_ranges(struct pass *p, const struct die *d)
{
	static const struct code_extents anywhere = {.zero_is_code = true};
	struct range_reader ranges = {.extents = &anywhere, .budget = CODE_PARTS_MAX};
	struct die_attrs attrs;
	uint64_t n_bytes;

	if (!debug_unit_entry(d->unit, d->offset, &attrs, &n_bytes) ||
		!die_reader_spend(p->reader, n_bytes))
		return;
	range_reader_entry(&ranges, d->unit, &attrs);
	for (size_t i = 0; i < ranges.ranges.n; i++)
		vec_push(&p->index->code,
			((struct code_place){ranges.ranges.v[i].start, ranges.ranges.v[i].end,
				ranges.ranges.v[0].start, d->unit, d->offset}));
	vec_release(&ranges.ranges);
}

static void add_code(struct pass *p, const struct die *d)
{
	struct code_place place = {.unit = d->unit, .offset = d->offset};

	if (die_says(d, DIE_RANGES)) {
		add_ranges(p, d);
	} else if (die_addr(d, DIE_LOW_PC, &place.low) && die_addr(d, DIE_HIGH_PC, &place.high)) {
		place.entry = place.low;
		vec_push(&p->index->code, place);
	}
}

static void add_function(struct pass *p, const struct die *d)
{
	enum name_rank rank = die_flag(d, DIE_DECLARATION) ? RANK_DECLARED : RANK_DEFINED;
	struct dwarf_text name, linkage;
	size_t n_scope = p->scope.n;

	add_code(p, d);

	if (!names_of(p, d, &name, &linkage))
		return;
	/* A definition that completes another entry stands outside of that one's scope. */
	add(p, NAME_KIND_FUNCTION, name, die_says(d, DIE_SPECIFICATION) ? RANK_HINT : rank, d);
	p->scope.n = 0;
	add(p, NAME_KIND_LINKAGE, linkage, rank, d);
	p->scope.n = n_scope;
}

static void add_variable(struct pass *p, const struct die *d)
{
	enum name_rank rank = die_says(d, DIE_LOCATION) ? RANK_DEFINED : RANK_DECLARED;
	struct dwarf_text name, linkage;
	size_t n_scope = p->scope.n;

	if (!names_of(p, d, &name, &linkage))
		return;
	add(p, NAME_KIND_VARIABLE, name, rank, d);
	p->scope.n = 0;
	add(p, NAME_KIND_VARIABLE, linkage, rank, d);
	p->scope.n = n_scope;
}

static void add_enumerators(struct pass *p, const struct die *d)
{
	struct dwarf_text name;
	struct die child;
	uint64_t value;

	for (uint64_t at = d->has_children ? d->next : 0;
		at && die_read(p->reader, d->unit, at, &child) && child.tag != DIE_TAG_END;
		at = die_behind(p->reader, &child))
		if (child.tag == DIE_TAG_ENUMERATOR && die_text(&child, DIE_NAME, &name) &&
			die_number(&child, DIE_CONST_VALUE, &value)) {
			add_key(p, key_of(NAME_KIND_ENUMERATOR, name.p, name.n), RANK_DEFINED,
				&child);
			add_key(p, key_of(NAME_KIND_ENUM_WITH, name.p, name.n), RANK_DEFINED, d);
		}
}

/* True when what is inside the entry has names too. */
static bool add_entry(struct pass *p, const struct die *d)
{
	switch (d->tag) {
	case TAG_STRUCTURE_TYPE:
	case TAG_CLASS_TYPE:
	case DIE_TAG_INTERFACE:
		add_type(p, NAME_KIND_STRUCT, d);
		return d->unit->has_linkage_names;
	case TAG_UNION_TYPE:
		add_type(p, NAME_KIND_UNION, d);
		return d->unit->has_linkage_names;
	case TAG_ENUMERATION_TYPE:
		add_type(p, NAME_KIND_ENUM, d);
		if (p->kind == PASS_ENUMERATORS)
			add_enumerators(p, d);
		return false;
	case DIE_TAG_TYPEDEF:
	case DIE_TAG_BASE_TYPE:
		add_type(p, NAME_KIND_TYPE, d);
		return false;
	case TAG_SUBPROGRAM:
		if (p->kind == PASS_CODE)
			add_function(p, d);
		return false;
	case DIE_TAG_VARIABLE:
		if (p->kind == PASS_CODE)
			add_variable(p, d);
		return false;
	default:
		return d->tag == DIE_TAG_NAMESPACE;
	}
}

/* The scope of what is inside an entry; one without a name adds nothing. */
static bool enter(struct pass *p, const struct die *d)
{
	struct dwarf_text name;

	if (!die_text(d, DIE_NAME, &name))
		return true;
	if (p->scope.n + name.n > SCOPE_BYTES_MAX)
		return false;
	buf_put(&p->scope, name.p, name.n);
	buf_put_cstr(&p->scope, "::");
	return true;
}

/* A namespace or class that the pass is inside of. */
struct open_scope {
	uint64_t start;
	size_t n_outside; /* bytes of the scope's text outside */
	bool has_types;
};

static bool is_type(uint16_t tag)
{
	return tag == TAG_STRUCTURE_TYPE || tag == TAG_CLASS_TYPE || tag == TAG_UNION_TYPE ||
	       tag == TAG_ENUMERATION_TYPE || tag == DIE_TAG_INTERFACE;
}

static void leave(struct pass *p, const struct open_scope *scope, uint64_t end)
{
	if (scope->has_types && p->scope.n && p->keeps_scopes)
		vec_push(&p->index->scopes,
			((struct name_scope){scope->start, end,
				intern_bytes(&p->index->scope_names, p->scope.p, p->scope.n)}));
	p->scope.n = scope->n_outside;
}

static const char *scope_at(
	const struct dwarf_name_index *x, struct die_reader *r, const struct die *d)
{
	const uint64_t *first = map_find(&x->first_scope, (uintptr_t)d->unit);

	/* The innermost one ends first. */
	for (size_t i = first ? (size_t)*first : x->scopes.n; i < x->scopes.n; i++) {
		const struct name_scope *s = &x->scopes.v[i];

		if (s->end > d->unit->end || s->start < d->unit->offset || !die_reader_spend(r, 1))
			break; /* of the next unit, mostly */
		if (s->start <= d->offset && d->offset < s->end)
			return intern_get(&x->scope_names, s->name);
	}
	return "";
}

const char *dwarf_name_index_scope(
	const struct dwarf_name_index *x, struct die_reader *r, const struct die *d)
{
	struct die at = *d, next;

	for (int hop = 0; hop < ORIGIN_HOPS_MAX; hop++, at = next)
		if (!die_follow(r, &at, DIE_SPECIFICATION, &next))
			break;
	return scope_at(x, r, &at);
}

/* A type that was declared in a scope may be defined outside of all, as gcc does in type units. */
static void enter_declared_scope(struct pass *p, const struct die *d)
{
	if (!p->scope.n && is_type(d->tag) && die_says(d, DIE_SPECIFICATION))
		buf_put_cstr(&p->scope, dwarf_name_index_scope(p->index, p->reader, d));
}

static void pass_unit(struct pass *p, const struct debug_unit *u)
{
	struct open_scope open[SCOPES_MAX];
	size_t depth = 0;
	uint64_t at, *first;
	struct die d;

	p->scope.n = 0;
	first = map_ensure(&p->index->first_scope, (uintptr_t)u, &p->keeps_scopes);
	if (p->keeps_scopes)
		*first = p->index->scopes.n;
	/* Assemblers know functions, but not what they take and give. */
	if (die_has(&u->root, SLOT_LANGUAGE) && u->root.value[SLOT_LANGUAGE] == LANGUAGE_ASSEMBLER)
		return;
	if (!die_read(p->reader, u, u->first_die, &d) || !d.has_children)
		return;
	for (at = d.next; at && die_read(p->reader, u, at, &d);) {
		size_t n_outside = p->scope.n;

		if (d.tag == DIE_TAG_END) {
			if (!depth)
				return;
			leave(p, &open[--depth], d.offset);
			at = d.next;
			continue;
		}
		if (depth && is_type(d.tag))
			open[depth - 1].has_types = true;
		enter_declared_scope(p, &d);
		if (add_entry(p, &d) && d.has_children && depth < SCOPES_MAX && enter(p, &d)) {
			open[depth++] = (struct open_scope){d.next, n_outside, false};
			at = d.next;
			continue;
		}
		p->scope.n = n_outside;
		at = die_behind(p->reader, &d);
	}
}

static void pass_units(
	struct dwarf_name_index *x, struct die_reader *r, enum name_pass kind, bool is_shared)
{
	struct pass p = {.index = x, .reader = r, .kind = kind};
	const struct debug_unit *const *units;
	size_t n = die_reader_units(r, is_shared, &units);

	for (size_t i = 0; i < n; i++)
		pass_unit(&p, units[i]);
	buf_release(&p.scope);
}

static const struct name_place *find(
	const struct dwarf_name_index *x, enum name_kind kind, const char *name)
{
	const uint64_t *at = map_find(&x->places, key_of(kind, name, strlen(name)));

	return at ? &x->entries.v[*at] : NULL;
}

static void make_pass(struct dwarf_name_index *x, struct die_reader *r, enum name_pass pass)
{
	if (!x->has_own[pass]) {
		x->has_own[pass] = true;
		pass_units(x, r, pass, false);
	}
}

ORDER_BY(order_code, struct code_place, low)

bool dwarf_name_index_code(struct dwarf_name_index *x, struct die_reader *r, uint64_t addr,
	struct die *out, uint64_t *entry)
{
	const struct code_place *place;
	size_t behind;

	make_pass(x, r, PASS_CODE);
	if (x->n_sorted != x->code.n)
		vec_sort(&x->code, order_code);
	x->n_sorted = x->code.n;
	behind = SEARCH(0, x->code.n, middle, x->code.v[middle].low <= addr);
	if (!behind)
		return false;
	place = &x->code.v[behind - 1];
	*entry = place->entry;
	return addr < place->high && die_read(r, place->unit, place->offset, out);
}

bool dwarf_name_index_find(struct dwarf_name_index *x, struct die_reader *r, enum name_kind kind,
	const char *name, struct die *out)
{
	enum name_pass pass = kind >= NAME_KIND_ENUMERATOR ? PASS_ENUMERATORS
			      : kind >= NAME_KIND_FUNCTION ? PASS_CODE
							   : PASS_TYPES;
	const struct name_place *place;

	make_pass(x, r, pass);
	place = find(x, kind, name);
	/* The shared file has types of many programs: it is looked at only when it must be. */
	if ((!place || place->rank < RANK_DEFINED) && !x->has_shared[pass]) {
		x->has_shared[pass] = true;
		pass_units(x, r, pass, true);
		place = find(x, kind, name);
	}
	return place && die_read(r, place->unit, place->offset, out);
}
