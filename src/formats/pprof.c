/* SPDX-License-Identifier: MIT */
/*
 * Field numbers are those of profile.proto. Invariants of the message: string 0 is empty; ids of
 * mappings, locations and functions are their numbers from 1 on; a location's lines go from the
 * innermost inlined function to the one that has the code.
 *
 * Each image is one mapping (pprof_mappings.h). All that is known of its functions is said here, so that
 * readers do not look for the file to learn more. Callers' addresses point into the call.
 */
#include "formats/exports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "calltree/frame_names.h"
#include "calltree/sample_walk.h"
#include "formats/gzip_stream.h"
#include "formats/pprof_mappings.h"
#include "formats/protobuf.h"
#include "formats/sample_sums.h"

/* Deeper call paths of events lose their middle: else a deep recursion is quadratic in size. */
#define PPROF_PATH_MAX 1024

enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14
};
enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3 };
enum mapping_field {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINES = 10
};
enum location_field {
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4
};
enum line_field { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum function_field {
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4
};

struct exporter {
	const struct profile *profile;
	const struct trace_reader *reader;
	struct buf out;		/* the message */
	struct buf tables;	/* mappings, locations, functions: behind the samples */
	struct buf part, inner; /* messages being made */
	struct intern strings;
	struct intern functions; /* name string, file string -> id - 1 */
	uint32_t *location_of;	 /* by frame: id, 0 = none yet */
	VEC(uint32_t) frames;	 /* by location's id - 1 */
	struct pprof_mappings mappings;
	struct sample_sums sums;
	struct frame_levels levels;
};

static uint64_t string_id(struct exporter *e, const char *text)
{
	return intern_text(&e->strings, text);
}

static uint64_t function_id(struct exporter *e, const char *name, const char *file)
{
	uint64_t key[2] = {string_id(e, name), string_id(e, file ? file : "")};
	size_t had = e->functions.n_items;
	uint64_t id = intern_bytes(&e->functions, key, sizeof(key)) + 1;

	if (e->functions.n_items == had)
		return id;
	buf_reset(&e->inner);
	protobuf_number(&e->inner, FUNCTION_ID, id);
	protobuf_number(&e->inner, FUNCTION_NAME, key[0]);
	protobuf_number(&e->inner, FUNCTION_SYSTEM_NAME, key[0]);
	protobuf_number(&e->inner, FUNCTION_FILENAME, key[1]);
	protobuf_message(&e->tables, PROFILE_FUNCTION, &e->inner);
	return id;
}

static void put_line(struct exporter *e, struct buf *to, uint64_t function, uint64_t line)
{
	buf_reset(&e->inner);
	protobuf_number(&e->inner, LINE_FUNCTION, function);
	protobuf_number(&e->inner, LINE_LINE, line);
	protobuf_message(to, LOCATION_LINE, &e->inner);
}

/* Of a JVM's image addresses are numbers, which mean nothing to others. So are those of frames that are known by a
 * name. */
static uint32_t location_image(const struct exporter *e, const struct trace_frame *frame)
{
	const struct trace_image *image = trace_reader_image(e->reader, frame->image);
	bool is_java = !strcmp(trace_reader_string(e->reader, image->path), JAVA_IMAGE_PATH);

	return is_java ? 0 : frame->image;
}

static uint64_t location_addr(const struct exporter *e, const struct trace_frame *frame)
{
	if (frame->name || (frame->image && !location_image(e, frame)))
		return 0;
	return frame->addr - (frame->is_caller && frame->addr ? 1 : 0);
}

static uint32_t location_of_frame(struct exporter *e, uint32_t frame_id)
{
	const struct trace_frame *frame = trace_reader_frame(e->reader, frame_id);

	if (!e->location_of[frame_id]) {
		pprof_mappings_add(&e->mappings, location_image(e, frame), location_addr(e, frame));
		vec_push(&e->frames, frame_id);
		e->location_of[frame_id] = (uint32_t)e->frames.n;
	}
	return e->location_of[frame_id];
}

static void put_location(struct exporter *e, uint32_t id, uint32_t frame_id)
{
	const struct trace_frame *frame = trace_reader_frame(e->reader, frame_id);
	const struct pprof_mapping *m = pprof_mapping_find(&e->mappings, location_image(e, frame));

	frame_names_get(e->reader, frame_id, &e->levels);
	buf_reset(&e->part);
	protobuf_number(&e->part, LOCATION_ID, id);
	protobuf_number(&e->part, LOCATION_MAPPING, m ? m->id : 0);
	protobuf_number(&e->part, LOCATION_ADDRESS, location_addr(e, frame) + (m ? m->shift : 0));
	for (size_t i = 0; i < e->levels.n; i++) {
		const struct frame_level *level = &e->levels.v[i];

		put_line(e, &e->part, function_id(e, level->name, level->file), level->line);
	}
	protobuf_message(&e->tables, PROFILE_LOCATION, &e->part);
}

static void put_mapping(struct exporter *e, const struct pprof_mapping *m)
{
	const struct trace_image *image = trace_reader_image(e->reader, m->image);
	char build_id[BUILD_ID_MAX * 2 + 1] = "";

	for (uint8_t i = 0; i < image->build_id_n; i++)
		snprintf(build_id + 2 * i, 3, "%02x", image->build_id[i]);
	buf_reset(&e->part);
	protobuf_number(&e->part, MAPPING_ID, m->id);
	protobuf_number(&e->part, MAPPING_START, m->low + m->shift);
	protobuf_number(&e->part, MAPPING_LIMIT, m->high + m->shift);
	protobuf_number(&e->part, MAPPING_OFFSET, m->offset);
	protobuf_number(&e->part, MAPPING_FILENAME,
		string_id(e, trace_reader_string(e->reader, image->path)));
	protobuf_number(&e->part, MAPPING_BUILD_ID, string_id(e, build_id));
	for (uint32_t has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINES; has++)
		protobuf_number(&e->part, has, 1);
	protobuf_message(&e->out, PROFILE_MAPPING, &e->part);
}

/* Once all samples are known. */
static void put_places(struct exporter *e)
{
	pprof_mappings_settle(&e->mappings);
	for (size_t i = 0; i < e->mappings.v.n; i++)
		put_mapping(e, &e->mappings.v.v[i]);
	for (size_t i = 0; i < e->frames.n; i++)
		put_location(e, (uint32_t)i + 1, e->frames.v[i]);
}

static const char *unit_name(const char *unit)
{
	if (!strcmp(unit, "ns"))
		return "nanoseconds";
	return !strcmp(unit, "1") || !*unit ? "count" : unit;
}

static void put_value_type(struct exporter *e, uint32_t field, const char *type, const char *unit)
{
	buf_reset(&e->part);
	protobuf_number(&e->part, VALUE_TYPE_TYPE, string_id(e, type));
	protobuf_number(&e->part, VALUE_TYPE_UNIT, string_id(e, unit));
	protobuf_message(&e->out, field, &e->part);
}

static void put_label(struct exporter *e, const char *key, const char *text, uint64_t number)
{
	if (!number && !*text)
		return;
	buf_reset(&e->inner);
	protobuf_number(&e->inner, LABEL_KEY, string_id(e, key));
	protobuf_number(&e->inner, LABEL_STR, string_id(e, text));
	protobuf_number(&e->inner, LABEL_NUM, number);
	protobuf_message(&e->part, SAMPLE_LABEL, &e->inner);
}

/* e->part holds the locations already. */
static void finish_sample(
	struct exporter *e, const struct profile_thread *thread, const uint64_t *values, size_t n)
{
	buf_reset(&e->inner);
	for (size_t i = 0; i < n; i++)
		buf_put_uleb(&e->inner, values[i]);
	protobuf_message(&e->part, SAMPLE_VALUE, &e->inner);
	put_label(e, "thread", *thread->name ? thread->name : thread->root_name, 0);
	put_label(e, "pid", "", thread->pid);
	put_label(e, "tid", "", thread->tid);
	protobuf_message(&e->out, PROFILE_SAMPLE, &e->part);
}

/* ---- samples ---- */

static void put_sum(struct exporter *e, const struct sample_sums_row *sum)
{
	uint32_t stack = sum->sample.stack, frame = sum->sample.frame, program = 0;
	struct buf ids = {0};

	while (frame || stack) {
		uint32_t image;

		if (!frame) {
			frame = trace_reader_stack(e->reader, stack)->frame;
			stack = trace_reader_stack(e->reader, stack)->parent;
		}
		image = trace_reader_frame(e->reader, frame)->image;
		if (pprof_is_program(e->reader, image))
			program = image;
		buf_put_uleb(&ids, location_of_frame(e, frame));
		frame = 0;
	}
	pprof_mappings_begin(&e->mappings, program, sum->values[0]);
	buf_reset(&e->part);
	if (ids.n)
		protobuf_message(&e->part, SAMPLE_LOCATION_ID, &ids);
	finish_sample(
		e, &e->profile->threads[sum->sample.thread], sum->values, 1 + e->sums.n_metrics);
	buf_release(&ids);
}

static int put_samples(struct exporter *e, struct err *err)
{
	int rc = sample_sums_init(&e->sums, e->profile, err);

	if (rc < 0)
		return rc;
	put_value_type(e, PROFILE_SAMPLE_TYPE, "samples", "count");
	for (size_t i = 0; i < e->sums.n_metrics; i++)
		put_value_type(e, PROFILE_SAMPLE_TYPE, sample_sums_name(&e->sums, i),
			unit_name(sample_sums_unit(&e->sums, i)));
	for (size_t i = 0; i < e->sums.rows.n; i++)
		put_sum(e, &e->sums.rows.v[i]);
	return 0;
}

/* ---- events: the tree, one sample for each node that used something ---- */

static void put_routine_locations(struct exporter *e)
{
	const struct calltree *tree = e->profile->tree;

	for (uint32_t id = 1; id < calltree_n_routines(tree); id++) {
		const struct calltree_routine *routine = calltree_get_routine(tree, id);
		uint64_t function = function_id(e, routine->name, NULL);

		buf_reset(&e->part);
		protobuf_number(&e->part, LOCATION_ID, id);
		put_line(e, &e->part, function, 0);
		protobuf_message(&e->tables, PROFILE_LOCATION, &e->part);
	}
}

/* 0 when the trace has no such image. */
static uint32_t find_image(const struct trace_reader *r, const char *path)
{
	for (uint32_t id = 1; id < trace_reader_n_images(r); id++)
		if (!strcmp(trace_reader_string(r, trace_reader_image(r, id)->path), path))
			return id;
	return 0;
}

/* Locations of routines have no address, and so no mapping; but readers ask the first one for the program:
 * the one that was entered most. */
static void add_program(struct exporter *e)
{
	const struct calltree *tree = e->profile->tree;

	for (uint32_t id = 1; id < calltree_n_routines(tree); id++) {
		const struct calltree_routine *routine = calltree_get_routine(tree, id);
		uint32_t image = routine->is_root || !*routine->image
					 ? 0
					 : find_image(e->reader, routine->image);
		uint64_t calls = 0;

		if (!pprof_is_program(e->reader, image))
			continue;
		for (uint32_t at = routine->first_instance; at;
			at = calltree_get(tree, at)->next_instance)
			calls += calltree_get(tree, at)->calls;
		pprof_mappings_add(&e->mappings, image, 0);
		pprof_mappings_begin(&e->mappings, image, calls);
	}
}

/* `path` holds the node and its callers by level; the root is not a location. */
static void put_node(struct exporter *e, const uint32_t *path, const struct profile_thread *thread,
	uint32_t id, uint64_t weight)
{
	const struct calltree_node *node = calltree_get(e->profile->tree, id);
	uint64_t values[2] = {node->calls, weight};
	struct buf ids = {0};

	for (uint32_t level = node->level; level > 0; level--) {
		if (node->level > PPROF_PATH_MAX && level == node->level - PPROF_PATH_MAX / 2)
			level = PPROF_PATH_MAX / 2;
		buf_put_uleb(&ids, calltree_get(e->profile->tree, path[level])->routine);
	}
	buf_reset(&e->part);
	if (ids.n)
		protobuf_message(&e->part, SAMPLE_LOCATION_ID, &ids);
	finish_sample(e, thread, values, 2);
	buf_release(&ids);
}

static void put_tree(struct exporter *e)
{
	const struct profile *p = e->profile;
	const struct profile_thread **thread_of;
	uint64_t *weights = calltree_split_bases(p->tree);
	VEC(uint32_t) path = {0};

	thread_of = mem_calloc(calltree_n_nodes(p->tree), sizeof(*thread_of));
	put_value_type(e, PROFILE_SAMPLE_TYPE, "calls", "count");
	put_value_type(e, PROFILE_SAMPLE_TYPE, p->metric, unit_name(p->unit));
	put_routine_locations(e);
	add_program(e);
	for (uint32_t id = 1; id < p->n_threads; id++)
		thread_of[p->threads[id].root] = &p->threads[id];
	for (uint32_t id = calltree_first_root(p->tree); id; id = calltree_next(p->tree, id)) {
		const struct calltree_node *node = calltree_get(p->tree, id);

		vec_reserve(&path, node->level + (size_t)1);
		path.v[node->level] = id;
		if (weights[id] || (node->parent && node->calls))
			put_node(e, path.v, thread_of[path.v[0]], id, weights[id]);
	}
	free(weights);
	vec_release(&path);
	free(thread_of);
}

/* ---- the whole ---- */

static uint64_t meta_number(const struct exporter *e, const char *key)
{
	const char *text = trace_reader_meta(e->reader, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void put_facts(struct exporter *e)
{
	const struct profile *p = e->profile;
	const char *command = trace_reader_meta(e->reader, "command");
	uint64_t duration = meta_number(e, "wall_ns"), hz = meta_number(e, "frequency");

	protobuf_number(&e->out, PROFILE_TIME_NANOS, meta_number(e, "start_realtime_ns"));
	protobuf_number(&e->out, PROFILE_DURATION_NANOS,
		duration ? duration : (p->end > p->start ? p->end - p->start : 0));
	if (hz && e->sums.n_metrics) {
		put_value_type(e, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		protobuf_number(&e->out, PROFILE_PERIOD, 1000000000u / hz);
	}
	if (command)
		protobuf_number(&e->out, PROFILE_COMMENT, string_id(e, command));
	if (e->sums.n_metrics)
		protobuf_number(&e->out, PROFILE_DEFAULT_SAMPLE_TYPE,
			string_id(e, sample_sums_name(&e->sums, 0)));
}

static int put_message(struct exporter *e, struct err *err)
{
	string_id(e, "");
	if (!calltree_has_events(e->profile->tree)) {
		int rc = put_samples(e, err);

		if (rc < 0)
			return rc;
	} else {
		put_tree(e);
	}
	put_places(e);
	put_facts(e);
	buf_put(&e->out, e->tables.p, e->tables.n);
	for (uint32_t id = 0; id < e->strings.n_items; id++)
		protobuf_bytes(&e->out, PROFILE_STRING, intern_get(&e->strings, id),
			e->strings.items[id].n);
	return 0;
}

static int put_packed(const struct buf *message, FILE *out, struct err *err)
{
	FILE *packed;
	int rc = gzip_stream_open(&packed, out, GZIP_STREAM_USUAL, err);

	if (rc < 0)
		return rc;
	fwrite(message->p, 1, message->n, packed);
	fclose(packed); /* a failure is one of `out` */
	return 0;
}

int export_pprof(const struct profile *profile, FILE *out, struct err *err)
{
	struct exporter e = {.profile = profile, .reader = profile->reader};
	int rc;

	e.location_of = mem_calloc(trace_reader_n_frames(e.reader), sizeof(*e.location_of));
	pprof_mappings_init(&e.mappings, e.reader);
	rc = put_message(&e, err);
	if (rc == 0)
		rc = put_packed(&e.out, out, err);
	buf_release(&e.out);
	buf_release(&e.tables);
	buf_release(&e.part);
	buf_release(&e.inner);
	intern_release(&e.strings);
	intern_release(&e.functions);
	free(e.location_of);
	vec_release(&e.frames);
	pprof_mappings_release(&e.mappings);
	sample_sums_release(&e.sums);
	return rc;
}
