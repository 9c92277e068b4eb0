/* SPDX-License-Identifier: MIT */
/*
 * Canonical values: how keys and values of maps and arguments of records look, whatever the mode of
 * the program that made them. Integers are widened to 64 bits, pointers zero-extended; everything
 * is padded to 8 bytes.
 */
#ifndef WEIR_PROBE_STREAM_SHAPE_H
#define WEIR_PROBE_STREAM_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/mem.h"
#include "probe/types/type.h"

enum shape_kind {
	SHAPE_NONE,    /* no key, no value */
	SHAPE_INT,     /* 8 bytes; is_signed */
	SHAPE_POINTER, /* 8 bytes, printed in hex */
	SHAPE_FLOAT,   /* 8 bytes: the bits of a double, or of a float in the low half (n = 4) */
	SHAPE_STRING,  /* n bytes, padded with NULs */
	SHAPE_BYTES,   /* u32 length, u32 0, then n bytes */
	SHAPE_USTACK,  /* u64 stack id (0: none), u32 pid, u32 bits */
	SHAPE_KSTACK,  /* u64 stack id (0: none) */
	SHAPE_USYM,    /* u64 address, u32 pid, u32 bits */
	SHAPE_KSYM,    /* u64 address */
	SHAPE_PROBE,   /* u64 site number: printed as the probe's name */
	SHAPE_FUNC,    /* u64 site number: printed as the function's name */
	SHAPE_TIME,   /* u64 ns since boot (CLOCK_BOOTTIME for nsecs), u64 number of the format text
		       */
	SHAPE_INET,   /* u64 length (4 or 16), then 16 bytes */
	SHAPE_NAME,   /* u64 number, u32 enum name_of, u32 detail: printed as the number's name */
	SHAPE_STRUCT, /* n bytes as they are in memory, padded; fields describe them. An array is
		       * one whose fields have no names. */
	SHAPE_TUPLE, /* the shapes of its fields one after the other; a record when they have names */
	SHAPE_COUNT,
	SHAPE_SUM,
	SHAPE_MIN,
	SHAPE_MAX,     /* per CPU: u64 value; MIN, MAX: u64 n, s64 */
	SHAPE_AVG,     /* per CPU: u64 n, s64 sum */
	SHAPE_STATS,   /* per CPU: u64 n, s64 sum */
	SHAPE_HIST,    /* per CPU: u64[hist_n_buckets(n)], of which [0] is below 0 */
	SHAPE_LHIST,   /* per CPU: u64[steps + 2]: below, steps, from max on */
	SHAPE_TSERIES, /* per CPU: struct tseries_slot[max]; interval i is in slot i % max; each has
			* `step` ns; min is an enum tseries_function */
	N_SHAPE_KINDS
};

/* Histograms of powers of two: below 2^bits a bucket for each number, above it 2^bits buckets for
 * each power of two. */
#define HIST_BITS_MAX 5
static inline uint32_t hist_n_buckets(uint32_t bits)
{
	return 1 + ((65 - bits) << bits);
}

/* Time series: what an interval keeps of the values that were seen in it. */
enum tseries_function {
	TSERIES_LAST,
	TSERIES_AVG,
	TSERIES_MAX,
	TSERIES_MIN,
	TSERIES_SUM,
	N_TSERIES_FUNCTIONS
};
struct tseries_slot {
	uint64_t interval; /* its number: time since the epoch divided by its length */
	uint64_t n;	   /* values in it; 0: the slot is empty */
	uint64_t value;	   /* the last, least or greatest one, or the sum of all */
	uint64_t last_ns;  /* LAST: when the value was seen */
};
#define TSERIES_INTERVALS_MAX 1000
/* What the number of a SHAPE_NAME is, and what its detail. */
enum name_of {
	NAME_OF_ERROR, /* errno */
	NAME_OF_SIGNAL,
	NAME_OF_SYSCALL, /* detail: 32 or 64 */
	NAME_OF_USER,
	NAME_OF_PROCESS,
	NAME_OF_CGROUP, /* detail: number of a text, the pattern for hierarchies */
	N_NAMES_OF
};

struct shape_field {
	const char *name; /* of structs; or NULL */
	struct shape *shape;
	uint32_t offset; /* in the value; of struct members: in the bytes */
	uint8_t bytes;	 /* of struct members that are integers, pointers, floats: size in memory */
	uint8_t bit_offset, bit_size; /* of bit-fields */
};

struct shape {
	enum shape_kind kind;
	bool is_signed;
	bool is_bool;		 /* INT: printed as true, false */
	const char *enumerators; /* INT of an enum: "RED=0 GREEN=5"; or NULL */
	uint32_t n;    /* STRING, BYTES, STRUCT: bytes; FLOAT: 4 or 8; HIST: bits; INT of a format:
		       4 when it had no more bytes before it was widened */
	uint32_t size; /* bytes in all, a multiple of 8 */
	struct shape_field *fields; /* STRUCT, TUPLE */
	uint32_t n_fields;
	int64_t min, max, step; /* LHIST, TSERIES */
	bool is_weak; /* INT, for the checker: only constants were seen, so any sign will do */
};

/* What takes n bytes, padded to 8. */
static inline uint64_t shape_padded(uint64_t n)
{
	return (n + 7) & ~(uint64_t)7;
}

struct arena;
/* A shape without fields, its size set; n for STRING, BYTES, FLOAT and HIST. */
struct shape *shape_new(struct arena *a, enum shape_kind kind, bool is_signed, uint32_t n);
/* Bytes of a value of a kind that has no n, fields or steps. */
uint32_t shape_fixed_size(enum shape_kind kind);
struct shape *shape_new_lhist(struct arena *a, int64_t min, int64_t max, int64_t step);
struct shape *shape_new_tseries(struct arena *a, enum tseries_function function,
	int64_t n_intervals, int64_t interval_ns, bool is_signed);
/* Takes the shapes over. */
struct shape *shape_new_tuple(struct arena *a, struct shape *const *of, uint32_t n);
/* A tuple whose fields have names. */
static inline bool shape_is_record(const struct shape *s)
{
	return s->kind == SHAPE_TUPLE && s->n_fields && s->fields[0].name;
}
/* The field of that name, or where there are no names the one at i; n_fields: there is none. */
uint32_t shape_field_find(const struct shape *s, const char *name, uint32_t i);
struct shape *shape_copy(struct arena *a, const struct shape *s);
bool shape_is_same(const struct shape *a, const struct shape *b);
/* Makes *have (NULL at first) a shape for the values of both; takes `add` over. False when there is
 * none: *have stays. Sets *has_grown when *have changed. */
bool shape_merge(struct shape **have, struct shape *add, bool *has_grown);
/* Adds one value of an aggregation to another: of another CPU, of another key that turned out to be
 * the same. */
void shape_add_value(const struct shape *s, uint64_t *sum, const uint64_t *one);
/* "int", "string[16]", "(int, string[16])". */
void shape_print(const struct shape *s, struct buf *out);

/* Types that the language alone has, and aggregations, have shapes in the same order. */
_Static_assert(SHAPE_NAME - SHAPE_USTACK == TYPE_NAME - TYPE_USTACK, "one shape for each");
_Static_assert(SHAPE_TSERIES - SHAPE_COUNT == AGGREGATION_TSERIES - AGGREGATION_COUNT, "likewise");
static inline enum shape_kind shape_of_special(enum type_kind kind)
{
	return (enum shape_kind)(SHAPE_USTACK + (kind - TYPE_USTACK));
}
static inline enum shape_kind shape_of_aggregation(enum aggregation a)
{
	return (enum shape_kind)(SHAPE_COUNT + (a - AGGREGATION_COUNT));
}

static inline bool shape_is_aggregation(const struct shape *s)
{
	return s->kind >= SHAPE_COUNT;
}
/* Whether all processors' values together are one number, which scripts can read. */
static inline bool shape_is_readable(const struct shape *s)
{
	return s->kind >= SHAPE_COUNT && s->kind <= SHAPE_AVG;
}

#endif
