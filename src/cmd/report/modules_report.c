/* SPDX-License-Identifier: MIT */
/*
 * The images that a trace knows. Which file of a catalog an image is, and how well it matches, is
 * not known to a trace alone: those columns are null.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cmd/report/report.h"
#include "cmd/report/values.h"

struct module_state {
	bool at_start; /* there before the run began */
	bool loaded;   /* mapped while it ran */
};

static void note_record(
	struct module_state *states, const struct report *report, const struct trace_record *record)
{
	uint64_t
		n[8]; /* pid, process start, address, length, protection, image, offset, at start */

	if (record->major != RECORD_MAJOR_MODULE || record->minor != RECORD_MODULE_LOAD ||
		trace_record_numbers(report->reader, record, n, 8, NULL) < 0 ||
		n[5] >= trace_reader_n_images(report->reader))
		return;
	if (n[7])
		states[n[5]].at_start = true;
	else
		states[n[5]].loaded = true;
}

static int read_states(struct module_state *states, const struct report *report, struct err *err)
{
	for (uint32_t id = 1; id < trace_reader_n_streams(report->reader); id++) {
		struct trace_cursor *cursor;
		struct trace_record record;
		int rc;

		if (trace_reader_stream(report->reader, id)->kind != STREAM_KIND_LIFE)
			continue;
		rc = trace_cursor_open(&cursor, report->reader, id, 0, UINT64_MAX, err);
		if (rc < 0)
			return rc;
		while ((rc = trace_cursor_next(cursor, &record, err)) != 0)
			if (rc > 0) /* damaged chunks are in the loss report */
				note_record(states, report, &record);
		trace_cursor_close(cursor);
	}
	return 0;
}

static const char *kind_of_image(const struct trace_image *image)
{
	static const char *const names[] = {
		[IMAGE_KIND_ELF] = "elf",
		[IMAGE_KIND_KERNEL] = "kernel",
		[IMAGE_KIND_VDSO] = "vdso",
		[IMAGE_KIND_JIT] = "jit",
		[IMAGE_KIND_OTHER] = "other",
	};

	return names[image->kind];
}

static const char *build_id_text(const struct trace_image *image, struct buf *b)
{
	buf_reset(b);
	for (uint8_t i = 0; i < image->build_id_n; i++)
		buf_printf(b, "%02x", image->build_id[i]);
	return buf_text(b);
}

struct modules_view {
	struct module_state *states; /* by image */
	uint32_t *ids;		     /* of the images shown */
	size_t n;
	struct buf scratch;
};

static int view_init(struct modules_view *v, const struct report *report, struct err *err)
{
	uint32_t n_images = trace_reader_n_images(report->reader);
	uint64_t limit = report->options->limit;

	memset(v, 0, sizeof(*v));
	v->states = mem_calloc(n_images, sizeof(*v->states));
	v->ids = mem_calloc(n_images, sizeof(*v->ids));
	for (uint32_t id = 1; id < n_images && (!limit || v->n < limit); id++)
		if (report_name_matches(
			    report, trace_reader_string(report->reader,
					    trace_reader_image(report->reader, id)->path)))
			v->ids[v->n++] = id;
	return read_states(v->states, report, err);
}

static void view_release(struct modules_view *v)
{
	free(v->states);
	free(v->ids);
	buf_release(&v->scratch);
}

static void print_module(
	struct table *t, const struct report *report, struct modules_view *v, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(report->reader, id);
	const struct module_state *state = &v->states[id];

	table_row(t, TABLE_STYLE_PLAIN);
	table_cell(t, kind_of_image(image));
	table_cell(t, report->profile->image_is_used[id] ? "yes" : "no");
	table_cell(t, state->at_start && state->loaded ? "start loaded"
		      : state->at_start		       ? "start"
		      : state->loaded		       ? "loaded"
						       : ".");
	table_cell(t, image->build_id_n ? build_id_text(image, &v->scratch) : ".");
	table_cell(t, trace_reader_string(report->reader, image->path));
}

int modules_text(const struct report *report, struct err *err)
{
	struct table t = {.left_columns = 0xf};
	struct modules_view v;
	int rc = view_init(&v, report, err);

	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Kind");
	table_cell(&t, "Used");
	table_cell(&t, "State");
	table_cell(&t, "Build-id");
	table_cell(&t, "Path");
	for (size_t i = 0; i < v.n; i++)
		print_module(&t, report, &v, v.ids[i]);
	if (rc == 0)
		table_print(&t, report->options->color, report->out);
	table_release(&t);
	view_release(&v);
	return rc;
}

static void json_module(
	struct json *j, const struct report *report, struct modules_view *v, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(report->reader, id);
	const struct module_state *state = &v->states[id];

	json_newline(j);
	json_object_begin(j, NULL);
	report_json_text(j, "path", trace_reader_string(report->reader, image->path));
	report_json_text(j, "build_id", build_id_text(image, &v->scratch));
	json_string(j, "kind", kind_of_image(image));
	json_null(j, "image");
	json_null(j, "match");
	json_null(j, "reason");
	json_object_begin(j, "state");
	json_bool(j, "at_start", state->at_start);
	json_bool(j, "loaded", state->loaded);
	json_null(j, "unloaded");
	json_bool(j, "used", report->profile->image_is_used[id]);
	json_object_end(j);
	json_null(j, "symbols");
	json_object_end(j);
}

int modules_json(const struct report *report, struct err *err)
{
	struct modules_view v;
	struct json j;
	int rc = view_init(&v, report, err);

	if (rc == 0) {
		report_json_begin(&j, report, "modules");
		report_json_rows(&j);
		for (size_t i = 0; i < v.n; i++)
			json_module(&j, report, &v, v.ids[i]);
		report_json_end(&j, report);
	}
	view_release(&v);
	return rc;
}
