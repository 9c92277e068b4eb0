/* SPDX-License-Identifier: MIT */
/*
 * From candidates to a table, in four steps: sort and keep one name an address; paint the ranges of
 * those with a size; fill the gaps with those without; copy the names that are left.
 */
#include "symbols/symtab_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/sort.h"

#define UNDERSCORES_MAX 16 /* more are not told apart */
#define NO_SYMBOL	UINT32_MAX

void symtab_builder_add(struct symtab_builder *b, const struct candidate *c)
{
	if (b->all.n >= SYMTAB_SYMBOLS_MAX || c->name_bytes > SYMTAB_NAME_BYTES_MAX) {
		b->n_skipped++;
		return;
	}
	vec_push(&b->all, *c);
}

static void add_to_builder(void *ctx, const struct candidate *c)
{
	symtab_builder_add(ctx, c);
}

struct symbol_sink symtab_builder_sink(struct symtab_builder *b)
{
	return (struct symbol_sink){add_to_builder, b};
}

void symtab_builder_release(struct symtab_builder *b)
{
	vec_release_all(&b->owned);
	vec_release(&b->all);
}

static unsigned leading_underscores(const struct candidate *c)
{
	unsigned n = 0;

	while (n < c->name_bytes && n < UNDERSCORES_MAX && c->name[n] == '_')
		n++;
	return n;
}

bool candidate_is_better(const struct candidate *a, const struct candidate *b)
{
	unsigned a_score, b_score;
	int order;

	if (!a->name || !b->name)
		return a->name != NULL;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	if (a->bind != b->bind)
		return a->bind < b->bind;
	a_score = leading_underscores(a);
	b_score = leading_underscores(b);
	if (a_score != b_score)
		return a_score < b_score;
	if (a->name_bytes != b->name_bytes)
		return a->name_bytes < b->name_bytes;
	order = a->name == b->name ? 0 : memcmp(a->name, b->name, a->name_bytes);
	return order ? order < 0 : a->source < b->source;
}

ORDER_BY(compare_starts, struct candidate, start)

static void sort_by_start(struct candidate *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (v[i].start < v[i - 1].start) {
			qsort(v, n, sizeof(*v), compare_starts);
			return;
		}
	}
}

/* Keeps the best name of each address, with the largest size and room of all; returns how many
 * addresses there are. */
static size_t merge_aliases(struct candidate *v, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct candidate *last = kept ? &v[kept - 1] : NULL;
		struct candidate c = v[i];

		if (!last || last->start != c.start) {
			v[kept++] = c;
			continue;
		}
		if (last->size > c.size)
			c.size = last->size;
		if (last->room > c.room)
			c.room = last->room;
		if (candidate_is_better(&v[i], last)) {
			*last = c;
		} else {
			last->size = c.size;
			last->room = c.room;
		}
	}
	return kept;
}

static uint64_t end_of(uint64_t start, uint64_t bytes)
{
	uint64_t end;

	return __builtin_add_overflow(start, bytes, &end) ? UINT64_MAX : end;
}

/* The ranges of all candidates in their order, empty for those without a size. */
static size_t paint(const struct candidate *v, size_t n, struct range_piece **pieces)
{
	struct range *ranges = mem_calloc(n, sizeof(*ranges));
	size_t n_pieces;

	for (size_t i = 0; i < n; i++)
		ranges[i] = (struct range){v[i].start, end_of(v[i].start, v[i].size)};
	n_pieces = range_paint(ranges, n, pieces);
	free(ranges);
	return n_pieces;
}

/* Adds pieces for the candidates without a size whose address no piece covers. Such a piece ends
 * where the next candidate starts: a sized one that resumes later without starting there would
 * cover the address. */
static size_t fill_gaps(
	const struct candidate *v, size_t n, struct range_piece **pieces, size_t n_pieces)
{
	VEC(struct range_piece) all = {0};
	size_t done = 0;

	vec_reserve(&all, n_pieces + 1);
	for (size_t i = 0; i < n; i++) {
		uint64_t start = v[i].start, end = end_of(start, v[i].room);

		if (v[i].size || !v[i].name)
			continue;
		while (done < n_pieces && (*pieces)[done].end <= start)
			vec_push(&all, (*pieces)[done++]);
		if (done < n_pieces && (*pieces)[done].start <= start)
			continue;
		if (i + 1 < n && v[i + 1].start < end)
			end = v[i + 1].start;
		if (end > start)
			vec_push(&all, ((struct range_piece){start, end, (uint32_t)i}));
	}
	while (done < n_pieces)
		vec_push(&all, (*pieces)[done++]);
	free(*pieces);
	*pieces = all.v;
	return all.n;
}

size_t candidates_paint(const struct candidate *v, size_t n, struct range_piece **pieces)
{
	size_t n_pieces = paint(v, n, pieces);

	return fill_gaps(v, n, pieces, n_pieces);
}

/* The candidates that have a piece, by address. */
static struct sort_pair *order_used(const struct candidate *v, size_t n,
	const struct range_piece *pieces, size_t n_pieces, size_t *n_used)
{
	bool *used = mem_calloc(n + 1, sizeof(*used));
	struct sort_pair *orders;
	size_t k = 0;

	for (size_t i = 0; i < n_pieces; i++)
		used[pieces[i].range_i] = true;
	orders = mem_calloc(n + 1, sizeof(*orders));
	for (size_t i = 0; i < n; i++)
		if (used[i])
			orders[k++] = (struct sort_pair){v[i].start, (uint32_t)i};
	free(used);
	sort_pairs(orders, k);
	*n_used = k;
	return orders;
}

/* A tab separates kallsyms' module; anything else below a blank could steer a terminal. */
static void copy_name(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)from[i];

		if (ch == '\t')
			ch = ' ';
		to[i] = (char)(ch < ' ' || ch == 0x7f ? '?' : ch);
	}
	to[n] = 0;
}

static const char *copy_file(struct symtab *t, const char *file)
{
	char text[SYMBOL_FILE_BYTES_MAX + 1];

	if (!file)
		return NULL;
	copy_name(text, file, strlen(file));
	return intern_get(&t->files, intern_text(&t->files, text));
}

static void set_symbol(struct symtab *t, size_t i, const struct candidate *c, char *name)
{
	copy_name(name, c->name, c->name_bytes);
	t->symbols[i] = (struct symbol){
		.name = name,
		.linkage_name = name,
		.start = c->start,
		.size = c->size,
		.source = (enum symbol_source)c->source,
		.file = copy_file(t, c->file),
	};
	t->is_demangled[i] = c->source == SYMBOL_SOURCE_PERF_MAP;
}

/* Drops the pieces of candidates that became no symbol and makes the others point to theirs. */
static void point_pieces(struct symtab *t, const uint32_t *symbol_of)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n_pieces; i++) {
		struct range_piece p = t->pieces[i];

		p.range_i = symbol_of[p.range_i];
		if (p.range_i == NO_SYMBOL)
			continue;
		if (!t->symbols[p.range_i].size)
			t->symbols[p.range_i].size = p.end - p.start;
		t->pieces[kept++] = p;
	}
	t->n_pieces = kept;
}

/* Takes over `pieces`, whose range_i are candidates. */
static struct symtab *make_table(const struct symtab_builder *b, size_t n_candidates,
	struct range_piece *pieces, size_t n_pieces)
{
	struct symtab *t = mem_zalloc(sizeof(*t));
	const struct candidate *v = b->all.v;
	size_t n_used;
	struct sort_pair *orders = order_used(v, n_candidates, pieces, n_pieces, &n_used);
	uint32_t *symbol_of = mem_calloc(n_candidates + 1, sizeof(*symbol_of));
	uint64_t bytes = 0;
	char *name;

	t->pieces = pieces;
	t->n_pieces = n_pieces;
	t->n_skipped = b->n_skipped;
	memset(symbol_of, 0xff, (n_candidates + 1) * sizeof(*symbol_of));
	for (t->n = 0; t->n < n_used; t->n++) {
		bytes += v[orders[t->n].i].name_bytes + 1;
		if (bytes > b->name_bytes_max)
			break;
	}
	t->n_skipped += n_used - t->n;
	t->symbols = mem_calloc(t->n + 1, sizeof(*t->symbols));
	t->is_demangled = mem_calloc(t->n + 1, sizeof(*t->is_demangled));
	name = t->names = mem_alloc(bytes + 1);
	for (size_t i = 0; i < t->n; i++) {
		const struct candidate *c = &v[orders[i].i];

		set_symbol(t, i, c, name);
		symbol_of[orders[i].i] = (uint32_t)i;
		name += c->name_bytes + 1;
	}
	point_pieces(t, symbol_of);
	free(symbol_of);
	free(orders);
	return t;
}

struct symtab *symtab_builder_finish(struct symtab_builder *b, const char *sources)
{
	struct range_piece *pieces;
	struct symtab *t;
	size_t n, n_pieces;

	sort_by_start(b->all.v, b->all.n);
	n = merge_aliases(b->all.v, b->all.n);
	n_pieces = candidates_paint(b->all.v, n, &pieces);
	t = make_table(b, n, pieces, n_pieces);
	t->sources = mem_strdup(sources);
	symtab_builder_release(b);
	return t;
}

struct symtab *symtab_builder_finish_later_wins(struct symtab_builder *b, const char *sources)
{
	struct range_piece *pieces;
	size_t n_pieces = paint(b->all.v, b->all.n, &pieces);
	struct symtab *t = make_table(b, b->all.n, pieces, n_pieces);

	t->sources = mem_strdup(sources);
	symtab_builder_release(b);
	return t;
}
