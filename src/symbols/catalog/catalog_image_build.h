/* SPDX-License-Identifier: MIT */
/*
 * Puts the bytes of one catalog image together. The result depends on what is added and on the
 * order of sources and units only, so it is the same for any number of threads as long as units are
 * added in order.
 *
 * Names of one address: the rule of symtab.h, after one more: a name of a symbol table that debug
 * information has for this address (or that name with a compiler's suffix: foo.part.0) comes before
 * the others; a name that only debug information has comes after functions of symbol tables and
 * before labels. All others become aliases.
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_BUILD_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_BUILD_H

#include "base/buf.h"
#include "dwarf/source_map.h"
#include "symbols/catalog/catalog_image.h"
#include "symbols/symtab_build.h"

struct image_builder;
struct image_builder *image_builder_new(const struct image_identity *identity); /* copied */
void image_builder_free(struct image_builder *b);

void image_builder_section(struct image_builder *b, const struct catalog_section *section);
/* Begins a source; symbols and units that follow count as offered by it. One that is there already
 * (same kind, path and identity) goes on. Symbols of another kind, and units when it is not DWARF,
 * count for a source of that kind with the same texts. Texts are copied and may be NULL; rung
 * NONE is the usual one of the kind; n_offered and n_accepted are filled in by the builder. */
void image_builder_source(struct image_builder *b, const struct catalog_source *source);
/* A symbol of the current source. The name is copied. */
void image_builder_symbol(struct image_builder *b, const struct candidate *c);
/* A variable or constant, of no source in particular. Of several at one address the one with the best
 * name stays, by the rule of symtab.h. The name is copied. */
void image_builder_datum(struct image_builder *b, const struct candidate *c);
/* Text sources of run-time code: where ranges overlap the later symbol wins. */
void image_builder_set_later_wins(struct image_builder *b);
/* A unit's functions, sites and rows. Copied. Where units overlap the earlier one has the address.
 */
void image_builder_unit(struct image_builder *b, const struct dwarf_unit_map *unit);
/* Units that are added from here on keep the columns of their lines, which take half as much room again as
 * an image has without. */
void image_builder_set_columns(struct image_builder *b);
/* Everything of an image made before, its sources included (to add a source to it). */
void image_builder_image(struct image_builder *b, struct catalog_image *image);
/* Adds a sentence, unless it is there. */
void image_builder_note(struct image_builder *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for each line. */
void image_builder_notes(struct image_builder *b, const char *lines);

/* Fails (ERR_LIMIT) with more than 64 sources. Appends the bytes to `out`. `n_threads` may compress
 * and encode; the bytes do not depend on it.
 */
int image_builder_finish(
	struct image_builder *b, unsigned n_threads, struct buf *out, struct err *err);

#endif
