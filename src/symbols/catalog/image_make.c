/* SPDX-License-Identifier: MIT */
#include "symbols/catalog/image_make.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dwarf/go_table.h"
#include "symbols/debug_file.h"
#include "symbols/elf_tables.h"

/* Bytes of the names of one symbol table, for a byte of its file: any number of symbols may be
 * named by the rest of one long text. Tables of linkers share a few endings only. */
#define TABLE_NAMES_TIMES   4
#define TABLE_NAMES_ATLEAST (1u << 20)

/* The candidates of one source are collected before the source is begun, so that a source without
 * any is not listed. Those of all sources are kept for the PLT, which is named after them. */
struct making {
	struct image_builder *b;
	const struct image_recipe *recipe;
	struct symtab_builder all;
};

/* `n_bytes`: of the file that the names are in. */
static void add_from(
	struct making *m, size_t first, const struct catalog_source *source, uint64_t n_bytes)
{
	uint64_t budget = TABLE_NAMES_ATLEAST + n_bytes * TABLE_NAMES_TIMES;
	size_t n = m->all.all.n, i = first;

	if (n == first)
		return;
	image_builder_source(m->b, source);
	for (; i < n && m->all.all.v[i].name_bytes <= budget; i++) {
		budget -= m->all.all.v[i].name_bytes;
		image_builder_symbol(m->b, &m->all.all.v[i]);
	}
	if (i == n)
		return;
	image_builder_note(m->b,
		"'%s': %zu symbols are left out: the names are too long for the file", source->path,
		n - i);
}

struct data_making {
	struct image_builder *b;
	uint64_t budget; /* bytes of names, as for functions */
};

static void add_datum(void *ctx, const struct candidate *c)
{
	struct data_making *d = ctx;

	if (c->name_bytes > d->budget)
		return;
	d->budget -= c->name_bytes;
	image_builder_datum(d->b, c);
}

static void add_table(
	struct making *m, const struct elf_table *table, const struct catalog_source *source)
{
	struct data_making making = {
		m->b, TABLE_NAMES_ATLEAST + table->elf->bytes.n * TABLE_NAMES_TIMES};
	const struct symbol_sink data = {add_datum, &making};
	const struct symbol_sink sink = symtab_builder_sink(&m->all);
	size_t first = m->all.all.n;

	elf_table_read(table, &sink);
	add_from(m, first, source, table->elf->bytes.n);
	if (!m->recipe->no_data)
		elf_table_read_data(table, &data);
}

static struct catalog_source go_source(const struct making *m, const char *identity)
{
	return (struct catalog_source){.kind = SYMBOL_SOURCE_GOPCLNTAB,
		.path = m->recipe->path,
		.identity = identity,
		.verdict = "inside the image"};
}

static void add_go_names(struct making *m, const char *identity)
{
	const struct symbol_sink sink = symtab_builder_sink(&m->all);
	const struct catalog_source source = go_source(m, identity);
	size_t first = m->all.all.n;

	go_names_read(m->recipe->elf, &sink);
	add_from(m, first, &source, m->recipe->elf->bytes.n);
}

/* Debug information knows more than Go's table. */
static void add_go_lines(struct making *m, const char *identity)
{
	const struct image_recipe *recipe = m->recipe;
	const struct catalog_source source = go_source(m, identity);
	struct dwarf_unit_map lines = {0};
	struct go_table go;

	if (!recipe->elf || !go_table_init(&go, recipe->elf))
		return;
	go_table_lines(&go, recipe->addrs, recipe->n_addrs, &lines);
	image_builder_source(m->b, &source);
	image_builder_unit(m->b, &lines);
	dwarf_unit_map_release(&lines);
	go_table_release(&go);
}

static void add_plt(struct making *m, const char *identity)
{
	size_t first = m->all.all.n;

	plt_add_names(&m->all, m->recipe->elf);
	add_from(m, first,
		&(struct catalog_source){.kind = SYMBOL_SOURCE_PLT,
			.path = m->recipe->path,
			.identity = identity,
			.verdict = "made from the image's relocations"},
		m->recipe->elf->bytes.n + PLT_NAME_BYTES_MAX);
}

static void add_sections(struct making *m)
{
	const struct elf_file *elf = m->recipe->elf;

	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->flags & SHF_ALLOC)
			image_builder_section(m->b,
				&(struct catalog_section){s->name, s->addr.v, s->size, s->flags});
	}
}

bool elf_file_has_dwarf(const struct elf_file *elf)
{
	const struct elf_section *s = elf_file_find_section(elf, ".debug_info");

	if (!s)
		s = elf_file_find_section(elf, ".zdebug_info");
	return s && s->type != SHT_NOBITS && s->size;
}

static void add_dwarf(struct making *m, const char *identity, const char *debug_identity)
{
	const struct debug_source *debug = m->recipe->debug;

	if (m->recipe->elf && elf_file_has_dwarf(m->recipe->elf))
		image_units_add(m->b, m->recipe, m->recipe->elf,
			&(struct catalog_source){.kind = SYMBOL_SOURCE_DWARF,
				.path = m->recipe->path,
				.identity = identity,
				.verdict = "inside the image"});
	else if (debug && elf_file_has_dwarf(debug->elf))
		image_units_add(m->b, m->recipe, debug->elf,
			&(struct catalog_source){.kind = SYMBOL_SOURCE_DWARF,
				.path = debug->path,
				.identity = debug_identity,
				.verdict = debug->verdict});
	else
		add_go_lines(m, identity);
}

static char *identity_of(const struct elf_file *elf, const char *path)
{
	struct image_identity id;
	struct buf text = {0};
	char *copy;

	image_identity_init_elf(&id, elf, path, NULL, false);
	copy = mem_strdup(image_identity_text(&id, &text));
	image_identity_release(&id);
	buf_release(&text);
	return copy;
}

/* `tables` keeps what the names are borrowed from. */
static void add_image_itself(struct making *m, const char *identity, struct elf_tables *tables)
{
	struct err err = {0};
	int rc;

	add_sections(m);
	elf_tables_init(tables, m->recipe->elf);
	rc = elf_tables_add_debugdata(tables, &err);
	for (size_t i = 0; i < tables->n; i++)
		add_table(m, &tables->v[i],
			&(struct catalog_source){.kind = tables->v[i].source,
				.path = m->recipe->path,
				.identity = identity,
				.verdict = tables->v[i].source == SYMBOL_SOURCE_DEBUGDATA
						   ? "inside the image"
						   : "the image itself"});
	if (rc < 0 && err.code != ERR_NOT_FOUND)
		image_builder_note(m->b, "%s", err.text);
	add_go_names(m, identity);
}

void image_make_add(struct image_builder *b, const struct image_recipe *recipe)
{
	struct making m = {.b = b, .recipe = recipe, .all.name_bytes_max = UINT64_MAX};
	const struct debug_source *debug = recipe->debug;
	char *identity = recipe->elf ? identity_of(recipe->elf, recipe->path) : NULL;

	if (recipe->columns)
		image_builder_set_columns(b);
	char *debug_identity = debug ? identity_of(debug->elf, debug->path) : NULL;
	struct elf_tables tables = {0};

	if (recipe->elf)
		add_image_itself(&m, identity, &tables);
	if (debug)
		add_table(&m, &(struct elf_table){debug->elf, false, SYMBOL_SOURCE_DEBUG_FILE},
			&(struct catalog_source){.kind = SYMBOL_SOURCE_DEBUG_FILE,
				.path = debug->path,
				.identity = debug_identity,
				.verdict = debug->verdict});
	if (recipe->elf)
		add_plt(&m, identity);
	add_dwarf(&m, identity, debug_identity);
	symtab_builder_release(&m.all);
	elf_tables_close(&tables);
	free(identity);
	free(debug_identity);
}

bool image_has_lines(const struct elf_file *elf, const char *path)
{
	struct debug_file d = {0};
	struct go_table go;
	bool has = elf_file_has_dwarf(elf);

	if (!has && go_table_init(&go, elf)) {
		go_table_release(&go);
		has = true;
	}
	if (has)
		return true;
	has = debug_file_open(&d, elf, path, NULL) == 0 && elf_file_has_dwarf(&d.elf);
	debug_file_close(&d);
	return has;
}

int image_make_open(const struct image_identity *identity, const struct image_recipe *recipe,
	struct buf *bytes, struct catalog_image **image, struct err *err)
{
	struct image_builder *b = image_builder_new(identity);
	struct image_recipe whole = *recipe;
	struct debug_file debug = {0};
	struct debug_source source;
	struct err why = {0};
	int rc;

	whole.debug = NULL;
	if (!elf_file_has_dwarf(recipe->elf) &&
		debug_file_open(&debug, recipe->elf, recipe->path, &why) == 0) {
		source = (struct debug_source){&debug.elf, debug.path, debug.verdict};
		whole.debug = &source;
	} else if (why.code == ERR_FORMAT) {
		image_builder_note(b, "%s", why.text);
	}
	image_make_add(b, &whole);
	rc = image_builder_finish(b, recipe->n_threads, bytes, err);
	if (rc == 0)
		rc = catalog_image_open(image, buf_span(bytes), err);
	image_builder_free(b);
	debug_file_close(&debug);
	return rc;
}
