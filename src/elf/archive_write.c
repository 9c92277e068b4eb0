/* SPDX-License-Identifier: MIT */
/*
 * Writing of ar archives in the GNU format: the symbol index, the table of long names, the members.
 * The index names headers by their offsets, which depend on its own size; so everything is
 * measured first and written in one go.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/search.h"
#include "elf/archive_parts.h"

#define SHORT_NAME_MAX 15	     /* with the slash at its end it fills the field */
#define SIZE_MAX_TEXT  9999999999ull /* ten digits */
/* Texts of hostile files may be named many times over; no honest index or table of names is larger
 * than the members, or than this. */
#define TEXT_BYTES_LEAST (1u << 20)

struct writer {
	const struct archive *a;
	VEC(struct archive_symbol) symbols;
	struct buf names;  /* contents of "//" */
	uint64_t *name_at; /* a member's place in it; NAME_IS_SHORT when it is not there */
	uint64_t *offsets; /* of the members' headers */
	uint64_t text_bytes,
		text_max; /* of the names of symbols and members, and what is allowed */
	bool is_wide;	  /* 64-bit index */
};
#define NAME_IS_SHORT UINT64_MAX

/* ---- the symbols of a member ---- */

static void add_symbol(void *writer, uint32_t member, const char *name)
{
	struct writer *w = writer;

	if (w->text_bytes > w->text_max)
		return;
	w->text_bytes += strlen(name) + 1;
	vec_push(&w->symbols, ((struct archive_symbol){member, name}));
}

/* What the member itself says; the entries that it had when it does not say them all. */
static void add_symbols(struct writer *w, uint32_t member)
{
	const struct archive_store *store = w->a->arena;
	size_t before = w->symbols.n, i;

	if (archive_each_symbol(w->a->members.v[member].bytes, add_symbol, w, member) || !store)
		return;
	i = SEARCH(0, store->symbols.n, middle, store->symbols.v[middle].member < member);
	if (i < store->symbols.n && store->symbols.v[i].member == member)
		w->symbols.n = before;
	for (; i < store->symbols.n && store->symbols.v[i].member == member; i++)
		add_symbol(w, member, store->symbols.v[i].name);
}

/* ---- what goes where ---- */

/* The files of a thin archive have paths; inside of an archive a member has a name only. */
static const char *name_inside(const struct archive *a, const char *name)
{
	return a->is_thin ? path_base_name(name) : name;
}

static int place_name(struct writer *w, size_t i, struct err *err)
{
	const char *name = name_inside(w->a, w->a->members.v[i].name);
	size_t n = strlen(name);

	w->name_at[i] = NAME_IS_SHORT;
	if (n && n <= SHORT_NAME_MAX && !strchr(name, '/') && name[n - 1] != ' ')
		return 0;
	if (strchr(name, '\n'))
		return err_set(err, ERR_FORMAT, "member %zu: its name holds a line's end", i + 1);
	w->name_at[i] = w->names.n;
	w->text_bytes += n + 2;
	buf_put_cstr(&w->names, name);
	buf_put_cstr(&w->names, "/\n");
	return 0;
}

static uint64_t padded(uint64_t n)
{
	return n + (n & 1);
}

static uint64_t index_bytes(const struct writer *w)
{
	size_t word = w->is_wide ? 8 : 4;
	uint64_t n = word + word * (uint64_t)w->symbols.n;

	for (size_t i = 0; i < w->symbols.n; i++)
		n += strlen(w->symbols.v[i].name) + 1;
	return padded(n);
}

/* Returns the offset of the last header. */
static uint64_t place_members(struct writer *w)
{
	uint64_t at = ARCHIVE_MAGIC_BYTES + ARCHIVE_HEADER_BYTES + index_bytes(w);

	if (w->names.n)
		at += ARCHIVE_HEADER_BYTES + padded(w->names.n);
	for (size_t i = 0; i < w->a->members.n; i++) {
		w->offsets[i] = at;
		at += ARCHIVE_HEADER_BYTES + padded(w->a->members.v[i].bytes.n);
	}
	return w->a->members.n ? w->offsets[w->a->members.n - 1] : 0;
}

/* ---- writing ---- */

static void put_padding(struct buf *out, uint64_t n, char with)
{
	if (n & 1)
		buf_put_u8(out, (uint8_t)with);
}

static void put_big_endian(struct buf *out, uint64_t v, size_t n)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> 8 * (n - 1 - i));
	buf_put(out, bytes, n);
}

static void put_index(const struct writer *w, struct buf *out)
{
	size_t word = w->is_wide ? 8 : 4, before;

	buf_printf(out, "%-16s%-12d%-6d%-6d%-8d%-10llu`\n", w->is_wide ? "/SYM64/" : "/", 0, 0, 0,
		0, (unsigned long long)index_bytes(w));
	put_big_endian(out, w->symbols.n, word);
	for (size_t i = 0; i < w->symbols.n; i++)
		put_big_endian(out, w->offsets[w->symbols.v[i].member], word);
	before = out->n;
	for (size_t i = 0; i < w->symbols.n; i++)
		buf_put_text(out, w->symbols.v[i].name);
	put_padding(out, out->n - before, 0);
}

static void put_names(const struct writer *w, struct buf *out)
{
	if (!w->names.n)
		return;
	buf_printf(out, "%-48s%-10zu`\n", "//",
		(size_t)padded(w->names.n)); /* as GNU ar has it */
	buf_put(out, w->names.p, w->names.n);
	put_padding(out, w->names.n, '\n');
}

static int put_member(const struct writer *w, size_t i, struct buf *out, struct err *err)
{
	const struct archive_member *m = &w->a->members.v[i];
	char name[40];

	if (m->is_outside)
		return err_set(
			err, ERR_FAILED, "member '%s' lies outside and was not read", m->name);
	if (m->bytes.n > SIZE_MAX_TEXT || m->mtime > 999999999999ull || m->uid > 999999 ||
		m->gid > 999999 || m->mode > 077777777)
		return err_set(err, ERR_LIMIT,
			"member '%s': its size, time, owner or mode does not fit", m->name);
	if (w->name_at[i] == NAME_IS_SHORT)
		snprintf(name, sizeof(name), "%s/", name_inside(w->a, m->name));
	else
		snprintf(name, sizeof(name), "/%llu", (unsigned long long)w->name_at[i]);
	buf_printf(out, "%-16s%-12llu%-6u%-6u%-8o%-10zu`\n", name, (unsigned long long)m->mtime,
		m->uid, m->gid, m->mode, m->bytes.n);
	buf_put(out, m->bytes.p, m->bytes.n);
	put_padding(out, m->bytes.n, '\n');
	return 0;
}

static int write_all(struct writer *w, struct buf *out, struct err *err)
{
	size_t n = w->a->members.n;
	int rc = 0;

	if (!n) { /* gold takes an index of nothing for a damaged file */
		buf_put_cstr(out, ARCHIVE_MAGIC);
		return 0;
	}
	w->text_max = TEXT_BYTES_LEAST;
	for (size_t i = 0; i < n; i++)
		w->text_max += ARCHIVE_HEADER_BYTES + w->a->members.v[i].bytes.n;
	for (size_t i = 0; i < n && !rc && w->text_bytes <= w->text_max; i++) {
		rc = place_name(w, i, err);
		add_symbols(w, (uint32_t)i);
	}
	if (rc < 0)
		return rc;
	if (w->text_bytes > w->text_max)
		return err_set(err, ERR_LIMIT, "the names of symbols are longer than the members");
	w->is_wide = w->a->has_wide_index;
	if (place_members(w) > UINT32_MAX && !w->is_wide) {
		w->is_wide = true;
		place_members(w);
	}
	buf_put_cstr(out, ARCHIVE_MAGIC);
	put_index(w, out);
	put_names(w, out);
	for (size_t i = 0; i < n && !rc; i++)
		rc = put_member(w, i, out, err);
	return rc;
}

int archive_write(const struct archive *a, struct buf *out, struct err *err)
{
	struct writer w = {.a = a};
	size_t before = out->n;
	int rc;

	w.name_at = mem_calloc(a->members.n + 1, sizeof(*w.name_at));
	w.offsets = mem_calloc(a->members.n + 1, sizeof(*w.offsets));
	rc = write_all(&w, out, err);
	if (rc < 0)
		out->n = before;
	vec_release(&w.symbols);
	buf_release(&w.names);
	free(w.name_at);
	free(w.offsets);
	return rc;
}
