/* SPDX-License-Identifier: MIT */
/* Look-ups in a finished table. How it is made: symtab_build.c. */
#include "symbols/symtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "symbols/symtab_build.h"

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		if (t->symbols[i].name != t->symbols[i].linkage_name)
			free((char *)t->symbols[i].name);
	}
	free(t->symbols);
	free(t->pieces);
	free(t->is_demangled);
	free(t->names);
	intern_release(&t->files);
	free(t->sources);
	free(t);
}

size_t symtab_n(const struct symtab *t)
{
	return t->n;
}

const char *symtab_sources(const struct symtab *t)
{
	return t->sources;
}

/* The cache of demangled names is not part of what const promises; see symtab.h. */
const struct symbol *symtab_get(const struct symtab *t, size_t i)
{
	struct symbol *s = &t->symbols[i];
	char *name;

	if (t->is_demangled[i])
		return s;
	t->is_demangled[i] = true;
	name = symbol_demangle(s->linkage_name);
	if (strcmp(name, s->linkage_name) == 0)
		free(name);
	else
		s->name = name;
	return s;
}

const struct symbol *symtab_find_stretch(
	const struct symtab *t, uint64_t addr, uint64_t *start, uint64_t *end)
{
	size_t low = SEARCH(0, t->n_pieces, i, t->pieces[i].start <= addr);

	if (!low || addr >= t->pieces[low - 1].end)
		return NULL;
	*start = t->pieces[low - 1].start;
	*end = t->pieces[low - 1].end;
	return symtab_get(t, t->pieces[low - 1].range_i);
}

const struct symbol *symtab_find(const struct symtab *t, uint64_t addr)
{
	uint64_t start, end;

	return symtab_find_stretch(t, addr, &start, &end);
}

const char *symbol_source_name(enum symbol_source source)
{
	static const char *const names[SYMBOL_N_SOURCES] = {
		[SYMBOL_SOURCE_SYMTAB] = "symtab",
		[SYMBOL_SOURCE_DYNSYM] = "dynsym",
		[SYMBOL_SOURCE_DEBUGDATA] = "debugdata",
		[SYMBOL_SOURCE_DEBUG_FILE] = "debug file",
		[SYMBOL_SOURCE_PLT] = "plt",
		[SYMBOL_SOURCE_PERF_MAP] = "perf map",
		[SYMBOL_SOURCE_KALLSYMS] = "kallsyms",
		[SYMBOL_SOURCE_DWARF] = "dwarf",
		[SYMBOL_SOURCE_LD_MAP] = "ld map",
		[SYMBOL_SOURCE_LLD_MAP] = "lld map",
		[SYMBOL_SOURCE_NM] = "nm",
		[SYMBOL_SOURCE_JITDUMP] = "jitdump",
		[SYMBOL_SOURCE_GOPCLNTAB] = "gopclntab",
	};

	return (unsigned)source < SYMBOL_N_SOURCES && names[source] ? names[source] : "unknown";
}
