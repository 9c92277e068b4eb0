/* SPDX-License-Identifier: MIT */
/*
 * The big tables of a catalog image are cut into chunks that are packed one by one and unpacked
 * when they are first needed: opening an image costs nothing a row, and a look-up pays for its own
 * chunks only. Layout: docs/format/catalog.md, "Chunked tables".
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_CHUNKS_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

/* A chunk that would unpack to more than this many times its stored bytes is stored as it is, so
 * that what an opened image may take is bounded by the size of its file. */
#define CHUNK_RATIO_MAX 32

/* The bytes of the file, in their order. */
struct chunk_entry {
	uint64_t key;	 /* of its first item: an index, or an address */
	uint64_t offset; /* of the stored bytes, from the end of the entries */
	uint32_t stored_bytes, raw_bytes;
	uint32_t n_items;
	uint32_t flags; /* CHUNK_FLAG_PACKED */
};

/* --- reading --- */

struct chunk_limits {
	const char *name;	 /* of the table, for sentences */
	uint32_t items_max;	 /* of a chunk */
	uint32_t raw_bytes_max;	 /* of a chunk */
	uint32_t item_bytes_min; /* raw bytes that an item needs at least */
	bool is_indexed;	 /* keys are indexes: every chunk but the last has 2^shift items */
};

struct chunk_table {
	struct span entries, data; /* borrowed */
	size_t n_chunks;
	uint64_t n_items;
	uint64_t extra; /* a number of the table's own */
	unsigned shift; /* of an indexed table */
	void **unpacked; /* what the reader made of each chunk, NULL until it did; the reader's */
};

/* An empty section is an empty table. Checks every entry; `t` is untouched on failure. */
int chunk_table_init(struct chunk_table *t, struct span section, const struct chunk_limits *limits,
	struct err *err);
struct chunk_entry chunk_table_entry(const struct chunk_table *t, size_t i);

/* Zero-initialise; keeps what unpacking needs from one chunk to the next. */
struct chunk_unpacker {
	void *zstd;
	uint8_t *raw;
	size_t cap;
};
void chunk_unpacker_release(struct chunk_unpacker *u);
/* The raw bytes of a chunk, valid until the next call; false when it is damaged. */
bool chunk_unpack(
	struct chunk_unpacker *u, const struct chunk_table *t, size_t i, struct span *raw);

/* --- writing --- */

/* Zero-initialise, set shift and extra. Put the raw bytes of a chunk into `raw`, then call
 * chunk_writer_cut. */
struct chunk_writer {
	VEC(struct chunk_entry) entries;
	struct buf raw; /* of all chunks */
	size_t cut;	/* where the chunk that is being made begins */
	uint64_t n_items;
	uint64_t extra;
	unsigned shift;
	struct buf *packed; /* one of each chunk */
};
void chunk_writer_cut(struct chunk_writer *w, uint64_t key, uint32_t n_items);
void chunk_writer_release(struct chunk_writer *w);
/* Packs the chunks of all tables, with n_threads threads; the bytes do not depend on that. */
int chunk_writers_pack(
	struct chunk_writer **writers, size_t n, unsigned n_threads, struct err *err);
/* Appends the table, after chunk_writers_pack. */
void chunk_writer_put(const struct chunk_writer *w, struct buf *out);

#endif
