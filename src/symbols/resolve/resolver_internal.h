/* SPDX-License-Identifier: MIT */
/* What resolver.c (answers), resolver_load.c (where symbols come from) and resolver_trace.c (the
 * frames of traces) share. */
#ifndef WEIR_SYMBOLS_RESOLVE_RESOLVER_INTERNAL_H
#define WEIR_SYMBOLS_RESOLVE_RESOLVER_INTERNAL_H

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "symbols/catalog/find_symbols.h"
#include "symbols/resolve/resolver.h"
#include "symbols/source/jitdump.h"
#include "symbols/symtab.h"

#define RESOLVER_LEVELS_MAX SYMBOL_LEVELS_MAX

struct resolver_entry {
	bool is_known;
	struct trace_image image;
	char *path;
	const struct elf_file *elf; /* borrowed */
	struct opened_debug opened; /* of it */
	const struct cfi_table *cfi;
	struct cfi_table *own_cfi;
	struct iaddr entry;		/* the image's entry point; 0 = not known */
	struct image_identity identity; /* of an image of a trace; else empty */
	bool has_identity;

	bool is_loaded;
	/* Where names come from: at most one of these, or none. */
	struct catalog_image *symbols; /* borrowed from `found`, or made from `bytes` and owned */
	struct symtab *symtab;
	struct jitdump jitdump;
	bool has_jitdump;

	bool has_found;
	struct symbols_found found;
	struct buf bytes;
	struct file_map jitdump_file;

	struct {
		enum match_rung rung;	    /* of its least sure name */
		enum match_rung image_rung; /* of the image that has the names */
		const char *catalog_id;	    /* "" = not from the catalog */
	} match;
	char *reason; /* why this rung */
};

struct resolver {
	VEC(struct resolver_entry) entries; /* by image id */
	const struct catalog *catalog;
	const struct name_place *place; /* NULL: it is recorded here and now, or a trace is read */
	char *text;			/* the made-up name given out last */
	struct catalog_level levels[RESOLVER_LEVELS_MAX];
};

/* NULL when the id is not known. */
struct resolver_entry *resolver_entry(struct resolver *r, uint32_t id);
/* Opens the symbols; only the given addresses (sorted) will be asked for, all when NULL. */
void resolver_load(
	struct resolver *r, struct resolver_entry *e, const uint64_t *addrs, size_t n_addrs);
void resolver_entry_release(struct resolver_entry *e);

#endif
