/* SPDX-License-Identifier: MIT */
/* Makes the catalog image of one ELF file from all that belongs to it. */
#ifndef WEIR_SYMBOLS_CATALOG_IMAGE_MAKE_H
#define WEIR_SYMBOLS_CATALOG_IMAGE_MAKE_H

#include "base/buf.h"
#include "base/err.h"
#include "elf/elf_file.h"
#include "symbols/catalog/catalog_image_build.h"

/* A debug file that was verified to belong to the image. */
struct debug_source {
	const struct elf_file *elf;
	const char *path;
	const char *verdict; /* why it belongs: "build-id equal" */
};

/* Debug information that somebody has open already, of the file at `path`; zero: of none. Borrowed. */
struct dwarf_debug;
struct opened_debug {
	struct dwarf_debug *debug;
	const char *path;
};

struct image_recipe {
	const struct elf_file *elf; /* the image, or a debug file that stands alone; NULL: only
				       `debug` is added */
	const char *path;
	const struct debug_source *debug; /* may be NULL */
	/* Only units that may cover one of these (sorted); NULL = all. */
	const uint64_t *addrs;
	size_t n_addrs;
	struct opened_debug opened;
	bool no_data;	    /* without variables and constants */
	bool columns;	    /* with the columns of source lines */
	unsigned n_threads; /* 0 and 1: none but the caller's */
	/* Called now and then from the calling thread; may be NULL. */
	void (*progress)(void *ctx, size_t done, size_t of);
	void *ctx;
};

/* Adds sections and every source of the recipe: symtab, dynsym, .gnu_debugdata, Go's table, the
 * debug file's symtab, DWARF, PLT names. Sources without symbols are not listed. Debug information that cannot
 * be read becomes a note. */
void image_make_add(struct image_builder *b, const struct image_recipe *recipe);

/* Begins `source` and adds the units of `elf` that the recipe wants: several threads read them, and they
 * are added in order. What cannot be read is noted. */
void image_units_add(struct image_builder *b, const struct image_recipe *recipe,
	const struct elf_file *elf, const struct catalog_source *source);

/* The whole image of an ELF file in memory, with the installed debug file that belongs to it when
 * the file has no debug information itself. `recipe->debug` is ignored. `bytes` must outlive the
 * image. */
int image_make_open(const struct image_identity *identity, const struct image_recipe *recipe,
	struct buf *bytes, struct catalog_image **image, struct err *err);

/* True when the file has .debug_info (compressed or not). */
bool elf_file_has_dwarf(const struct elf_file *elf);
/* Whether the file or its installed debug file can tell source lines: by debug information or by Go's
 * table. */
bool image_has_lines(const struct elf_file *elf, const char *path);

#endif
