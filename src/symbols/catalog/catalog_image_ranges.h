/* SPDX-License-Identifier: MIT */
/*
 * A chunk of ranges in memory, made for look-ups that miss the cache once: up to eight ranges are
 * one cache line,
 *
 *   0                16                                            64
 *   +----------------+--------+--------+- - - -+--------+-----------+
 *   | 8 starts (u16) | record | record |       | record |  not used |
 *   +----------------+--------+--------+- - - -+--------+-----------+
 *
 * starts as distances from the line's own, ascending, NO_START behind the last; records with the
 * four numbers of a range in as few bits as the chunk's largest need. A number is stored as 0, or
 * as its distance from the chunk's smallest plus 1.
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_RANGES_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_RANGES_H

#include <stdint.h>
#include <string.h>

#define LINE_BYTES	  64
#define LINE_RANGES_MAX	  8
#define LINE_STARTS_BYTES 16
#define NO_START	  UINT16_MAX
#define CHUNK_END	  UINT32_MAX /* above every start of a chunk */

struct image_range {
	uint32_t symbol; /* index + 1; 0 = none */
	uint32_t file, line, site;
};

struct range_field {
	uint32_t below; /* one less than the smallest number that is not 0 */
	uint32_t mask;
	uint8_t word, shift; /* byte of the record where its word begins, bit of that word */
};

struct range_chunk {
	const uint8_t *lines;	 /* NULL = not unpacked yet */
	const uint32_t *starts;	 /* of each line, from the chunk's address; then CHUNK_END */
	const uint16_t *buckets; /* the line at the start of each bucket */
	uint32_t n_lines, n_buckets;
	uint16_t steps; /* the first step of the search in any bucket: a power of two, or 0 */
	uint8_t shift;	/* a bucket is 2^shift bytes of the address space */
	uint8_t record_bytes;
	struct range_field symbol, site, file, line;
	void *memory; /* owned; holds all of it */
};

static inline uint32_t range_field_get(const struct range_field *f, const uint8_t *record)
{
	uint64_t word;
	uint32_t v;

	memcpy(&word, record + f->word, sizeof(word));
	v = (uint32_t)(word >> f->shift) & f->mask;
	return (v + f->below) & -(uint32_t)(v != 0);
}

static inline struct image_range range_chunk_get(
	const struct range_chunk *c, const uint8_t *line, unsigned i)
{
	const uint8_t *record = line + LINE_STARTS_BYTES + i * c->record_bytes;

	return (struct image_range){
		.symbol = range_field_get(&c->symbol, record),
		.file = range_field_get(&c->file, record),
		.line = range_field_get(&c->line, record),
		.site = range_field_get(&c->site, record),
	};
}

#endif
