/* SPDX-License-Identifier: MIT */
/*
 * What tells one version of an image from another: everything that a rung of the verification
 * ladder compares (match.h). Kept in the trace for each module, in the catalog for each image, and
 * taken from files that are candidates.
 */
#ifndef WEIR_SYMBOLS_IMAGE_IDENTITY_H
#define WEIR_SYMBOLS_IMAGE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "elf/elf_file.h"
#include "trace/defs.h"

#define IMAGE_SEGMENTS_MAX 256 /* more are not compared */

struct image_segment { /* PT_LOAD, or a section of a text source */
	char name[32]; /* "" = not known; ELF segments have none */
	uint64_t addr, offset, file_bytes, mem_bytes;
	uint32_t flags; /* PF_* */
};

/* Zero means not known, in every member. */
struct image_identity {
	enum image_kind kind;
	char *path;	  /* as traced or as given; owned */
	uint16_t machine; /* EM_* */
	uint8_t bits;	  /* 32, 64 */
	uint8_t build_id_n;
	uint8_t build_id[BUILD_ID_MAX];
	uint64_t content_hash;	/* of the bytes of the executable segments */
	uint32_t debuglink_crc; /* CRC-32 that its debug file must have */
	uint32_t file_crc;	/* CRC-32 of the file itself: known for debug files only */
	uint64_t file_bytes, mtime_ns;
	struct image_segment *segments; /* owned */
	size_t n_segments;
	uint32_t pid; /* of JIT code */
};

/* From an ELF file; `path` and `st` may be NULL. With `with_hash` the executable segments are read
 * and hashed, or the CRC of the whole file is taken when it is a separate debug file; it is worth
 * its time only where there is no build-id. A relocatable file's segments are its sections. */
void image_identity_init_elf(struct image_identity *id, const struct elf_file *elf,
	const char *path, const struct stat *st, bool with_hash);
/* What a trace's table says of an image; what it does not say stays. */
void image_identity_take_traced(struct image_identity *id, const struct trace_image *image);
void image_identity_copy(struct image_identity *to, const struct image_identity *from);
void image_identity_release(struct image_identity *id);

/* Which kernel runs here: kind, path "[kernel]", machine, the build-id of /sys/kernel/notes, and as its
 * content hash where it was loaded (/proc/kallsyms), both where they can be read: the addresses of a
 * kernel's symbols differ after each start of the machine. Release it. */
void kernel_identity(struct image_identity *id);

/* Where the kernel of a file like /proc/kallsyms was loaded, as a content hash; 0: it does not say so. */
uint64_t kallsyms_content_hash(const char *path);
/* The same of the address of _text or _stext. */
uint64_t kernel_content_hash(uint64_t address);

/* FNV-1a style over 8-byte words; the exact rule is in docs/format/catalog-file.md, "Content hash".
 * Stripping does not change it. 0 when the file does not have the bytes of all executable segments
 * (debug files, cut files) or has none. */
uint64_t image_content_hash(const struct elf_file *elf);

/* A build-id that identifies: 8 bytes or more, not all alike. */
bool image_identity_has_build_id(const struct image_identity *id);
/* Both have one and they are equal. */
bool image_identity_same_build_id(const struct image_identity *a, const struct image_identity *b);
/* The address that a byte of the file has, by the segments; false when none has it. */
bool image_identity_address(const struct image_identity *id, uint64_t offset, uint64_t *addr);
/* File name without folder; libfoo.so.1.2 -> libfoo, prog.debug -> prog, a.out.map -> a: the name
 * up to the first dot that is not its first character. The " (deleted)" that the kernel puts behind
 * the path of a mapped file is no part of the name. `to` is replaced. */
const char *image_base_name(const char *path, struct buf *to);
/* "build-id 5e3f...", "content hash 0x...", "size 1234, time 2026-...": the strongest identity that
 * is known, for sentences. `to` is replaced. */
const char *image_identity_text(const struct image_identity *id, struct buf *to);

#endif
