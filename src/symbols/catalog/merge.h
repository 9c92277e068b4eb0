/* SPDX-License-Identifier: MIT */
/*
 * From files and folders to catalog images: what each input is, which inputs belong to one version
 * of one image, and why the others were refused.
 *
 * - Every ELF file with code is an image of its own: another path or another version is another
 * image.
 * - A debug file joins the images whose build-id it has, or whose debuglink has its CRC;
 *   when there is none it is an image of its own.
 * - A linker map or nm output has no identity: it joins the images whose exported names agree with
 *   all of its own ("412 of 412 agree"). Where none or several versions do, it is refused.
 * - perf maps and jitdumps of one pid make one image of run-time code; kallsyms makes the kernel's.
 * - With `base`, images that are already in a catalog are joined in the same way.
 * - The images of a catalog that is an input itself are images here; the same image in several is one,
 *   with the sources of all.
 */
#ifndef WEIR_SYMBOLS_CATALOG_MERGE_H
#define WEIR_SYMBOLS_CATALOG_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/span.h"
#include "symbols/catalog/catalog.h"
#include "symbols/source/source_kind.h"

struct merge_options {
	unsigned n_threads; /* 0 = one */
	bool no_search;	    /* only the inputs themselves: no debug folders, no debuginfod */
	bool columns;	    /* keep the columns of source lines */
	const struct catalog *base; /* may be NULL; borrowed */
	/* "reading libfoo.so", 3 of 10; may be NULL. From the calling thread. */
	void (*progress)(void *ctx, const char *what, size_t done, size_t of);
	void *ctx;
};

struct merge;
struct merge *merge_new(const struct merge_options *options);
void merge_free(struct merge *m);

/* A file, or a folder with all that is below it (links to folders are not followed). Fails when the
 * path is not there; what kind of file it is shows in its outcome. */
int merge_add_path(struct merge *m, const char *path, struct err *err);

/* A file that somebody else has found and opened: one that a process has mapped. */
struct merge_input {
	const char *path;      /* what it is called in outcomes and sources */
	const char *opened_as; /* NULL = path; debug files are searched beside it */
	struct file_map map;   /* taken over */
	const struct stat *st; /* NULL: bytes that no file has (a vdso) */
};
void merge_add_opened(struct merge *m, const struct merge_input *input);
/* One that could not be opened, which is its outcome. */
void merge_add_unreadable(struct merge *m, const char *path, const char *why);

/* The running kernel: /proc/kallsyms with the build-id of /sys/kernel/notes. */
int merge_add_kernel(struct merge *m, struct err *err);

/* Reads and joins everything that was added. Fails only when nothing can be done at all; refused
 * inputs are outcomes. */
int merge_run(struct merge *m, struct err *err);

enum merge_verdict {
	MERGE_USED,	   /* is an image or a source of one */
	MERGE_KNOWN,	   /* the base has it already, with all its sources */
	MERGE_REFUSED,	   /* is a symbol source, but belongs to no image here */
	MERGE_NOT_A_SOURCE /* something else; only shown for files that were named themselves */
};
struct merge_outcome {
	const char *path;
	enum source_kind kind;
	enum merge_verdict verdict;
	const char *reason;   /* a sentence: why used, why refused */
	const char *image_id; /* of the (first) image it went into; NULL when none */
	bool was_named;	      /* given itself, not found in a folder */
};
/* In order of path. */
size_t merge_n_outcomes(const struct merge *m);
struct merge_outcome merge_get_outcome(const struct merge *m, size_t i);

/* The images that are new or changed, in order of path and id. */
size_t merge_n_images(const struct merge *m);
struct span merge_get_image(const struct merge *m, size_t i);

#endif
