/* SPDX-License-Identifier: MIT */
/*
 * Opening the debug information of an image. What is found out here is shared by all readers and
 * not written again: units with their root entries, abbreviations, and which unit owns which line
 * table. Units are read in unit_map.c.
 */
#include "dwarf/source_map.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "dwarf/debug_info.h"

#define NOTES_MAX      64 /* sentences; further ones are only counted */
#define NOTE_BYTES_MAX 1024

void dwarf_debug_note(struct dwarf_debug *d, const char *fmt, ...)
{
	char text[NOTE_BYTES_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&d->lock);
	if (d->n_notes++ < NOTES_MAX)
		buf_printf(&d->notes, "%s%s", d->notes.n ? "\n" : "", text);
	pthread_mutex_unlock(&d->lock);
}

char *path_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return mem_strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
}

static bool may_have_code(const struct debug_unit *u)
{
	return u->type != UNIT_TYPE_TYPE && u->type != UNIT_TYPE_SPLIT_TYPE;
}

/* By offset; of one offset the owner first: a compile unit, and of several the first. */
ORDER_BY(order_owners, struct line_owner, offset, is_partial, unit_i)

static void find_line_owners(struct dwarf_debug *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->units.units.n; i++) {
		const struct debug_unit *u = &d->units.units.v[i];

		if (u->line_offset != UINT64_MAX)
			vec_push(&d->line_owners,
				((struct line_owner){u->line_offset, (uint32_t)i,
					u->type == UNIT_TYPE_PARTIAL || !may_have_code(u)}));
	}
	vec_sort(&d->line_owners, order_owners);
	for (size_t i = 0; i < d->line_owners.n; i++)
		if (!n || d->line_owners.v[n - 1].offset != d->line_owners.v[i].offset)
			d->line_owners.v[n++] = d->line_owners.v[i];
	d->line_owners.n = n;
}

int dwarf_debug_open(
	struct dwarf_debug **out, const struct elf_file *elf, const char *path, struct err *err)
{
	struct dwarf_debug *d = mem_zalloc(sizeof(*d));
	const struct note_sink notes = {d, ""}, alt_notes = {d, "shared debug file: "};
	int rc;

	pthread_mutex_init(&d->lock, NULL);
	d->path = path ? mem_strdup(path) : NULL;
	if (elf->type == ET_REL)
		rc = err_set(err, ERR_UNSUPPORTED,
			"is a relocatable file, whose debug information has no addresses yet");
	else
		rc = dwarf_file_init(&d->file, elf, false, err);
	if (rc == 0 && !d->file.sections.of[DEBUG_INFO].n)
		rc = err_set(err, ERR_NOT_FOUND, "has no debug information (.debug_info)");
	if (rc < 0) {
		dwarf_debug_close(d);
		return rc;
	}
	code_extents_init(&d->extents, elf);
	shared_file_open(d);
	if (d->alt_file.elf) {
		d->alt_units.sections = d->alt_file.sections;
		unit_set_read(&d->alt_units, false, &alt_notes);
		d->units.alt = &d->alt_units;
	}
	d->units.sections = d->file.sections;
	unit_set_read(&d->units, false, &notes);
	for (size_t i = 0; i < d->units.units.n; i++)
		if (may_have_code(&d->units.units.v[i]))
			vec_push(&d->code_units, (uint32_t)i);
	find_line_owners(d);
	*out = d;
	return 0;
}

void dwarf_debug_close(struct dwarf_debug *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->scratch.n; i++)
		unit_scratch_free(d->scratch.v[i]);
	vec_release(&d->scratch);
	split_files_close(d);
	unit_set_release(&d->units);
	unit_set_release(&d->alt_units);
	dwarf_file_close(&d->file);
	dwarf_file_close(&d->alt_file);
	vec_release(&d->extents.parts);
	vec_release(&d->code_units);
	vec_release(&d->line_owners);
	buf_release(&d->notes);
	free(d->path);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

size_t dwarf_debug_n_units(const struct dwarf_debug *d)
{
	return d->code_units.n;
}

const char *dwarf_debug_notes(const struct dwarf_debug *d)
{
	/* The text is completed in place, which changes nothing that a caller can see. */
	struct dwarf_debug *m = (struct dwarf_debug *)d;

	if (m->n_notes > NOTES_MAX) {
		buf_printf(&m->notes, "\nand %zu more like these", m->n_notes - NOTES_MAX);
		m->n_notes = 0;
	}
	return buf_text(&m->notes);
}

/* True when one of the sorted addresses lies in the range. */
static bool any_inside(const uint64_t *addrs, size_t n, struct addr_range range)
{
	size_t low = SEARCH(0, n, middle, addrs[middle] < range.start);

	return low < n && addrs[low] < range.end;
}

void dwarf_debug_units_at(
	const struct dwarf_debug *d, const uint64_t *addrs, size_t n, bool *wanted)
{
	/* Units do not share lists, so all together are no longer than the sections. */
	struct range_reader r = {.extents = &d->extents,
		.budget = d->file.sections.of[DEBUG_RANGES].n +
			  d->file.sections.of[DEBUG_RNGLISTS].n};

	for (size_t i = 0; i < d->code_units.n; i++) {
		const struct debug_unit *u = &d->units.units.v[d->code_units.v[i]];

		r.is_cut = false;
		wanted[i] = !range_reader_entry(&r, u, &u->root) || r.is_cut;
		for (size_t k = 0; k < r.ranges.n && !wanted[i]; k++)
			wanted[i] = any_inside(addrs, n, r.ranges.v[k]);
	}
	vec_release(&r.ranges);
}
