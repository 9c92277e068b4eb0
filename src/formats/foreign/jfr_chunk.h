/* SPDX-License-Identifier: MIT */
/*
 * A chunk of a JFR file: its types, and the values that events refer to by number (pools). Those are behind the events,
 * so they are read first: at any place where the file can be read so, else within the window.
 */
#ifndef WEIR_FORMATS_FOREIGN_JFR_CHUNK_H
#define WEIR_FORMATS_FOREIGN_JFR_CHUNK_H

#include "base/buf.h"
#include "base/err.h"
#include "formats/foreign/foreign_input.h"
#include "formats/foreign/jfr_types.h"

#define JFR_HEADER_BYTES 68
#define JFR_ENTRIES_MAX	 ((size_t)1 << 23)   /* of the pools of a chunk */
#define JFR_POOLS_BYTES	 ((size_t)256 << 20) /* of these in the file */
#define JFR_METADATA	 0		     /* numbers of types that are the same in every file */
#define JFR_POOLS	 1
#define JFR_NAMED_MAX	 4 /* text in a value in a value */

struct jfr_chunk {
	uint64_t offset;      /* in the file */
	uint64_t bytes;	      /* as it says itself */
	uint64_t bytes_there; /* fewer: it is cut */
	uint64_t metadata,
		pools;	   /* places of the events, from the chunk's start; 0: not there yet */
	uint64_t start_ns; /* since 1970 */
	uint64_t start_ticks, ticks_per_second;
	bool is_compressed;
	struct jfr_types types;
	struct buf metadata_event;
	VEC(struct buf) pool_events;
	size_t pool_bytes;
	VEC(struct span) entries;
	VEC(struct map) entry_of; /* by place of the type: number -> place of the entry */
};

/* A value, or the items of an array. */
struct jfr_value {
	const struct jfr_type *type;
	struct cursor at;
	uint64_t number; /* by which its pool has it; 0: it has none */
	bool is_there;	 /* else: the pool does not have that number */
};

enum jfr_load {
	JFR_LOADED,
	JFR_CUT, /* the file ends before what is needed, or was never completed */
	JFR_WRONG
};

/* What the next bytes of the input are, without taking them; `err` for the last result. */
enum jfr_load jfr_chunk_load(struct jfr_chunk *c, struct foreign_input *in, struct err *err);
void jfr_chunk_release(struct jfr_chunk *c);

/* The fields of an event whose bytes behind the type these are. */
struct jfr_value jfr_event(const struct jfr_type *type, struct span bytes);
/* False: it has no such field. What is pooled is looked up. */
bool jfr_field(
	struct jfr_chunk *c, const struct jfr_value *of, const char *name, struct jfr_value *field);
uint64_t jfr_value_number(const struct jfr_chunk *c, const struct jfr_value *v);
/* Modified UTF-8, as class files have it; what is no text, nor a value that holds one, is "". */
void jfr_value_text(struct jfr_chunk *c, const struct jfr_value *v, struct buf *to);
/* How many items an array has, which come next: jfr_skip() leads from one to the next. */
uint64_t jfr_array_begin(const struct jfr_chunk *c, struct jfr_value *array);

#endif
