/* SPDX-License-Identifier: MIT */
/*
 * One image of the merged symbol file: immutable bytes with its identity, sources, sections,
 * symbols, aliases, source lines and inline sites. Layout: docs/format/catalog.md. Nothing in the
 * bytes is trusted.
 *
 * Opening does not depend on the number of symbols and lines: they are stored in packed chunks,
 * each of which is unpacked when a look-up first needs it and kept until close. Unpacked chunks
 * take at most 2,000 times their stored bytes (real ones about ten times); demangled names come on
 * top.
 *
 * An opened image may be used by one thread at a time (it keeps what was unpacked, also when it is
 * const); several threads open it several times over the same bytes.
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "symbols/catalog/match.h"
#include "symbols/image_identity.h"
#include "symbols/symtab.h"

/* Where an image's facts came from. */
struct catalog_source {
	enum symbol_source kind;
	const char *path;
	const char *identity; /* of the source itself: "build-id ...", "412 of 412 anchors" */
	const char *verdict;  /* why it belongs to this image */
	uint64_t n_offered;   /* symbols it had */
	uint64_t n_accepted;  /* of these, the ones that are the image's symbols or aliases */
	/* How sure it is that it belongs to the image: MATCH_BUILD_ID unless it is a text without
	 * identity. A name of the image is no surer than the source that has it. */
	enum match_rung rung;
};

struct catalog_section {
	const char *name;
	uint64_t addr, bytes;
	uint64_t flags; /* SHF_* */
};

struct catalog_symbol {
	const char *name;	  /* demangled */
	const char *linkage_name; /* as the image has it */
	uint64_t start, size;
	enum symbol_source kind; /* the best source that has it */
	enum match_rung rung;	 /* of the surest source that has it */
	const char *file;	 /* its source, where no line tells it; NULL = not known */
	uint32_t first_alias, n_aliases;
};

struct catalog_image;
/* `bytes` must outlive the image. Checks all but the insides of chunks: afterwards no look-up can
 * fail, and one that meets a damaged chunk finds nothing there. */
int catalog_image_open(struct catalog_image **out, struct span bytes, struct err *err);
void catalog_image_close(struct catalog_image *image);
/* Damaged chunks that look-ups have met so far. A catalog's check sums let none through. */
size_t catalog_image_n_damaged(const struct catalog_image *image);

const struct image_identity *catalog_image_identity(const struct catalog_image *image);
/* Hexadecimal, 16 digits: of path and identity. The same image in two catalogs has the same id. */
const char *catalog_image_id(const struct catalog_image *image);
const char *catalog_image_notes(const struct catalog_image *image); /* a sentence a line, or "" */
size_t catalog_image_n_sources(const struct catalog_image *image);
struct catalog_source catalog_image_source(struct catalog_image *image, size_t i);
size_t catalog_image_n_sections(const struct catalog_image *image);
struct catalog_section catalog_image_section(struct catalog_image *image, size_t i);
size_t catalog_image_n_symbols(const struct catalog_image *image);
size_t catalog_image_n_data(const struct catalog_image *image); /* variables and constants */
size_t catalog_image_n_rows(const struct catalog_image *image); /* ranges with a source line */
size_t catalog_image_n_sites(const struct catalog_image *image);
/* By address. Texts live until close. */
struct catalog_symbol catalog_image_symbol(struct catalog_image *image, size_t i);
const char *catalog_image_alias(struct catalog_image *image, uint32_t i); /* linkage name */
/* Its rung, without its name. */
enum match_rung catalog_image_symbol_rung(const struct catalog_image *image, size_t i);
/* The source on whose rung the symbol stands; SIZE_MAX when it has none. */
size_t catalog_image_symbol_source(const struct catalog_image *image, size_t i);

/* A variable or constant, with its name for display. By address; texts live until close. */
struct catalog_datum {
	const char *name, *linkage_name;
	uint64_t start, size;
};
struct catalog_datum catalog_image_datum(struct catalog_image *image, size_t i);
/* The one that the address is in; false when it is in none. */
bool catalog_image_find_datum(
	struct catalog_image *image, struct iaddr addr, struct catalog_datum *out);

/* One range: everything in [start, end) has this answer. */
struct catalog_range {
	uint64_t start, end;
	uint32_t symbol; /* index; UINT32_MAX = none */
	uint32_t file;	 /* 0 = none */
	uint32_t line;	 /* 0 = none */
	uint32_t site;	 /* 0 = not inlined */
};
/* The bare range, no names: the fast path. False when neither symbol nor line is known; *out then
 * is not to be used. */
bool catalog_image_find_range(
	const struct catalog_image *image, struct iaddr addr, struct catalog_range *out);

struct catalog_level {
	const char *name; /* demangled; NULL when only the line is known, like linkage_name */
	const char *linkage_name;
	const char *file; /* NULL = not known; without a line it may be a bare name */
	uint32_t line;	  /* 0 = not known */
	uint32_t column;  /* of the line; 0 = not known; catalog_image_column tells it */
	bool is_inline;	  /* inlined into the next level */
};
/* The column of the source line that the innermost level has at this address; 0 = not known. */
uint32_t catalog_image_column(const struct catalog_image *image, struct iaddr addr);
/* The chain at a range, innermost first; at most `max` levels (the outermost ones are kept). */
size_t catalog_image_levels(struct catalog_image *image, const struct catalog_range *range,
	struct catalog_level *levels, size_t max);

#endif
