/* SPDX-License-Identifier: MIT */
/*
 * Unpacks the chunks of an image when they are first needed. Columns come one behind the other,
 * each with a number (uleb) for every item. Invariants of what is unpacked, which look-ups rely on:
 *
 * 1. texts of anything are below the number of texts, files and sites at most their number, symbols
 *    below theirs;
 * 2. a site's parent is below the site, so every chain ends;
 * 3. the starts of a chunk's ranges ascend from 0 (catalog_image_ranges.c).
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/catalog/catalog_image_internal.h"

struct cursor image_open_chunk(
	const struct catalog_image *image, const struct chunk_table *t, size_t i, uint32_t *n)
{
	struct span raw = {NULL, 0};
	bool is_good = chunk_unpack(&image->cache->unpacker, t, i, &raw);
	struct cursor c = cursor_of(raw);

	c.failed = !is_good;
	*n = chunk_table_entry(t, i).n_items;
	return c;
}

bool image_chunk_is_good(const struct catalog_image *image, const struct cursor *c)
{
	if (!c->failed && !cursor_left(c))
		return true;
	image->cache->n_damaged++;
	return false;
}

/* --- texts --- */

/* The sum of all texts with their NULs; 0 when the columns are damaged. `shared` gets how many
 * bytes each text has in common with the one before. */
static size_t measure_texts(struct cursor c, uint32_t *shared, uint32_t n, size_t raw_bytes)
{
	size_t total = 0, before = 0;

	for (uint32_t i = 0; i < n; i++)
		shared[i] = column_up_to(&c, TEXT_BYTES_MAX);
	for (uint32_t i = 0; i < n; i++) {
		const char *rest = cursor_cstr(&c);

		if (!rest || shared[i] > before)
			return 0;
		before = shared[i] + strlen(rest);
		total += before + 1;
		if (before > TEXT_BYTES_MAX || total > TEXT_CHUNK_BYTES_MAX ||
			total / TEXT_SHARE_MAX > raw_bytes)
			return 0;
	}
	return c.failed || cursor_left(&c) ? 0 : total;
}

/* As they were checked. Bytes that could steer a terminal have no place in a text. */
static void copy_texts(
	struct image_text *texts, char *to, struct cursor c, uint32_t n, const uint32_t *shared)
{
	const char *before = to;

	for (uint32_t i = 0; i < n; i++)
		column_u32(&c);
	for (uint32_t i = 0; i < n; i++) {
		const char *rest = cursor_cstr(&c);
		size_t rest_n = strlen(rest);
		char *text = to;

		memcpy(text, before, shared[i]);
		for (size_t k = 0; k < rest_n; k++) {
			unsigned char ch = (unsigned char)rest[k];

			text[shared[i] + k] = (char)(ch < ' ' || ch == 0x7f ? '?' : ch);
		}
		text[shared[i] + rest_n] = 0;
		texts[i].linkage = text;
		to = text + shared[i] + rest_n + 1;
		before = text;
	}
}

struct image_text *image_load_texts(const struct catalog_image *image, size_t chunk)
{
	uint32_t n;
	struct cursor c = image_open_chunk(image, &image->texts, chunk, &n);
	uint32_t *shared = mem_calloc(n, sizeof(*shared));
	size_t bytes = c.failed ? 0 : measure_texts(c, shared, n, cursor_left(&c));
	struct image_text *texts = mem_alloc(n * sizeof(*texts) + bytes + 1);

	memset(texts, 0, n * sizeof(*texts));
	if (bytes) {
		copy_texts(texts, (char *)(texts + n), c, n, shared);
	} else {
		image->cache->n_damaged++;
		for (uint32_t i = 0; i < n; i++)
			texts[i].linkage = "";
	}
	free(shared);
	image->texts.unpacked[chunk] = texts;
	return texts;
}

/* --- tables with an index --- */

/* Unpacks a chunk whose items `take` reads; damaged, they are zeros. */
static void *load_items(const struct catalog_image *image, const struct chunk_table *t,
	size_t chunk, size_t item_bytes,
	void (*take)(const struct catalog_image *image, struct cursor *c, void *items, uint32_t n))
{
	uint32_t n;
	struct cursor c = image_open_chunk(image, t, chunk, &n);
	void *items = mem_calloc(n, item_bytes);

	take(image, &c, items, n);
	if (!image_chunk_is_good(image, &c))
		memset(items, 0, n * item_bytes);
	t->unpacked[chunk] = items;
	return items;
}

static void take_files(const struct catalog_image *image, struct cursor *c, void *items, uint32_t n)
{
	struct image_file *files = items;

	for (uint32_t i = 0; i < n; i++)
		files[i].text = column_up_to(c, image->texts.n_items - 1);
}

struct image_file *image_load_files(const struct catalog_image *image, size_t chunk)
{
	return load_items(image, &image->files, chunk, sizeof(struct image_file), take_files);
}

struct image_file *image_load_symbol_files(const struct catalog_image *image, size_t chunk)
{
	return load_items(
		image, &image->symbol_files, chunk, sizeof(struct image_file), take_files);
}

static void take_symbols(
	const struct catalog_image *image, struct cursor *c, void *items, uint32_t n)
{
	struct image_symbol *symbols = items;
	uint64_t start = cursor_u64(c);
	uint32_t alias = cursor_u32(c);

	for (uint32_t i = 0; i < n; i++) {
		start += cursor_uleb(c);
		symbols[i].start = start;
	}
	for (uint32_t i = 0; i < n; i++)
		symbols[i].size = cursor_uleb(c);
	for (uint32_t i = 0; i < n; i++)
		symbols[i].text = column_up_to(c, image->texts.n_items - 1);
	for (uint32_t i = 0; i < n; i++)
		symbols[i].flags = cursor_u8(c);
	for (uint32_t i = 0; i < n; i++)
		symbols[i].sources = column_up_to(c, image->n_source_sets - 1);
	for (uint32_t i = 0; i < n; i++) {
		if (alias > image->aliases.n_items)
			c->failed = true;
		symbols[i].first_alias = alias;
		symbols[i].n_aliases =
			c->failed ? 0 : column_up_to(c, image->aliases.n_items - alias);
		alias += symbols[i].n_aliases;
	}
	for (uint32_t i = 0; i < n && image->symbols.extra & SYMBOLS_LATER_WINS; i++)
		symbols[i].order = column_u32(c);
}

struct image_symbol *image_load_symbols(const struct catalog_image *image, size_t chunk)
{
	return load_items(image, &image->symbols, chunk, sizeof(struct image_symbol), take_symbols);
}

static void take_aliases(
	const struct catalog_image *image, struct cursor *c, void *items, uint32_t n)
{
	struct image_alias *aliases = items;

	for (uint32_t i = 0; i < n; i++)
		aliases[i].text = column_up_to(c, image->texts.n_items - 1);
	for (uint32_t i = 0; i < n; i++)
		aliases[i].flags = cursor_u8(c);
	for (uint32_t i = 0; i < n; i++)
		aliases[i].sources = column_up_to(c, image->n_source_sets - 1);
}

struct image_alias *image_load_aliases(const struct catalog_image *image, size_t chunk)
{
	return load_items(image, &image->aliases, chunk, sizeof(struct image_alias), take_aliases);
}

static void take_data(const struct catalog_image *image, struct cursor *c, void *items, uint32_t n)
{
	struct image_datum *data = items;
	uint64_t start = cursor_u64(c);

	for (uint32_t i = 0; i < n; i++) {
		start += cursor_uleb(c);
		data[i].start = start;
	}
	for (uint32_t i = 0; i < n; i++)
		data[i].size = cursor_uleb(c);
	for (uint32_t i = 0; i < n; i++)
		data[i].text = column_up_to(c, image->texts.n_items - 1);
	for (uint32_t i = 0; i < n; i++)
		data[i].bind = cursor_u8(c) & NAME_BIND_MASK;
}

struct image_datum *image_load_data(const struct catalog_image *image, size_t chunk)
{
	return load_items(image, &image->data, chunk, sizeof(struct image_datum), take_data);
}

struct site_chunk *image_load_sites(const struct catalog_image *image, size_t chunk)
{
	uint32_t n, first = (uint32_t)(chunk << SITE_CHUNK_SHIFT) + 1;
	struct cursor c = image_open_chunk(image, &image->sites, chunk, &n);
	size_t bytes = n * (sizeof(struct image_site) + sizeof(struct site_ids));
	struct site_chunk *made = mem_zalloc(sizeof(*made) + bytes);

	made->ids = (struct site_ids *)(made->sites + n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t back = column_up_to(&c, first + i - 1);

		made->sites[i].parent = back ? first + i - back : 0;
	}
	for (uint32_t i = 0; i < n; i++)
		made->ids[i].text = column_up_to(&c, image->texts.n_items - 1);
	for (uint32_t i = 0; i < n; i++)
		made->ids[i].call_file = column_up_to(&c, image->files.n_items);
	for (uint32_t i = 0; i < n; i++)
		made->sites[i].call_line = column_u32(&c);
	if (!image_chunk_is_good(image, &c))
		memset(made->sites, 0, bytes);
	image->sites.unpacked[chunk] = made;
	return made;
}

/* --- the end of it --- */

static void free_unpacked(const struct chunk_table *t)
{
	for (size_t i = 0; t->unpacked && i < t->n_chunks; i++)
		free(t->unpacked[i]);
	free(t->unpacked);
}

static void free_names(struct catalog_image *image, size_t chunk)
{
	struct image_text *texts = image->texts.unpacked[chunk];
	uint32_t n = texts ? chunk_table_entry(&image->texts, chunk).n_items : 0;

	for (uint32_t i = 0; i < n; i++)
		if (texts[i].name != texts[i].linkage)
			free((char *)texts[i].name);
}

void image_cache_free(struct catalog_image *image)
{
	struct image_cache *cache = image->cache;

	for (size_t i = 0; cache && i < image->texts.n_chunks; i++)
		free_names(image, i);
	free_unpacked(&image->texts);
	free_unpacked(&image->files);
	free_unpacked(&image->symbols);
	free_unpacked(&image->aliases);
	free_unpacked(&image->sites);
	free_unpacked(&image->ranges);
	free_unpacked(&image->data);
	free_unpacked(&image->symbol_files);
	free_unpacked(&image->columns);
	if (!cache)
		return;
	for (size_t i = 0; i < image->ranges.n_chunks; i++)
		free(cache->ranges[i].memory);
	free(cache->ranges);
	chunk_unpacker_release(&cache->unpacker);
	free(cache);
	image->cache = NULL;
}
