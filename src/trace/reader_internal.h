/* SPDX-License-Identifier: MIT */
/*
 * The parts of the reader share this: reader.c finds the chunks, chunk_load.c checks and unpacks
 * one, reader_tables.c decodes definitions, record_cursor.c walks records. Inside src/trace only.
 */
#ifndef WEIR_TRACE_READER_INTERNAL_H
#define WEIR_TRACE_READER_INTERNAL_H

#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "trace/layout.h"
#include "trace/reader.h"

struct reader_kind {
	uint32_t major, minor;
};

struct trace_reader {
	char *name;
	struct file_map map; /* empty when the bytes are the caller's */
	struct span bytes;
	bool check_crc; /* false only when fuzzing */

	VEC(struct chunk_entry) chunks; /* in file order */
	uint64_t chunks_end;		/* offset behind the last of them */
	uint32_t n_unknown_chunks;
	char *recovered; /* why there is no index; NULL when there is one */

	/* The chunks of stream s are stream_chunks[stream_first[s] .. stream_first[s + 1]). */
	uint32_t *stream_first;
	uint32_t *stream_chunks;

	/* Entry 0 of each array is the reserved one. */
	VEC(const char *) strings; /* in blocks or in `added` */
	VEC(struct trace_metric) metrics;
	VEC(struct trace_stream) streams;
	VEC(struct trace_image) images;
	VEC(struct trace_thread) threads;
	VEC(struct trace_frame) frames;
	VEC(struct trace_stack) stacks;
	VEC(struct reader_kind) kinds;
	VEC(struct trace_symbol) symbols; /* by frame; frame = 0: nothing is said */
	struct intern meta_keys;
	VEC(const char *) meta_values; /* by id of the key; in blocks */
	VEC(void *) blocks;	       /* storage of texts and symbol levels */

	struct intern added; /* strings added in memory; its id 0 has id n_file_strings here */
	uint32_t n_file_strings;
	struct map string_by_hash; /* file strings, made at the first addition */
	bool has_string_by_hash;
};

/* A decoder's place: the chunk it works on, for sentences. */
struct chunk_view {
	struct chunk_header header;
	uint64_t offset;      /* in the file */
	struct span raw;      /* unpacked payload: in the file or in the caller's buffer */
	uint32_t listed_type; /* what the index says it is, 0 when it is not listed */
};

/*
 * Checks the chunk at `offset`, which must end by `end`, and unpacks it into `unpacked` if it is
 * packed. `zstd` is a ZSTD_DCtx. On failure: ERR_FORMAT with a sentence that names the offset.
 */
int chunk_load(const struct trace_reader *r, uint64_t offset, uint64_t end, void *zstd,
	struct buf *unpacked, struct chunk_view *view, struct err *err);
/* Only the header and the CRC, not the payload's content. */
int chunk_check(const struct trace_reader *r, uint64_t offset, uint64_t end,
	struct chunk_view *view, struct span *stored, struct err *err);
/* Loads chunk number `i` of the list and compares it with what the index says. */
int chunk_load_listed(const struct trace_reader *r, size_t i, void *zstd, struct buf *unpacked,
	struct chunk_view *view, struct err *err);
/* "'name': RECORDS chunk at 4711: WHAT". */
int chunk_error(const struct trace_reader *r, const struct chunk_view *view, struct err *err,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

void reader_tables_init(struct trace_reader *r);
void reader_tables_release(struct trace_reader *r);
/* Decodes one chunk of definitions; chunks of other types are left alone. */
int reader_tables_add(struct trace_reader *r, const struct chunk_view *view, struct err *err);

#endif
