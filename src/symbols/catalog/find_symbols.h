/* SPDX-License-Identifier: MIT */
/*
 * Symbols for a module that ran: climbs the verification ladder over everything that is at hand
 * (the catalog, the file at the module's path) and opens the best.
 */
#ifndef WEIR_SYMBOLS_CATALOG_FIND_SYMBOLS_H
#define WEIR_SYMBOLS_CATALOG_FIND_SYMBOLS_H

#include "base/mem.h"
#include "symbols/catalog/catalog.h"
#include "symbols/catalog/match.h"
#include "trace/reader.h"

/* One candidate and what became of it. */
struct symbols_candidate {
	char *where;	  /* "catalog image 0123456789abcdef (/usr/lib/libfoo.so)", a path; owned */
	size_t catalog_i; /* SIZE_MAX: the file at the path */
	struct match_verdict verdict;
};

struct symbols_found {
	enum match_rung rung; /* of the image */
	/* Of the least sure name in it: the rung of the image, or a lower one when names come from a
	 * text whose match is weaker. The reason says it. */
	enum match_rung names_rung;
	char *reason;		     /* one sentence: why this one, or why none; owned */
	struct catalog_image *image; /* NULL when none; owned */
	char catalog_id[17];	     /* "" when it is not from the catalog */
	char *path;		     /* of the file when it is one; owned; NULL = catalog */
	size_t n_tied;
	VEC(struct symbols_candidate) candidates; /* all that were judged, the best first */
	struct buf bytes;			  /* of an image made from a file */
};

struct symbols_search {
	const struct catalog *catalog; /* may be NULL */
	bool no_files;		       /* the catalog alone */
	/* Only these addresses will be asked for (sorted); NULL = any. */
	const uint64_t *addrs;
	size_t n_addrs;
	bool columns; /* of an image that is made from a file: with those of source lines */
	unsigned n_threads;
};

/* Never fails: nothing found is rung NONE with a reason that names the module, what was looked for
 * and where. Release with symbols_found_release. */
void symbols_find(struct symbols_found *out, const struct image_identity *wanted,
	const struct symbols_search *search);
void symbols_found_release(struct symbols_found *f);

/* The identity of a module of a trace. Release it. */
void trace_image_identity(struct image_identity *id, const struct trace_reader *r, uint32_t image);

#endif
