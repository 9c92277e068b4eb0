/* SPDX-License-Identifier: MIT */
/* Collects the names of an ELF image from all places that may have them. */

#include "base/buf.h"
#include "symbols/elf_tables.h"
#include "symbols/symtab_build.h"

struct collector {
	struct symtab_builder b;
	struct buf sources; /* the text of symtab_sources */
	size_t n_said;	    /* candidates whose source is in it */
};

/* Sources that brought no names are not listed. */
static void say_source(struct collector *c, enum symbol_source source, const char *path)
{
	if (c->b.all.n == c->n_said)
		return;
	c->n_said = c->b.all.n;
	if (c->sources.n)
		buf_put_cstr(&c->sources, "+");
	buf_printf(&c->sources, "%s%s%s", symbol_source_name(source), path ? " " : "",
		path ? path : "");
}

/* Each table by `read`, in their order. */
static void collect(struct collector *c, const struct elf_tables *tables,
	void (*read)(const struct elf_table *t, const struct symbol_sink *sink))
{
	const struct symbol_sink sink = symtab_builder_sink(&c->b);

	for (size_t i = 0; i < tables->n; i++) {
		const struct elf_table *table = &tables->v[i];

		if (i && table->elf != tables->v[0].elf)
			c->b.name_bytes_max += table->elf->bytes.n;
		read(table, &sink);
		say_source(c, table->source,
			table->source == SYMBOL_SOURCE_DEBUG_FILE ? tables->debug.path : NULL);
	}
}

static struct symtab *finish(struct collector *c, struct elf_tables *tables)
{
	struct symtab *t = symtab_builder_finish(&c->b, buf_text(&c->sources));

	buf_release(&c->sources);
	elf_tables_close(tables);
	return t;
}

struct symtab *symtab_new_elf(const struct elf_file *elf, const char *path)
{
	struct collector c = {.b = {.name_bytes_max = elf->bytes.n}};
	const struct symbol_sink sink = symtab_builder_sink(&c.b);
	struct elf_tables tables;

	elf_tables_open(&tables, elf, path);
	collect(&c, &tables, elf_table_read);
	go_names_read(elf, &sink);
	say_source(&c, SYMBOL_SOURCE_GOPCLNTAB, NULL);
	plt_add_names(&c.b, elf);
	say_source(&c, SYMBOL_SOURCE_PLT, NULL);
	return finish(&c, &tables);
}

struct symtab *symtab_new_elf_data(const struct elf_file *elf, const char *path)
{
	struct collector c = {.b = {.name_bytes_max = elf->bytes.n}};
	struct elf_tables tables;

	elf_tables_open(&tables, elf, path);
	collect(&c, &tables, elf_table_read_data);
	return finish(&c, &tables);
}
