/* SPDX-License-Identifier: MIT */
/* What every reader of a text source must keep to, whatever the bytes are. */
#ifndef WEIR_TESTS_FUZZ_TEXT_SOURCE_CHECK_H
#define WEIR_TESTS_FUZZ_TEXT_SOURCE_CHECK_H

#include <stdlib.h>

#include "symbols/source/text_sources.h"

typedef int text_reader(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);

/* Every byte of a name is read, and the numbers say something possible. */
static void check_candidate(void *ctx, const struct candidate *c)
{
	uint64_t *sum = ctx;

	if (!c->name || !c->name_bytes || c->name_bytes > SYMTAB_NAME_BYTES_MAX)
		abort();
	if (!c->room || c->kind > CANDIDATE_KIND_MADE_UP || c->bind > CANDIDATE_BIND_LOCAL)
		abort();
	for (uint32_t i = 0; i < c->name_bytes; i++)
		*sum += (uint8_t)c->name[i];
	*sum += 1;
}

/* A failure has a sentence and gave no symbol; a success counts what it gave. */
static void check_text_reader(text_reader *read, const uint8_t *data, size_t n)
{
	uint64_t sum = 0;
	const struct symbol_sink sink = {check_candidate, &sum};
	struct text_source t;
	struct err err = {0};

	if (read((struct span){data, n}, &sink, &t, &err) == 0) {
		if (!t.n_symbols != !sum)
			abort();
		for (size_t i = 0; i < t.pieces.n; i++)
			if (!t.pieces.v[i].bytes ||
				t.pieces.v[i].start + t.pieces.v[i].bytes < t.pieces.v[i].start)
				abort();
		text_source_release(&t);
	} else if (!err.text[0] || sum) {
		abort();
	}
}

#endif
