/* SPDX-License-Identifier: MIT */
/* What an opened catalog image is made of, for the catalog_image*.c files only. */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_INTERNAL_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_INTERNAL_H

#include "symbols/catalog/catalog_chunks.h"
#include "symbols/catalog/catalog_image.h"
#include "symbols/catalog/catalog_image_ranges.h"
#include "symbols/catalog/catalog_layout.h"

/* Items as they are once their chunk is unpacked. Every id in them was checked. */
struct image_text {
	const char *linkage;
	const char *name; /* demangled, or NULL when nobody asked yet; owned unless `linkage` */
};

struct image_file {
	const char *path; /* NULL when nobody asked yet */
	uint32_t text;
};

/* A symbol, with its names once somebody asked for them. */
struct image_symbol {
	const char *name, *linkage;
	uint64_t start, size;
	uint32_t text;
	uint32_t sources; /* index of a set of sources */
	uint32_t first_alias, n_aliases;
	uint32_t order; /* of painting; only where the later symbol wins */
	uint8_t flags;	/* NAME_* */
};

struct image_alias {
	uint32_t text, sources;
	uint8_t flags;
};

struct image_datum {
	uint64_t start, size;
	uint32_t text;
	uint8_t bind;
};

/* A site, with its texts once somebody asked for them. Chains lead from site to site, so all that a
 * level of an answer needs is in one place. */
struct image_site {
	const char *name; /* NULL when nobody asked yet */
	const char *linkage, *call_path;
	uint32_t call_line;
	uint32_t parent; /* 0 = none; below the site's own number */
};

/* From each start on the column of its place; starts count from the chunk's first address. */
struct column_chunk {
	uint32_t n;
	uint32_t starts[COLUMN_CHUNK_ITEMS];
	uint16_t columns[COLUMN_CHUNK_ITEMS];
};

struct site_ids {
	uint32_t text, call_file;
};

struct site_chunk {
	struct site_ids *ids;
	struct image_site sites[];
};

/* What look-ups made; like the chunks that were unpacked not part of what a const image promises. */
struct image_cache {
	struct range_chunk *ranges; /* no lines until they are unpacked */
	struct chunk_unpacker unpacker;
	size_t n_damaged;
};

struct catalog_image {
	struct span bytes;
	struct image_identity identity;
	char id[17];
	const char *notes;
	struct catalog_source *sources;
	size_t n_sources;
	struct catalog_section *sections;
	size_t n_sections;
	uint64_t *source_sets; /* bits of sources; set 0 is empty */
	uint8_t *set_kinds;    /* enum symbol_source: the best of each set */
	uint8_t *set_rungs;    /* enum match_rung: the surest of each set */
	size_t n_source_sets;
	/* Unpacked: struct image_text [], image_file [], image_symbol [], image_alias [], site_chunk;
	 * ranges are in the cache. */
	struct chunk_table texts, files, symbols, aliases, sites, ranges, data, symbol_files,
		columns;
	uint64_t *range_keys;  /* first address of each chunk of ranges, then UINT64_MAX */
	uint32_t *key_buckets; /* the chunk at the start of each bucket */
	size_t n_key_buckets;
	unsigned key_shift; /* a bucket is 2^key_shift bytes of the address space */
	size_t key_steps;   /* the first step of the search in any bucket: a power of two, or 0 */
	struct image_cache *cache;
};

/* The rung of a source of this kind that says none: texts without identity are trusted least. */
enum match_rung image_source_rung(enum symbol_source kind);

/* Unpack a chunk into the cache and return it. A damaged one is counted and reads as zeros: no
 * names, no lines. */
struct image_text *image_load_texts(const struct catalog_image *image, size_t chunk);
struct image_file *image_load_files(const struct catalog_image *image, size_t chunk);
struct image_symbol *image_load_symbols(const struct catalog_image *image, size_t chunk);
struct image_alias *image_load_aliases(const struct catalog_image *image, size_t chunk);
struct image_datum *image_load_data(const struct catalog_image *image, size_t chunk);
struct image_file *image_load_symbol_files(const struct catalog_image *image, size_t chunk);
struct column_chunk *image_load_columns(const struct catalog_image *image, size_t chunk);
struct site_chunk *image_load_sites(const struct catalog_image *image, size_t chunk);
void image_load_ranges(const struct catalog_image *image, size_t chunk);
void image_cache_free(struct catalog_image *image);

/* The column at `addr`; 0 = not known. It holds up to *end, which is above `addr`. */
uint32_t image_column_at(const struct catalog_image *image, uint64_t addr, uint64_t *end);
/* The range at `addr`, which is in the chunk; false for a hole, which is set too. */
bool image_range_at(
	const struct catalog_image *image, size_t chunk, uint64_t addr, struct catalog_range *out);

/* The numbers of a chunk are columns of unsigned LEB128, one behind the other. */
static inline uint32_t column_u32(struct cursor *c)
{
	uint64_t v;

	if (__builtin_expect(c->p < c->end && !(*c->p & 0x80), 1))
		return *c->p++;
	v = cursor_uleb(c);
	if (v > UINT32_MAX)
		c->failed = true;
	return (uint32_t)v;
}

/* A number that must not be above `max`. */
static inline uint32_t column_up_to(struct cursor *c, uint64_t max)
{
	uint32_t v = column_u32(c);

	if (v > max) {
		c->failed = true;
		return 0;
	}
	return v;
}

/* The raw bytes of a chunk, behind a failed cursor when it is damaged. */
struct cursor image_open_chunk(
	const struct catalog_image *image, const struct chunk_table *t, size_t i, uint32_t *n);
/* True when the items are good: everything was there, and nothing is left. Counts it if not. */
bool image_chunk_is_good(const struct catalog_image *image, const struct cursor *c);

static inline struct image_text *image_text_of(const struct catalog_image *image, uint32_t id)
{
	const struct chunk_table *t = &image->texts;
	struct image_text *chunk = image->texts.unpacked[id >> t->shift];

	if (__builtin_expect(!chunk, 0))
		chunk = image_load_texts(image, id >> t->shift);
	return &chunk[id & (((uint32_t)1 << t->shift) - 1)];
}

/* `file` counts from 1. */
static inline struct image_file *image_file_of(const struct catalog_image *image, uint32_t file)
{
	uint32_t i = file - 1;
	struct image_file *chunk = image->files.unpacked[i >> FILE_CHUNK_SHIFT];

	if (__builtin_expect(!chunk, 0))
		chunk = image_load_files(image, i >> FILE_CHUNK_SHIFT);
	return &chunk[i & ((1u << FILE_CHUNK_SHIFT) - 1)];
}

static inline struct image_symbol *image_symbol_of(const struct catalog_image *image, uint32_t i)
{
	struct image_symbol *chunk = image->symbols.unpacked[i >> SYMBOL_CHUNK_SHIFT];

	if (__builtin_expect(!chunk, 0))
		chunk = image_load_symbols(image, i >> SYMBOL_CHUNK_SHIFT);
	return &chunk[i & ((1u << SYMBOL_CHUNK_SHIFT) - 1)];
}

static inline const struct image_alias *image_alias_of(
	const struct catalog_image *image, uint32_t i)
{
	struct image_alias *chunk = image->aliases.unpacked[i >> ALIAS_CHUNK_SHIFT];

	if (__builtin_expect(!chunk, 0))
		chunk = image_load_aliases(image, i >> ALIAS_CHUNK_SHIFT);
	return &chunk[i & ((1u << ALIAS_CHUNK_SHIFT) - 1)];
}

static inline const struct image_datum *image_datum_of(
	const struct catalog_image *image, uint32_t i)
{
	struct image_datum *chunk = image->data.unpacked[i >> DATA_CHUNK_SHIFT];

	if (__builtin_expect(!chunk, 0))
		chunk = image_load_data(image, i >> DATA_CHUNK_SHIFT);
	return &chunk[i & ((1u << DATA_CHUNK_SHIFT) - 1)];
}

/* The source file of a symbol; NULL when the image tells none. */
static inline const char *image_symbol_file_of(const struct catalog_image *image, uint32_t i)
{
	struct image_file *chunk;

	if (i >= image->symbol_files.n_items)
		return NULL;
	chunk = image->symbol_files.unpacked[i >> SYMBOL_CHUNK_SHIFT];
	if (__builtin_expect(!chunk, 0))
		chunk = image_load_symbol_files(image, i >> SYMBOL_CHUNK_SHIFT);
	i = chunk[i & ((1u << SYMBOL_CHUNK_SHIFT) - 1)].text;
	return i ? image_text_of(image, i)->linkage : NULL;
}

/* `site` counts from 1. */
static inline struct site_chunk *image_sites_of(
	const struct catalog_image *image, uint32_t site, uint32_t *i)
{
	struct site_chunk *chunk = image->sites.unpacked[(site - 1) >> SITE_CHUNK_SHIFT];

	*i = (site - 1) & ((1u << SITE_CHUNK_SHIFT) - 1);
	if (__builtin_expect(!chunk, 0))
		chunk = image_load_sites(image, (site - 1) >> SITE_CHUNK_SHIFT);
	return chunk;
}

#endif
