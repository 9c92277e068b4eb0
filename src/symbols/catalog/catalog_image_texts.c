/* SPDX-License-Identifier: MIT */
/*
 * The texts of an image: which are used, their order, their table. Sorted texts share their
 * beginnings, which are then left out; what remains packs well.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/catalog/catalog_image_build_internal.h"

#define CHUNK_TEXT_BYTES                                                                           \
	(64u << 10) /* a chunk of texts is about as long, shared beginnings counted */
#define SMALL 16    /* up to here texts are sorted by insertion */

/* --- sorting: three-way quicksort by eight bytes at a time --- */

struct text_key {
	uint64_t bytes; /* of the text at the depth of its part, the first one highest */
	uint32_t id;
};

struct text_part {
	size_t first, n;
	size_t depth; /* bytes that all texts of the part share */
};

static uint64_t bytes_at(const struct intern_item *text, size_t depth)
{
	uint64_t word = 0;
	size_t left = text->n > depth ? text->n - depth : 0;

	memcpy(&word, text->p + (left ? depth : 0), left < 8 ? left : 8);
	return __builtin_bswap64(word);
}

static bool is_before(const struct intern *texts, const struct text_key *a,
	const struct text_key *b, size_t depth)
{
	const struct intern_item *x = &texts->items[a->id], *y = &texts->items[b->id];

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes;
	/* Texts have no NUL inside, and each has one behind it. */
	if (x->n < depth + 8 || y->n < depth + 8)
		return x->n < y->n;
	return strcmp(x->p + depth + 8, y->p + depth + 8) < 0;
}

static void sort_few(const struct intern *texts, struct text_key *v, size_t n, size_t depth)
{
	for (size_t i = 1; i < n; i++) {
		struct text_key key = v[i];
		size_t k = i;

		for (; k && is_before(texts, &key, &v[k - 1], depth); k--)
			v[k] = v[k - 1];
		v[k] = key;
	}
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
	if (a < b)
		return b < c ? b : a < c ? c : a;
	return a < c ? a : b < c ? c : b;
}

/* Smaller, equal, larger: the numbers of the first two. */
static void partition(
	struct text_key *v, size_t n, uint64_t pivot, size_t *n_smaller, size_t *n_equal)
{
	size_t low = 0, i = 0, high = n;

	while (i < high) {
		struct text_key key = v[i];

		if (key.bytes < pivot) {
			v[i++] = v[low];
			v[low++] = key;
		} else if (key.bytes > pivot) {
			v[i] = v[--high];
			v[high] = key;
		} else {
			i++;
		}
	}
	*n_smaller = low;
	*n_equal = high - low;
}

static void load_keys(const struct intern *texts, struct text_key *v, size_t n, size_t depth)
{
	for (size_t i = 0; i < n; i++)
		v[i].bytes = bytes_at(&texts->items[v[i].id], depth);
}

static void sort_keys(const struct intern *texts, struct text_key *v, size_t n)
{
	VEC(struct text_part) parts = {0};
	uint64_t random = 1;

	load_keys(texts, v, n, 0);
	vec_push(&parts, ((struct text_part){0, n, 0}));
	while (parts.n) {
		struct text_part p = parts.v[--parts.n];
		struct text_key *at = v + p.first;
		size_t smaller, equal;
		uint64_t pivot;

		if (p.n <= SMALL) {
			sort_few(texts, at, p.n, p.depth);
			continue;
		}
		random = random * 6364136223846793005u + 1442695040888963407u;
		pivot = median(at[(random >> 32) % p.n].bytes, at[p.n / 2].bytes,
			at[(random >> 16) % p.n].bytes);
		partition(at, p.n, pivot, &smaller, &equal);
		vec_push(&parts, ((struct text_part){p.first, smaller, p.depth}));
		vec_push(&parts, ((struct text_part){p.first + smaller + equal,
					 p.n - smaller - equal, p.depth}));
		if (equal > 1) { /* distinct texts: none of them ends here */
			load_keys(texts, at + smaller, equal, p.depth + 8);
			vec_push(&parts,
				((struct text_part){p.first + smaller, equal, p.depth + 8}));
		}
	}
	vec_release(&parts);
}

/* Sorts texts bytewise. */
static void texts_sort(const struct intern *texts, uint32_t *ids, size_t n)
{
	struct text_key *keys = mem_calloc(n, sizeof(*keys));

	for (size_t i = 0; i < n; i++)
		keys[i].id = ids[i];
	sort_keys(texts, keys, n);
	for (size_t i = 0; i < n; i++)
		ids[i] = keys[i].id;
	free(keys);
}

/* --- numbering --- */

/* Outermost first, so that a parent's number is below its children's. */
static void number_site(struct numbering *n, const struct image_builder *b, uint32_t site)
{
	size_t n_waiting = 0;

	for (; site && !n->site_ids[site]; site = b->sites.v[site].parent)
		n->chain[n_waiting++] = site;
	while (n_waiting) {
		const struct built_site *s = &b->sites.v[n->chain[--n_waiting]];

		n->sites[++n->n_sites] = n->chain[n_waiting];
		n->site_ids[n->chain[n_waiting]] = (uint32_t)n->n_sites;
		n->text_use[s->text] |= TEXT_IS_USED;
		if (s->call_file)
			n->text_use[s->call_file] |= TEXT_IS_USED | TEXT_IS_FILE;
	}
}

static void mark_rows(
	struct numbering *n, const struct image_builder *b, const struct row_map *rows)
{
	struct row_cursor c = {.b = b, .map = rows, .row_i = SIZE_MAX};
	struct row_span span;

	while (row_cursor_next(&c, &span)) {
		if (span.row->file)
			n->text_use[span.row->file] |= TEXT_IS_USED | TEXT_IS_FILE;
		if (span.row->site)
			number_site(n, b, span.row->site);
	}
}

void numbering_init(struct numbering *n, const struct image_builder *b,
	const struct final_names *names, const struct row_map *rows)
{
	size_t n_all = b->texts.n_items;

	*n = (struct numbering){0};
	n->text_use = mem_calloc(n_all, sizeof(*n->text_use));
	n->text_ids = mem_calloc(n_all, sizeof(*n->text_ids));
	n->file_ids = mem_calloc(n_all, sizeof(*n->file_ids));
	n->site_ids = mem_calloc(b->sites.n, sizeof(*n->site_ids));
	n->texts = mem_calloc(n_all, sizeof(*n->texts));
	n->files = mem_calloc(n_all, sizeof(*n->files));
	n->sites = mem_calloc(b->sites.n + 1, sizeof(*n->sites));
	n->chain = mem_calloc(b->sites.n + 1, sizeof(*n->chain));
	n->text_use[0] = TEXT_IS_USED;
	for (size_t i = 0; i < names->symbols.n; i++) {
		n->text_use[names->symbols.v[i].text] |= TEXT_IS_USED;
		n->text_use[names->symbols.v[i].file] |= TEXT_IS_USED;
	}
	for (size_t i = 0; i < names->aliases.n; i++)
		n->text_use[names->aliases.v[i].text] |= TEXT_IS_USED;
	for (size_t i = 0; i < b->data.n; i++)
		n->text_use[b->data.v[i].text] |= TEXT_IS_USED;
	mark_rows(n, b, rows);
	for (size_t i = 0; i < n_all; i++)
		if (n->text_use[i])
			n->texts[n->n_texts++] = (uint32_t)i;
	texts_sort(&b->texts, n->texts, n->n_texts);
	for (size_t i = 0; i < n->n_texts; i++) {
		uint32_t text = n->texts[i];

		n->text_ids[text] = (uint32_t)i;
		if (n->text_use[text] & TEXT_IS_FILE) {
			n->files[n->n_files++] = (uint32_t)i;
			n->file_ids[text] = (uint32_t)n->n_files;
		}
	}
}

void numbering_release(struct numbering *n)
{
	free(n->text_use);
	free(n->text_ids);
	free(n->file_ids);
	free(n->site_ids);
	free(n->texts);
	free(n->files);
	free(n->sites);
	free(n->chain);
	*n = (struct numbering){0};
}

/* --- the table --- */

static size_t chunk_bytes(
	const struct intern *texts, const uint32_t *ids, size_t n, size_t first, unsigned shift)
{
	size_t sum = 0;

	for (size_t i = first; i < n && i < first + ((size_t)1 << shift); i++)
		sum += texts->items[ids[i]].n + 1;
	return sum;
}

/* So many texts a chunk that most are about CHUNK_TEXT_BYTES long and none is too long. */
static unsigned choose_shift(const struct intern *texts, const uint32_t *ids, size_t n)
{
	unsigned shift = TEXT_CHUNK_SHIFT_MAX;
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += texts->items[ids[i]].n + 1;
	while (shift && (total << shift) / n > CHUNK_TEXT_BYTES)
		shift--;
	for (size_t i = 0; i < n; i += (size_t)1 << shift) {
		while (shift && chunk_bytes(texts, ids, n, i, shift) > TEXT_CHUNK_BYTES_MAX) {
			shift--;
			i = 0;
		}
	}
	return shift;
}

static uint32_t shared_bytes(const struct intern_item *a, const struct intern_item *b)
{
	uint32_t n = a->n < b->n ? a->n : b->n, i = 0;
	uint64_t x, y;

	for (; i + 8 <= n; i += 8) {
		memcpy(&x, a->p + i, 8);
		memcpy(&y, b->p + i, 8);
		if (x != y)
			return i + (uint32_t)__builtin_ctzll(x ^ y) / 8;
	}
	while (i < n && a->p[i] == b->p[i])
		i++;
	return i;
}

static void encode_chunk(struct buf *out, const struct intern *texts, const uint32_t *ids, size_t n)
{
	uint32_t *shared = mem_calloc(n, sizeof(*shared));

	for (size_t i = 0; i < n; i++) {
		const struct intern_item *text = &texts->items[ids[i]];
		uint32_t most =
			(uint32_t)((uint64_t)(TEXT_SHARE_MAX - 1) * (text->n + 2) / TEXT_SHARE_MAX);

		shared[i] = i ? shared_bytes(&texts->items[ids[i - 1]], text) : 0;
		if (shared[i] > most)
			shared[i] = most;
		buf_put_uleb(out, shared[i]);
	}
	for (size_t i = 0; i < n; i++) {
		const struct intern_item *text = &texts->items[ids[i]];

		buf_put(out, text->p + shared[i], text->n - shared[i] + 1);
	}
	free(shared);
}

void texts_encode(struct chunk_writer *w, const struct intern *texts, const uint32_t *ids, size_t n)
{
	size_t each;

	w->shift = choose_shift(texts, ids, n);
	each = (size_t)1 << w->shift;
	for (size_t i = 0; i < n; i += each) {
		size_t n_items = n - i < each ? n - i : each;

		encode_chunk(&w->raw, texts, ids + i, n_items);
		chunk_writer_cut(w, i, (uint32_t)n_items);
	}
}
