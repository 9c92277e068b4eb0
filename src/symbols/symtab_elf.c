/* SPDX-License-Identifier: MIT */
/* Collects the names of an ELF image from all places that may have them. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "symbols/debug_file.h"
#include "symbols/debugdata.h"
#include "symbols/plt.h"
#include "symbols/source/elf_tables.h"
#include "symbols/symtab_build.h"

struct collector {
	struct symtab_builder b;
	struct buf sources; /* the text of symtab_sources */
};

static void add_candidate(void *ctx, const struct candidate *c)
{
	symtab_builder_add(ctx, c);
}

static void add_source_text(struct collector *c, const char *text, const char *path)
{
	if (c->sources.n)
		buf_put_cstr(&c->sources, "+");
	buf_put_cstr(&c->sources, text);
	if (path)
		buf_put_cstr(&c->sources, path);
}

/* Adds a symbol table; false when it brought no names. */
static bool add_table(
	struct collector *c, const struct elf_file *elf, bool dynamic, enum symbol_source source)
{
	const struct symbol_sink sink = {add_candidate, &c->b};
	size_t before = c->b.all.n;

	elf_table_read(elf, dynamic, source, &sink);
	return c->b.all.n > before;
}

/* `debugdata` keeps the bytes that the names are borrowed from. */
static void add_debugdata(struct collector *c, const struct elf_file *elf, struct buf *debugdata)
{
	struct elf_file inner;

	if (debugdata_read(elf, debugdata, NULL) < 0)
		return;
	if (elf_file_init(&inner, buf_span(debugdata), NULL) < 0)
		return;
	c->b.name_bytes_max += debugdata->n;
	if (add_table(c, &inner, false, SYMBOL_SOURCE_DEBUGDATA))
		add_source_text(c, "debugdata", NULL);
	elf_file_release(&inner);
}

/* `debug` keeps the bytes that the names are borrowed from. */
static void add_debug_file(
	struct collector *c, const struct elf_file *elf, const char *path, struct debug_file *debug)
{
	if (debug_file_open(debug, elf, path, NULL) < 0)
		return;
	c->b.name_bytes_max += debug->map.bytes.n;
	if (add_table(c, &debug->elf, false, SYMBOL_SOURCE_DEBUG_FILE))
		add_source_text(c, "debug file ", debug->path);
}

struct symtab *symtab_new_elf(const struct elf_file *elf, const char *path)
{
	struct collector c = {.b = {.name_bytes_max = elf->bytes.n}};
	struct buf debugdata = {0};
	struct debug_file debug = {0};
	struct symtab *t;
	size_t before;

	if (add_table(&c, elf, false, SYMBOL_SOURCE_SYMTAB))
		add_source_text(&c, "symtab", NULL);
	before = c.b.all.n;
	if (add_table(&c, elf, true, SYMBOL_SOURCE_DYNSYM))
		add_source_text(&c, "dynsym", NULL);
	if (!before) {
		add_debugdata(&c, elf, &debugdata);
		add_debug_file(&c, elf, path, &debug);
	}
	before = c.b.all.n;
	plt_add_names(&c.b, elf);
	if (c.b.all.n > before)
		add_source_text(&c, "plt", NULL);
	t = symtab_builder_finish(&c.b, buf_text(&c.sources));
	buf_release(&c.sources);
	buf_release(&debugdata);
	debug_file_close(&debug);
	return t;
}
