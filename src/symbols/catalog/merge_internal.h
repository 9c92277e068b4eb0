/* SPDX-License-Identifier: MIT */
/* What merge.c (inputs and outcomes), merge_join.c (which belong together) and merge_build.c
 * (bytes) share. */
#ifndef WEIR_SYMBOLS_CATALOG_MERGE_INTERNAL_H
#define WEIR_SYMBOLS_CATALOG_MERGE_INTERNAL_H

#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "symbols/catalog/match.h"
#include "symbols/catalog/merge.h"
#include "symbols/source/jitdump.h"
#include "symbols/source/text_sources.h"

#define NO_IMAGE SIZE_MAX

/* One input. */
struct merge_file {
	char *path;	 /* what it is called in outcomes and sources */
	char *open_path; /* where it was opened; NULL = path */
	bool was_named;
	bool is_open;
	struct file_map map;
	bool has_stat;
	struct stat st;
	enum source_kind kind;
	bool has_elf;
	struct elf_file elf;
	struct image_identity id;
	bool is_live_kernel; /* /proc/kallsyms of this machine */
	/* text sources */
	struct text_source text;
	VEC(struct candidate) candidates;
	struct jitdump jitdump;
	struct catalog *catalog; /* a merged symbol file, whose images join; owned */
	/* outcome */
	enum merge_verdict verdict;
	char *reason;
	size_t image_i; /* NO_IMAGE = none */
};

/* A source that joined an image, and why. */
struct merge_joined {
	size_t file_i;
	char *verdict; /* owned */
	/* Of a text, else NULL; owned: which of its names are sure, by candidate, and what is said of
	 * those that are not. */
	bool *is_pinned;
	char *weak_verdict;
};
void merge_joined_release(struct merge_joined *j);

/* Linkers print demangled names into their maps. */
struct demangled_name {
	char *text;	     /* owned */
	const char *linkage; /* as the image has it */
	uint64_t addr;
};

struct merge_image {
	struct image_identity id;
	size_t file_i; /* the file with the code, NO_IMAGE when there is none */
	size_t base_i; /* entry of the base catalog, NO_IMAGE when it is not from there */
	VEC(struct merge_joined) debug, texts;
	/* Exported names by name, made when first needed, and their demangled forms by text. */
	VEC(struct anchor_name) anchors;
	bool has_anchors;
	struct extent *extents; /* functions of the unwind table, made when first needed; owned */
	size_t n_extents;
	VEC(struct demangled_name) demangled;
	struct catalog_image *base; /* opened when first needed; or of a catalog that is an input */
	bool is_joined;		    /* it is of an input, and not in the base catalog */
	VEC(struct catalog_image *) others; /* the same image in further inputs; owned */
	struct buf bytes;		    /* the result; empty when nothing changed */
	char catalog_id[17];
};

struct merge {
	struct merge_options options;
	struct intern paths; /* canonical paths that were added */
	VEC(struct merge_file *) files;
	VEC(struct merge_image *) images;
	VEC(struct merge_image *) changed; /* those with bytes, in order; borrowed */
};

/* What symbols of a kind of text, or of a jitdump, count as. */
enum symbol_source merge_text_source(enum source_kind kind);

/* Sets the outcome; the reason is formatted. A file that is used already stays used. */
void merge_file_decide(struct merge_file *f, enum merge_verdict verdict, size_t image_i,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void merge_progress(struct merge *m, const char *what, size_t done, size_t of);

/* merge_join.c: makes the images and says which files join which. */
void merge_join(struct merge *m);
struct catalog_image *merge_image_base(struct merge *m, struct merge_image *image);
/* merge_texts.c: finds the images that a map or nm output belongs to. */
void merge_place_text(struct merge *m, size_t file_i);
/* text_evidence.c: the names of a text, one for each candidate, which live in `names`; freed by the
 * caller. */
struct anchor_name *merge_text_anchors(const struct merge_file *f, struct buf *names);
/* Does the text belong to the image? `out` gets the phrases either way, and is to be released. */
bool merge_text_fits(struct merge *m, struct merge_image *image, size_t file_i,
	const struct anchor_name *names, struct merge_joined *out);
/* The linkage name of the image at `addr` that reads `text` when demangled; NULL when none does. */
const char *merge_image_linkage_name(
	const struct merge_image *image, const char *text, size_t n, uint64_t addr);
/* merge_build.c */
int merge_build(struct merge *m, struct err *err);

#endif
