/* SPDX-License-Identifier: MIT */
/* What the files of the printer share. Values come from programs and stream files: they may be
 * shorter than their shapes say, and shapes may be senseless. */
#ifndef WEIR_PROBE_PRINT_PRINT_INTERNAL_H
#define WEIR_PROBE_PRINT_PRINT_INTERNAL_H

#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "probe/print/print_manner.h"
#include "probe/print/printer.h"

#define PRINT_DEPTH_MAX	   32		     /* of structs and tuples in one another */
#define PRINT_VALUE_BYTES  ((size_t)1 << 20) /* text of one value or record; the rest is cut */
#define PRINT_INDENT_KEY   4		     /* of stacks in keys */
#define PRINT_INDENT_VALUE 8

struct printed_entry {
	struct span key, value;
};

struct printer {
	const struct stream *stream;
	enum printer_format format;
	struct printer_names names;
	const struct print_manner *manner;
	/* The map that is being gathered. */
	const struct stream_map_def *map;
	VEC(struct printed_entry) entries;
	struct map entry_of_key; /* hash of a key with stacks -> its number */
	struct arena *arena;	 /* of keys and values */
};

/* A number as a value has it. */
struct print_number {
	uint64_t v;
	bool is_signed;
};
/* False for values that are no numbers. Histograms are as large as their number of values. */
bool print_number_of(const struct shape *s, struct span value, struct print_number *out);
struct print_number print_number_divided(struct print_number n, uint64_t div);
void print_number(struct print_number n, struct buf *out);
int print_number_compare(struct print_number a, struct print_number b);
/* 0 where the value is too short. */
uint64_t print_word(struct span value, uint64_t at);
uint32_t print_half_word(struct span value, uint64_t at);
double print_float_of(const struct shape *s, struct span value);
/* The characters up to the NUL; the bytes of a buffer without its length. */
struct span print_chars(const struct shape *s, struct span value);

/* One value. `indent` is that of stack lines. */
void print_value(struct printer *p, const struct shape *s, struct span value, unsigned indent,
	uint64_t div, struct buf *out);
void print_value_json(
	struct printer *p, const struct shape *s, struct span value, uint64_t div, struct buf *out);

/* One part of a struct, tuple or array. */
struct print_part {
	const struct shape *shape;
	const char *name; /* or NULL */
	struct span value;
	bool is_raw;   /* a buffer without a length in front */
	uint64_t word; /* storage of value */
};
void print_part_of(
	const struct shape *s, uint32_t field_i, struct span value, struct print_part *out);
bool print_is_array(const struct shape *s);

/* print_stack.c: a line for each frame, behind a newline. */
void print_stack(struct printer *p, const struct shape *s, struct span value, unsigned indent,
	struct buf *out);
/* Of an address in a stack or in a symbol of the same kind. */
bool print_find_symbol(struct printer *p, const struct shape *s, struct span value,
	uint64_t address, struct printer_symbol *out);

enum print_bytes_form {
	PRINT_BYTES_MIXED,   /* printable characters as they are, others \xNN */
	PRINT_BYTES_ESCAPED, /* all \xNN */
	PRINT_BYTES_HEX	     /* "48 65" */
};
void print_bytes(struct span bytes, enum print_bytes_form form, struct buf *out);

/* The text of a printf. */
void print_format(struct printer *p, const char *text, struct shape *const *args, size_t n_args,
	struct span values, struct buf *out);
/* Flags of the kernel's allocator of pages: "GFP_KERNEL|__GFP_ZERO". */
void print_gfp_flags(uint64_t flags, struct buf *out);
/* strftime with %f (microseconds); `time_ns` is of the given clock. */
void print_time(const char *format, clockid_t clock, uint64_t time_ns, struct buf *out);

/* The name of a number: SHAPE_NAME. */
void print_name_of(const struct stream *s, struct span value, struct buf *out);

uint64_t print_hist_total(const struct shape *s, struct span value);
void print_hist(const struct shape *s, struct span value, uint64_t div, struct buf *out);
void print_hist_json(const struct shape *s, struct span value, uint64_t div, struct buf *out);

/* The number of the newest interval of a time series; false when it has none. */
bool print_series_last(const struct shape *s, struct span value, uint64_t *last);
/* Up to the interval `last`. Times are local; those of JSON UTC. */
void print_series(
	const struct shape *s, struct span value, uint64_t last, uint64_t div, struct buf *out);
void print_series_json(const struct shape *s, struct span value, uint64_t div, struct buf *out);

/* "..." with escapes; what is not UTF-8 becomes U+FFFD. */
void print_json_string(struct span text, struct buf *out);

#endif
