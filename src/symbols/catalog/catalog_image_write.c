/* SPDX-License-Identifier: MIT */
/* Writes what was collected. Layout: docs/format/catalog.md. */
#include <stdlib.h>
#include <string.h>

#include "symbols/catalog/catalog_image_build_internal.h"

#define PART_ALIGNMENT 8

/* --- the small parts --- */

static void put_identity(struct buf *out, const struct image_identity *id)
{
	size_t n = id->n_segments < IMAGE_SEGMENTS_MAX ? id->n_segments : IMAGE_SEGMENTS_MAX;

	buf_put_u8(out, (uint8_t)id->kind);
	buf_put_u8(out, id->bits);
	buf_put_u16(out, id->machine);
	buf_put_u32(out, id->pid);
	buf_put_u64(out, id->content_hash);
	buf_put_u64(out, id->file_bytes);
	buf_put_u64(out, id->mtime_ns);
	buf_put_u32(out, id->debuglink_crc);
	buf_put_u32(out, id->file_crc);
	buf_put_u8(out, id->build_id_n);
	buf_put(out, id->build_id, id->build_id_n);
	buf_put_text(out, id->path ? id->path : "");
	buf_put_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		const struct image_segment *s = &id->segments[i];

		buf_put(out, s->name, strnlen(s->name, sizeof(s->name) - 1));
		buf_put_u8(out, 0);
		buf_put_u64(out, s->addr);
		buf_put_u64(out, s->offset);
		buf_put_u64(out, s->file_bytes);
		buf_put_u64(out, s->mem_bytes);
		buf_put_u32(out, s->flags);
	}
}

/* Distinct sets of sources, numbered as they are first seen; 0 is the empty one. */
struct source_sets {
	struct map ids;
	VEC(uint64_t) all;
};

static uint32_t source_set_id(struct source_sets *sets, uint64_t set)
{
	bool created;
	uint64_t *id = map_ensure(&sets->ids, set, &created);

	if (created) {
		*id = sets->all.n;
		vec_push(&sets->all, set);
	}
	return (uint32_t)*id;
}

static void put_sources(
	struct buf *out, const struct image_builder *b, const struct source_sets *sets)
{
	buf_put_uleb(out, b->sources.n);
	for (size_t i = 0; i < b->sources.n; i++) {
		const struct catalog_source *s = &b->sources.v[i];

		buf_put_u8(out, (uint8_t)s->kind);
		buf_put_text(out, s->path);
		buf_put_text(out, s->identity);
		buf_put_text(out, s->verdict);
		buf_put_uleb(out, s->n_offered);
		buf_put_uleb(out, s->n_accepted);
	}
	buf_put_uleb(out, sets->all.n);
	for (size_t i = 0; i < sets->all.n; i++)
		buf_put_u64(out, sets->all.v[i]);
}

/* Nothing when all sources are sure. */
static void put_rungs(struct buf *out, const struct image_builder *b)
{
	bool has_weak = false;

	for (size_t i = 0; i < b->sources.n; i++)
		has_weak |= b->sources.v[i].rung != MATCH_BUILD_ID;
	for (size_t i = 0; has_weak && i < b->sources.n; i++)
		buf_put_u8(out, (uint8_t)b->sources.v[i].rung);
}

static void put_sections(struct buf *out, const struct image_builder *b)
{
	buf_put_uleb(out, b->sections.n);
	for (size_t i = 0; i < b->sections.n; i++) {
		const struct catalog_section *s = &b->sections.v[i];

		buf_put_text(out, s->name);
		buf_put_u64(out, s->addr);
		buf_put_u64(out, s->bytes);
		buf_put_u64(out, s->flags);
	}
}

static void note_left_out(struct image_builder *b, size_t n, const char *what)
{
	if (n)
		image_builder_note(b, "%zu %s", n, what);
}

static void put_notes(struct buf *out, struct image_builder *b)
{
	note_left_out(b, b->n_names_left_out,
		"symbols are left out: too many, or their names are too long");
	note_left_out(b, b->n_texts_cut, "names are longer than 65536 bytes and were cut there");
	note_left_out(b, b->n_sections_left_out, "sections are left out: too many");
	for (size_t i = 0; i < b->notes.n; i++) {
		if (i)
			buf_put_u8(out, '\n');
		buf_put_cstr(out, b->notes.v[i]);
	}
	if (b->notes.n)
		buf_put_u8(out, 0);
}

/* --- the tables --- */

/* What the chunks are made from. */
struct encoding {
	const struct image_builder *b;
	const struct final_names *names;
	const struct numbering *numbers;
	struct source_sets *sets;
	uint32_t alias; /* of the symbols so far */
};

/* Cuts n items into chunks of 2^shift, which `put` encodes. */
static void encode_chunks(struct chunk_writer *w, struct encoding *e, size_t n, unsigned shift,
	void (*put)(struct encoding *e, struct buf *out, size_t first, size_t n))
{
	size_t each = (size_t)1 << shift;

	w->shift = shift;
	for (size_t i = 0; i < n; i += each) {
		size_t n_items = n - i < each ? n - i : each;

		put(e, &w->raw, i, n_items);
		chunk_writer_cut(w, i, (uint32_t)n_items);
	}
}

static void put_files(struct encoding *e, struct buf *out, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		buf_put_uleb(out, e->numbers->files[i]);
}

static void put_symbols(struct encoding *e, struct buf *out, size_t first, size_t n)
{
	const struct final_symbol *s = &e->names->symbols.v[first];

	buf_put_u64(out, s->start);
	buf_put_u32(out, e->alias);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, i ? s[i].start - s[i - 1].start : 0);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, s[i].size);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, e->numbers->text_ids[s[i].text]);
	for (size_t i = 0; i < n; i++)
		buf_put_u8(out, s[i].flags);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, source_set_id(e->sets, s[i].sources));
	for (size_t i = 0; i < n; i++) {
		buf_put_uleb(out, s[i].n_aliases);
		e->alias += s[i].n_aliases;
	}
	for (size_t i = 0; i < n && e->b->is_later_wins; i++)
		buf_put_uleb(out, s[i].order);
}

static void put_symbol_files(struct encoding *e, struct buf *out, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		buf_put_uleb(out, e->numbers->text_ids[e->names->symbols.v[i].file]);
}

static void put_aliases(struct encoding *e, struct buf *out, size_t first, size_t n)
{
	const struct final_alias *a = &e->names->aliases.v[first];

	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, e->numbers->text_ids[a[i].text]);
	for (size_t i = 0; i < n; i++)
		buf_put_u8(out, a[i].flags);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, source_set_id(e->sets, a[i].sources));
}

static void put_sites(struct encoding *e, struct buf *out, size_t first, size_t n)
{
	const struct numbering *numbers = e->numbers;
	const struct built_site *sites = e->b->sites.v;
	const uint32_t *ids = numbers->sites + first + 1; /* those of the image count from 1 */

	for (size_t i = 0; i < n; i++) {
		uint32_t parent = numbers->site_ids[sites[ids[i]].parent];

		buf_put_uleb(out, parent ? first + 1 + i - parent : 0);
	}
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, numbers->text_ids[sites[ids[i]].text]);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, numbers->file_ids[sites[ids[i]].call_file]);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, sites[ids[i]].call_line);
}

static void put_data(struct encoding *e, struct buf *out, size_t first, size_t n)
{
	const struct built_datum *d = &e->b->data.v[first];

	buf_put_u64(out, d->start);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, i ? d[i].start - d[i - 1].start : 0);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, d[i].size);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(out, e->numbers->text_ids[d[i].text]);
	for (size_t i = 0; i < n; i++)
		buf_put_u8(out, d[i].bind);
}

/* --- the image's id --- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u; /* FNV-1a */
	return hash;
}

static uint64_t hash_u64(uint64_t hash, uint64_t v)
{
	return hash_bytes(hash, &v, sizeof(v));
}

static uint64_t hash_symbols(
	uint64_t hash, const struct image_builder *b, const struct final_names *names)
{
	hash = hash_u64(hash, b->identity.pid);
	for (size_t i = 0; i < names->symbols.n; i++) {
		const struct final_symbol *s = &names->symbols.v[i];
		const struct intern_item *text = &b->texts.items[s->text];

		hash = hash_u64(hash, s->start);
		hash = hash_u64(hash, s->size);
		hash = hash_bytes(hash, text->p, text->n + 1);
	}
	return hash;
}

static uint64_t image_hash(const struct image_builder *b, const struct final_names *names)
{
	const struct image_identity *id = &b->identity;
	const char *path = id->path ? id->path : "";
	uint64_t hash = hash_bytes(0xcbf29ce484222325u, path, strlen(path) + 1);

	if (image_identity_has_build_id(id))
		return hash_bytes(hash_bytes(hash, "b", 1), id->build_id, id->build_id_n);
	if (id->content_hash)
		return hash_u64(hash_bytes(hash, "c", 1), id->content_hash);
	if (id->file_bytes && id->mtime_ns)
		return hash_u64(hash_u64(hash_bytes(hash, "t", 1), id->file_bytes), id->mtime_ns);
	return hash_symbols(hash_bytes(hash, "s", 1), b, names);
}

/* --- all of it --- */

struct image_parts {
	struct buf small[IMAGE_N_PARTS];
	struct chunk_writer tables[IMAGE_N_PARTS];
};

static void image_parts_release(struct image_parts *p)
{
	for (size_t i = 0; i < IMAGE_N_PARTS; i++) {
		buf_release(&p->small[i]);
		chunk_writer_release(&p->tables[i]);
	}
	free(p);
}

/* A source that is read again offers the same names again, or, when only units for some addresses
 * are read, others; the larger number is the one that can be true. */
static void count_names(struct image_builder *b, const struct final_names *names)
{
	for (size_t i = 0; i < b->sources.n; i++) {
		struct catalog_source *s = &b->sources.v[i];
		uint64_t n = 0;

		for (size_t k = 0; k < names->symbols.n; k++)
			n += !(names->symbols.v[k].flags & NAME_IS_FILLER) &&
			     names->symbols.v[k].sources >> i & 1;
		for (size_t k = 0; k < names->aliases.n; k++)
			n += names->aliases.v[k].sources >> i & 1;
		s->n_accepted = n;
		if (s->n_offered < b->n_before[i])
			s->n_offered = b->n_before[i];
		if (s->n_offered < n)
			s->n_offered = n;
	}
}

static void encode_parts(struct image_parts *p, struct image_builder *b, struct final_names *names)
{
	struct source_sets sets = {0};
	struct numbering numbers;
	struct encoding e = {b, names, &numbers, &sets, 0};
	struct row_map rows;
	bool has_files;

	row_map_init(&rows, b);
	has_files = row_map_cover_files(&rows, names);
	numbering_init(&numbers, b, names, &rows);
	source_set_id(&sets, 0);
	texts_encode(&p->tables[IMAGE_PART_TEXTS], &b->texts, numbers.texts, numbers.n_texts);
	p->tables[IMAGE_PART_SYMBOLS].extra = b->is_later_wins ? SYMBOLS_LATER_WINS : 0;
	encode_chunks(
		&p->tables[IMAGE_PART_FILES], &e, numbers.n_files, FILE_CHUNK_SHIFT, put_files);
	encode_chunks(&p->tables[IMAGE_PART_SYMBOLS], &e, names->symbols.n, SYMBOL_CHUNK_SHIFT,
		put_symbols);
	encode_chunks(&p->tables[IMAGE_PART_SYMBOL_FILES], &e, has_files ? names->symbols.n : 0,
		SYMBOL_CHUNK_SHIFT, put_symbol_files);
	encode_chunks(&p->tables[IMAGE_PART_ALIASES], &e, names->aliases.n, ALIAS_CHUNK_SHIFT,
		put_aliases);
	encode_chunks(
		&p->tables[IMAGE_PART_SITES], &e, numbers.n_sites, SITE_CHUNK_SHIFT, put_sites);
	encode_chunks(&p->tables[IMAGE_PART_DATA], &e, b->data.n, DATA_CHUNK_SHIFT, put_data);
	ranges_encode(&p->tables[IMAGE_PART_RANGES], b, names, &rows, &numbers);
	columns_encode(&p->tables[IMAGE_PART_COLUMNS], b, &rows);
	put_identity(&p->small[IMAGE_PART_IDENTITY], &b->identity);
	put_sources(&p->small[IMAGE_PART_SOURCES], b, &sets);
	put_rungs(&p->small[IMAGE_PART_RUNGS], b);
	if (b->sections.n)
		put_sections(&p->small[IMAGE_PART_SECTIONS], b);
	put_notes(&p->small[IMAGE_PART_NOTES], b);
	numbering_release(&numbers);
	row_map_release(&rows);
	map_release(&sets.ids);
	vec_release(&sets.all);
}

static void align(struct buf *out, size_t base)
{
	while ((out->n - base) % PART_ALIGNMENT)
		buf_put_u8(out, 0);
}

/* The directory is filled in when the parts are where they will be. */
static void put_image(struct buf *out, const struct image_parts *p, uint64_t id)
{
	size_t base = out->n, entry, n = 0;
	uint64_t bytes;

	for (size_t i = 0; i < IMAGE_N_PARTS; i++)
		n += p->small[i].n || p->tables[i].n_items;
	buf_put(out, IMAGE_MAGIC, IMAGE_MAGIC_BYTES);
	buf_put_u16(out, IMAGE_MAJOR);
	buf_put_u16(out, IMAGE_MINOR);
	buf_put_u32(out, (uint32_t)n);
	buf_put_u64(out, 0);
	buf_put_u64(out, id);
	entry = out->n;
	for (size_t i = 0; i < n * IMAGE_DIRECTORY_BYTES; i++)
		buf_put_u8(out, 0);
	for (uint32_t i = 0; i < IMAGE_N_PARTS; i++) {
		uint64_t offset = out->n - base;

		if (p->small[i].n)
			buf_put(out, p->small[i].p, p->small[i].n);
		else if (p->tables[i].n_items)
			chunk_writer_put(&p->tables[i], out);
		else
			continue;
		bytes = out->n - base - offset;
		memcpy(out->p + entry, &i, sizeof(i));
		memcpy(out->p + entry + 8, &offset, sizeof(offset));
		memcpy(out->p + entry + 16, &bytes, sizeof(bytes));
		entry += IMAGE_DIRECTORY_BYTES;
		align(out, base);
	}
	bytes = out->n - base;
	memcpy(out->p + base + 16, &bytes, sizeof(bytes));
}

int image_builder_finish(
	struct image_builder *b, unsigned n_threads, struct buf *out, struct err *err)
{
	struct chunk_writer *writers[IMAGE_N_PARTS];
	struct final_names names;
	struct image_parts *parts;
	int rc;

	if (b->n_sources_left_out)
		return err_set(err, ERR_LIMIT, "'%s': an image has at most %d sources",
			b->identity.path ? b->identity.path : "", IMAGE_SOURCES_MAX);
	data_finish(b);
	final_names_init(&names, b);
	count_names(b, &names);
	parts = mem_zalloc(sizeof(*parts));
	encode_parts(parts, b, &names);
	for (size_t i = 0; i < IMAGE_N_PARTS; i++)
		writers[i] = &parts->tables[i];
	rc = chunk_writers_pack(writers, IMAGE_N_PARTS, n_threads, err);
	if (rc == 0)
		put_image(out, parts, image_hash(b, &names));
	image_parts_release(parts);
	final_names_release(&names);
	return rc;
}
