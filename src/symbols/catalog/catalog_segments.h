/* SPDX-License-Identifier: MIT */
/*
 * The bytes of the merged symbol file: roots, segment headers and the directory, encoded and
 * decoded; docs/format/catalog-file.md says the same in words. No files are opened here.
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_SEGMENTS_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"
#include "symbols/catalog/catalog.h"

/* What the disk writes as one; a commit begins at such a border, and the roots have one each. */
#define CATALOG_BLOCK_BYTES   4096
#define CATALOG_MAGIC	      "\x89wsym\r\n\x1a"
#define CATALOG_MAGIC_BYTES   8
#define CATALOG_ROOT_BYTES    512 /* one sector */
#define CATALOG_N_ROOTS	      2	  /* at 0 and at CATALOG_BLOCK_BYTES */
#define CATALOG_BODY_OFFSET   (CATALOG_N_ROOTS * CATALOG_BLOCK_BYTES)
#define CATALOG_SEGMENT_BYTES 64 /* header; also the alignment of a segment within its commit */

#define CATALOG_MAJOR 1
#define CATALOG_MINOR 0

static inline uint64_t catalog_align(uint64_t offset, uint64_t to)
{
	return (offset + to - 1) / to * to;
}

struct catalog_root {
	uint64_t generation;	  /* from 1, one more with every commit */
	uint64_t dir_offset;	  /* of the directory's segment header */
	uint64_t dir_bytes;	  /* of its payload */
	uint64_t committed_bytes; /* length of the file as far as this root knows it */
};

enum catalog_root_state {
	CATALOG_ROOT_EMPTY, /* never written */
	CATALOG_ROOT_DAMAGED,
	CATALOG_ROOT_UNKNOWN, /* of a version that is not known; *out has it in generation */
	CATALOG_ROOT_VALID
};
/* `block` may be shorter than a root. */
enum catalog_root_state catalog_root_decode(struct span block, struct catalog_root *out);
void catalog_root_encode(const struct catalog_root *root, uint8_t to[CATALOG_ROOT_BYTES]);

enum catalog_segment_type { CATALOG_SEGMENT_IMAGE = 1, CATALOG_SEGMENT_DIRECTORY = 2 };
struct catalog_segment {
	enum catalog_segment_type type;
	uint64_t bytes; /* of the payload */
	uint64_t id;	/* of the image; 0 for a directory */
	uint32_t crc;	/* of the payload */
};
/* The payload of the segment at `offset`, after its header was checked against `expected`; its crc
 * is filled in, not compared. The sentence has no subject. */
int catalog_segment_find(struct span file, uint64_t offset, struct catalog_segment *expected,
	struct span *payload, struct err *err);
void catalog_segment_encode(
	const struct catalog_segment *segment, uint8_t to[CATALOG_SEGMENT_BYTES]);

struct catalog_row {
	struct catalog_entry entry; /* texts are borrowed */
	uint64_t id;		    /* entry.id as a number */
	uint64_t offset;	    /* of its segment's header */
	uint32_t crc;		    /* of its bytes */
};
struct catalog_base {
	const char *name;
	uint32_t first, n; /* rows */
};
struct catalog_dir {
	VEC(struct catalog_fact_pair) facts; /* by key */
	VEC(struct catalog_base) bases;	     /* by name */
	VEC(struct catalog_row) rows;	     /* by base name, path, id */
};
void catalog_dir_release(struct catalog_dir *dir);
/* Borrows texts from `payload`. Rows must lie within `committed_bytes`. The sentence has no
 * subject. On failure `dir` needs its release all the same. */
int catalog_dir_decode(
	struct catalog_dir *dir, struct span payload, uint64_t committed_bytes, struct err *err);
/* Appends. Facts and rows must be sorted; bases are made from the rows. */
int catalog_dir_encode(const struct catalog_dir *dir, struct buf *to, struct err *err);

/* By base name, path, id. */
int catalog_row_compare(const struct catalog_row *a, const struct catalog_row *b);
/* 16 digits of lower-case hexadecimal and nothing else. */
bool catalog_id_parse(const char *text, uint64_t *id);

#endif
