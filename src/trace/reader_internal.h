/* SPDX-License-Identifier: MIT */
/*
 * The parts of the reader share this: reader.c finds the chunks, chunk_load.c checks and unpacks
 * one, reader_tables.c decodes definitions, reader_images.c what is known of images and where they
 * were, record_cursor.c walks records,
 * reader_runs.c hands out whole chunks of them. Inside src/trace only.
 */
#ifndef WEIR_TRACE_READER_INTERNAL_H
#define WEIR_TRACE_READER_INTERNAL_H

#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "trace/layout.h"
#include "trace/reader.h"

/* A FUNCTIONS chunk that waits to be asked for. */
struct function_chunk {
	size_t chunk_i;	    /* in chunks */
	uint32_t n_strings; /* that were defined before it */
	uint32_t next;	    /* number of the next one of the same image; 0 = none */
};

/* The function table of one image. Numbers of function_chunks begin with 1. */
struct image_functions {
	uint32_t first, last; /* chunks; 0 = none */
	bool is_decoded;
	VEC(struct trace_function) table;
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
	VEC(struct trace_kind) kinds;
	VEC(struct trace_symbol) symbols;	    /* by frame; frame = 0: nothing is said */
	VEC(struct trace_image_facts) facts;	    /* by image; image = 0: nothing is said */
	VEC(struct trace_match) matches;	    /* likewise */
	VEC(struct image_functions) functions;	    /* by image */
	VEC(struct function_chunk) function_chunks; /* entry 0 is reserved */
	uint32_t n_damaged_tables; /* chunks of definitions that were skipped */
	char *damaged_tables;	   /* the sentence of the first; NULL when there is none */
	uint64_t n_stood_in;	   /* entries in place of those that they had */
	uint64_t n_unplaced;	   /* records of streams that nothing is known of */
	uint32_t n_damaged_functions;
	char *damaged_functions; /* the first sentence; NULL when there is none */
	VEC(struct trace_module_span) spans;
	uint64_t n_spans_announced; /* by the chunks of the address index */
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

/* What stands in front of a record's payload. */
struct record_head {
	uint32_t kind;
	uint64_t time;
	struct span payload;
};

/* Record number `i` of the chunk, at `p`; `before` is the time of the record before it. */
int record_head_decode(const struct trace_reader *r, const struct chunk_view *view,
	const uint8_t *p, const uint8_t *end, uint64_t before, uint32_t i, struct record_head *head,
	struct err *err);

/* A decoder at work: entry `i` of the chunk, for sentences. */
struct decoder {
	struct trace_reader *r;
	const struct chunk_view *view;
	struct cursor c;
	uint32_t i;
	struct err *err;
};

/* These return ERR_FORMAT with the sentence when the bytes do not keep to the document. */
int decoder_bad(const struct decoder *d, const char *what, uint64_t value);
int decoder_cut_off(const struct decoder *d);
/* A number below `limit`. */
int decoder_take(struct decoder *d, uint32_t *to, uint64_t limit, const char *what);
int decoder_take_u64(struct decoder *d, uint64_t *to);
#define ANY_U32 ((uint64_t)UINT32_MAX + 1)

int reader_add_image_facts(struct decoder *d);
int reader_add_match(struct decoder *d);
int reader_begin_spans(struct decoder *d);
int reader_add_span(struct decoder *d);
/* Notes that chunk number `i` of the list is part of an image's function table. */
int reader_add_function_chunk(struct trace_reader *r, size_t i, struct err *err);
/* When all chunks were seen: an address index that is not whole counts as none. */
void reader_images_finish(struct trace_reader *r);
void reader_images_release(struct trace_reader *r);

void reader_tables_init(struct trace_reader *r);
void reader_tables_release(struct trace_reader *r);
/* Chunk `e` of definitions cannot be used, as `why` says: entries that are known to be unknown take the
 * place of those it had, so that all later ones keep their ids. `n_before` of reader_tables_n. Fails
 * with the sentence when there are too many. */
int reader_tables_stand_in(
	struct trace_reader *r, const struct chunk_entry *e, size_t n_before, struct err *why);
/* Entries in the table of this type of chunk so far. */
size_t reader_tables_n(const struct trace_reader *r, uint32_t type);
/* When all chunks were seen: says of the entries that stand in for others that they do. */
void reader_tables_finish(struct trace_reader *r);
/* Decodes one chunk of definitions; chunks of other types are left alone. On failure some of its
 * entries may have been added. */
int reader_tables_add(struct trace_reader *r, const struct chunk_view *view, struct err *err);

#endif
