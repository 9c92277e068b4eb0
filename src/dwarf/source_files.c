/* SPDX-License-Identifier: MIT */
#include "dwarf/source_files.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_BYTES     (16 * 1024)
#define BUDGET_TIMES   64 /* bytes of names, for a byte of the line table */
#define BUDGET_ATLEAST (64 * 1024)

void source_files_reset(
	struct source_files *f, const struct line_table *table, struct dwarf_unit_map *out)
{
	f->table = table;
	f->out = out;
	f->ids.n = 0;
	f->room = NULL;
	f->n_room = 0;
	f->budget = BUDGET_ATLEAST;
	if (!table)
		return;
	f->budget += table->n_bytes * BUDGET_TIMES;
	vec_ensure_zero(&f->ids, table->files.n);
}

/* Takes the last component off; false when there is none that a ".." could undo. */
static bool drop_last(const char *out, size_t *n)
{
	size_t start = *n;

	while (start && out[start - 1] != '/')
		start--;
	if (start == *n || (*n - start == 2 && !memcmp(out + start, "..", 2)))
		return false;
	*n = start > 1 ? start - 1 : start; /* the slash of the root stays */
	return true;
}

static size_t add_component(char *out, size_t n, const char *p, size_t len)
{
	bool is_root = n == 1 && out[0] == '/';

	if (!len || (len == 1 && p[0] == '.'))
		return n;
	if (len == 2 && p[0] == '.' && p[1] == '.' && (is_root || drop_last(out, &n)))
		return n;
	if (n + 1 + len > SOURCE_PATH_MAX)
		return n;
	if (n && !is_root)
		out[n++] = '/';
	memcpy(out + n, p, len);
	return n + len;
}

static size_t add_part(char *out, size_t n, struct dwarf_text part)
{
	const char *p = part.p, *end = p + part.n;

	while (p < end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		const char *stop = slash ? slash : end;

		n = add_component(out, n, p, (size_t)(stop - p));
		p = slash ? slash + 1 : end;
	}
	return n;
}

size_t source_path_join(const struct dwarf_text *parts, size_t n_parts, char *out)
{
	size_t first = n_parts, n = 0;

	while (first > 0) {
		first--;
		if (parts[first].n && parts[first].p[0] == '/') {
			out[n++] = '/';
			break;
		}
	}
	for (size_t i = first; i < n_parts; i++)
		if (parts[i].n)
			n = add_part(out, n, parts[i]);
	return n;
}

static char *take_room(struct source_files *f, size_t n)
{
	char *p;

	if (n > f->n_room) {
		f->n_room = n > ROOM_BYTES ? n : ROOM_BYTES;
		f->room = mem_alloc(f->n_room);
		vec_push(&f->out->owned, f->room);
	}
	p = f->room;
	f->room += n;
	f->n_room -= n;
	return p;
}

/* DWARF 5 lists the unit's own file as number 0 and again as 1. */
static uint32_t same_as_other(const struct source_files *f, uint64_t number)
{
	const struct line_file *a = f->table->files.v;

	if (number > 1 || f->ids.n < 2 || !f->ids.v[1 - number] || a[0].dir != a[1].dir ||
		a[0].name.n != a[1].name.n || !a[0].name.n ||
		memcmp(a[0].name.p, a[1].name.p, a[0].name.n))
		return 0;
	return f->ids.v[1 - number];
}

uint32_t source_files_add(struct source_files *f, uint64_t number)
{
	struct dwarf_text parts[3] = {{0}};
	char path[SOURCE_PATH_MAX], *kept;
	const struct line_file *file;
	size_t n;

	/* The program itself may have added files behind those of the header. */
	if (!f->table || number >= f->table->files.n)
		return 0;
	vec_ensure_zero(&f->ids, f->table->files.n);
	file = &f->table->files.v[number];
	f->ids.v[number] = same_as_other(f, number);
	if (f->ids.v[number])
		return f->ids.v[number] - 1;
	/* DWARF 5 lists the folder of compilation as folder 0. Where that is relative, as Debian's
	 * builds have it, it is put behind itself: so do binutils and LLVM, and one name for a file
	 * in all tools is worth more than a better one. */
	parts[0] = f->table->comp_dir;
	if (file->dir < f->table->dirs.n && (file->dir || f->table->sizes.version >= 5))
		parts[1] = f->table->dirs.v[file->dir];
	parts[2] = file->name;
	n = file->name.n ? source_path_join(parts, 3, path) : 0;
	if (!n || n > f->budget) {
		f->ids.v[number] = 1;
		return 0;
	}
	f->budget -= n;
	kept = take_room(f, n);
	memcpy(kept, path, n);
	vec_push(&f->out->files, ((struct dwarf_text){kept, (uint32_t)n}));
	f->ids.v[number] = (uint32_t)f->out->files.n; /* the id is one less */
	return f->ids.v[number] - 1;
}
