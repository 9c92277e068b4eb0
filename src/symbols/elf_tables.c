/* SPDX-License-Identifier: MIT */
#include "symbols/elf_tables.h"

#include <elf.h>
#include <string.h>

struct reading {
	enum symbol_source source;
	const struct symbol_sink *sink;
};

static uint8_t bind_of(const struct elf_symbol *s)
{
	if (s->bind == STB_LOCAL)
		return CANDIDATE_BIND_LOCAL;
	return s->bind == STB_WEAK ? CANDIDATE_BIND_WEAK
				   : CANDIDATE_BIND_GLOBAL; /* STB_GNU_UNIQUE included */
}

static void add_function(void *ctx, const struct elf_symbol *s)
{
	struct reading *r = ctx;

	if (elf_symbol_is_internal(s))
		return;
	symbol_sink_add(r->sink,
		&(struct candidate){
			.name = s->name,
			.name_bytes = (uint32_t)strnlen(s->name, SYMTAB_NAME_BYTES_MAX + 1),
			.source = (uint8_t)r->source,
			.kind = s->type == STT_NOTYPE ? CANDIDATE_KIND_LABEL
						      : CANDIDATE_KIND_FUNCTION,
			.bind = bind_of(s),
			.is_ifunc = s->type == STT_GNU_IFUNC,
			.start = s->addr.v,
			.size = s->size,
			.room = s->room,
			.file = s->file && strnlen(s->file, SYMBOL_FILE_BYTES_MAX + 1) <=
							SYMBOL_FILE_BYTES_MAX
					? s->file
					: NULL,
		});
}

void elf_table_read(const struct elf_table *t, const struct symbol_sink *sink)
{
	struct reading r = {t->source, sink};

	elf_file_each_function(t->elf, t->is_dynamic, add_function, &r);
}

void elf_table_read_data(const struct elf_table *t, const struct symbol_sink *sink)
{
	struct reading r = {t->source, sink};

	elf_file_each_object(t->elf, t->is_dynamic, add_function, &r);
}

static void add_table(struct elf_tables *t, const struct elf_file *elf, enum symbol_source source)
{
	t->v[t->n++] = (struct elf_table){elf, source == SYMBOL_SOURCE_DYNSYM, source};
}

void elf_tables_init(struct elf_tables *t, const struct elf_file *elf)
{
	*t = (struct elf_tables){0};
	add_table(t, elf, SYMBOL_SOURCE_SYMTAB);
	add_table(t, elf, SYMBOL_SOURCE_DYNSYM);
}

int elf_tables_add_debugdata(struct elf_tables *t, struct err *err)
{
	int rc = debugdata_read(t->v[0].elf, &t->debugdata, err);

	if (rc == 0)
		rc = elf_file_init(&t->inner, buf_span(&t->debugdata), err);
	if (rc < 0)
		return rc;
	t->has_inner = true;
	add_table(t, &t->inner, SYMBOL_SOURCE_DEBUGDATA);
	return 0;
}

void elf_tables_open(struct elf_tables *t, const struct elf_file *elf, const char *path)
{
	elf_tables_init(t, elf);
	if (elf_file_has_functions(elf))
		return;
	elf_tables_add_debugdata(t, NULL);
	if (debug_file_open(&t->debug, elf, path, NULL) == 0)
		add_table(t, &t->debug.elf, SYMBOL_SOURCE_DEBUG_FILE);
	t->is_stripped = !t->has_inner && !t->debug.is_open;
}

void elf_tables_close(struct elf_tables *t)
{
	if (t->has_inner)
		elf_file_release(&t->inner);
	buf_release(&t->debugdata);
	debug_file_close(&t->debug);
}

void elf_tables_each(const struct elf_tables *t,
	void (*each)(void *ctx, const struct elf_symbol *symbol), void *ctx)
{
	for (size_t i = 0; i < t->n; i++)
		elf_file_each_function(t->v[i].elf, t->v[i].is_dynamic, each, ctx);
}
