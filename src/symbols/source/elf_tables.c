/* SPDX-License-Identifier: MIT */
#include "symbols/source/elf_tables.h"

#include <elf.h>
#include <string.h>

struct reading {
	enum symbol_source source;
	const struct symbol_sink *sink;
};

/* Names that assemblers and compilers make for themselves: .L1, $d, .annobin_x. */
static bool is_internal(const struct elf_symbol *s)
{
	if (strncmp(s->name, ".L", 2) == 0)
		return true;
	if (s->type != STT_NOTYPE)
		return false;
	if (s->name[0] == '.')
		return true;
	return s->name[0] == '$' && s->name[1] && strchr("adtx", s->name[1]) &&
	       (!s->name[2] || s->name[2] == '.');
}

static uint8_t bind_of(const struct elf_symbol *s)
{
	switch (s->bind) {
	case STB_LOCAL:
		return CANDIDATE_BIND_LOCAL;
	case STB_WEAK:
		return CANDIDATE_BIND_WEAK;
	default:
		return CANDIDATE_BIND_GLOBAL; /* STB_GNU_UNIQUE included */
	}
}

static void add_function(void *ctx, const struct elf_symbol *s)
{
	struct reading *r = ctx;

	if (is_internal(s))
		return;
	symbol_sink_add(r->sink,
		&(struct candidate){
			.name = s->name,
			.name_bytes = (uint32_t)strnlen(s->name, SYMTAB_NAME_BYTES_MAX + 1),
			.source = (uint8_t)r->source,
			.kind = s->type == STT_NOTYPE ? CANDIDATE_KIND_LABEL
						      : CANDIDATE_KIND_FUNCTION,
			.bind = bind_of(s),
			.start = s->addr.v,
			.size = s->size,
			.room = s->room,
		});
}

void elf_table_read(const struct elf_file *elf, bool dynamic, enum symbol_source source,
	const struct symbol_sink *sink)
{
	struct reading r = {source, sink};

	elf_file_each_function(elf, dynamic, add_function, &r);
}
