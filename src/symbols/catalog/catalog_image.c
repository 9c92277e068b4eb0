/* SPDX-License-Identifier: MIT */
/*
 * Opening a catalog image: header, directory, the small parts and the entries of the chunked tables
 * are checked here, in time that does not depend on the number of rows. Chunks are checked when
 * they are unpacked (catalog_image_load.c).
 */
#include "symbols/catalog/catalog_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbols/catalog/catalog_image_internal.h"

struct parts {
	struct span v[IMAGE_N_PARTS];
};

static int read_directory(
	struct catalog_image *image, struct span bytes, struct parts *parts, struct err *err)
{
	struct cursor c = cursor_of(bytes);
	const uint8_t *magic = cursor_bytes(&c, IMAGE_MAGIC_BYTES).p;
	uint16_t major = cursor_u16(&c);
	uint32_t n;

	cursor_u16(&c); /* minor: what is new in it are parts that can be skipped */
	n = cursor_u32(&c);
	if (!magic || memcmp(magic, IMAGE_MAGIC, IMAGE_MAGIC_BYTES))
		return err_set(err, ERR_FORMAT, "these bytes are no catalog image");
	if (major != IMAGE_MAJOR)
		return err_set(err, ERR_UNSUPPORTED,
			"the catalog image has version %u; this program knows %u", major,
			IMAGE_MAJOR);
	if (cursor_u64(&c) != bytes.n)
		return err_set(
			err, ERR_FORMAT, "the catalog image is cut short or has bytes behind it");
	snprintf(image->id, sizeof(image->id), "%016llx", (unsigned long long)cursor_u64(&c));
	if (n > IMAGE_PARTS_MAX || cursor_left(&c) < (size_t)n * IMAGE_DIRECTORY_BYTES)
		return err_set(err, ERR_FORMAT, "the catalog image has no room for %u parts", n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t type = cursor_u32(&c);
		uint64_t offset, part_bytes;

		cursor_u32(&c);
		offset = cursor_u64(&c);
		part_bytes = cursor_u64(&c);
		if (offset > bytes.n || part_bytes > bytes.n - offset)
			return err_set(err, ERR_FORMAT,
				"part %u of the catalog image lies outside it", type);
		if (type < IMAGE_N_PARTS)
			parts->v[type] = span_sub(bytes, offset, part_bytes);
	}
	return 0;
}

static void take_segment(struct cursor *c, struct image_segment *s)
{
	const char *name = cursor_cstr(c);

	if (!name || strlen(name) >= sizeof(s->name)) {
		c->failed = true;
		return;
	}
	strcpy(s->name, name);
	s->addr = cursor_u64(c);
	s->offset = cursor_u64(c);
	s->file_bytes = cursor_u64(c);
	s->mem_bytes = cursor_u64(c);
	s->flags = cursor_u32(c);
}

static int read_identity(struct catalog_image *image, struct span part, struct err *err)
{
	struct image_identity *id = &image->identity;
	struct cursor c = cursor_of(part);
	const char *path;
	uint64_t n;

	id->kind = (enum image_kind)cursor_u8(&c);
	id->bits = cursor_u8(&c);
	id->machine = cursor_u16(&c);
	id->pid = cursor_u32(&c);
	id->content_hash = cursor_u64(&c);
	id->file_bytes = cursor_u64(&c);
	id->mtime_ns = cursor_u64(&c);
	id->debuglink_crc = cursor_u32(&c);
	id->file_crc = cursor_u32(&c);
	id->build_id_n = cursor_u8(&c);
	if (id->build_id_n > BUILD_ID_MAX)
		return err_set(
			err, ERR_FORMAT, "the image has a build-id of %u bytes", id->build_id_n);
	cursor_take(&c, id->build_id, id->build_id_n);
	path = cursor_cstr(&c);
	n = cursor_uleb(&c);
	if (c.failed || n > IMAGE_SEGMENTS_MAX)
		return err_set(err, ERR_FORMAT, "the identity of the image is cut short");
	id->path = mem_strdup(path);
	id->segments = mem_calloc(n, sizeof(*id->segments));
	id->n_segments = n;
	for (uint64_t i = 0; i < n && !c.failed; i++)
		take_segment(&c, &id->segments[i]);
	return c.failed ? err_set(err, ERR_FORMAT, "the segments of the image are cut short") : 0;
}

/* From the strongest; docs/format/catalog.md, "Names". */
static unsigned source_rank(uint8_t kind)
{
	static const uint8_t order[] = {SYMBOL_SOURCE_SYMTAB, SYMBOL_SOURCE_DEBUG_FILE,
		SYMBOL_SOURCE_DWARF, SYMBOL_SOURCE_DEBUGDATA, SYMBOL_SOURCE_GOPCLNTAB,
		SYMBOL_SOURCE_LD_MAP, SYMBOL_SOURCE_LLD_MAP, SYMBOL_SOURCE_NM, SYMBOL_SOURCE_DYNSYM,
		SYMBOL_SOURCE_PLT, SYMBOL_SOURCE_PERF_MAP, SYMBOL_SOURCE_KALLSYMS,
		SYMBOL_SOURCE_JITDUMP};
	unsigned rank = 0;

	while (rank < sizeof(order) && order[rank] != kind)
		rank++;
	return rank;
}

static uint8_t best_kind(const struct catalog_image *image, uint64_t set)
{
	uint8_t best = 0;

	for (size_t i = 0; i < image->n_sources; i++) {
		uint8_t kind = (uint8_t)image->sources[i].kind;

		if (set >> i & 1 && (!best || source_rank(kind) < source_rank(best)))
			best = kind;
	}
	return best;
}

static void read_source_sets(struct catalog_image *image, struct cursor *c)
{
	uint64_t n = cursor_uleb(c);

	if (!n || n > cursor_left(c) / sizeof(uint64_t)) {
		c->failed = true;
		return;
	}
	image->n_source_sets = n;
	image->source_sets = mem_calloc(n, sizeof(*image->source_sets));
	image->set_kinds = mem_calloc(n, sizeof(*image->set_kinds));
	image->set_rungs = mem_calloc(n, sizeof(*image->set_rungs));
	for (uint64_t i = 0; i < n; i++) {
		image->source_sets[i] = cursor_u64(c);
		image->set_kinds[i] = best_kind(image, image->source_sets[i]);
	}
}

static int read_sources(struct catalog_image *image, struct span part, struct err *err)
{
	struct cursor c = cursor_of(part);
	uint64_t n = cursor_uleb(&c);

	if (c.failed || n > IMAGE_SOURCES_MAX)
		return err_set(err, ERR_FORMAT, "the list of sources is damaged");
	image->sources = mem_calloc(n, sizeof(*image->sources));
	image->n_sources = n;
	for (uint64_t i = 0; i < n && !c.failed; i++) {
		struct catalog_source *s = &image->sources[i];

		s->kind = (enum symbol_source)cursor_u8(&c);
		s->path = cursor_cstr(&c);
		s->identity = cursor_cstr(&c);
		s->verdict = cursor_cstr(&c);
		s->n_offered = cursor_uleb(&c);
		s->n_accepted = cursor_uleb(&c);
	}
	read_source_sets(image, &c);
	return c.failed ? err_set(err, ERR_FORMAT, "the list of sources is cut short") : 0;
}

enum match_rung image_source_rung(enum symbol_source kind)
{
	return kind == SYMBOL_SOURCE_LD_MAP || kind == SYMBOL_SOURCE_LLD_MAP ||
			       kind == SYMBOL_SOURCE_NM
		       ? MATCH_SEGMENTS
		       : MATCH_BUILD_ID;
}

/* Without the part the texts among the sources were never judged: they are trusted least. */
static void read_rungs(struct catalog_image *image, struct span part)
{
	struct cursor c = cursor_of(part);

	for (size_t i = 0; i < image->n_sources; i++) {
		struct catalog_source *s = &image->sources[i];
		uint8_t rung = cursor_u8(&c);

		if (c.failed)
			rung = (uint8_t)image_source_rung(s->kind);
		s->rung = rung > MATCH_NONE && rung < MATCH_N_RUNGS ? (enum match_rung)rung
								    : MATCH_SEGMENTS;
	}
	for (size_t set = 0; set < image->n_source_sets; set++) {
		uint8_t best = MATCH_NONE;

		for (size_t i = 0; i < image->n_sources; i++)
			if (image->source_sets[set] >> i & 1 && image->sources[i].rung > best)
				best = (uint8_t)image->sources[i].rung;
		image->set_rungs[set] = best ? best : MATCH_BUILD_ID;
	}
}

static int read_sections(struct catalog_image *image, struct span part, struct err *err)
{
	struct cursor c = cursor_of(part);
	uint64_t n = part.n ? cursor_uleb(&c) : 0;

	if (n > IMAGE_SECTIONS_MAX || n > cursor_left(&c))
		return err_set(err, ERR_FORMAT, "the list of sections is damaged");
	image->sections = mem_calloc(n, sizeof(*image->sections));
	image->n_sections = n;
	for (uint64_t i = 0; i < n && !c.failed; i++) {
		struct catalog_section *s = &image->sections[i];

		s->name = cursor_cstr(&c);
		s->addr = cursor_u64(&c);
		s->bytes = cursor_u64(&c);
		s->flags = cursor_u64(&c);
	}
	return c.failed ? err_set(err, ERR_FORMAT, "the list of sections is cut short") : 0;
}

static int read_notes(struct catalog_image *image, struct span part, struct err *err)
{
	image->notes = part.n ? span_cstr(part, 0) : "";
	return image->notes ? 0 : err_set(err, ERR_FORMAT, "the notes of the image are cut short");
}

static int read_tables(struct catalog_image *image, const struct parts *parts, struct err *err)
{
	static const struct chunk_limits limits[IMAGE_N_PARTS] = {
		[IMAGE_PART_TEXTS] = {"text", 1u << TEXT_CHUNK_SHIFT_MAX, 2 * TEXT_CHUNK_BYTES_MAX,
			2, true},
		[IMAGE_PART_FILES] = {"file", 1u << FILE_CHUNK_SHIFT, 1u << 16, 1, true},
		[IMAGE_PART_SYMBOLS] = {"symbol", 1u << SYMBOL_CHUNK_SHIFT, 1u << 17, 6, true},
		[IMAGE_PART_ALIASES] = {"alias", 1u << ALIAS_CHUNK_SHIFT, 1u << 16, 3, true},
		[IMAGE_PART_SITES] = {"site", 1u << SITE_CHUNK_SHIFT, 1u << 18, 4, true},
		[IMAGE_PART_RANGES] = {"range", RANGE_CHUNK_ITEMS, 1u << 18, 1, false},
		[IMAGE_PART_DATA] = {"datum", 1u << DATA_CHUNK_SHIFT, 1u << 16, 4, true},
		[IMAGE_PART_SYMBOL_FILES] = {"symbol file", 1u << SYMBOL_CHUNK_SHIFT, 1u << 16, 1,
			true},
		[IMAGE_PART_COLUMNS] = {"column", COLUMN_CHUNK_ITEMS, 1u << 16, 1, false},
	};
	struct chunk_table *const tables[IMAGE_N_PARTS] = {
		[IMAGE_PART_TEXTS] = &image->texts,
		[IMAGE_PART_FILES] = &image->files,
		[IMAGE_PART_SYMBOLS] = &image->symbols,
		[IMAGE_PART_ALIASES] = &image->aliases,
		[IMAGE_PART_SITES] = &image->sites,
		[IMAGE_PART_RANGES] = &image->ranges,
		[IMAGE_PART_DATA] = &image->data,
		[IMAGE_PART_SYMBOL_FILES] = &image->symbol_files,
		[IMAGE_PART_COLUMNS] = &image->columns,
	};

	for (size_t i = 0; i < IMAGE_N_PARTS; i++) {
		int rc = tables[i] ? chunk_table_init(tables[i], parts->v[i], &limits[i], err) : 0;

		if (rc < 0)
			return rc;
		if (tables[i])
			tables[i]->unpacked = mem_calloc(tables[i]->n_chunks, sizeof(void *));
	}
	if (!image->texts.n_items)
		return err_set(err, ERR_FORMAT, "the catalog image has no texts");
	if (image->ranges.extra > image->ranges.n_items)
		return err_set(err, ERR_FORMAT, "the catalog image has more lines than ranges");
	if ((image->files.n_items && image->files.shift != FILE_CHUNK_SHIFT) ||
		(image->symbols.n_items && image->symbols.shift != SYMBOL_CHUNK_SHIFT) ||
		(image->aliases.n_items && image->aliases.shift != ALIAS_CHUNK_SHIFT) ||
		(image->data.n_items && image->data.shift != DATA_CHUNK_SHIFT) ||
		(image->symbol_files.n_items && image->symbol_files.shift != SYMBOL_CHUNK_SHIFT) ||
		(image->sites.n_items && image->sites.shift != SITE_CHUNK_SHIFT))
		return err_set(err, ERR_FORMAT, "a table has chunks of another size");
	return 0;
}

/* A few buckets for every chunk of ranges, so that most hold the start of at most one. */
static void index_ranges(struct catalog_image *image)
{
	size_t n = image->ranges.n_chunks, chunk = 0, widest = 0;
	uint64_t *keys = image->range_keys = mem_alloc((3 * n + 1) * sizeof(*keys)), span;

	memset(keys, 0xff,
		(3 * n + 1) * sizeof(*keys)); /* less than 2n follow where a search ends */
	for (size_t i = 0; i < n; i++)
		keys[i] = chunk_table_entry(&image->ranges, i).key;
	if (!n)
		return;
	span = keys[n - 1] - keys[0];
	while (span >> image->key_shift >= 4 * n)
		image->key_shift++;
	image->n_key_buckets = (span >> image->key_shift) + 1;
	image->key_buckets = mem_calloc(image->n_key_buckets, sizeof(*image->key_buckets));
	for (size_t b = 0; b < image->n_key_buckets; b++) {
		size_t last;

		while (chunk + 1 < n && (keys[chunk + 1] - keys[0]) >> image->key_shift < b)
			chunk++;
		image->key_buckets[b] = (uint32_t)chunk;
		for (last = chunk;
			last + 1 < n && (keys[last + 1] - keys[0]) >> image->key_shift <= b;)
			last++;
		widest = last - chunk > widest ? last - chunk : widest;
	}
	image->key_steps = widest ? 1 : 0;
	while (image->key_steps && widest >= 2 * image->key_steps)
		image->key_steps *= 2;
}

int catalog_image_open(struct catalog_image **out, struct span bytes, struct err *err)
{
	struct catalog_image *image = mem_zalloc(sizeof(*image));
	struct parts parts = {0};
	int rc = read_directory(image, bytes, &parts, err);

	image->bytes = bytes;
	if (rc == 0)
		rc = read_identity(image, parts.v[IMAGE_PART_IDENTITY], err);
	if (rc == 0)
		rc = read_sources(image, parts.v[IMAGE_PART_SOURCES], err);
	if (rc == 0)
		read_rungs(image, parts.v[IMAGE_PART_RUNGS]);
	if (rc == 0)
		rc = read_sections(image, parts.v[IMAGE_PART_SECTIONS], err);
	if (rc == 0)
		rc = read_notes(image, parts.v[IMAGE_PART_NOTES], err);
	if (rc == 0)
		rc = read_tables(image, &parts, err);
	if (rc < 0) {
		catalog_image_close(image);
		return rc;
	}
	image->cache = mem_zalloc(sizeof(*image->cache));
	image->cache->ranges = mem_calloc(image->ranges.n_chunks, sizeof(*image->cache->ranges));
	index_ranges(image);
	*out = image;
	return 0;
}

void catalog_image_close(struct catalog_image *image)
{
	if (!image)
		return;
	image_cache_free(image);
	image_identity_release(&image->identity);
	free(image->sources);
	free(image->sections);
	free(image->source_sets);
	free(image->set_kinds);
	free(image->set_rungs);
	free(image->range_keys);
	free(image->key_buckets);
	free(image);
}

#define IMAGE_GETTER(type, name, value)                                                            \
	type catalog_image_##name(const struct catalog_image *image)                               \
	{                                                                                          \
		return value;                                                                      \
	}

IMAGE_GETTER(const struct image_identity *, identity, &image->identity)
IMAGE_GETTER(const char *, id, image->id)
IMAGE_GETTER(const char *, notes, image->notes)
IMAGE_GETTER(size_t, n_damaged, image->cache->n_damaged)
IMAGE_GETTER(size_t, n_sources, image->n_sources)
IMAGE_GETTER(size_t, n_sections, image->n_sections)
IMAGE_GETTER(size_t, n_symbols, image->symbols.n_items)
IMAGE_GETTER(size_t, n_data, image->data.n_items)
IMAGE_GETTER(size_t, n_rows, image->ranges.extra)
IMAGE_GETTER(size_t, n_sites, image->sites.n_items)

struct catalog_source catalog_image_source(struct catalog_image *image, size_t i)
{
	return image->sources[i];
}

struct catalog_section catalog_image_section(struct catalog_image *image, size_t i)
{
	return image->sections[i];
}
