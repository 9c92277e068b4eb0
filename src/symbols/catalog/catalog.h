/* SPDX-License-Identifier: MIT */
/*
 * The merged symbol file: many images in one file that is safe to read while it is changed. Layout:
 * docs/format/catalog-file.md. Two alternating root blocks, append-only segments: a writer that is
 * killed at any point loses nothing that was committed; a reader sees the state before or after a
 * change, never one between.
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "symbols/catalog/catalog_image.h"

struct catalog;
/* Maps the file and takes the newest valid root whose directory is whole. ERR_NOT_FOUND when there
 * is no file. It goes on showing that state whatever happens to the file. */
int catalog_open(struct catalog **out, const char *path, struct err *err);
/* For tests and fuzzing. */
int catalog_open_bytes(struct catalog **out, struct span bytes, const char *name, struct err *err);
void catalog_close(struct catalog *c);
/* $WEIR_CATALOG, else $XDG_CACHE_HOME/weir/catalog.wsym, else ~/.cache/weir/catalog.wsym; the
 * caller frees it. NULL when there is no home either. */
char *catalog_default_path(void);

/* What is damaged although the file could be opened: a sentence a line, or "". */
const char *catalog_notes(const struct catalog *c);

/* How, when and where the file was made: "made_by", "made_on" (OS release), "cpus", "page_bytes",
 * "made_at" (only when the maker gave a time, so that equal inputs give equal bytes). The first
 * four are there in every file, filled in when it is created unless the change has them. Sorted by
 * key. NULL behind the last. */
const char *catalog_fact(const struct catalog *c, size_t i, const char **key);
/* NULL when there is no such fact. */
const char *catalog_find_fact(const struct catalog *c, const char *key);

/* What the directory says of an image, without opening it. Sorted by base name, path, id. */
struct catalog_entry {
	char id[17];
	const char *base_name, *path; /* live as long as the catalog */
	uint8_t bits;
	uint16_t machine;
	struct span build_id; /* empty = none */
	uint64_t bytes;
	uint64_t n_symbols, n_rows;
};
/* The same of an image, whose texts it borrows; its base name and bytes are not known. */
struct catalog_entry catalog_image_entry(const struct catalog_image *image);
size_t catalog_n(const struct catalog *c);
struct catalog_entry catalog_get(const struct catalog *c, size_t i);
/* The entries with this base name are [*first, *first + return). O(log n). */
size_t catalog_find_base(const struct catalog *c, const char *base_name, size_t *first);
/* Index by id, full path (the first of several), or unique prefix of an id, in this order; SIZE_MAX
 * when none is. O(n). */
size_t catalog_find(const struct catalog *c, const char *id_or_path);
/* Opens entry i after checking its check sum; the caller closes it before the catalog. This and
 * everything else that reads may be called by several threads at once. */
int catalog_open_image(
	const struct catalog *c, size_t i, struct catalog_image **out, struct err *err);
/* The raw bytes, for copying into another catalog. */
int catalog_image_bytes(const struct catalog *c, size_t i, struct span *out, struct err *err);

struct catalog_stats {
	uint64_t file_bytes;
	uint64_t live_bytes, dead_bytes; /* together file_bytes; dead is what compaction removes */
	uint64_t generation;		 /* one more with each change */
	uint64_t n_images, n_symbols, n_rows;
};
struct catalog_stats catalog_stats(const struct catalog *c);

/* --- writing --- */

struct catalog_change {
	/* Bytes of catalog images; one with the id of an entry, or of an earlier one of these,
	 * replaces it. Equal bytes are not written again. */
	const struct span *add;
	size_t n_add;
	const char *const *remove; /* ids, before `add`; one that is not there is an error */
	size_t n_remove;
	const struct catalog_fact_pair {
		const char *key, *value;
	} * facts; /* replace facts of the same key */
	size_t n_facts;
	/* What is added was made from this state of the file (catalog_stats().generation; 0: there
	 * was no file). When another writer came first, ERR_CHANGED and nothing is written. */
	bool has_base;
	uint64_t base_generation;
};
/* Creates the file (and its folder) when it is not there. Takes the writers' lock and waits for it.
 * Durable when it returns 0. Each change appends its images and a new directory (about 100 bytes
 * for every image of the catalog), so give many images in one change. */
int catalog_apply(const char *path, const struct catalog_change *change, struct err *err);
/* A new file beside it (PATH.new) that replaces whatever is at `path`: the same images and facts,
 * in any order, give the same bytes. */
int catalog_write_new(const char *path, const struct catalog_change *change, struct err *err);
/* Rewrites the file without what is dead, and renames. Readers keep the old one. A damaged image is
 * an error that names it: remove it first. */
int catalog_compact(const char *path, struct err *err);

#endif
