/* SPDX-License-Identifier: MIT */
/*
 * OTLP profiles, opentelemetry/proto/profiles/v1development in the numbering of opentelemetry-proto 1.10. Earlier
 * ones have other numbers for the same fields (Sample.values was 2), and a reader of another one shows nothing
 * and says nothing: so the version stands in the schema URL too. Row 0 of every table of the dictionary is
 * an empty one, which stands for "none".
 *
 * Each type of value is a profile of its own, as the format wants it; samples are added up by thread and stack.
 */
#include "formats/exports.h"

#include <stdlib.h>
#include <string.h>

#include "formats/export_stacks.h"
#include "formats/protobuf.h"
#include "formats/sample_sums.h"

enum data_field { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY = 2 };
enum resource_profiles_field { RP_RESOURCE = 1, RP_SCOPE_PROFILES = 2 };
enum scope_profiles_field { SP_SCOPE = 1, SP_PROFILES = 2, SP_SCHEMA_URL = 3 };
enum resource_field { RESOURCE_ATTRIBUTES = 1 };
enum scope_field { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum key_value_field { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum any_value_field { ANY_STRING = 1, ANY_INT = 3 };
enum dictionary_field {
	DICTIONARY_MAPPINGS = 1,
	DICTIONARY_LOCATIONS = 2,
	DICTIONARY_FUNCTIONS = 3,
	DICTIONARY_LINKS = 4,
	DICTIONARY_STRINGS = 5,
	DICTIONARY_ATTRIBUTES = 6,
	DICTIONARY_STACKS = 7
};
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6
};
enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_VALUES = 4 };
enum mapping_field { MAPPING_FILE = 4, MAPPING_ATTRIBUTES = 5 };
enum location_field {
	LOCATION_MAPPING = 1,
	LOCATION_ADDRESS = 2,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4
};
enum line_field { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum function_field { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILE = 3 };
enum stack_field { STACK_LOCATIONS = 1 };
enum attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };

#define SCHEMA_URL "https://opentelemetry.io/schemas/profiles/v1development/1.10"

/* A table of the dictionary: rows are encoded as they are met, equal ones once. Row 0 is empty. */
struct rows {
	struct intern of;
};

/* A sample of all profiles. */
struct otlp_sample {
	uint32_t stack, thread;
	size_t first_value; /* in `values` */
};

struct otlp {
	const struct profile *profile;
	struct export_stacks stacks;
	struct sample_sums sums;
	struct intern strings;
	struct rows mappings, locations, functions, attributes, stack_rows;
	VEC(uint32_t) location_of_place; /* by place: row; 0 = none yet */
	VEC(uint32_t) stack_of_node;
	uint32_t *mapping_of; /* by image */
	VEC(struct otlp_sample) samples;
	VEC(uint64_t) values;
	size_t n_values; /* of each sample */
	struct buf row, part, inner, message;
};

/* ---- tables ---- */

static uint32_t row_id(struct rows *rows, const struct buf *row)
{
	return intern_bytes(&rows->of, row->p, row->n);
}

/* Interned as it is written, so that equal texts have one row. */
static uint64_t string_id(struct otlp *o, const char *text)
{
	return intern_text(&o->strings, text);
}

static uint32_t attribute_row(struct otlp *o, const char *key, const char *text, uint64_t number)
{
	buf_reset(&o->inner);
	if (text) {
		protobuf_text(&o->inner, ANY_STRING, text);
	} else {
		protobuf_tag(&o->inner, ANY_INT, PROTOBUF_WIRE_VARINT);
		buf_put_uleb(&o->inner, number);
	}
	buf_reset(&o->part);
	protobuf_number(&o->part, ATTRIBUTE_KEY, string_id(o, key));
	protobuf_message(&o->part, ATTRIBUTE_VALUE, &o->inner);
	return row_id(&o->attributes, &o->part);
}

static uint32_t function_row(struct otlp *o, const struct export_place *place)
{
	const struct calltree_routine *routine = export_stacks_routine(&o->stacks, place->function);
	uint64_t name = string_id(o, routine->name);

	buf_reset(&o->part);
	protobuf_number(&o->part, FUNCTION_NAME, name);
	protobuf_number(&o->part, FUNCTION_SYSTEM_NAME, name);
	protobuf_number(&o->part, FUNCTION_FILE, string_id(o, place->file ? place->file : ""));
	return row_id(&o->functions, &o->part);
}

static uint32_t mapping_row(struct otlp *o, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(o->profile->reader, id);
	struct buf hex = {0}, attributes = {0};

	if (o->mapping_of[id])
		return o->mapping_of[id];
	buf_put_hex(&hex, (struct span){image->build_id, image->build_id_n});
	if (hex.n)
		buf_put_uleb(&attributes,
			attribute_row(o, "process.executable.build_id.gnu", buf_text(&hex), 0));
	buf_reset(&o->part);
	protobuf_number(&o->part, MAPPING_FILE,
		string_id(o, trace_reader_string(o->profile->reader, image->path)));
	if (attributes.n)
		protobuf_message(&o->part, MAPPING_ATTRIBUTES, &attributes);
	o->mapping_of[id] = row_id(&o->mappings, &o->part);
	buf_release(&hex);
	buf_release(&attributes);
	return o->mapping_of[id];
}

static const char *frame_type(enum frame_kind kind, const char *image)
{
	bool is_java = !strcmp(image, JAVA_IMAGE_PATH);

	return kind == FRAME_KIND_KERNEL ? "kernel" : is_java ? "jvm" : "native";
}

static void put_line(struct otlp *o, struct buf *to, const struct export_place *place)
{
	uint32_t function = function_row(o, place);

	buf_reset(&o->part);
	protobuf_number(&o->part, LINE_FUNCTION, function);
	protobuf_number(&o->part, LINE_LINE, place->line);
	protobuf_message(to, LOCATION_LINES, &o->part);
}

/* The place of the innermost function, and those of the functions that it is inlined into before it. */
static uint32_t location_row(struct otlp *o, uint32_t place_id)
{
	const struct export_place *place = &o->stacks.places.v[place_id];
	const struct export_place *outer = place - place->depth;
	const struct calltree_routine *routine = export_stacks_routine(&o->stacks, outer->function);
	const struct trace_frame *frame =
		place->frame ? trace_reader_frame(o->profile->reader, place->frame) : NULL;
	struct buf row = {0}, attributes = {0};
	uint32_t id;

	vec_ensure_zero(&o->location_of_place, place_id + (size_t)1);
	if (o->location_of_place.v[place_id])
		return o->location_of_place.v[place_id];
	if (frame && frame->image) {
		protobuf_number(&row, LOCATION_MAPPING, mapping_row(o, frame->image));
		protobuf_number(&row, LOCATION_ADDRESS,
			frame->addr - (frame->is_caller && frame->addr ? 1 : 0));
	}
	for (;; place--) {
		put_line(o, &row, place);
		if (place == outer)
			break;
	}
	buf_put_uleb(&attributes, attribute_row(o, "profile.frame.type",
					  frame_type(routine->kind, routine->image), 0));
	protobuf_message(&row, LOCATION_ATTRIBUTES, &attributes);
	id = row_id(&o->locations, &row);
	o->location_of_place.v[place_id] = id;
	buf_release(&row);
	buf_release(&attributes);
	return id;
}

/* Innermost first. */
static uint32_t stack_row(struct otlp *o, uint32_t node)
{
	struct buf ids = {0};
	uint32_t id = node;

	vec_ensure_zero(&o->stack_of_node, node + (size_t)1);
	if (!node || o->stack_of_node.v[node])
		return o->stack_of_node.v[node];
	while (id) {
		uint32_t place = o->stacks.nodes.v[id].place;

		buf_put_uleb(&ids, location_row(o, place));
		for (uint32_t n = o->stacks.places.v[place].depth + 1; n; n--)
			id = o->stacks.nodes.v[id].parent;
	}
	buf_reset(&o->row);
	protobuf_message(&o->row, STACK_LOCATIONS, &ids);
	o->stack_of_node.v[node] = row_id(&o->stack_rows, &o->row);
	buf_release(&ids);
	return o->stack_of_node.v[node];
}

/* ---- samples ---- */

static void add_sample(struct otlp *o, uint32_t thread, uint32_t node, const uint64_t *values)
{
	struct otlp_sample sample = {stack_row(o, node), thread, o->values.n};

	for (size_t i = 0; i < o->n_values; i++)
		vec_push(&o->values, values[i]);
	vec_push(&o->samples, sample);
}

static void add_path(void *to, uint32_t thread, uint32_t node, uint64_t weight)
{
	add_sample(to, thread, node, &weight);
}

static int collect(struct otlp *o, struct err *err)
{
	int rc;

	if (!o->profile->n_samples) {
		o->n_values = 1;
		export_stacks_of_tree(&o->stacks, add_path, o);
		return 0;
	}
	rc = sample_sums_init(&o->sums, o->profile, err);
	o->n_values = 1 + o->sums.n_metrics;
	for (size_t i = 0; rc == 0 && i < o->sums.rows.n; i++) {
		const struct sample_sums_row *row = &o->sums.rows.v[i];

		add_sample(o, row->sample.thread, export_stacks_node(&o->stacks, &row->sample),
			row->values);
	}
	return rc;
}

/* ---- profiles ---- */

static const char *value_name(const struct otlp *o, size_t value)
{
	if (!o->profile->n_samples)
		return o->profile->metric;
	return value ? sample_sums_name(&o->sums, value - 1) : "samples";
}

static const char *value_unit(const struct otlp *o, size_t value)
{
	const char *unit = "1";

	if (!o->profile->n_samples)
		unit = o->profile->unit;
	else if (value)
		unit = sample_sums_unit(&o->sums, value - 1);
	if (!strcmp(unit, "ns"))
		return "nanoseconds";
	return !strcmp(unit, "1") || !*unit ? "count" : unit;
}

static void put_value_type(struct otlp *o, uint32_t field, const char *name, const char *unit)
{
	buf_reset(&o->part);
	protobuf_number(&o->part, VALUE_TYPE_TYPE, string_id(o, name));
	protobuf_number(&o->part, VALUE_TYPE_UNIT, string_id(o, unit));
	protobuf_message(&o->message, field, &o->part);
}

static void put_sample(struct otlp *o, const struct otlp_sample *sample, size_t value)
{
	const struct profile_thread *thread = &o->profile->threads[sample->thread];
	uint64_t ids[3] = {attribute_row(o, "thread.name",
				   *thread->name ? thread->name : thread->root_name, 0),
		attribute_row(o, "thread.id", NULL, thread->tid),
		attribute_row(o, "process.pid", NULL, thread->pid)};

	buf_reset(&o->row);
	protobuf_number(&o->row, SAMPLE_STACK, sample->stack);
	buf_reset(&o->inner);
	buf_put_uleb_row(&o->inner, ids, 3);
	protobuf_message(&o->row, SAMPLE_ATTRIBUTES, &o->inner);
	buf_reset(&o->inner);
	buf_put_uleb(&o->inner, o->values.v[sample->first_value + value]);
	protobuf_message(&o->row, SAMPLE_VALUES, &o->inner);
	protobuf_message(&o->message, PROFILE_SAMPLES, &o->row);
}

static uint64_t meta_number(const struct otlp *o, const char *key)
{
	const char *text = trace_reader_meta(o->profile->reader, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void put_profile(struct otlp *o, struct buf *to, size_t value)
{
	const struct profile *p = o->profile;
	uint64_t duration = meta_number(o, "wall_ns"), hz = meta_number(o, "frequency");

	buf_reset(&o->message);
	put_value_type(o, PROFILE_SAMPLE_TYPE, value_name(o, value), value_unit(o, value));
	for (size_t i = 0; i < o->samples.n; i++)
		if (o->values.v[o->samples.v[i].first_value + value])
			put_sample(o, &o->samples.v[i], value);
	protobuf_fixed64(&o->message, PROFILE_TIME, meta_number(o, "start_realtime_ns"));
	protobuf_number(&o->message, PROFILE_DURATION,
		duration ? duration : (p->end > p->start ? p->end - p->start : 0));
	if (hz) {
		put_value_type(o, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		protobuf_number(&o->message, PROFILE_PERIOD, 1000000000u / hz);
	}
	protobuf_message(to, SP_PROFILES, &o->message);
}

/* ---- the whole ---- */

static void put_resource_attribute(
	struct otlp *o, struct buf *to, const char *key, const char *text)
{
	if (!text)
		return;
	buf_reset(&o->inner);
	protobuf_text(&o->inner, ANY_STRING, text);
	buf_reset(&o->part);
	protobuf_text(&o->part, KEY_VALUE_KEY, key);
	protobuf_message(&o->part, KEY_VALUE_VALUE, &o->inner);
	protobuf_message(to, RESOURCE_ATTRIBUTES, &o->part);
}

static void put_resource_profiles(struct otlp *o, struct buf *to)
{
	struct buf part = {0}, scope = {0}, resource = {0};
	const struct trace_reader *r = o->profile->reader;

	put_resource_attribute(o, &resource, "service.name", trace_reader_meta(r, "command"));
	put_resource_attribute(o, &resource, "host.name", trace_reader_meta(r, "host"));
	protobuf_message(&part, RP_RESOURCE, &resource);
	buf_reset(&o->part);
	protobuf_text(&o->part, SCOPE_NAME, "weir");
	protobuf_text(&o->part, SCOPE_VERSION, WEIR_VERSION);
	protobuf_message(&scope, SP_SCOPE, &o->part);
	for (size_t value = o->n_values; value-- > 0;) /* the number of samples is the last */
		put_profile(o, &scope, value);
	protobuf_text(&scope, SP_SCHEMA_URL, SCHEMA_URL);
	protobuf_message(&part, RP_SCOPE_PROFILES, &scope);
	protobuf_message(to, DATA_RESOURCE_PROFILES, &part);
	buf_release(&part);
	buf_release(&scope);
	buf_release(&resource);
}

static void put_table(struct buf *to, uint32_t field, const struct rows *rows)
{
	for (size_t i = 0; i < rows->of.n_items; i++)
		protobuf_bytes(to, field, rows->of.items[i].p, rows->of.items[i].n);
}

static void put_dictionary(struct otlp *o, struct buf *to)
{
	struct buf d = {0};

	put_table(&d, DICTIONARY_MAPPINGS, &o->mappings);
	put_table(&d, DICTIONARY_LOCATIONS, &o->locations);
	put_table(&d, DICTIONARY_FUNCTIONS, &o->functions);
	protobuf_bytes(&d, DICTIONARY_LINKS, "", 0);
	for (uint32_t i = 0; i < o->strings.n_items; i++)
		protobuf_text(&d, DICTIONARY_STRINGS, intern_get(&o->strings, i));
	put_table(&d, DICTIONARY_ATTRIBUTES, &o->attributes);
	put_table(&d, DICTIONARY_STACKS, &o->stack_rows);
	protobuf_message(to, DATA_DICTIONARY, &d);
	buf_release(&d);
}

static void otlp_init(struct otlp *o, const struct profile *profile)
{
	struct rows *tables[] = {
		&o->mappings, &o->locations, &o->functions, &o->attributes, &o->stack_rows};

	*o = (struct otlp){.profile = profile};
	export_stacks_init(&o->stacks, profile);
	o->mapping_of = mem_calloc(trace_reader_n_images(profile->reader), sizeof(*o->mapping_of));
	intern_text(&o->strings, "");
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		intern_bytes(&tables[i]->of, "", 0);
}

static void otlp_release(struct otlp *o)
{
	struct intern *tables[] = {&o->strings, &o->mappings.of, &o->locations.of, &o->functions.of,
		&o->attributes.of, &o->stack_rows.of};
	struct buf *bufs[] = {&o->row, &o->part, &o->inner, &o->message};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		intern_release(tables[i]);
	for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
		buf_release(bufs[i]);
	export_stacks_release(&o->stacks);
	sample_sums_release(&o->sums);
	vec_release(&o->location_of_place);
	vec_release(&o->stack_of_node);
	vec_release(&o->samples);
	vec_release(&o->values);
	free(o->mapping_of);
}

int export_otlp(const struct profile *profile, FILE *out, struct err *err)
{
	struct buf whole = {0};
	struct otlp o;
	int rc;

	otlp_init(&o, profile);
	rc = collect(&o, err);
	if (rc == 0) {
		put_resource_profiles(&o, &whole);
		put_dictionary(&o, &whole);
		fwrite(whole.p, 1, whole.n, out);
	}
	buf_release(&whole);
	otlp_release(&o);
	return rc;
}
