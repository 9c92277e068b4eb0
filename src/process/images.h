/* SPDX-License-Identifier: MIT */
/*
 * The images that recorded processes have mapped: opened when first seen (they may be gone later),
 * verified against what the kernel says was mapped, their unwind tables and names made when first
 * needed.
 */
#ifndef WEIR_PROCESS_IMAGES_H
#define WEIR_PROCESS_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"
#include "elf/elf_file.h"
#include "trace/writer.h"
#include "dwarf/cfi_table.h"
#include "process/proc.h"
#include "symbols/addrspace.h"
#include "unwind/unwind.h"

struct image {
	enum image_kind kind;
	const char *path;    /* as the process saw it, " (deleted)" cut off; owned */
	const char *problem; /* why the content cannot be used; NULL when it can; owned */
	uint32_t pid;	     /* of a JIT image's process */
	uint64_t inode;	     /* of the mapping that it was first seen by; 0 = not known */
	bool has_elf;
	struct elf_file elf;
	uint8_t build_id_n;
	uint8_t build_id[BUILD_ID_MAX];
	uint64_t file_bytes, file_mtime_ns;
	uint32_t trace_id; /* in the trace's image table; 0 = not written yet */
	bool is_hit;	   /* frames refer to it; else it is at most in a snapshot */
	bool unloads;	   /* image_unloads_code() */
	bool is_jvm;	   /* by its name: libjvm.so, readable or not */
};

/* What the kernel or /proc says about a mapping. */
struct image_query {
	uint32_t pid;
	struct proc_mapping mapping; /* inode 0 = not known */
	struct span build_id;	     /* empty = not known */
	uint64_t process_start_ns;   /* keeps JIT code of a reused pid apart */
};

/* Whether code of this file is to be expected to unload other code: it calls dlclose. The C library,
 * which has that, is not. */
bool image_unloads_code(const struct elf_file *elf);

/* Where the files of a recording that was made earlier are. Borrowed. */
struct image_place {
	const char *root;    /* of the machine that was recorded; "" = it is this one's */
	bool is_elsewhere;   /* it was recorded on another machine */
	bool is_same_kernel; /* the kernel that was recorded runs here: its vdso is ours */
	/* What the recording knows of the file at a path, beside its mappings; empty: nothing. */
	struct span (*build_id)(void *ctx, const char *path);
	void *ctx;
};

struct images;
struct images *images_new(void);
/* Before the first image. No process is asked for anything from then on. */
void images_set_place(struct images *t, const struct image_place *place);
void images_free(struct images *t);

/* The number of the image; the same file of the same version has one number. */
uint32_t images_ensure(struct images *t, const struct image_query *query);
struct image *images_get(struct images *t, uint32_t number);
uint32_t images_n(const struct images *t);
/* vaddr - iaddr for a mapping of the image that begins at `start` with file offset `offset`. */
uint64_t images_bias(struct images *t, uint32_t number, uint64_t start, struct foff offset);
/* The path that its file was opened by; NULL = it was not. */
const char *images_opened(struct images *t, uint32_t number);
/* The image's id in the trace, defined when first asked for. */
uint32_t images_trace_id(struct images *t, uint32_t number, struct trace_writer *w);
/* Files that were changed since they were opened, in place, are of no use any more: what is read of
 * them now is not what ran. Before facts are written and frames are named. */
void images_drop_changed(struct images *t);
/* What the trace knows about its ELF images beyond that: once, at the end. Images without build-id
 * are read and hashed. */
void images_write_facts(struct images *t, struct trace_writer *w);
/* Whether a mapping with this path (of /proc) would be one of this image, as far as the path tells.
 */
bool images_has_path(const struct images *t, uint32_t number, const char *path);
/* NULL when the image has none. */
const struct cfi_table *images_cfi(struct images *t, uint32_t number);

/* What a walk wants to know of an image that is mapped with a bias, and of an address in it. */
void images_module(struct images *t, uint32_t number, uint64_t bias, struct unwind_module *module);
bool image_follows_call(const struct image *image, struct iaddr pc);
bool image_ends_thread(const struct image *image, struct iaddr pc);

/* For walking stacks, as in struct unwind_callbacks; the mappings of `space` name images by their numbers.
 * The mapping that `pc` is in; NULL when there is none. */
const struct mapping *images_find_module(struct images *t, const struct addrspace *space,
	struct vaddr pc, struct unwind_module *module);
bool images_follows_call(struct images *t, const struct addrspace *space, struct vaddr pc);
bool images_ends_thread(struct images *t, const struct addrspace *space, struct vaddr pc);

#endif
