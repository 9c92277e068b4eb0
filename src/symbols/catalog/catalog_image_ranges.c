/* SPDX-License-Identifier: MIT */
/* Unpacks a chunk of ranges into lines. See catalog_image_ranges.h for what they look like. */
#include "symbols/catalog/catalog_image_ranges.h"

#include <stdlib.h>

#include "base/leb128.h"
#include "symbols/catalog/catalog_image_internal.h"

#define RECORD_BYTES_MAX 16
#define SHORT_SEARCH	 3  /* lines, which take two steps */
#define LINES_SLACK	 16 /* a record's words may reach behind the last line */

/* --- the columns --- */

static void take_starts(struct cursor *c, uint32_t *starts, uint32_t n)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i + 1 < n; i++) {
		uint32_t step = column_u32(c);

		at += step;
		if (!step || at >= CHUNK_END) {
			c->failed = true;
			return;
		}
		starts[i + 1] = (uint32_t)at;
	}
}

static void take_symbols(
	struct cursor *c, const uint8_t *ops, struct image_range *r, uint32_t n, uint64_t n_symbols)
{
	uint32_t symbol = 0, last = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ops[i] & RANGE_NEW_SYMBOL) {
			uint64_t v = cursor_uleb(c);
			int64_t next = (int64_t)last + 1 + (int64_t)unzigzag(v - 1);

			if (v && (next < 1 || (uint64_t)next > n_symbols)) {
				c->failed = true;
				return;
			}
			symbol = v ? (uint32_t)next : 0;
			last = v ? symbol : last;
		}
		r[i].symbol = ops[i] & RANGE_IS_HOLE ? 0 : symbol;
	}
}

static void take_sites(
	struct cursor *c, const uint8_t *ops, struct image_range *r, uint32_t n, uint64_t n_sites)
{
	int64_t site = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ops[i] & RANGE_NEW_SITE) {
			site += (int64_t)unzigzag(cursor_uleb(c));
			if (site < 0 || (uint64_t)site > n_sites) {
				c->failed = true;
				return;
			}
		}
		r[i].site = ops[i] & RANGE_IS_HOLE ? 0 : (uint32_t)site;
	}
}

static void take_files(
	struct cursor *c, const uint8_t *ops, struct image_range *r, uint32_t n, uint64_t n_files)
{
	uint32_t file = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ops[i] & RANGE_NEW_FILE)
			file = column_up_to(c, n_files);
		r[i].file = ops[i] & RANGE_IS_HOLE ? 0 : file;
	}
}

static void take_lines(struct cursor *c, const uint8_t *ops, struct image_range *r, uint32_t n)
{
	uint32_t line = 0;

	for (uint32_t i = 0; i < n; i++) {
		unsigned step = ops[i] & RANGE_STEP_MASK;

		if (ops[i] & RANGE_IS_HOLE)
			continue; /* the next step is from the line before the hole */
		if (step == RANGE_STEP_LONG)
			line += (uint32_t)(int64_t)unzigzag(cursor_uleb(c));
		else
			line += step - RANGE_STEP_BIAS;
		r[i].line = line;
	}
}

/* --- the lines --- */

struct field_bounds {
	uint32_t min, max; /* of the numbers that are not 0 */
};

static void bounds_add(struct field_bounds *b, uint32_t v)
{
	if (v && v < b->min)
		b->min = v;
	if (v > b->max)
		b->max = v;
}

static unsigned field_bits(const struct field_bounds *b)
{
	uint64_t most = b->max ? (uint64_t)b->max - b->min + 1 : 0;

	return most ? 64 - (unsigned)__builtin_clzll(most) : 0;
}

static unsigned field_init(struct range_field *f, const struct field_bounds *b, unsigned bit)
{
	unsigned bits = field_bits(b);

	f->below = b->max ? b->min - 1 : 0;
	f->mask = bits == 32 ? UINT32_MAX : ((uint32_t)1 << bits) - 1;
	f->word = (uint8_t)(bit / 64 * 8);
	f->shift = (uint8_t)(bit % 64);
	return bit + bits;
}

/* All numbers in one word when they fit, else two in each of two words. */
static void choose_fields(struct range_chunk *c, const struct image_range *r, uint32_t n)
{
	struct field_bounds symbol = {UINT32_MAX, 0}, site = symbol, file = symbol, line = symbol;
	unsigned bit, bits;

	for (uint32_t i = 0; i < n; i++) {
		bounds_add(&symbol, r[i].symbol);
		bounds_add(&site, r[i].site);
		bounds_add(&file, r[i].file);
		bounds_add(&line, r[i].line);
	}
	bits = field_bits(&symbol) + field_bits(&site) + field_bits(&file) + field_bits(&line);
	bit = field_init(&c->symbol, &symbol, 0);
	bit = field_init(&c->site, &site, bit);
	if (bits > 64)
		bit = 64;
	bit = field_init(&c->file, &file, bit);
	bit = field_init(&c->line, &line, bit);
	c->record_bytes = (uint8_t)(bit > 8 ? (bit + 7) / 8 : 1);
}

static void field_put(const struct range_field *f, uint8_t *record, uint32_t v)
{
	uint64_t word;

	if (!v)
		return;
	memcpy(&word, record + f->word, sizeof(word));
	word |= (uint64_t)(v - f->below) << f->shift;
	memcpy(record + f->word, &word, sizeof(word));
}

/* Which line each range is in, and where lines start; returns how many there are. */
static uint32_t cut_lines(
	const uint32_t *starts, uint32_t n, size_t each, uint16_t *line_of, uint32_t *line_starts)
{
	uint32_t n_lines = 0, first = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!i || i - first == each || starts[i] - starts[first] >= NO_START) {
			first = i;
			line_starts[n_lines++] = starts[i];
		}
		line_of[i] = (uint16_t)(n_lines - 1);
	}
	return n_lines;
}

static void fill_lines(const struct range_chunk *c, uint8_t *lines, const uint32_t *starts,
	const struct image_range *r, const uint16_t *line_of, uint32_t n)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *line = lines + (size_t)line_of[i] * LINE_BYTES;
		uint8_t record[RECORD_BYTES_MAX + 8] = {0};
		uint16_t start;

		if (!i || line_of[i] != line_of[i - 1]) {
			first = i;
			memset(line, 0xff, LINE_STARTS_BYTES);
		}
		start = (uint16_t)(starts[i] - starts[first]);
		memcpy(line + 2 * (i - first), &start, sizeof(start));
		field_put(&c->symbol, record, r[i].symbol);
		field_put(&c->site, record, r[i].site);
		field_put(&c->file, record, r[i].file);
		field_put(&c->line, record, r[i].line);
		memcpy(line + LINE_STARTS_BYTES + (i - first) * c->record_bytes, record,
			c->record_bytes);
	}
}

/* The most lines that a bucket of 2^shift bytes lies across, without the first. */
static uint32_t widest_bucket(const uint32_t *line_starts, uint32_t n_lines, unsigned shift)
{
	uint32_t widest = 0, first = 0;

	for (uint32_t i = 1; i < n_lines; i++) {
		/* The one that is current when the bucket of line i begins. */
		while (line_starts[first + 1] <= line_starts[i] >> shift << shift && first + 1 < i)
			first++;
		if (i - first > widest)
			widest = i - first;
	}
	return widest;
}

/* As few buckets as make the search short, and not more than four for every line. */
static void choose_buckets(struct range_chunk *c, const uint32_t *line_starts)
{
	uint32_t last = line_starts[c->n_lines - 1], widest;

	while (last >> c->shift >= c->n_lines)
		c->shift++;
	widest = widest_bucket(line_starts, c->n_lines, c->shift);
	while (widest > SHORT_SEARCH && c->shift && last >> (c->shift - 1) < 4 * c->n_lines)
		widest = widest_bucket(line_starts, c->n_lines, --c->shift);
	c->n_buckets = (last >> c->shift) + 1;
	c->steps = widest ? 1 : 0;
	while (widest >= 2u * c->steps && c->steps)
		c->steps *= 2;
}

static void fill_buckets(struct range_chunk *c, const uint32_t *line_starts, uint16_t *buckets)
{
	uint32_t i = 0;

	for (uint32_t b = 0; b < c->n_buckets; b++) {
		while (i + 1 < c->n_lines && line_starts[i + 1] <= (uint64_t)b << c->shift)
			i++;
		buckets[b] = (uint16_t)i;
	}
}

static void make_lines(
	struct range_chunk *c, const uint32_t *starts, const struct image_range *r, uint32_t n)
{
	uint16_t *line_of = mem_calloc(n, sizeof(*line_of)), *buckets;
	uint32_t *cuts = mem_calloc(n, sizeof(*cuts)), *line_starts;
	size_t each, n_starts;
	uint8_t *lines;

	choose_fields(c, r, n);
	each = (LINE_BYTES - LINE_STARTS_BYTES) / c->record_bytes;
	each = each < LINE_RANGES_MAX ? each : LINE_RANGES_MAX;
	c->n_lines = cut_lines(starts, n, each, line_of, cuts);
	choose_buckets(c, cuts);
	n_starts = (size_t)c->n_lines + 2 * c->steps; /* the search goes less than that further */
	c->memory = mem_calloc(1, LINE_BYTES + (size_t)c->n_lines * LINE_BYTES + LINES_SLACK +
					  n_starts * sizeof(*line_starts) +
					  c->n_buckets * sizeof(*buckets));
	lines = (uint8_t *)(((uintptr_t)c->memory + LINE_BYTES - 1) & ~(uintptr_t)(LINE_BYTES - 1));
	line_starts = (uint32_t *)(lines + (size_t)c->n_lines * LINE_BYTES + LINES_SLACK);
	buckets = (uint16_t *)(line_starts + n_starts);
	fill_lines(c, lines, starts, r, line_of, n);
	memset(line_starts, 0xff, n_starts * sizeof(*line_starts)); /* CHUNK_END */
	memcpy(line_starts, cuts, c->n_lines * sizeof(*line_starts));
	fill_buckets(c, cuts, buckets);
	c->starts = line_starts;
	c->buckets = buckets;
	c->lines = lines;
	free(line_of);
	free(cuts);
}

void image_load_ranges(const struct catalog_image *image, size_t chunk)
{
	uint32_t n;
	struct cursor c = image_open_chunk(image, &image->ranges, chunk, &n);
	const uint8_t *ops = cursor_bytes(&c, n).p;
	uint32_t *starts = mem_calloc(n, sizeof(*starts));
	struct image_range *r = mem_calloc(n, sizeof(*r));
	uint64_t room;
	bool is_last;

	take_starts(&c, starts, n);
	room = image->range_keys[chunk + 1] - image->range_keys[chunk];
	is_last = chunk + 1 == image->ranges.n_chunks; /* may end in a hole at the last address */
	if (n > 1 && (starts[n - 1] > room || (starts[n - 1] == room && !is_last)))
		c.failed = true;
	if (!c.failed) {
		take_symbols(&c, ops, r, n, image->symbols.n_items);
		take_sites(&c, ops, r, n, image->sites.n_items);
		take_files(&c, ops, r, n, image->files.n_items);
		take_lines(&c, ops, r, n);
	}
	if (!image_chunk_is_good(image, &c)) {
		n = 1; /* one hole */
		memset(r, 0, sizeof(*r));
	}
	make_lines(&image->cache->ranges[chunk], starts, r, n);
	free(starts);
	free(r);
}
