/* SPDX-License-Identifier: MIT */
/*
 * Ids are any numbers, and may be used before they are defined: references are looked up when all is there.
 */
#include "formats/foreign/pprof_tables.h"

#include <inttypes.h>

#include "base/leb128.h"

#define ENTRIES_MAX ((size_t)1 << 22) /* locations, functions, mappings: of each */
#define LINES_MAX   ((size_t)1 << 24)
#define STRINGS_MAX ((size_t)1 << 24)
#define TEXT_MAX    ((size_t)1 << 30)	 /* bytes of all strings */
#define HEAD_BYTES  (2 * ULEB_BYTES_MAX) /* tag and length */

bool pprof_next_field(
	struct foreign_input *in, struct protobuf_field *field, int *rc, struct err *err)
{
	struct span head = foreign_input_peek(in, HEAD_BYTES);
	struct cursor c = cursor_of(head);
	uint64_t n;
	size_t used;

	*field = (struct protobuf_field){0};
	if (!head.n) {
		*rc = foreign_input_failure(in, err);
		return false;
	}
	if (!protobuf_read_tag(&c, field))
		c.failed = true;
	else if (field->wire == PROTOBUF_READ_FIXED64)
		field->value = cursor_u64(&c);
	else if (field->wire == PROTOBUF_READ_FIXED32)
		field->value = cursor_u32(&c);
	else
		field->value = cursor_uleb(&c);
	n = field->wire == PROTOBUF_READ_BYTES ? field->value : 0;
	used = head.n - cursor_left(&c);
	if (c.failed ||
		(field->wire != PROTOBUF_READ_BYTES && field->wire != PROTOBUF_READ_VARINT &&
			field->wire != PROTOBUF_READ_FIXED64 &&
			field->wire != PROTOBUF_READ_FIXED32)) {
		*rc = foreign_input_wrong(in, err, "is no field of a profile");
		return false;
	}
	if (n > FOREIGN_PEEK_MAX - HEAD_BYTES) {
		*rc = foreign_input_wrong(in, err, "has a field of %" PRIu64 " bytes", n);
		return false;
	}
	field->bytes = foreign_input_take(in, used + (size_t)n);
	if (field->bytes.n < used + (size_t)n) {
		*rc = foreign_input_wrong(in, err, "ends in the midst of a field");
		return false;
	}
	field->bytes.p += used;
	field->bytes.n -= used;
	return true;
}

struct reader {
	struct pprof_tables *t;
	struct foreign_input *in;
	struct err *err;
};

static int damaged(const struct reader *r, const char *what)
{
	return foreign_input_wrong(r->in, r->err, "has a damaged %s", what);
}

static int read_value_type(const struct reader *r, struct span bytes, struct pprof_value_type *type)
{
	struct cursor c = cursor_of(bytes);
	struct protobuf_field f;

	*type = (struct pprof_value_type){0};
	while (protobuf_read_field(&c, &f)) {
		if (f.number == 1)
			type->type = f.value;
		else if (f.number == 2)
			type->unit = f.value;
	}
	return c.failed ? damaged(r, "type of values") : 0;
}

static int read_type(const struct reader *r, struct span bytes)
{
	struct pprof_value_type type;
	int rc = read_value_type(r, bytes, &type);

	if (rc == 0 && r->t->types.n == PPROF_TYPES_MAX)
		return foreign_input_wrong(r->in, r->err, "has too many types of values");
	if (rc == 0)
		vec_push(&r->t->types, type);
	return rc;
}

/* An id is given once, and is not 0. */
static int define(
	const struct reader *r, struct map *ids, uint64_t id, size_t place, const char *what)
{
	bool is_new;
	uint64_t *at;

	if (!id)
		return foreign_input_wrong(r->in, r->err, "has a %s without an id", what);
	if (place == ENTRIES_MAX)
		return foreign_input_wrong(r->in, r->err, "has too many %ss", what);
	at = map_ensure(ids, id, &is_new);
	if (!is_new)
		return foreign_input_wrong(
			r->in, r->err, "has two %ss with the id %" PRIu64, what, id);
	*at = place;
	return 0;
}

static int read_mapping(const struct reader *r, struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	struct pprof_mapping_read m = {0};
	struct protobuf_field f;
	uint64_t id = 0, other;
	uint64_t *const fields[] = {
		&other, &id, &m.start, &m.limit, &m.offset, &m.file, &m.build_id};

	while (protobuf_read_field(&c, &f))
		if (f.number < sizeof(fields) / sizeof(fields[0]))
			*fields[f.number] = f.value;
	if (c.failed)
		return damaged(r, "mapping");
	vec_push(&r->t->mappings, m);
	return define(r, &r->t->mapping_of, id, r->t->mappings.n - 1, "mapping");
}

static int read_function(const struct reader *r, struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	struct pprof_function function = {0};
	struct protobuf_field f;
	uint64_t id = 0, other;
	uint64_t *const fields[] = {
		&other, &id, &function.name, &function.system_name, &function.file};

	while (protobuf_read_field(&c, &f))
		if (f.number < sizeof(fields) / sizeof(fields[0]))
			*fields[f.number] = f.value;
	if (c.failed)
		return damaged(r, "function");
	vec_push(&r->t->functions, function);
	return define(r, &r->t->function_of, id, r->t->functions.n - 1, "function");
}

static int read_line(const struct reader *r, struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	struct pprof_line line = {0};
	struct protobuf_field f;

	while (protobuf_read_field(&c, &f)) {
		if (f.number == 1)
			line.function = f.value;
		else if (f.number == 2)
			line.line = f.value < UINT32_MAX ? (uint32_t)f.value : 0;
	}
	if (c.failed)
		return damaged(r, "line");
	if (r->t->lines.n == LINES_MAX)
		return foreign_input_wrong(r->in, r->err, "has too many lines");
	vec_push(&r->t->lines, line);
	return 0;
}

static int read_location(const struct reader *r, struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	struct pprof_location location = {.first_line = (uint32_t)r->t->lines.n};
	struct protobuf_field f;
	uint64_t id = 0;
	int rc = 0;

	while (rc == 0 && protobuf_read_field(&c, &f)) {
		if (f.number == 1)
			id = f.value;
		else if (f.number == 2)
			location.mapping = f.value;
		else if (f.number == 3)
			location.address = f.value;
		else if (f.number == 4)
			rc = read_line(r, f.bytes);
	}
	if (c.failed && rc == 0)
		rc = damaged(r, "location");
	if (rc < 0)
		return rc;
	location.n_lines = (uint32_t)r->t->lines.n - location.first_line;
	vec_push(&r->t->locations, location);
	return define(r, &r->t->location_of, id, r->t->locations.n - 1, "location");
}

static int read_string(const struct reader *r, struct span bytes)
{
	struct pprof_tables *t = r->t;

	if (!t->strings.n && bytes.n)
		return foreign_input_wrong(r->in, r->err, "has a first string that is not empty");
	if (t->strings.n == STRINGS_MAX || bytes.n > TEXT_MAX - t->text.n)
		return foreign_input_wrong(r->in, r->err, "has too many strings");
	buf_put(&t->text, bytes.p, bytes.n);
	vec_push(&t->strings, (uint64_t)t->text.n);
	return 0;
}

static int read_field(const struct reader *r, const struct protobuf_field *f)
{
	struct pprof_tables *t = r->t;

	if (f->number < PPROF_N_FIELDS)
		t->is_done[f->number] = true;
	switch (f->number) {
	case PPROF_SAMPLE_TYPE:
		return read_type(r, f->bytes);
	case PPROF_SAMPLE:
		t->n_samples++;
		return 0;
	case PPROF_MAPPING:
		return read_mapping(r, f->bytes);
	case PPROF_LOCATION:
		return read_location(r, f->bytes);
	case PPROF_FUNCTION:
		return read_function(r, f->bytes);
	case PPROF_STRING:
		return read_string(r, f->bytes);
	case PPROF_DROP_FRAMES:
		t->drop_frames = f->value;
		return 0;
	case PPROF_TIME_NANOS:
		t->time_ns = f->value;
		return 0;
	case PPROF_DURATION_NANOS:
		t->duration_ns = f->value;
		return 0;
	case PPROF_PERIOD_TYPE:
		return read_value_type(r, f->bytes, &t->period_type);
	case PPROF_PERIOD:
		t->period = f->value;
		return 0;
	case PPROF_DEFAULT_SAMPLE_TYPE:
		t->default_type = f->value;
		return 0;
	default:
		return 0;
	}
}

static bool has_string(const struct pprof_tables *t, uint64_t number)
{
	return !number || number < t->strings.n;
}

/* Every reference is to something that is there. */
static int check(const struct reader *r)
{
	const struct pprof_tables *t = r->t;
	bool is_right = has_string(t, t->drop_frames) && has_string(t, t->default_type) &&
			has_string(t, t->period_type.type) && has_string(t, t->period_type.unit);

	for (size_t i = 0; i < t->types.n; i++)
		is_right &= has_string(t, t->types.v[i].type) && has_string(t, t->types.v[i].unit);
	for (size_t i = 0; i < t->mappings.n; i++)
		is_right &= has_string(t, t->mappings.v[i].file) &&
			    has_string(t, t->mappings.v[i].build_id);
	for (size_t i = 0; i < t->functions.n; i++)
		is_right &= has_string(t, t->functions.v[i].name) &&
			    has_string(t, t->functions.v[i].system_name) &&
			    has_string(t, t->functions.v[i].file);
	if (!is_right)
		return foreign_input_wrong(r->in, r->err, "refers to a string that is not there");
	for (size_t i = 0; i < t->locations.n; i++)
		is_right &= !t->locations.v[i].mapping ||
			    pprof_tables_mapping(t, t->locations.v[i].mapping);
	if (!is_right)
		return foreign_input_wrong(r->in, r->err, "refers to a mapping that is not there");
	for (size_t i = 0; i < t->lines.n; i++)
		is_right &= pprof_tables_function(t, t->lines.v[i].function) != NULL;
	if (!is_right)
		return foreign_input_wrong(r->in, r->err, "refers to a function that is not there");
	if (t->n_samples && !t->types.n)
		return foreign_input_wrong(r->in, r->err, "has samples, but no types of values");
	return 0;
}

int pprof_tables_read(struct pprof_tables *t, struct foreign_input *in, struct err *err)
{
	const struct reader r = {t, in, err};
	struct protobuf_field f;
	int rc = 0;

	while (rc == 0 && pprof_next_field(in, &f, &rc, err))
		rc = read_field(&r, &f);
	return rc == 0 ? check(&r) : rc;
}

void pprof_tables_release(struct pprof_tables *t)
{
	vec_release(&t->types);
	vec_release(&t->mappings);
	vec_release(&t->locations);
	vec_release(&t->lines);
	vec_release(&t->functions);
	map_release(&t->mapping_of);
	map_release(&t->location_of);
	map_release(&t->function_of);
	buf_release(&t->text);
	vec_release(&t->strings);
}

struct span pprof_tables_string(const struct pprof_tables *t, uint64_t number)
{
	uint64_t from = number && number < t->strings.n ? t->strings.v[number - 1] : 0;

	if (!number || number >= t->strings.n)
		return (struct span){0};
	return (struct span){t->text.p + from, (size_t)(t->strings.v[number] - from)};
}

const struct pprof_function *pprof_tables_function(const struct pprof_tables *t, uint64_t id)
{
	const uint64_t *place = map_find(&t->function_of, id);

	return place ? &t->functions.v[*place] : NULL;
}

const struct pprof_mapping_read *pprof_tables_mapping(const struct pprof_tables *t, uint64_t id)
{
	const uint64_t *place = map_find(&t->mapping_of, id);

	return place ? &t->mappings.v[*place] : NULL;
}
