/* SPDX-License-Identifier: MIT */
/*
 * How the sources of names (ELF tables, PLT stubs, kallsyms, perf maps) make a symtab: they add
 * candidates, and one of the two finish functions decides which address belongs to which. Whoever
 * needs all names of an address (hooks) takes the candidates themselves.
 */
#ifndef WEIR_SYMBOLS_SYMTAB_BUILD_H
#define WEIR_SYMBOLS_SYMTAB_BUILD_H

#include <stdbool.h>

#include "base/map.h"
#include "base/mem.h"
#include "symbols/range_paint.h"
#include "symbols/symtab.h"

/* In order of preference among names of one address. */
enum candidate_kind { CANDIDATE_KIND_FUNCTION, CANDIDATE_KIND_LABEL, CANDIDATE_KIND_MADE_UP };
enum candidate_bind { CANDIDATE_BIND_GLOBAL, CANDIDATE_BIND_WEAK, CANDIDATE_BIND_LOCAL };

struct candidate {
	const char *name; /* borrowed until finish; NULL only ends the symbol before it */
	uint32_t name_bytes;
	uint8_t source; /* enum symbol_source */
	uint8_t kind;	/* enum candidate_kind */
	uint8_t bind;	/* enum candidate_bind */
	bool is_ifunc;	/* STT_GNU_IFUNC: what it names chooses the function */
	uint64_t start;
	uint64_t size; /* 0 = not said */
	uint64_t room; /* at most this many bytes when the size is not said */
	const char *file; /* source of a local name, borrowed likewise; NULL = not known */
};

/* Bytes of code that belong together. */
struct extent {
	uint64_t start, bytes;
};

/* Where the readers of symbol sources put what they find. The candidate's name is borrowed from the
 * source's bytes. */
struct symbol_sink {
	void (*add)(void *ctx, const struct candidate *c);
	void *ctx;
};

static inline void symbol_sink_add(const struct symbol_sink *sink, const struct candidate *c)
{
	sink->add(sink->ctx, c);
}

/* Zero-initialise. Both finish functions release it. */
struct symtab_builder {
	VEC(struct candidate) all;
	VEC(char *) owned; /* names made up on the way, freed at the end */
	/* What all names may take together. Real tables need less than their files have bytes; in a
	 * hostile one every symbol names the rest of one long text. */
	uint64_t name_bytes_max;
	size_t n_skipped;
};

struct symtab {
	struct symbol *symbols; /* by start */
	size_t n;
	struct range_piece *pieces; /* by start, without overlaps; range_i is a symbol */
	size_t n_pieces;
	bool *is_demangled; /* of each symbol: name is final, and owned unless the linkage name */
	char *names;	    /* all linkage names, NUL-terminated */
	struct intern files;
	char *sources;
	size_t n_skipped; /* malformed lines, and symbols past a limit, that were left out */
};

void symtab_builder_add(struct symtab_builder *b, const struct candidate *c);
void symtab_builder_release(struct symtab_builder *b);
/* Adds to the builder. */
struct symbol_sink symtab_builder_sink(struct symtab_builder *b);
/* True when `a` is the better name of an address. */
bool candidate_is_better(const struct candidate *a, const struct candidate *b);

/* Which of the candidates, sorted by start and one an address, has which address: those with a size
 * by the rules of symtab.h, those without fill the gaps. The pieces' range_i are candidates, and
 * the caller frees them. */
size_t candidates_paint(const struct candidate *v, size_t n, struct range_piece **pieces);

/* The rules of symtab.h. `sources` is copied. */
struct symtab *symtab_builder_finish(struct symtab_builder *b, const char *sources);
/* Where ranges overlap, the candidate added later wins; candidates without a size are dropped. */
struct symtab *symtab_builder_finish_later_wins(struct symtab_builder *b, const char *sources);

#endif
