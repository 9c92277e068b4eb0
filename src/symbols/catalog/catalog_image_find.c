/* SPDX-License-Identifier: MIT */
/*
 * Look-ups. An address leads through two tables of buckets, one over the chunks of ranges and one
 * inside a chunk, to the line that holds its range. What remains to be searched takes a number of
 * steps that is known beforehand and has no branches, so that a processor can be busy with several
 * look-ups at once: most of the time goes into waiting for memory. A step may look past the bucket,
 * where everything is larger, and past the table, where enough of the largest number follows. Names
 * are demangled when first asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "symbols/catalog/catalog_image_internal.h"

/* Chains of hostile images may be as long as there are sites. */
#define CHAIN_MAX 4096

/* The chunk whose first address is the last one at or below `addr`, which the first chunk's is. */
static inline size_t find_chunk(const struct catalog_image *image, uint64_t addr)
{
	uint64_t bucket = (addr - image->range_keys[0]) >> image->key_shift;
	size_t at;

	bucket = bucket < image->n_key_buckets ? bucket : image->n_key_buckets - 1;
	at = image->key_buckets[bucket];
	for (size_t half = image->key_steps; half; half /= 2)
		at += image->range_keys[at + half] <= addr ? half : 0;
	return at;
}

static inline size_t find_line(const struct range_chunk *c, uint32_t distance)
{
	uint32_t bucket = distance >> c->shift;
	size_t at;

	bucket = bucket < c->n_buckets ? bucket : c->n_buckets - 1;
	at = c->buckets[bucket];
	for (size_t half = c->steps; half; half /= 2)
		at += c->starts[at + half] <= distance ? half : 0;
	return at;
}

/* How many starts of the line are not above `distance`; the first one, 0, never is. */
static inline unsigned count_starts(const uint8_t *line, uint64_t distance)
{
	uint16_t d = distance < NO_START ? (uint16_t)distance : NO_START - 1;
#ifdef __SSE2__
	__m128i starts = _mm_load_si128((const __m128i *)line);
	__m128i above = _mm_subs_epu16(starts, _mm_set1_epi16((short)d));
	/* Two bits for each start that is not above, from the lowest: they ascend. */
	unsigned bits = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi16(above, _mm_setzero_si128()));

	return (unsigned)__builtin_ctz(~bits) / 2;
#else
	unsigned n = 0;

	for (unsigned i = 0; i < LINE_RANGES_MAX; i++) {
		uint16_t start;

		memcpy(&start, line + 2 * i, sizeof(start));
		n += start <= d;
	}
	return n;
#endif
}

/* The range at `addr`, which is in the chunk. Inlined, and each number written on its own: the time
 * of a look-up is a few cache misses, and one failed store forwarding would double it. */
static inline __attribute__((always_inline)) bool find_in_chunk(
	const struct catalog_image *image, size_t chunk, uint64_t addr, struct catalog_range *out)
{
	const struct range_chunk *c = &image->cache->ranges[chunk];
	uint64_t key = image->range_keys[chunk], distance = addr - key, base, end;
	uint16_t start, next;
	struct image_range r;
	const uint8_t *bytes;
	size_t line;
	unsigned n;

	if (__builtin_expect(!c->lines, 0))
		image_load_ranges(image, chunk);
	line = find_line(c, distance < CHUNK_END ? (uint32_t)distance : CHUNK_END - 1);
	bytes = c->lines + line * LINE_BYTES;
	base = key + c->starts[line];
	n = count_starts(bytes, addr - base);
	memcpy(&start, bytes + 2 * (n - 1), sizeof(start));
	memcpy(&next, bytes + 2 * n, sizeof(next));
	next |= (uint16_t) - (n / LINE_RANGES_MAX); /* behind the eighth is no start */
	end = line + 1 < c->n_lines ? key + c->starts[line + 1] : image->range_keys[chunk + 1];
	r = range_chunk_get(c, bytes, n - 1);
	out->start = base + start;
	out->end = next != NO_START ? base + next : end;
	out->symbol = r.symbol - 1; /* 0 becomes UINT32_MAX */
	out->file = r.file;
	out->line = r.line;
	out->site = r.site;
	return r.symbol | r.file | r.line | r.site;
}

bool image_range_at(
	const struct catalog_image *image, size_t chunk, uint64_t addr, struct catalog_range *out)
{
	return find_in_chunk(image, chunk, addr, out);
}

bool catalog_image_find_range(
	const struct catalog_image *image, struct iaddr addr, struct catalog_range *out)
{
	/* Ends are one past the last address, so none can be behind the very last one. */
	if (!image->ranges.n_chunks || addr.v < image->range_keys[0] || addr.v == UINT64_MAX)
		return false;
	return find_in_chunk(image, find_chunk(image, addr.v), addr.v, out);
}

/* --- names --- */

static const char *demangled(struct image_text *text)
{
	char *name;

	if (text->name)
		return text->name;
	name = symbol_demangle(text->linkage);
	text->name = name;
	if (strcmp(name, text->linkage) == 0) {
		free(name);
		text->name = text->linkage;
	}
	return text->name;
}

/* Sources of run-time code say names as they are to be read. */
static void name_symbol(const struct catalog_image *image, struct image_symbol *s)
{
	struct image_text *text = image_text_of(image, s->text);
	uint8_t kind = image->set_kinds[s->sources];
	bool is_final = kind == SYMBOL_SOURCE_PERF_MAP || kind == SYMBOL_SOURCE_JITDUMP;

	s->linkage = text->linkage;
	s->name = is_final ? text->linkage : demangled(text);
}

static inline const struct image_symbol *named_symbol(const struct catalog_image *image, uint32_t i)
{
	struct image_symbol *s = image_symbol_of(image, i);

	if (__builtin_expect(!s->name, 0))
		name_symbol(image, s);
	return s;
}

struct catalog_symbol catalog_image_symbol(struct catalog_image *image, size_t i)
{
	const struct image_symbol *s = named_symbol(image, (uint32_t)i);

	return (struct catalog_symbol){
		.name = s->name,
		.linkage_name = s->linkage,
		.start = s->start,
		.size = s->size,
		.kind = (enum symbol_source)image->set_kinds[s->sources],
		.rung = (enum match_rung)image->set_rungs[s->sources],
		.file = image_symbol_file_of(image, (uint32_t)i),
		.first_alias = s->first_alias,
		.n_aliases = s->n_aliases,
	};
}

struct catalog_datum catalog_image_datum(struct catalog_image *image, size_t i)
{
	const struct image_datum *d = image_datum_of(image, (uint32_t)i);
	struct image_text *text = image_text_of(image, d->text);

	return (struct catalog_datum){demangled(text), text->linkage, d->start, d->size};
}

bool catalog_image_find_datum(
	struct catalog_image *image, struct iaddr addr, struct catalog_datum *out)
{
	size_t behind = SEARCH(0, catalog_image_n_data(image), mid,
		image_datum_of(image, (uint32_t)mid)->start <= addr.v);

	if (!behind)
		return false;
	*out = catalog_image_datum(image, behind - 1);
	return addr.v - out->start < out->size;
}

enum match_rung catalog_image_symbol_rung(const struct catalog_image *image, size_t i)
{
	return (enum match_rung)image->set_rungs[image_symbol_of(image, (uint32_t)i)->sources];
}

size_t catalog_image_symbol_source(const struct catalog_image *image, size_t i)
{
	uint32_t set = image_symbol_of(image, (uint32_t)i)->sources;

	for (size_t k = 0; k < image->n_sources; k++)
		if (image->source_sets[set] >> k & 1 &&
			image->sources[k].rung == (enum match_rung)image->set_rungs[set])
			return k;
	return SIZE_MAX;
}

const char *catalog_image_alias(struct catalog_image *image, uint32_t i)
{
	return image_text_of(image, image_alias_of(image, i)->text)->linkage;
}

static inline const char *file_path(const struct catalog_image *image, uint32_t file)
{
	struct image_file *f;

	if (!file || file > image->files.n_items)
		return NULL;
	f = image_file_of(image, file);
	if (__builtin_expect(!f->path, 0))
		f->path = image_text_of(image, f->text)->linkage;
	return f->path;
}

/* An inlined function that debug information has no name for; told by its address. */
static const char no_name[] = "";

static void name_site(
	const struct catalog_image *image, struct image_site *s, const struct site_ids *ids)
{
	struct image_text *text = image_text_of(image, ids->text);

	s->linkage = ids->text ? text->linkage : NULL;
	s->call_path = file_path(image, ids->call_file);
	s->name = ids->text ? demangled(text) : no_name;
}

static inline const struct image_site *named_site(const struct catalog_image *image, uint32_t site)
{
	uint32_t i;
	struct site_chunk *c = image_sites_of(image, site, &i);

	if (__builtin_expect(!c->sites[i].name, 0))
		name_site(image, &c->sites[i], &c->ids[i]);
	return &c->sites[i];
}

/* --- chains --- */

/* How many sites are around the innermost one, itself included. */
static size_t chain_length(const struct catalog_image *image, uint32_t site)
{
	size_t n = 0;

	for (; site && n < CHAIN_MAX; n++) {
		uint32_t i;
		const struct site_chunk *c = image_sites_of(image, site, &i);

		site = c->sites[i].parent;
	}
	return n;
}

/* Moves `level` and *site out over the sites that have no room. */
static void skip_sites(
	const struct catalog_image *image, struct catalog_level *level, uint32_t *site, size_t n)
{
	while (n--) {
		const struct image_site *s = named_site(image, *site);

		level->file = s->call_path;
		level->line = s->call_line;
		*site = s->parent;
	}
}

static void set_outermost(
	const struct catalog_image *image, struct catalog_level *level, uint32_t symbol)
{
	level->is_inline = false;
	level->name = level->linkage_name = NULL;
	if (symbol < image->symbols.n_items) {
		const struct image_symbol *s = named_symbol(image, symbol);

		level->name = s->name;
		level->linkage_name = s->linkage;
		if (!level->file)
			level->file = image_symbol_file_of(image, symbol);
	}
}

size_t catalog_image_levels(struct catalog_image *image, const struct catalog_range *range,
	struct catalog_level *levels, size_t max)
{
	uint32_t site = range->site <= image->sites.n_items ? range->site : 0;
	struct catalog_level level = {
		.file = file_path(image, range->file), .line = range->line, .is_inline = true};
	size_t n = 0, n_sites = chain_length(image, site);

	if (!max)
		return 0;
	if (n_sites > max - 1) {
		skip_sites(image, &level, &site, n_sites - (max - 1));
		n_sites = max - 1;
	}
	while (n < n_sites) {
		const struct image_site *s = named_site(image, site);

		level.name = s->name == no_name ? NULL : s->name;
		level.linkage_name = s->linkage;
		levels[n++] = level;
		level.file = s->call_path;
		level.line = s->call_line;
		site = s->parent;
	}
	set_outermost(image, &level, range->symbol);
	levels[n++] = level;
	return n;
}
