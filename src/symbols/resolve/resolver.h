/* SPDX-License-Identifier: MIT */
/*
 * From (image, address) to names: opens each image's symbols once, when first asked, from the
 * catalog or from files, and only when the verification ladder says that they are the image's own.
 * The verdict is kept with its reason.
 */
#ifndef WEIR_SYMBOLS_RESOLVE_RESOLVER_H
#define WEIR_SYMBOLS_RESOLVE_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/cfi_table.h"
#include "elf/elf_file.h"
#include "symbols/catalog/catalog.h"
#include "symbols/catalog/image_make.h"
#include "symbols/catalog/match.h"
#include "symbols/image_identity.h"
#include "trace/defs.h"
#include "trace/reader.h"
#include "trace/writer.h"

struct resolver;
struct resolver *resolver_new(void);
void resolver_free(struct resolver *r);
/* Asked before files; borrowed until resolver_free. */
void resolver_set_catalog(struct resolver *r, const struct catalog *catalog);

/* Where names of a recording that was made earlier come from, beside the files that were mapped. Borrowed. */
struct name_place {
	const char *root;     /* below which the maps of made code are; "" = they are here */
	const char *kallsyms; /* of the kernel that was recorded; NULL: ours, when it is that one */
	bool is_elsewhere;    /* maps of this machine's processes are others' */
	const char *catalog;  /* NULL: the user's own */
	const struct image_identity *kernel;
};
void resolver_set_place(struct resolver *r, const struct name_place *place);

/* Makes an image known under the caller's id. `elf` and `cfi` (both may be NULL) are borrowed
 * until resolver_free; `elf` is the file as it was mapped, and needs no verification. Without it
 * the catalog and the file at `path` are candidates. */
void resolver_add_image(struct resolver *r, uint32_t id, const struct trace_image *image,
	const char *path, const struct elf_file *elf, const struct cfi_table *cfi);

/* The same for an image of a trace, with all that the trace knows of its identity. */
void resolver_add_traced(struct resolver *r, const struct trace_reader *reader, uint32_t image);
/* Of an image that is known: its debug information, which then is not opened once more; borrowed until
 * resolver_free. */
void resolver_lend_debug(struct resolver *r, uint32_t id, struct opened_debug opened);

struct resolved {
	const char *name;     /* of the function that has the code; never NULL */
	uint64_t offset;      /* of the address from the function's start */
	const char *reason;   /* why the name is only an address; NULL when it is a true name */
	enum match_rung rung; /* how sure the name is: the image and the source that has it */
	/* The inline chain with files and lines, innermost first, `name` last; 0: not known. */
	const struct catalog_level *levels;
	size_t n_levels;
}; /* everything lives until the next call */
/* `addr` is the address to look up (a return address already less 1). */
void resolver_find(struct resolver *r, uint32_t id, uint64_t addr, struct resolved *out);

/* Names every frame of the writer's table that has an image; writes the symbols, and for every
 * image that was asked the verdict and (ELF images) the table of its functions. */
void resolver_name_frames(struct resolver *r, struct trace_writer *w);

/* Opens a trace and names those frames that it does not name itself: all of them when the recorder
 * was killed, those without a true name when a catalog knows better. `catalog` is a path; NULL: the
 * user's own when there is one. */
int resolver_open_trace(
	struct trace_reader **out, const char *path, const char *catalog, struct err *err);

#endif
