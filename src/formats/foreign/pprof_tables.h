/* SPDX-License-Identifier: MIT */
/* All of a pprof profile but its samples: a first pass gathers it, since samples come before what they refer to. */
#ifndef WEIR_FORMATS_FOREIGN_PPROF_TABLES_H
#define WEIR_FORMATS_FOREIGN_PPROF_TABLES_H

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "formats/foreign/foreign_input.h"
#include "formats/protobuf_read.h"

#define PPROF_TYPES_MAX 64

/* Field numbers of profile.proto. */
enum pprof_profile_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
	PPROF_DROP_FRAMES = 7,
	PPROF_KEEP_FRAMES = 8,
	PPROF_TIME_NANOS = 9,
	PPROF_DURATION_NANOS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
	PPROF_DEFAULT_SAMPLE_TYPE = 14,
	PPROF_N_FIELDS = 16 /* documentation URL: 15 */
};

/* Texts are numbers of strings. */
struct pprof_value_type {
	uint64_t type, unit;
};

struct pprof_mapping_read {
	uint64_t start, limit, offset, file, build_id;
};

struct pprof_line {
	uint64_t function; /* its id; pprof_tables_function() */
	uint32_t line;
};

struct pprof_location {
	uint64_t mapping, address; /* the id of the former */
	uint32_t first_line, n_lines;
};

struct pprof_function {
	uint64_t name, system_name, file;
};

struct pprof_tables {
	VEC(struct pprof_value_type) types;
	VEC(struct pprof_mapping_read) mappings;
	VEC(struct pprof_location) locations;
	VEC(struct pprof_line) lines;
	VEC(struct pprof_function) functions;
	struct map mapping_of, location_of, function_of; /* id -> place */
	struct buf text;				 /* of all strings */
	VEC(uint64_t) strings;				 /* where each ends in it */
	struct pprof_value_type period_type;
	uint64_t period, time_ns, duration_ns, drop_frames, default_type;
	uint64_t n_samples;
	bool is_done[PPROF_N_FIELDS]; /* fields that were there */
};

/* From the first byte to the last. */
int pprof_tables_read(struct pprof_tables *t, struct foreign_input *in, struct err *err);
void pprof_tables_release(struct pprof_tables *t);
/* "" when there is no such string, which pprof_tables_read() refuses. */
struct span pprof_tables_string(const struct pprof_tables *t, uint64_t number);

/* NULL: it is not there. */
const struct pprof_function *pprof_tables_function(const struct pprof_tables *t, uint64_t id);
const struct pprof_mapping_read *pprof_tables_mapping(const struct pprof_tables *t, uint64_t id);

/* The next field of the profile; the bytes are good until the next call. False: it is over, or damaged (*rc). */
bool pprof_next_field(
	struct foreign_input *in, struct protobuf_field *field, int *rc, struct err *err);

#endif
