/* SPDX-License-Identifier: MIT */
/*
 * From (image, address) to a name: opens each image's symbol sources once, when first asked. An
 * image is read from its path only when its identity there is the one that was recorded; the
 * verdict is kept as a sentence.
 */
#ifndef WEIR_SYMBOLS_RESOLVER_H
#define WEIR_SYMBOLS_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_file.h"
#include "trace/defs.h"
#include "trace/reader.h"
#include "trace/writer.h"
#include "dwarf/cfi_table.h"

struct resolver;
struct resolver *resolver_new(void);
void resolver_free(struct resolver *r);

/* Makes an image known under the caller's id. `elf` and `cfi` (both may be NULL) are borrowed
 * until resolver_free; without `elf` the file at `path` is opened and verified. */
void resolver_add_image(struct resolver *r, uint32_t id, const struct trace_image *image,
	const char *path, const struct elf_file *elf, const struct cfi_table *cfi);

struct resolved {
	const char *name;   /* never NULL; lives until the next call */
	uint64_t offset;    /* of the address from the function's start */
	const char *reason; /* why the name is only an address; NULL when it is a true name */
};
/* `addr` is the address to look up (a return address already less 1). */
void resolver_find(struct resolver *r, uint32_t id, uint64_t addr, struct resolved *out);

/* Names every frame of the writer's table that has an image, and writes the symbols. */
void resolver_name_frames(struct resolver *r, struct trace_writer *w);
/* Opens a trace and names those frames that it does not name itself (the recorder was killed), from
 * the files that are on this machine now. */
int resolver_open_trace(struct trace_reader **out, const char *path, struct err *err);

#endif
