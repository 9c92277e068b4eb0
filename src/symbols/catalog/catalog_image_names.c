/* SPDX-License-Identifier: MIT */
/*
 * From the names that sources offer to symbols, aliases and the pieces of address space they have:
 *
 * 1. names sorted by address; equal names of one address become one that has several sources;
 * 2. the best name of an address is its symbol, the others are aliases, best first;
 * 3. the rules of symtab.h say which symbol has which addresses;
 * 4. pieces of functions fill what is left.
 *
 * Adding the result again gives the result again: a symbol without a size is kept with the size of
 * the gap that it filled and marked, so that it can still be cut by a symbol that comes later.
 */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/sort.h"
#include "symbols/catalog/catalog_image_build_internal.h"

#define DWARF_NAMES_MAX 16 /* of one address; names are compared with no more */
#define NO_SYMBOL	UINT32_MAX

struct group {
	const struct image_builder *b;
	uint64_t dwarf; /* bits of the sources that are debug information */
	VEC(struct offered_name) names;
	uint32_t dwarf_texts[DWARF_NAMES_MAX];
	size_t n_dwarf;
};

static uint64_t dwarf_sources(const struct image_builder *b)
{
	uint64_t set = 0;

	for (size_t i = 0; i < b->sources.n; i++)
		if (b->sources.v[i].kind == SYMBOL_SOURCE_DWARF)
			set |= (uint64_t)1 << i;
	return set;
}

/* foo.part.0 is foo, as far as debug information is concerned. */
static bool is_clone_of(const struct intern_item *name, const struct intern_item *of)
{
	return name->n > of->n && name->p[of->n] == '.' && !memcmp(name->p, of->p, of->n);
}

static bool has_dwarf_name(const struct group *g, const struct offered_name *name)
{
	const struct intern_item *items = g->b->texts.items;

	if (name->sources & g->dwarf)
		return true;
	for (size_t i = 0; i < g->n_dwarf; i++)
		if (is_clone_of(&items[name->text], &items[g->dwarf_texts[i]]))
			return true;
	return false;
}

/* Before anything that symtab.h compares. A name that only debug information has may be a short
 * form ("operator()"), so a function of a symbol table comes before it. */
static unsigned name_rank(const struct group *g, const struct offered_name *name)
{
	if (name->text == NO_TEXT)
		return 5;
	if (g->dwarf && !(name->sources & ~g->dwarf))
		return 2;
	if (has_dwarf_name(g, name))
		return 0;
	return name->kind == CANDIDATE_KIND_FUNCTION ? 1
	       : name->kind == CANDIDATE_KIND_LABEL  ? 3
						     : 4;
}

static struct candidate as_candidate(const struct group *g, const struct offered_name *name)
{
	const struct intern_item *text = &g->b->texts.items[name->text];

	return (struct candidate){
		.name = text->p, .name_bytes = text->n, .kind = name->kind, .bind = name->bind};
}

static int compare_names(const void *x, const void *y, void *ctx)
{
	const struct offered_name *a = x, *b = y;
	const struct group *g = ctx;
	unsigned a_rank = name_rank(g, a), b_rank = name_rank(g, b);
	struct candidate a_c, b_c;

	if (a_rank != b_rank)
		return a_rank < b_rank ? -1 : 1;
	if (a->text == b->text)
		return 0;
	a_c = as_candidate(g, a);
	b_c = as_candidate(g, b);
	return candidate_is_better(&a_c, &b_c) ? -1 : 1;
}

ORDER_BY(compare_texts, struct offered_name, text)

static void join_name(struct offered_name *to, const struct offered_name *from)
{
	to->sources |= from->sources;
	if (from->kind < to->kind)
		to->kind = from->kind;
	if (from->bind < to->bind)
		to->bind = from->bind;
	if (!to->file)
		to->file = from->file;
}

/* All names of one address, equal ones joined, best first. */
static void sort_group(struct group *g)
{
	size_t kept = 0;

	if (g->names.n < 2)
		return;
	qsort(g->names.v, g->names.n, sizeof(*g->names.v), compare_texts);
	for (size_t i = 0; i < g->names.n; i++) {
		if (kept && g->names.v[kept - 1].text == g->names.v[i].text)
			join_name(&g->names.v[kept - 1], &g->names.v[i]);
		else
			g->names.v[kept++] = g->names.v[i];
	}
	g->names.n = kept;
	g->n_dwarf = 0;
	for (size_t i = 0; i < kept && g->n_dwarf < DWARF_NAMES_MAX; i++)
		if (g->names.v[i].text != NO_TEXT && g->names.v[i].sources & g->dwarf)
			g->dwarf_texts[g->n_dwarf++] = g->names.v[i].text;
	if (kept > 1)
		qsort_r(g->names.v, kept, sizeof(*g->names.v), compare_names, g);
}

static uint8_t name_flags(const struct offered_name *name)
{
	return (uint8_t)(name->kind | name->bind << NAME_BIND_SHIFT);
}

/* --- symbols with their addresses, before those without any are dropped --- */

struct merged {
	VEC(struct candidate) places;	  /* one an address; the name only says that there is one */
	VEC(struct final_symbol) symbols; /* of each place */
	VEC(uint32_t) first_alias;	  /* of each place */
	VEC(struct final_alias) aliases;
	struct range_piece *pieces; /* range_i is a place */
	size_t n_pieces;
};

static void add_place(struct merged *m, const struct group *g, uint64_t size, uint64_t room)
{
	const struct offered_name *best = &g->names.v[0];
	bool has_name = best->text != NO_TEXT;
	uint32_t n_aliases = 0;

	vec_push(&m->first_alias, (uint32_t)m->aliases.n);
	for (size_t i = 1; i < g->names.n; i++) {
		const struct offered_name *name = &g->names.v[i];

		if (name->text == NO_TEXT)
			continue;
		vec_push(&m->aliases,
			((struct final_alias){name->sources, name->text, name_flags(name)}));
		n_aliases++;
	}
	vec_push(&m->places, ((struct candidate){.name = has_name ? "" : NULL,
				     .start = best->start,
				     .size = has_name ? size : 0,
				     .room = room}));
	vec_push(&m->symbols,
		((struct final_symbol){.start = best->start,
			.size = size,
			.sources = best->sources,
			.text = best->text,
			.file = best->file,
			.n_aliases = n_aliases,
			.flags = (uint8_t)(name_flags(best) | (size ? NAME_IS_SIZED : 0))}));
}

static void merge_names(struct merged *m, const struct image_builder *b)
{
	struct sort_pair *order = mem_calloc(b->names.n, sizeof(*order));
	struct group g = {.b = b, .dwarf = dwarf_sources(b)};

	for (size_t i = 0; i < b->names.n; i++)
		order[i] = (struct sort_pair){b->names.v[i].start, (uint32_t)i};
	sort_pairs(order, b->names.n);
	for (size_t i = 0; i < b->names.n;) {
		uint64_t start = order[i].key, size = 0, room = 0;

		g.names.n = 0;
		for (; i < b->names.n && order[i].key == start; i++) {
			const struct offered_name *name = &b->names.v[order[i].i];

			size = name->size > size ? name->size : size;
			room = name->room > room ? name->room : room;
			vec_push(&g.names, *name);
		}
		sort_group(&g);
		add_place(m, &g, size, room);
	}
	vec_release(&g.names);
	free(order);
	m->n_pieces = candidates_paint(m->places.v, m->places.n, &m->pieces);
}

/* Run-time code: the names in the order they came, each painting over those before. */
static void merge_later_wins(struct merged *m, const struct image_builder *b)
{
	VEC(struct range) ranges = {0};

	for (size_t i = 0; i < b->names.n; i++) {
		const struct offered_name *name = &b->names.v[i];
		uint64_t end;

		if (name->text == NO_TEXT || !name->size)
			continue;
		if (__builtin_add_overflow(name->start, name->size, &end))
			end = UINT64_MAX;
		vec_push(&ranges, ((struct range){name->start, end}));
		vec_push(&m->first_alias, 0);
		vec_push(&m->symbols,
			((struct final_symbol){.start = name->start,
				.size = name->size,
				.sources = name->sources,
				.text = name->text,
				.order = (uint32_t)m->symbols.n,
				.flags = (uint8_t)(name_flags(name) | NAME_IS_SIZED)}));
	}
	m->n_pieces = range_paint(ranges.v, ranges.n, &m->pieces);
	vec_release(&ranges);
}

/* --- what is left is filled with pieces of functions --- */

static void add_filler(
	struct merged *m, const struct offered_piece *p, uint64_t start, uint64_t end)
{
	vec_push(&m->first_alias, 0);
	vec_push(&m->symbols,
		((struct final_symbol){.start = start,
			.size = end - start,
			.sources = p->sources,
			.text = p->text,
			.flags = CANDIDATE_KIND_FUNCTION | CANDIDATE_BIND_LOCAL << NAME_BIND_SHIFT |
				 NAME_IS_SIZED | NAME_IS_FILLER}));
}

/* Of two pieces that overlap the one that came first has the address, as for rows. */
static size_t paint_pieces(const struct image_builder *b, struct range_piece **out)
{
	size_t n = b->pieces.n, n_painted;
	struct range *ranges = mem_calloc(n, sizeof(*ranges));

	for (size_t i = 0; i < n; i++)
		ranges[i] = (struct range){b->pieces.v[i].start, b->pieces.v[i].end};
	n_painted = range_paint_first_wins(ranges, n, out);
	free(ranges);
	return n_painted;
}

static void fill_with_pieces(struct merged *m, const struct image_builder *b)
{
	VEC(struct range_piece) all = {0};
	struct range_piece *fill;
	size_t n_fill = paint_pieces(b, &fill), done = 0;

	for (size_t i = 0; i < n_fill; i++) {
		uint64_t at = fill[i].start, end;

		while (at < fill[i].end) {
			while (done < m->n_pieces && m->pieces[done].end <= at)
				vec_push(&all, m->pieces[done++]);
			end = fill[i].end;
			if (done < m->n_pieces && m->pieces[done].start < end)
				end = m->pieces[done].start;
			if (at < end) {
				add_filler(m, &b->pieces.v[fill[i].range_i], at, end);
				vec_push(&all, ((struct range_piece){
						       at, end, (uint32_t)m->symbols.n - 1}));
			}
			at = end == fill[i].end ? end : m->pieces[done].end;
		}
	}
	while (done < m->n_pieces)
		vec_push(&all, m->pieces[done++]);
	free(fill);
	free(m->pieces);
	m->pieces = all.v;
	m->n_pieces = all.n;
}

/* --- the symbols that have an address, by start --- */

static void keep_symbol(struct final_names *names, const struct merged *m, uint32_t i)
{
	vec_push(&names->symbols, m->symbols.v[i]);
	for (uint32_t k = 0; k < m->symbols.v[i].n_aliases; k++)
		vec_push(&names->aliases, m->aliases.v[m->first_alias.v[i] + k]);
}

/* The order of painting counts from 0 among those that are left. */
static void renumber_order(struct final_names *names)
{
	size_t n = names->symbols.n;
	struct sort_pair *order = mem_calloc(n, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = (struct sort_pair){names->symbols.v[i].order, (uint32_t)i};
	sort_pairs(order, n);
	for (size_t i = 0; i < n; i++)
		names->symbols.v[order[i].i].order = (uint32_t)i;
	free(order);
}

static void collect_symbols(struct final_names *names, struct merged *m)
{
	uint32_t *symbol_of = mem_alloc((m->symbols.n + 1) * sizeof(*symbol_of));
	struct sort_pair *order = mem_calloc(m->symbols.n, sizeof(*order));
	size_t n = 0;

	memset(symbol_of, 0xff, (m->symbols.n + 1) * sizeof(*symbol_of));
	for (size_t i = 0; i < m->n_pieces; i++) {
		const struct range_piece *p = &m->pieces[i];
		struct final_symbol *s = &m->symbols.v[p->range_i];

		if (symbol_of[p->range_i] == NO_SYMBOL)
			order[n++] = (struct sort_pair){s->start, p->range_i};
		symbol_of[p->range_i] = 0;
		if (!(s->flags & NAME_IS_SIZED))
			s->size = p->end - p->start;
	}
	sort_pairs(order, n);
	for (size_t i = 0; i < n; i++) {
		symbol_of[order[i].i] = (uint32_t)i;
		keep_symbol(names, m, order[i].i);
	}
	for (size_t i = 0; i < m->n_pieces; i++)
		m->pieces[i].range_i = symbol_of[m->pieces[i].range_i];
	free(symbol_of);
	free(order);
}

void final_names_init(struct final_names *names, const struct image_builder *b)
{
	struct merged m = {0};

	*names = (struct final_names){0};
	if (b->is_later_wins)
		merge_later_wins(&m, b);
	else
		merge_names(&m, b);
	if (b->pieces.n)
		fill_with_pieces(&m, b);
	collect_symbols(names, &m);
	if (b->is_later_wins)
		renumber_order(names);
	names->pieces = m.pieces;
	names->n_pieces = m.n_pieces;
	vec_release(&m.places);
	vec_release(&m.symbols);
	vec_release(&m.first_alias);
	vec_release(&m.aliases);
}

void final_names_release(struct final_names *names)
{
	vec_release(&names->symbols);
	vec_release(&names->aliases);
	free(names->pieces);
	names->pieces = NULL;
}
