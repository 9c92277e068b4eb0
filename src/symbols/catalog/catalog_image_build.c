/* SPDX-License-Identifier: MIT */
/* Collects what goes into an image; catalog_image_write.c makes the bytes of it. */
#include "symbols/catalog/catalog_image_build.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "symbols/catalog/catalog_image_build_internal.h"

#define SECTION_NAME_BYTES_MAX 255 /* longer ones are cut: thousands may share one long text */

struct image_builder *image_builder_new(const struct image_identity *identity)
{
	struct image_builder *b = mem_zalloc(sizeof(*b));

	image_identity_copy(&b->identity, identity);
	intern_bytes(&b->texts, "", 0);
	vec_push(&b->sites, ((struct built_site){0}));
	return b;
}

static void source_release(struct catalog_source *s)
{
	free((char *)s->path);
	free((char *)s->identity);
	free((char *)s->verdict);
}

void image_builder_free(struct image_builder *b)
{
	if (!b)
		return;
	image_identity_release(&b->identity);
	intern_release(&b->texts);
	intern_release(&b->section_keys);
	for (size_t i = 0; i < b->sources.n; i++)
		source_release(&b->sources.v[i]);
	for (size_t i = 0; i < b->sections.n; i++)
		free((char *)b->sections.v[i].name);
	vec_release(&b->sources);
	vec_release(&b->sections);
	vec_release_all(&b->notes);
	vec_release(&b->names);
	vec_release(&b->pieces);
	vec_release(&b->data);
	vec_release(&b->rows);
	vec_release(&b->runs);
	vec_release(&b->sites);
	free(b);
}

/* --- texts --- */

#define ALL_BYTES(v) (UINT64_MAX / 255 * (v))

/* No byte below a blank, none of 0x7f; eight at a time. */
static bool is_printable(const char *p, size_t n)
{
	uint64_t bad = 0, word, del;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		del = word ^ ALL_BYTES(0x7f);
		bad |= ((word - ALL_BYTES(' ')) & ~word) | ((del - ALL_BYTES(1)) & ~del);
	}
	for (; n; p++, n--)
		bad |= (unsigned char)*p < ' ' || *p == 0x7f ? 0x80 : 0;
	return !(bad & ALL_BYTES(0x80));
}

/* As symtab.h says: a tab separates kallsyms' module. */
static uint32_t clean_text(struct image_builder *b, const char *p, size_t n)
{
	char *clean = mem_strndup(p, n);
	uint32_t id;

	for (size_t i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)clean[i];

		if (ch == '\t')
			ch = ' ';
		clean[i] = (char)(ch < ' ' || ch == 0x7f ? '?' : ch);
	}
	id = intern_bytes(&b->texts, clean, n);
	free(clean);
	return id;
}

uint32_t builder_text(struct image_builder *b, const char *p, size_t n)
{
	if (n > TEXT_BYTES_MAX) {
		n = TEXT_BYTES_MAX;
		b->n_texts_cut++;
	}
	if (__builtin_expect(is_printable(p, n), 1))
		return intern_bytes(&b->texts, p, n);
	return clean_text(b, p, n);
}

/* --- sources, sections, notes --- */

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

uint32_t builder_source(struct image_builder *b, const struct catalog_source *source)
{
	struct catalog_source s = *source;

	for (size_t i = 0; i < b->sources.n; i++) {
		const struct catalog_source *old = &b->sources.v[i];

		if (old->kind == s.kind && !strcmp(old->path, or_empty(s.path)) &&
			!strcmp(old->identity, or_empty(s.identity)))
			return (uint32_t)i;
	}
	if (b->sources.n == IMAGE_SOURCES_MAX) {
		b->n_sources_left_out++;
		return IMAGE_SOURCES_MAX - 1; /* finish will fail */
	}
	s.path = mem_strdup(or_empty(s.path));
	s.identity = mem_strdup(or_empty(s.identity));
	s.verdict = mem_strdup(or_empty(s.verdict));
	s.n_offered = s.n_accepted = 0;
	if (!s.rung)
		s.rung = image_source_rung(s.kind);
	vec_push(&b->sources, s);
	return (uint32_t)b->sources.n - 1;
}

void image_builder_source(struct image_builder *b, const struct catalog_source *source)
{
	struct catalog_source *s;

	b->current = builder_source(b, source);
	s = &b->sources.v[b->current];
	if (strcmp(s->verdict, or_empty(source->verdict))) {
		free((char *)s->verdict);
		s->verdict = mem_strdup(or_empty(source->verdict));
	}
	if (source->rung)
		s->rung = source->rung;
}

/* The bit of the current source, or of the one of this kind with the same texts: a file's PLT names
 * and debug information are sources of their own. */
static uint64_t offer(struct image_builder *b, enum symbol_source kind)
{
	uint32_t i = b->current;

	if (!b->sources.n)
		i = b->current = builder_source(b, &(struct catalog_source){.kind = kind});
	if (kind && b->sources.v[i].kind != kind) {
		struct catalog_source sibling = b->sources.v[i];

		sibling.kind = kind;
		i = builder_source(b, &sibling);
	}
	b->sources.v[i].n_offered++;
	return (uint64_t)1 << i;
}

void image_builder_section(struct image_builder *b, const struct catalog_section *section)
{
	struct catalog_section s = *section;
	size_t n = strnlen(or_empty(s.name), SECTION_NAME_BYTES_MAX);
	struct buf key = {0};
	uint32_t id;

	buf_put_u64(&key, s.addr);
	buf_put_u64(&key, s.bytes);
	buf_put_u64(&key, s.flags);
	buf_put(&key, or_empty(s.name), n);
	id = intern_bytes(&b->section_keys, key.p, key.n);
	buf_release(&key);
	if (id < b->sections.n + b->n_sections_left_out)
		return; /* it is there */
	if (b->sections.n == IMAGE_SECTIONS_MAX) {
		b->n_sections_left_out++;
		return;
	}
	s.name = mem_strndup(or_empty(s.name), n);
	vec_push(&b->sections, s);
}

void image_builder_note(struct image_builder *b, const char *fmt, ...)
{
	char *sentence;
	va_list ap;

	va_start(ap, fmt);
	sentence = mem_vprintf(fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < b->notes.n; i++)
		if (!strcmp(b->notes.v[i], sentence)) {
			free(sentence);
			return;
		}
	vec_push(&b->notes, sentence);
}

void image_builder_notes(struct image_builder *b, const char *lines)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n");

		image_builder_note(b, "%.*s", (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

/* --- names --- */

void image_builder_datum(struct image_builder *b, const struct candidate *c)
{
	if (!c->size || !c->name_bytes || c->name_bytes > SYMTAB_NAME_BYTES_MAX ||
		b->data.n >= SYMTAB_SYMBOLS_MAX) {
		b->n_names_left_out++;
		return;
	}
	vec_push(&b->data, ((struct built_datum){.start = c->start,
				   .size = c->size,
				   .text = builder_text(b, c->name, c->name_bytes),
				   .bind = c->bind}));
}

/* By the rule for names of one address; equal ones are not told apart. */
static int compare_data(const void *a, const void *b, void *ctx)
{
	const struct built_datum *x = a, *y = b;
	const struct image_builder *builder = ctx;
	const struct intern_item *p = &builder->texts.items[x->text];
	const struct intern_item *q = &builder->texts.items[y->text];
	struct candidate c = {.name = p->p, .name_bytes = (uint32_t)p->n, .bind = x->bind};
	struct candidate d = {.name = q->p, .name_bytes = (uint32_t)q->n, .bind = y->bind};

	if (x->start != y->start)
		return ORDER(x->start, y->start);
	return ORDER(candidate_is_better(&d, &c), candidate_is_better(&c, &d))
		       ?: ORDER(y->size, x->size);
}

void data_finish(struct image_builder *b)
{
	size_t kept = 0;

	if (b->data.n)
		qsort_r(b->data.v, b->data.n, sizeof(*b->data.v), compare_data, b);
	for (size_t i = 0; i < b->data.n; i++)
		if (!kept || b->data.v[kept - 1].start != b->data.v[i].start)
			b->data.v[kept++] = b->data.v[i];
	b->data.n = kept;
}

void image_builder_set_later_wins(struct image_builder *b)
{
	b->is_later_wins = true;
}

void image_builder_set_columns(struct image_builder *b)
{
	b->keeps_columns = true;
}

void image_builder_symbol(struct image_builder *b, const struct candidate *c)
{
	struct offered_name name = {.start = c->start,
		.size = c->size,
		.room = c->room,
		.text = NO_TEXT,
		.kind = c->kind,
		.bind = c->bind};

	if (b->names.n >= SYMTAB_SYMBOLS_MAX || c->name_bytes > SYMTAB_NAME_BYTES_MAX) {
		b->n_names_left_out++;
		return;
	}
	if (c->name && c->name_bytes) {
		name.sources = offer(b, (enum symbol_source)c->source);
		name.text = builder_text(b, c->name, c->name_bytes);
		name.file = c->file ? builder_text(b, c->file, strlen(c->file)) : 0;
	}
	vec_push(&b->names, name);
}

/* --- units --- */

uint32_t builder_site(struct image_builder *b, const struct built_site *site)
{
	vec_push(&b->sites, *site);
	return (uint32_t)b->sites.n - 1;
}

void run_maker_add(struct run_maker *m, const struct built_row *row)
{
	struct image_builder *b = m->b;

	if (m->first == SIZE_MAX) {
		m->first = b->rows.n;
	} else {
		const struct built_row *last = &b->rows.v[b->rows.n - 1];

		if (row->addr <= last->addr ||
			(row->file == last->file && row->line == last->line &&
				row->site == last->site && row->column == last->column))
			return;
	}
	vec_push(&b->rows, *row);
}

void run_maker_end(struct run_maker *m, uint64_t end)
{
	struct image_builder *b = m->b;
	size_t first = m->first;

	if (first == SIZE_MAX)
		return;
	m->first = SIZE_MAX;
	while (b->rows.n > first && b->rows.v[b->rows.n - 1].addr >= end)
		b->rows.n--;
	if (b->rows.n > first)
		vec_push(&b->runs,
			((struct built_run){b->rows.v[first].addr, end, first, b->rows.n - first}));
}

/* Ids of a unit to ids of the builder; 0 while they have not been asked for. */
struct unit_ids {
	struct image_builder *b;
	const struct dwarf_unit_map *unit;
	uint32_t *names, *files, *sites;
	uint32_t *site_slots; /* hash table of the unit's sites, ids of the builder; 0 = empty */
	size_t n_site_slots;  /* a power of two */
};

static uint32_t name_of(struct unit_ids *ids, uint32_t name)
{
	if (name >= ids->unit->names.n)
		return 0;
	if (!ids->names[name])
		ids->names[name] = builder_text(
			ids->b, ids->unit->names.v[name].p, ids->unit->names.v[name].n);
	return ids->names[name];
}

static uint32_t file_of(struct unit_ids *ids, uint32_t file)
{
	if (file >= ids->unit->files.n)
		return 0;
	if (!ids->files[file])
		ids->files[file] = builder_text(
			ids->b, ids->unit->files.v[file].p, ids->unit->files.v[file].n);
	return ids->files[file];
}

static size_t site_slot(const struct unit_ids *ids, const struct built_site *s)
{
	uint64_t hash = ((uint64_t)s->parent << 32 | s->call_line) * 0x9e3779b97f4a7c15u;

	hash ^= ((uint64_t)s->call_file << 32 | s->text) * 0xd6e8feb86659fd93u;
	hash ^= hash >> 32;
	hash *= 0xff51afd7ed558ccdu;
	return (hash >> 32) & (ids->n_site_slots - 1);
}

/* A call that the compiler doubled gives equal sites, which become one. They are looked for in
 * their own unit only: a small table stays in the cache. */
static uint32_t site_of(struct unit_ids *ids, const struct built_site *site)
{
	size_t i = site_slot(ids, site);

	for (; ids->site_slots[i]; i = (i + 1) & (ids->n_site_slots - 1))
		if (!memcmp(&ids->b->sites.v[ids->site_slots[i]], site, sizeof(*site)))
			return ids->site_slots[i];
	ids->site_slots[i] = builder_site(ids->b, site);
	return ids->site_slots[i];
}

/* Those that rows are in, and those around them. */
static void add_sites(struct unit_ids *ids)
{
	const struct dwarf_unit_map *unit = ids->unit;
	enum { WANTED = 1 };

	for (size_t i = 0; i < unit->rows.n; i++)
		if (unit->rows.v[i].site < unit->sites.n)
			ids->sites[unit->rows.v[i].site] = WANTED;
	for (size_t i = unit->sites.n; i-- > 1;)
		if (ids->sites[i] && unit->sites.v[i].parent < i)
			ids->sites[unit->sites.v[i].parent] = WANTED;
	if (unit->sites.n)
		ids->sites[0] = 0;
	ids->n_site_slots = 16;
	while (ids->n_site_slots < 2 * unit->sites.n)
		ids->n_site_slots *= 2;
	ids->site_slots = mem_calloc(ids->n_site_slots, sizeof(*ids->site_slots));
	for (size_t i = 1; i < unit->sites.n; i++) {
		const struct dwarf_site *s = &unit->sites.v[i];
		struct built_site made;

		if (!ids->sites[i])
			continue;
		made = (struct built_site){
			.parent = s->parent < i ? ids->sites[s->parent] : 0,
			.text = name_of(ids, s->name),
			.call_file = file_of(ids, s->call_file),
			.call_line = s->call_line,
		};
		ids->sites[i] = site_of(ids, &made);
	}
}

static void add_rows(struct unit_ids *ids)
{
	struct run_maker maker = {ids->b, SIZE_MAX};
	const struct dwarf_unit_map *unit = ids->unit;

	for (size_t i = 0; i < unit->rows.n; i++) {
		const struct dwarf_row *r = &unit->rows.v[i];
		struct built_row row = {.addr = r->addr};

		if (!r->is_hole) {
			row.file = file_of(ids, r->file);
			row.line = r->line;
			row.column = r->line && ids->b->keeps_columns ? r->column : 0;
			row.site = r->site < unit->sites.n ? ids->sites[r->site] : 0;
		}
		if (row.file | row.line | row.site)
			run_maker_add(&maker, &row);
		else
			run_maker_end(&maker, r->addr);
	}
	if (unit->rows.n) /* a last row that is no hole has no end, so it says nothing */
		run_maker_end(&maker, unit->rows.v[unit->rows.n - 1].addr);
}

static void add_functions(struct unit_ids *ids)
{
	struct image_builder *b = ids->b;

	for (size_t i = 0; i < ids->unit->functions.n; i++) {
		const struct dwarf_function *f = &ids->unit->functions.v[i];
		uint32_t text = name_of(ids, f->name);

		if (!text || f->end <= f->start)
			continue;
		if (b->names.n + b->pieces.n >= SYMTAB_SYMBOLS_MAX) {
			b->n_names_left_out++;
			continue;
		}
		if (f->is_entry) {
			/* The weakest binding, so that what a symbol table says of an equal name
			 * counts. */
			vec_push(&b->names, ((struct offered_name){.start = f->start,
						    .size = f->end - f->start,
						    .sources = offer(b, SYMBOL_SOURCE_DWARF),
						    .text = text,
						    .kind = CANDIDATE_KIND_FUNCTION,
						    .bind = CANDIDATE_BIND_LOCAL}));
		} else {
			uint64_t sources = offer(b, SYMBOL_SOURCE_DWARF);

			b->sources.v[__builtin_ctzll(sources)].n_offered--; /* it has an entry */
			vec_push(&b->pieces,
				((struct offered_piece){f->start, f->end, sources, text}));
		}
	}
}

void image_builder_unit(struct image_builder *b, const struct dwarf_unit_map *unit)
{
	struct unit_ids ids = {
		.b = b,
		.unit = unit,
		.names = mem_calloc(unit->names.n, sizeof(uint32_t)),
		.files = mem_calloc(unit->files.n, sizeof(uint32_t)),
		.sites = mem_calloc(unit->sites.n, sizeof(uint32_t)),
	};

	add_functions(&ids);
	add_sites(&ids);
	add_rows(&ids);
	free(ids.names);
	free(ids.files);
	free(ids.sites);
	free(ids.site_slots);
}
