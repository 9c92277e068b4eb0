/* SPDX-License-Identifier: MIT */
/*
 * The images that recorded processes have mapped: opened when first seen (they may be gone later),
 * verified against what the kernel says was mapped, their unwind tables and names made when first
 * needed.
 */
#ifndef WEIR_RECORD_IMAGES_H
#define WEIR_RECORD_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"
#include "elf/elf_file.h"
#include "trace/defs.h"
#include "dwarf/cfi_table.h"

struct image {
	enum image_kind kind;
	const char *path;    /* as the process saw it, " (deleted)" cut off; owned */
	const char *problem; /* why the content cannot be used; NULL when it can; owned */
	uint32_t pid;	     /* of a JIT image's process */
	bool has_elf;
	struct elf_file elf;
	uint8_t build_id_n;
	uint8_t build_id[BUILD_ID_MAX];
	uint64_t file_bytes, file_mtime_ns;
	uint32_t trace_id; /* in the trace's image table; 0 = not written yet */
};

/* What the kernel or /proc says about a mapping. */
struct image_query {
	uint32_t pid;
	const char *path;
	uint64_t start, end;
	struct span build_id;	   /* empty = not known */
	uint64_t inode;		   /* 0 = not known */
	uint64_t process_start_ns; /* keeps JIT code of a reused pid apart */
};

struct images;
struct images *images_new(void);
void images_free(struct images *t);

/* The number of the image; the same file of the same version has one number. */
uint32_t images_ensure(struct images *t, const struct image_query *query);
struct image *images_get(struct images *t, uint32_t number);
uint32_t images_n(const struct images *t);
/* vaddr - iaddr for a mapping of the image that begins at `start` with file offset `offset`. */
uint64_t images_bias(struct images *t, uint32_t number, uint64_t start, struct foff offset);
/* NULL when the image has none. */
const struct cfi_table *images_cfi(struct images *t, uint32_t number);

#endif
