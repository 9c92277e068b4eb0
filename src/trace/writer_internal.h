/* SPDX-License-Identifier: MIT */
/*
 * The parts of the writer share this: writer.c has the file, chunks and records; writer_tables.c
 * what is interned; writer_images.c what is known of images and where they were. Inside src/trace
 * only.
 */
#ifndef WEIR_TRACE_WRITER_INTERNAL_H
#define WEIR_TRACE_WRITER_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/output.h"
#include "trace/layout.h"
#include "trace/writer.h"

#define KIND_CACHE_SLOTS 16

/* Entries not yet written, encoded. */
struct pending {
	struct buf bytes;
	uint32_t n;
};

/* Everything that records refer to. Entry 0 of each array is the reserved one. */
struct writer_tables {
	struct intern strings;
	VEC(struct trace_metric) metrics;
	VEC(struct trace_stream) streams;
	VEC(struct trace_image) images;
	VEC(struct trace_thread) threads;
	VEC(struct trace_frame) frames;
	VEC(struct trace_stack) stacks;
	VEC(struct trace_kind) kinds;
	struct kind_slot {
		uint32_t major, minor, id; /* id 0: empty */
	} kind_cache[KIND_CACHE_SLOTS];	   /* a few codes make up nearly all records */
	struct map metric_ids, stream_ids, stack_ids, kind_ids; /* both words of the entry -> id */
	struct intern image_keys, thread_keys, frame_keys;	/* packed entry -> id */
	uint32_t n_written[CHUNK_N_TYPES]; /* entries of each table that are in the file */
	struct pending meta, symbols, facts, matches;
	struct map function_starts; /* image -> start of the last function written */
	struct map function_counts; /* image -> functions written */
	bool has_spans;
};

/* The chunk of a stream that is being filled. */
struct open_chunk {
	struct buf raw;
	uint32_t count;
	uint64_t first_time;
	uint64_t last_time;  /* of the stream, not only of this chunk */
	uint64_t n_clamped;  /* records whose time went back */
	uint64_t n_too_long; /* records dropped for their length */
};

struct trace_writer {
	char *path;
	int fd;
	struct output output; /* of nothing when the descriptor was given */
	bool is_regular;    /* can be cut back */
	bool is_stream;	    /* somebody reads at the other end, or does not */
	uint64_t n_bytes;   /* of the file: whole chunks */
	struct err failure; /* the first; code 0 = none */
	struct writer_tables tables;
	VEC(struct open_chunk) open; /* by stream id */
	uint32_t leading;	     /* of them: trace_writer_lead(); 0 = none */
	VEC(struct chunk_entry) chunks;
	struct buf packed, scratch;
	uint32_t routine_kinds[2]; /* of enter and leave; 0 = not defined yet */
	void *zstd;		   /* ZSTD_CCtx; NULL: chunks are stored as they are */
};

void writer_tables_init(struct writer_tables *t);
void writer_tables_release(struct writer_tables *t);
uint32_t writer_tables_kind(struct writer_tables *t, uint32_t major, uint32_t minor);
/* Appends all that is pending, in an order in which nothing refers to what comes later. */
void writer_tables_write(struct trace_writer *w);
/* Counts an entry whose bytes were put there, and writes all when they are many. */
void writer_tables_added(struct trace_writer *w, struct pending *p);

/* Appends one chunk; stored_bytes, raw_bytes, flags and crc of the header are filled in here. */
void writer_append_chunk(struct trace_writer *w, struct chunk_header header, struct span raw);

#endif
