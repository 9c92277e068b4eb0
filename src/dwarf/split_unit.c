/* SPDX-License-Identifier: MIT */
/*
 * Split units (gcc -gsplit-dwarf): the image has a skeleton, the entries are in a .dwo file of the
 * object or in one .dwp package of them all (DWARF 5 section 7.3.5; before, a GNU extension).
 * Addresses, lines and, in DWARF 4, ranges stay in the image.
 *
 * Everything here runs with the lock held.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dwarf/debug_info.h"

#define DWO_NAME_MAX	 4096
#define SPLIT_READ_TIMES 4 /* bytes of units given out, for each byte of the file's sections */
#define COLUMNS_MAX	 16
#define PACKAGE_SUFFIX	 ".dwp"

/* Section numbers of a package's index that differ between versions 2 and 5 are not needed, but
 * for DW_SECT_RNGLISTS, which in version 2 is DW_SECT_MACRO. */
enum { SECT_INFO = 1, SECT_ABBREV = 3, SECT_LINE = 4, SECT_STR_OFFSETS = 6, SECT_RNGLISTS = 8 };

static void split_file_close(struct split_file *s)
{
	if (!s)
		return;
	unit_set_release(&s->units);
	map_release(&s->by_id);
	dwarf_file_close(&s->file);
	free(s->why);
	free(s);
}

void split_files_close(struct dwarf_debug *d)
{
	for (size_t i = 0; i < d->parts.n; i++)
		unit_set_release(d->parts.v[i]);
	vec_release_all(&d->parts);
	for (size_t i = 0; i < d->splits.n; i++)
		split_file_close(d->splits.v[i]);
	vec_release(&d->splits);
	intern_release(&d->split_paths);
	map_release(&d->split_units);
	split_file_close(d->package);
	d->package = NULL;
}

/* What split units take from the image's sections. */
static struct debug_sections joined_sections(
	const struct dwarf_debug *d, const struct debug_sections *split)
{
	struct debug_sections sections = *split;

	sections.of[DEBUG_ADDR] = d->file.sections.of[DEBUG_ADDR];
	sections.of[DEBUG_RANGES] = d->file.sections.of[DEBUG_RANGES];
	return sections;
}

static struct split_file *open_split(const char *path)
{
	struct split_file *s = mem_zalloc(sizeof(*s));
	struct err err = {0};

	s->is_open = dwarf_file_open(&s->file, path, true, &err) == 0;
	if (s->is_open)
		return s;
	dwarf_file_close(&s->file);
	if (err.code != ERR_NOT_FOUND)
		s->why = mem_strdup(err.text);
	return s;
}

/* The compile units of a .dwo by their ids; of equal ids the first. */
static void index_units(struct split_file *s)
{
	for (size_t i = 0; i < s->units.units.n; i++) {
		const struct debug_unit *u = &s->units.units.v[i];
		bool is_new;
		uint64_t *at;

		if (u->type != UNIT_TYPE_SPLIT_COMPILE || !u->abbrevs)
			continue;
		at = map_ensure(&s->by_id, u->dwo_id, &is_new);
		if (is_new)
			*at = i;
	}
}

/* The .dwo at a path, opened once whether it is there or not. */
static struct split_file *dwo_at(struct dwarf_debug *d, const char *path)
{
	uint32_t i = intern_text(&d->split_paths, path);
	struct split_file *s;

	if (i < d->splits.n)
		return d->splits.v[i];
	s = open_split(path);
	if (s->is_open) {
		s->units.sections = joined_sections(d, &s->file.sections);
		unit_set_read(&s->units, true, NULL);
		index_units(s);
	}
	vec_push(&d->splits, s);
	return s;
}

/* A unit is looked for once for its skeleton. Skeletons are small, so a hostile file could have the
 * same large unit read by a million of them: what is given out is counted. */
static bool may_read(struct split_file *s, uint64_t n_bytes)
{
	uint64_t all = s->file.sections.of[DEBUG_INFO].n + s->file.sections.of[DEBUG_ABBREV].n;

	if (n_bytes > all * SPLIT_READ_TIMES - s->n_read)
		return false;
	s->n_read += n_bytes;
	return true;
}

/* The index of a package: a hash table of ids, and for each unit where its parts of the sections
 * are. */
struct package_index {
	uint32_t version, n_columns, n_units, n_slots;
	const uint8_t *ids, *rows;	/* n_slots of 8 and of 4 bytes */
	const uint8_t *columns;		/* n_columns of 4 bytes: section numbers */
	const uint8_t *offsets, *sizes; /* n_units rows of n_columns of 4 bytes */
};

static bool read_index(struct span section, struct package_index *x)
{
	struct cursor c = cursor_of(section);
	uint64_t table;

	x->version = cursor_u32(&c) & 0xffff; /* 16 bits and padding in DWARF 5 */
	x->n_columns = cursor_u32(&c);
	x->n_units = cursor_u32(&c);
	x->n_slots = cursor_u32(&c);
	if (c.failed || (x->version != 2 && x->version != 5) || x->n_columns > COLUMNS_MAX ||
		!x->n_slots || (x->n_slots & (x->n_slots - 1)))
		return false;
	table = (uint64_t)x->n_units * x->n_columns * 4;
	x->ids = cursor_bytes(&c, (uint64_t)x->n_slots * 8).p;
	x->rows = cursor_bytes(&c, (uint64_t)x->n_slots * 4).p;
	x->columns = cursor_bytes(&c, (uint64_t)x->n_columns * 4).p;
	x->offsets = cursor_bytes(&c, table).p;
	x->sizes = cursor_bytes(&c, table).p;
	return !c.failed;
}

/* The row of an id, counted from 0; -1 when there is none. */
static int64_t find_row(const struct package_index *x, uint64_t id)
{
	uint32_t mask = x->n_slots - 1, i = (uint32_t)id & mask;
	uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t tries = 0; tries < x->n_slots; tries++, i = (i + step) & mask) {
		uint32_t row = (uint32_t)bytes_u32(x->rows + (size_t)i * 4);

		if (!row)
			return -1;
		if (bytes_u64(x->ids + (size_t)i * 8) == id)
			return row <= x->n_units ? (int64_t)row - 1 : -1;
	}
	return -1;
}

static int section_of_column(const struct package_index *x, uint64_t number)
{
	switch (number) {
	case SECT_INFO:
		return DEBUG_INFO;
	case SECT_ABBREV:
		return DEBUG_ABBREV;
	case SECT_LINE:
		return DEBUG_LINE;
	case SECT_STR_OFFSETS:
		return DEBUG_STR_OFFSETS;
	case SECT_RNGLISTS:
		return x->version == 5 ? DEBUG_RNGLISTS : -1;
	default:
		return -1;
	}
}

/* The sections of the package, cut down to the parts of one unit. */
static void cut_sections(const struct package_index *x, uint64_t row, struct debug_sections *s)
{
	for (uint32_t i = 0; i < x->n_columns; i++) {
		size_t at = ((size_t)row * x->n_columns + i) * 4;
		int section = section_of_column(x, bytes_u32(x->columns + (size_t)i * 4));

		if (section >= 0)
			s->of[section] = span_sub(s->of[section], bytes_u32(x->offsets + at),
				bytes_u32(x->sizes + at));
	}
}

static const struct debug_unit *package_unit(
	struct dwarf_debug *d, struct split_file *package, uint64_t id)
{
	struct package_index x;
	const struct debug_unit *u;
	struct unit_set *part;
	int64_t row;

	if (!read_index(package->file.sections.of[DEBUG_CU_INDEX], &x))
		return NULL;
	row = find_row(&x, id);
	if (row < 0)
		return NULL;
	part = mem_zalloc(sizeof(*part));
	part->sections = joined_sections(d, &package->file.sections);
	cut_sections(&x, (uint64_t)row, &part->sections);
	if (!may_read(package, part->sections.of[DEBUG_INFO].n +
				       part->sections.of[DEBUG_ABBREV].n)) {
		free(part);
		return NULL;
	}
	unit_set_read(part, true, NULL);
	vec_push(&d->parts, part);
	for (size_t i = 0; i < part->units.n; i++) {
		u = &part->units.v[i];
		if (u->type == UNIT_TYPE_SPLIT_COMPILE && u->dwo_id == id && u->abbrevs)
			return u;
	}
	return NULL;
}

/* The package of an image or of its debug file: IMAGE.dwp. */
static void open_package(struct dwarf_debug *d)
{
	size_t n = d->path ? strlen(d->path) : 0;
	char *path;

	if (!d->path) {
		d->package = mem_zalloc(sizeof(*d->package));
		return;
	}
	path = mem_printf("%s" PACKAGE_SUFFIX, d->path);
	d->package = open_split(path);
	free(path);
	if (d->package->is_open || n < 6 || strcmp(d->path + n - 6, ".debug"))
		return;
	split_file_close(d->package);
	path = mem_printf("%.*s" PACKAGE_SUFFIX, (int)(n - 6), d->path);
	d->package = open_split(path);
	free(path);
}

static const struct debug_unit *dwo_unit(
	struct dwarf_debug *d, const char *path, uint64_t id, const char **why)
{
	struct split_file *s = dwo_at(d, path);
	const uint64_t *i = map_find(&s->by_id, id);
	const struct debug_unit *u = i ? &s->units.units.v[*i] : NULL;

	if (s->why && !*why)
		*why = s->why;
	return u && may_read(s, u->end - u->offset) ? u : NULL;
}

/* The places where a .dwo may be: where it was made, and beside the image. */
static const struct debug_unit *dwo_search(struct dwarf_debug *d, const struct debug_unit *skeleton,
	struct dwarf_text name, const char **why)
{
	struct dwarf_text dir = skeleton->comp_dir;
	const char *base = memrchr(name.p, '/', name.n);
	int base_n = (int)(base ? name.p + name.n - base - 1 : name.n);
	const struct debug_unit *u;
	char *folder = d->path ? path_folder(d->path) : mem_strdup("");
	char *paths[3];

	base = base ? base + 1 : name.p;
	paths[0] = name.p[0] == '/' || !dir.n
			   ? mem_strndup(name.p, name.n)
			   : mem_printf("%.*s/%.*s", (int)dir.n, dir.p, (int)name.n, name.p);
	paths[1] = mem_printf("%s%.*s", folder, (int)name.n, name.p);
	paths[2] = mem_printf("%s%.*s", folder, base_n, base);
	u = dwo_unit(d, paths[0], skeleton->dwo_id, why);
	if (!u && name.p[0] != '/')
		u = dwo_unit(d, paths[1], skeleton->dwo_id, why);
	if (!u && base_n != (int)name.n)
		u = dwo_unit(d, paths[2], skeleton->dwo_id, why);
	for (int i = 0; i < 3; i++)
		free(paths[i]);
	free(folder);
	return u;
}

/* Looks in the package, then for a .dwo. */
static const struct debug_unit *search(
	struct dwarf_debug *d, const struct debug_unit *skeleton, const char **why)
{
	const struct debug_unit *u = NULL;
	struct dwarf_text name;

	if (!d->package)
		open_package(d);
	if (d->package->is_open)
		u = package_unit(d, d->package, skeleton->dwo_id);
	if (!u && debug_unit_slot_text(skeleton, &skeleton->root, SLOT_DWO_NAME, &name) && name.n &&
		name.n <= DWO_NAME_MAX)
		u = dwo_search(d, skeleton, name, why);
	return u;
}

bool split_unit_find(
	struct dwarf_debug *d, const struct debug_unit *skeleton, struct debug_unit *out)
{
	struct dwarf_text name = {"", 0};
	const struct debug_unit *u;
	const char *why = NULL;
	uint64_t *found;
	bool is_new;

	pthread_mutex_lock(&d->lock);
	found = map_ensure(&d->split_units, skeleton->offset, &is_new);
	u = is_new ? search(d, skeleton, &why) : (const struct debug_unit *)(uintptr_t)*found;
	*found = (uintptr_t)u;
	if (u)
		*out = *u;
	pthread_mutex_unlock(&d->lock);
	if (!u && is_new) {
		debug_unit_slot_text(skeleton, &skeleton->root, SLOT_DWO_NAME, &name);
		dwarf_debug_note(d,
			".debug_info+0x%llx: split unit '%.*s': %s, so only its lines are known",
			(unsigned long long)skeleton->offset, (int)(name.n < 300 ? name.n : 300),
			name.p, why ? why : "is not there");
	}
	if (!u)
		return false;
	/* What a split unit has in its skeleton (DWARF 5 section 3.1.3). */
	out->low_pc = skeleton->low_pc;
	out->addr_base = skeleton->addr_base;
	out->ranges_base = skeleton->ranges_base;
	if (!out->comp_dir.n)
		out->comp_dir = skeleton->comp_dir;
	return true;
}
