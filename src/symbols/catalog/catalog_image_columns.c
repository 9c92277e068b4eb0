/* SPDX-License-Identifier: MIT */
/*
 * The columns of source lines: a table beside the ranges, which most look-ups do without. An entry says
 * which column holds from its address on, 0 where none is known.
 */
#include <stdlib.h>

#include "base/leb128.h"
#include "base/search.h"
#include "symbols/catalog/catalog_image_build_internal.h"

/* --- writing --- */

struct column_encoder {
	struct chunk_writer *w;
	uint64_t starts[COLUMN_CHUNK_ITEMS];
	uint32_t columns[COLUMN_CHUNK_ITEMS];
	uint32_t n;
	uint32_t last; /* what was added last */
};

static void flush(struct column_encoder *e)
{
	if (!e->n)
		return;
	for (uint32_t i = 1; i < e->n; i++)
		buf_put_uleb(&e->w->raw, e->starts[i] - e->starts[i - 1]);
	for (uint32_t i = 0; i < e->n; i++)
		buf_put_uleb(&e->w->raw, e->columns[i]);
	chunk_writer_cut(e->w, e->starts[0], e->n);
	e->n = 0;
}

static void add_column(struct column_encoder *e, uint64_t start, uint32_t column)
{
	if (column == e->last)
		return;
	e->last = column;
	if (e->n == COLUMN_CHUNK_ITEMS || (e->n && start - e->starts[0] >= CHUNK_END))
		flush(e);
	e->starts[e->n] = start;
	e->columns[e->n++] = column;
}

void columns_encode(
	struct chunk_writer *w, const struct image_builder *b, const struct row_map *rows)
{
	struct column_encoder *e = mem_zalloc(sizeof(*e));
	struct row_cursor c = {.b = b, .map = rows, .row_i = SIZE_MAX};
	struct row_span span;
	uint64_t end = 0;

	e->w = w;
	while (row_cursor_next(&c, &span)) {
		if (span.start != end)
			add_column(e, end, 0);
		add_column(e, span.start, span.row->column);
		end = span.end;
	}
	add_column(e, end, 0);
	flush(e);
	free(e);
}

/* --- reading --- */

static void take_columns(struct column_chunk *to, struct cursor *c, uint32_t n)
{
	uint64_t start = 0;

	to->n = n;
	for (uint32_t i = 1; i < n; i++) {
		uint32_t step = column_u32(c);

		start += step;
		if (!step || start >= CHUNK_END)
			c->failed = true;
		to->starts[i] = (uint32_t)start;
	}
	for (uint32_t i = 0; i < n; i++)
		to->columns[i] = (uint16_t)column_up_to(c, DWARF_COLUMN_MAX);
}

struct column_chunk *image_load_columns(const struct catalog_image *image, size_t chunk)
{
	uint32_t n;
	struct cursor c = image_open_chunk(image, &image->columns, chunk, &n);
	struct column_chunk *made = mem_zalloc(sizeof(*made));

	take_columns(made, &c, n);
	if (!image_chunk_is_good(image, &c))
		*made = (struct column_chunk){.n = 1};
	image->columns.unpacked[chunk] = made;
	return made;
}

uint32_t image_column_at(const struct catalog_image *image, uint64_t addr, uint64_t *end)
{
	const struct chunk_table *t = &image->columns;
	size_t behind = SEARCH(0, t->n_chunks, i, chunk_table_entry(t, i).key <= addr), at;
	uint64_t next = behind < t->n_chunks ? chunk_table_entry(t, behind).key : UINT64_MAX, key;
	const struct column_chunk *c;

	*end = next;
	if (!behind)
		return 0;
	key = chunk_table_entry(t, behind - 1).key;
	c = t->unpacked[behind - 1];
	if (!c)
		c = image_load_columns(image, behind - 1);
	at = SEARCH(0, c->n, i, c->starts[i] <= addr - key);
	if (at < c->n && key + c->starts[at] < next)
		*end = key + c->starts[at];
	return c->columns[at - 1];
}

uint32_t catalog_image_column(const struct catalog_image *image, struct iaddr addr)
{
	uint64_t end;

	return image_column_at(image, addr.v, &end);
}
