/* SPDX-License-Identifier: MIT */
/*
 * Rows of units become ranges of the image: runs of rows are painted, those of earlier units over
 * those of later ones, and joined with the pieces of symbols, so that one range says all that is
 * known about its addresses. Units rarely overlap, so rows are neither copied nor sorted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/leb128.h"
#include "base/search.h"
#include "symbols/catalog/catalog_image_build_internal.h"

/* --- which run has which address --- */

void row_map_init(struct row_map *map, const struct image_builder *b)
{
	size_t n = b->runs.n;
	struct range *ranges = mem_calloc(n, sizeof(*ranges));

	for (size_t i = 0; i < n; i++)
		ranges[i] = (struct range){b->runs.v[i].start, b->runs.v[i].end};
	map->n_pieces = range_paint_first_wins(ranges, n, &map->pieces);
	free(ranges);
}

void row_map_release(struct row_map *map)
{
	free(map->pieces);
	*map = (struct row_map){0};
}

bool row_map_cover_files(const struct row_map *map, struct final_names *names)
{
	bool has_any = false;

	for (size_t i = 0; i < names->symbols.n; i++) {
		struct final_symbol *s = &names->symbols.v[i];
		size_t behind =
			s->file ? SEARCH(0, map->n_pieces, k, map->pieces[k].start <= s->start) : 0;

		if (behind && s->start < map->pieces[behind - 1].end)
			s->file = 0;
		has_any |= s->file;
	}
	return has_any;
}

/* The last row of the run at or below `addr`. */
static size_t find_row(const struct image_builder *b, const struct built_run *run, uint64_t addr)
{
	return SEARCH(run->first + 1, run->first + run->n, i, b->rows.v[i].addr <= addr) - 1;
}

bool row_cursor_next(struct row_cursor *c, struct row_span *out)
{
	const struct range_piece *p;
	const struct built_run *run;
	const struct built_row *row;

	if (c->piece_i == c->map->n_pieces)
		return false;
	p = &c->map->pieces[c->piece_i];
	run = &c->b->runs.v[p->range_i];
	if (c->row_i == SIZE_MAX)
		c->row_i = p->start == run->start ? run->first : find_row(c->b, run, p->start);
	row = &c->b->rows.v[c->row_i];
	out->row = row;
	out->start = row->addr > p->start ? row->addr : p->start;
	out->end = c->row_i + 1 < run->first + run->n ? row[1].addr : run->end;
	c->row_i++;
	if (out->end >= p->end) {
		out->end = p->end;
		c->piece_i++;
		c->row_i = SIZE_MAX;
	}
	return true;
}

/* --- the table of ranges --- */

struct range_encoder {
	struct chunk_writer *w;
	uint64_t starts[RANGE_CHUNK_ITEMS];
	struct image_range ranges[RANGE_CHUNK_ITEMS]; /* all zero is a hole */
	uint8_t ops[RANGE_CHUNK_ITEMS];
	uint32_t n;
	struct image_range last; /* what was added last; a hole at first */
};

static bool is_hole(const struct image_range *r)
{
	return !(r->symbol | r->file | r->line | r->site);
}

static bool is_long_step(int64_t step)
{
	return step < -RANGE_STEP_BIAS || step >= RANGE_STEP_LONG - RANGE_STEP_BIAS;
}

/* The first byte of each range says what changes; holes change nothing. */
static void set_ops(struct range_encoder *e)
{
	struct image_range at = {0};

	for (uint32_t i = 0; i < e->n; i++) {
		const struct image_range *r = &e->ranges[i];
		int64_t step = (int64_t)r->line - at.line;

		if (is_hole(r)) {
			e->ops[i] = RANGE_IS_HOLE;
			continue;
		}
		e->ops[i] =
			(uint8_t)((is_long_step(step) ? RANGE_STEP_LONG : step + RANGE_STEP_BIAS) |
				  (r->symbol != at.symbol ? RANGE_NEW_SYMBOL : 0) |
				  (r->site != at.site ? RANGE_NEW_SITE : 0) |
				  (r->file != at.file ? RANGE_NEW_FILE : 0));
		at = *r;
	}
}

static uint8_t *put_symbols(const struct range_encoder *e, uint8_t *p)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < e->n; i++) {
		uint32_t symbol = e->ranges[i].symbol;

		if (!(e->ops[i] & RANGE_NEW_SYMBOL))
			continue;
		p = uleb_put(p, symbol ? zigzag((uint64_t)symbol - last - 1) + 1 : 0);
		last = symbol ? symbol : last;
	}
	return p;
}

static uint8_t *put_lines(const struct range_encoder *e, uint8_t *p)
{
	uint32_t line = 0;

	for (uint32_t i = 0; i < e->n; i++) {
		if (e->ops[i] & RANGE_IS_HOLE)
			continue;
		if ((e->ops[i] & RANGE_STEP_MASK) == RANGE_STEP_LONG)
			p = uleb_put(p, zigzag((uint64_t)e->ranges[i].line - line));
		line = e->ranges[i].line;
	}
	return p;
}

static uint8_t *put_columns(const struct range_encoder *e, uint8_t *p)
{
	uint32_t site = 0;

	memcpy(p, e->ops, e->n);
	p += e->n;
	for (uint32_t i = 1; i < e->n; i++)
		p = uleb_put(p, e->starts[i] - e->starts[i - 1]);
	p = put_symbols(e, p);
	for (uint32_t i = 0; i < e->n; i++) {
		if (!(e->ops[i] & RANGE_NEW_SITE))
			continue;
		p = uleb_put(p, zigzag((uint64_t)e->ranges[i].site - site));
		site = e->ranges[i].site;
	}
	for (uint32_t i = 0; i < e->n; i++)
		if (e->ops[i] & RANGE_NEW_FILE)
			p = uleb_put(p, e->ranges[i].file);
	return put_lines(e, p);
}

static void flush(struct range_encoder *e)
{
	struct buf *raw = &e->w->raw;
	size_t most = raw->n + (size_t)e->n * 32; /* five numbers of up to five bytes and a byte */

	if (!e->n)
		return;
	if (raw->cap < most)
		mem_grow((void **)&raw->p, &raw->cap, most, 1);
	set_ops(e);
	raw->n = (size_t)(put_columns(e, raw->p + raw->n) - raw->p);
	chunk_writer_cut(e->w, e->starts[0], e->n);
	e->n = 0;
}

/* From `start` up to the next call's. */
static void add_range(struct range_encoder *e, uint64_t start, const struct image_range *r)
{
	if (!memcmp(r, &e->last, sizeof(*r)))
		return;
	e->last = *r;
	if (e->n == RANGE_CHUNK_ITEMS || (e->n && start - e->starts[0] >= CHUNK_END))
		flush(e);
	e->starts[e->n] = start;
	e->ranges[e->n++] = *r;
	if (r->file | r->line)
		e->w->extra++;
}

struct join {
	struct row_cursor rows;
	struct row_span row;		  /* start and end are UINT64_MAX behind the last */
	const struct range_piece *pieces; /* those that are not behind us */
	size_t n_pieces;
};

static void next_row(struct join *j)
{
	if (!row_cursor_next(&j->rows, &j->row))
		j->row = (struct row_span){UINT64_MAX, UINT64_MAX, NULL};
}

/* What is known from `at` on, and up to where; a hole when nothing is. */
static uint64_t known_from(
	const struct join *j, const struct numbering *n, uint64_t at, struct image_range *r)
{
	const struct range_piece *p = j->n_pieces ? j->pieces : NULL;
	uint64_t end = UINT64_MAX, change;

	*r = (struct image_range){0};
	if (p) {
		change = p->start > at ? p->start : p->end;
		end = change < end ? change : end;
		r->symbol = p->start > at ? 0 : p->range_i + 1;
	}
	change = j->row.start > at ? j->row.start : j->row.end;
	end = change < end ? change : end;
	if (j->row.row && j->row.start <= at) {
		const struct built_row *row = j->row.row;

		r->file = row->file ? n->file_ids[row->file] : 0;
		r->line = row->line;
		r->site = row->site ? n->site_ids[row->site] : 0;
	}
	return end;
}

void ranges_encode(struct chunk_writer *w, const struct image_builder *b,
	const struct final_names *names, const struct row_map *rows, const struct numbering *n)
{
	struct range_encoder *e = mem_zalloc(sizeof(*e));
	struct join j = {
		.rows = {.b = b, .map = rows, .row_i = SIZE_MAX},
		.pieces = names->pieces,
		.n_pieces = names->n_pieces,
	};
	uint64_t at = 0;

	e->w = w;
	next_row(&j);
	while (j.n_pieces || j.row.row) {
		struct image_range r;
		uint64_t end = known_from(&j, n, at, &r);

		add_range(e, at, &r);
		at = end;
		if (j.n_pieces && j.pieces->end <= at) {
			j.pieces++;
			j.n_pieces--;
		}
		if (j.row.row && j.row.end <= at)
			next_row(&j);
	}
	add_range(e, at, &(struct image_range){0});
	flush(e);
	free(e);
}
