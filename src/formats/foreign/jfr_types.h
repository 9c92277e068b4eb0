/* SPDX-License-Identifier: MIT */
/*
 * The types of one chunk of a JFR file, as its metadata event has them: each chunk has its own, and numbers mean nothing
 * from one chunk to the next. What a value takes is known from its type alone, so any value can be passed over.
 */
#ifndef WEIR_FORMATS_FOREIGN_JFR_TYPES_H
#define WEIR_FORMATS_FOREIGN_JFR_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"

#define JFR_TYPES_MAX	16384  /* of a chunk */
#define JFR_FIELDS_MAX	262144 /* of all its types */
#define JFR_STRINGS_MAX 262144 /* of its metadata */
#define JFR_NESTING_MAX 16     /* of values in values, and of elements of the metadata */

enum jfr_kind {
	JFR_STRUCT, /* its fields, one after the other */
	JFR_BYTE,   /* also a boolean */
	JFR_SHORT,
	JFR_INT,
	JFR_LONG,
	JFR_FLOAT,
	JFR_DOUBLE,
	JFR_STRING
};

/* How a text is encoded. */
enum jfr_text {
	JFR_TEXT_NULL,
	JFR_TEXT_EMPTY,
	JFR_TEXT_POOLED,
	JFR_TEXT_UTF8,
	JFR_TEXT_CHARS,
	JFR_TEXT_LATIN1
};

struct jfr_field {
	struct span name;
	uint64_t type;		  /* its number */
	bool is_pooled, is_array; /* the former: a number of an entry of the type's pool */
};

struct jfr_type {
	uint64_t id;
	struct span name; /* "jdk.ExecutionSample" */
	enum jfr_kind kind;
	uint32_t first_field, n_fields;
};

struct jfr_types {
	bool is_compressed; /* numbers are LEB128, else big-endian */
	uint64_t
		steps; /* that may still be made: types can be nested so that a value of no bytes takes for ever */
	struct intern texts;   /* what names point to */
	VEC(uint32_t) strings; /* of the metadata: which text */
	VEC(struct jfr_type) types;
	VEC(struct jfr_field) fields;
	struct map by_id; /* number -> place in `types` */
};

/* Of the event's bytes behind its type. NULL, or what is wrong with them. */
const char *jfr_types_read(struct jfr_types *t, struct span event, bool is_compressed);
void jfr_types_release(struct jfr_types *t);

/* NULL: there is none of this number. */
const struct jfr_type *jfr_type(const struct jfr_types *t, uint64_t id);

/* The next number: compressed ones have up to 9 bytes, the last one 8 bits. `bytes` is their size when they are not. */
uint64_t jfr_number(struct cursor *c, bool is_compressed, unsigned bytes);
/* The text that comes next, added as modified UTF-8, as class files have it; one of the pool adds nothing. */
void jfr_put_text(struct cursor *c, bool is_compressed, struct buf *to);
/* Passes over a value of the field (with all items of an array), or of the type; the cursor has failed when that is not
 * possible. */
void jfr_skip_field(struct jfr_types *t, const struct jfr_field *field, struct cursor *c);
void jfr_skip(struct jfr_types *t, const struct jfr_type *type, struct cursor *c);
/* For a value within so many bytes. */
void jfr_allow_steps(struct jfr_types *t, size_t bytes);

#endif
