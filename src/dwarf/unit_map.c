/* SPDX-License-Identifier: MIT */
/* Reads one unit: its lines, its entries, and both together as rows. */
#include <stdlib.h>

#include "base/search.h"
#include "dwarf/debug_info.h"

/* What one unit may cost in all, for each of its bytes: lists and texts can be named again and
 * again by entries of a few bytes. Real units stay far below. */
#define RANGES_BYTES   4 /* for one range of an entry */
#define RANGES_ATLEAST 65536
#define NAMES_TIMES    256
#define NAMES_ATLEAST  65536
/* Bytes of a line table that a unit may read file names from when another one owns it. */
#define BORROWED_TIMES	 256
#define BORROWED_ATLEAST 4096

void unit_scratch_free(struct unit_scratch *s)
{
	if (!s)
		return;
	line_table_release(&s->lines);
	line_table_release(&s->call_lines);
	line_rows_release(&s->rows);
	painter_release(&s->painter);
	name_table_release(&s->names);
	vec_release(&s->files.ids);
	vec_release(&s->call_files.ids);
	vec_release(&s->ranges.ranges);
	free(s);
}

static struct unit_scratch *scratch_take(struct dwarf_debug *d)
{
	struct unit_scratch *s = NULL;

	pthread_mutex_lock(&d->lock);
	if (d->scratch.n)
		s = d->scratch.v[--d->scratch.n];
	pthread_mutex_unlock(&d->lock);
	return s ? s : mem_zalloc(sizeof(*s));
}

static void scratch_give(struct dwarf_debug *d, struct unit_scratch *s)
{
	pthread_mutex_lock(&d->lock);
	vec_push(&d->scratch, s);
	pthread_mutex_unlock(&d->lock);
}

/* Where reading the file names of a line table stops when other units read it, too. */
static uint64_t borrowed_end(const struct debug_unit *u, uint64_t end)
{
	uint64_t most = BORROWED_ATLEAST + (u->end - u->offset) * BORROWED_TIMES;

	return u->line_offset < end && end - u->line_offset > most ? u->line_offset + most : end;
}

/* Where the unit's line table ends at the latest, and whether its rows are this unit's. */
static uint64_t line_table_end(const struct dwarf_debug *d, const struct debug_unit *u, bool *owns)
{
	uint64_t end = d->file.sections.of[DEBUG_LINE].n;
	size_t low = SEARCH(
		0, d->line_owners.n, middle, d->line_owners.v[middle].offset < u->line_offset);

	if (low == d->line_owners.n)
		return 0;
	*owns = &d->units.units.v[d->line_owners.v[low].unit_i] == u;
	if (low + 1 < d->line_owners.n)
		end = d->line_owners.v[low + 1].offset;
	return *owns ? end : borrowed_end(u, end);
}

/* Lines and file names; what is wrong with them is noted, and the unit's entries still count. */
static void read_lines(struct dwarf_debug *d, struct unit_scratch *s, const struct debug_unit *u,
	struct dwarf_unit_map *out)
{
	struct err err;
	bool owns = false;
	uint64_t end;

	s->rows.rows.n = s->rows.sequences.n = 0;
	source_files_reset(&s->files, NULL, out);
	if (u->line_offset == UINT64_MAX)
		return;
	end = line_table_end(d, u, &owns);
	if (line_table_read(&s->lines, u, u->line_offset, end, &err) < 0) {
		dwarf_debug_note(d, "%s", err.text);
		return;
	}
	if (owns && line_program_run(&s->rows, &s->lines, &d->extents, &err) < 0)
		dwarf_debug_note(d, "%s", err.text);
	out->n_bytes += owns ? s->lines.n_bytes : 0;
	source_files_reset(&s->files, &s->lines, out);
}

/* The files that call sites of a split unit name: those of its own table when it has one. */
static struct source_files *call_files(struct dwarf_debug *d, struct unit_scratch *s,
	const struct debug_unit *split, struct dwarf_unit_map *out)
{
	struct err err;
	uint64_t end;

	if (split->line_offset == UINT64_MAX)
		return &s->files;
	end = borrowed_end(split, split->set->sections.of[DEBUG_LINE].n);
	if (line_table_read(&s->call_lines, split, split->line_offset, end, &err) < 0) {
		dwarf_debug_note(d, "split unit: %s", err.text);
		return &s->files;
	}
	source_files_reset(&s->call_files, &s->call_lines, out);
	return &s->call_files;
}

static int read_entries(struct dwarf_debug *d, struct unit_scratch *s, const struct debug_unit *u,
	struct dwarf_unit_map *out, struct err *err)
{
	struct debug_unit split;
	struct die_walk w = {.out = out,
		.names = &s->names,
		.files = &s->files,
		.ranges = &s->ranges,
		.painter = &s->painter};
	uint64_t n_bytes;
	int rc;

	if (u->type == UNIT_TYPE_SKELETON && die_has(&u->root, SLOT_DWO_NAME)) {
		if (!split_unit_find(d, u, &split))
			return 0;
		w.files = call_files(d, s, &split, out);
		u = &split;
	}
	n_bytes = u->end - u->offset;
	out->n_bytes += n_bytes;
	name_table_reset(&s->names, out, n_bytes * NAMES_TIMES + NAMES_ATLEAST);
	s->ranges.extents = &d->extents;
	s->ranges.budget = n_bytes / RANGES_BYTES + RANGES_ATLEAST;
	s->ranges.is_cut = false;
	rc = die_walk_unit(&w, u, err);
	if (s->ranges.is_cut)
		dwarf_debug_note(d, ".debug_info+0x%llx: some ranges of the unit cannot be read",
			(unsigned long long)u->offset);
	if (s->names.is_cut)
		dwarf_debug_note(d, ".debug_info+0x%llx: the unit has too many names",
			(unsigned long long)u->offset);
	if (w.is_too_deep)
		dwarf_debug_note(d, ".debug_info+0x%llx: entries are nested too deeply",
			(unsigned long long)u->offset);
	return rc;
}

/* --- lines and inline sites, laid over each other into the final rows --- */

/*
 * A merge of two sorted lists of changes: what is known of lines changes at rows and at both ends
 * of sequences, what is known of sites changes where the painter says. A row is written wherever
 * the two together differ from the row before.
 */
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
				row.column == last->column && row.is_hole == last->is_hole
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
		m->now.column = (uint16_t)row->column;
		put(m, row->addr);
	}
}

/* `sites` has been run. `lines` are the sequences of the unit, whose file numbers `files` knows. */
static void make_rows(struct dwarf_unit_map *out, const struct painter *sites,
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
		m.now.file = m.now.line = 0, m.now.column = 0;
		put(&m, q->end);
	}
	while (m.site < m.site_end) {
		uint64_t at = m.site->addr;

		take_site(&m);
		put(&m, at);
	}
}

int dwarf_unit_map_init(
	struct dwarf_unit_map *out, struct dwarf_debug *d, size_t unit_i, struct err *err)
{
	const struct debug_unit *u;
	struct unit_scratch *s;
	int rc;

	if (unit_i >= d->code_units.n)
		return err_set(err, ERR_NOT_FOUND, "there is no unit %zu", unit_i);
	u = &d->units.units.v[d->code_units.v[unit_i]];
	s = scratch_take(d);
	vec_push(&out->names, ((struct dwarf_text){"", 0}));
	vec_push(&out->files, ((struct dwarf_text){"", 0}));
	vec_push(&out->sites, ((struct dwarf_site){0}));
	painter_reset(&s->painter);
	read_lines(d, s, u, out);
	rc = read_entries(d, s, u, out, err);
	if (rc == 0) {
		painter_run(&s->painter);
		make_rows(out, &s->painter, &s->rows, &s->files);
	}
	scratch_give(d, s);
	if (rc < 0)
		dwarf_unit_map_release(out);
	return rc;
}

void dwarf_unit_map_release(struct dwarf_unit_map *m)
{
	vec_release_all(&m->owned);
	vec_release(&m->names);
	vec_release(&m->files);
	vec_release(&m->functions);
	vec_release(&m->sites);
	vec_release(&m->rows);
}
