/* SPDX-License-Identifier: MIT */
/*
 * A merge of two sorted lists of changes: what is known of lines changes at rows and at both ends
 * of sequences, what is known of sites changes where the painter says. A row is written wherever
 * the two together differ from the row before.
 */
#include "dwarf/unit_rows.h"

struct merge {
	struct dwarf_unit_map *out;
	const struct paint_change *site, *site_end;
	struct dwarf_row now; /* what holds from here on */
	bool has_line, has_site;
};

static void put(struct merge *m, uint64_t addr)
{
	struct dwarf_row row = m->now;
	const struct dwarf_row *last = m->out->rows.n ? &m->out->rows.v[m->out->rows.n - 1] : NULL;

	row.addr = addr;
	row.is_hole = !m->has_line && !m->has_site;
	if (last ? row.file == last->file && row.line == last->line && row.site == last->site &&
				row.is_hole == last->is_hole
		 : row.is_hole)
		return;
	vec_push(&m->out->rows, row);
}

static void take_site(struct merge *m)
{
	m->has_site = m->site->value != PAINT_NONE;
	m->now.site = m->has_site ? m->site->value : 0;
	m->site++;
}

/* Writes the changes of sites below `addr` and takes the one at it. */
static inline void sites_up_to(struct merge *m, uint64_t addr)
{
	while (m->site < m->site_end && m->site->addr < addr) {
		uint64_t at = m->site->addr;

		take_site(m);
		put(m, at);
	}
	if (m->site < m->site_end && m->site->addr == addr)
		take_site(m);
}

static void put_sequence(
	struct merge *m, const struct line_row *row, size_t n, struct source_files *files)
{
	m->has_line = true;
	for (; n; n--, row++) {
		sites_up_to(m, row->addr);
		m->now.file = source_files_id(files, row->file);
		m->now.line = row->line;
		put(m, row->addr);
	}
}

void unit_rows_make(struct dwarf_unit_map *out, const struct painter *sites,
	const struct line_rows *lines, struct source_files *files)
{
	struct merge m = {.out = out, .site = sites->changes.v, .site_end = sites->changes.v};
	const struct line_sequence *q = lines->sequences.v;

	if (sites->changes.n) /* C has no arithmetic on NULL, not even adding 0 */
		m.site_end += sites->changes.n;
	for (size_t i = 0; i < lines->sequences.n; i++, q++) {
		/* Up to the first row the line is not known, even if a site begins before. */
		sites_up_to(&m, q->start);
		put_sequence(&m, lines->rows.v + q->first, q->n, files);
		if (i + 1 < lines->sequences.n && q[1].start == q->end)
			continue;
		sites_up_to(&m, q->end);
		m.has_line = false;
		m.now.file = m.now.line = 0;
		put(&m, q->end);
	}
	while (m.site < m.site_end) {
		uint64_t at = m.site->addr;

		take_site(&m);
		put(&m, at);
	}
}
