/* SPDX-License-Identifier: MIT */
#include "symbols/catalog/extent_check.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "dwarf/cfi_table.h"

/* Between two functions that are no further apart there is padding and no third one. */
#define PADDING_BYTES_MAX 15

struct extent *extents_of_elf(const struct elf_file *elf, size_t *n)
{
	struct cfi_table *cfi = cfi_table_new(elf);
	struct extent *v = NULL;

	*n = cfi_table_n_functions(cfi);
	if (*n)
		v = mem_calloc(*n, sizeof(*v));
	for (size_t i = 0; i < *n; i++) {
		struct iaddr start = cfi_table_function(cfi, i, &v[i].bytes);

		v[i].start = start.v;
	}
	cfi_table_free(cfi);
	return v;
}

/* The first extent that begins at or behind `addr`. */
static size_t first_from(const struct extent *v, size_t n, uint64_t addr)
{
	return SEARCH(0, n, mid, v[mid].start < addr);
}

static uint64_t end_of(const struct extent *e)
{
	return e->start + e->bytes;
}

/* --- functions --- */

enum function_state { FUNCTION_UNKNOWN, FUNCTION_WRONG, FUNCTION_RIGHT };

/* Where the table has an entry around the address; `in` is empty when it is between two. */
static enum function_state compare_function(
	const struct extent_question *q, const struct candidate *c, struct extent *in)
{
	size_t next = first_from(q->image, q->n_image, c->start);
	const struct extent *here = &q->image[next], *before = next ? here - 1 : NULL;

	*in = (struct extent){c->start, 0};
	if (next < q->n_image && here->start == c->start) {
		*in = *here;
		/* A piece may be padded; a symbol is not. */
		return !c->size || (c->size >= here->bytes &&
					   c->size - here->bytes <=
						   (q->n_pieces ? PADDING_BYTES_MAX : 0))
			       ? FUNCTION_RIGHT
			       : FUNCTION_WRONG;
	}
	if (before && c->start < end_of(before)) {
		*in = *before;
		return FUNCTION_WRONG;
	}
	if (before && next < q->n_image && here->start - end_of(before) <= PADDING_BYTES_MAX)
		return FUNCTION_WRONG;
	return FUNCTION_UNKNOWN;
}

static void compare_functions(
	const struct extent_question *q, struct extent_result *r, enum function_state *states)
{
	for (size_t i = 0; i < q->n_functions; i++) {
		struct extent in;

		states[i] = compare_function(q, &q->functions[i], &in);
		r->n_compared += states[i] != FUNCTION_UNKNOWN;
		r->n_agree += states[i] == FUNCTION_RIGHT;
		if (states[i] == FUNCTION_WRONG && r->first_wrong == SIZE_MAX) {
			r->first_wrong = i;
			r->wrong_in_image = in;
		}
	}
}

/* --- pieces --- */

/* One piece as the image has it: a number for the extents in it, which pieces that could be
 * exchanged have in common; 0 when there are none. */
static uint64_t signature(
	const struct extent_question *q, const struct extent *piece, struct extent_result *r)
{
	size_t i = first_from(q->image, q->n_image, piece->start);
	uint64_t hash = 0;

	if (i && end_of(&q->image[i - 1]) > piece->start && !r->torn.bytes) {
		r->torn = q->image[i - 1];
		r->torn_piece = *piece;
	}
	for (; i < q->n_image && q->image[i].start < end_of(piece); i++) {
		const struct extent *e = &q->image[i];
		uint64_t fields[2] = {e->start - piece->start, e->bytes};

		hash = map_hash_mix(hash, map_hash_bytes(fields, sizeof(fields))) | 1;
		if (end_of(e) > end_of(piece) && !r->torn.bytes) {
			r->torn = *e;
			r->torn_piece = *piece;
		}
	}
	return hash;
}

/* A piece of the text, from the borders that it says or else from one of its functions. */
struct placed_piece {
	struct extent extent;
	uint64_t signature;
	bool is_anchored;
};

static int compare_pieces(const void *a, const void *b)
{
	const struct placed_piece *x = a, *y = b;

	return ORDER(x->extent.start, y->extent.start);
}

/* The piece that the address is in; NULL when none is. */
static struct placed_piece *piece_at(struct placed_piece *v, size_t n, uint64_t addr)
{
	size_t behind = SEARCH(0, n, mid, v[mid].extent.start <= addr);

	if (!behind || addr >= end_of(&v[behind - 1].extent))
		return NULL;
	return &v[behind - 1];
}

/* Without pieces: every function that is right is one, with the bytes that the image gives it. */
static size_t place_pieces(const struct extent_question *q, const enum function_state *states,
	struct extent_result *r, struct placed_piece *to)
{
	size_t n = 0;

	for (size_t i = 0; i < q->n_pieces; i++) {
		to[n].extent = q->pieces[i];
		to[n++].signature = signature(q, &q->pieces[i], r);
	}
	for (size_t i = 0; !q->n_pieces && i < q->n_functions; i++) {
		struct extent in;

		if (states[i] != FUNCTION_RIGHT)
			continue;
		compare_function(q, &q->functions[i], &in);
		to[n].extent = in;
		to[n++].signature = signature(q, &in, r);
	}
	qsort(to, n, sizeof(*to), compare_pieces);
	return n;
}

/* How many pieces have each signature. Several names of one function are one piece. */
static void count_signatures(struct map *counts, const struct placed_piece *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool created;
		uint64_t *count;

		if (i && v[i].extent.start == v[i - 1].extent.start)
			continue;
		count = map_ensure(counts, v[i].signature, &created);
		*count = created ? 1 : *count + 1;
	}
}

static void pin(const struct extent_question *q, const enum function_state *states,
	struct placed_piece *pieces, size_t n, bool *is_pinned)
{
	struct map counts = {0};

	for (size_t i = 0; i < q->n_functions; i++) {
		struct placed_piece *p = piece_at(pieces, n, q->functions[i].start);

		if (p && q->is_anchored[i])
			p->is_anchored = true;
	}
	count_signatures(&counts, pieces, n);
	for (size_t i = 0; i < q->n_functions; i++) {
		const struct placed_piece *p = piece_at(pieces, n, q->functions[i].start);

		is_pinned[i] = q->is_anchored[i] ||
			       (p && states[i] == FUNCTION_RIGHT && p->signature &&
				       (p->is_anchored || *map_find(&counts, p->signature) == 1));
	}
	map_release(&counts);
}

void extent_check(const struct extent_question *q, struct extent_result *result, bool *is_pinned)
{
	enum function_state *states = mem_calloc(q->n_functions + 1, sizeof(*states));
	struct placed_piece *pieces =
		mem_calloc((q->n_pieces ? q->n_pieces : q->n_functions) + 1, sizeof(*pieces));
	size_t n;

	*result = (struct extent_result){.first_wrong = SIZE_MAX};
	compare_functions(q, result, states);
	n = place_pieces(q, states, result, pieces);
	pin(q, states, pieces, n, is_pinned);
	free(states);
	free(pieces);
}
