/* SPDX-License-Identifier: MIT */
/* What scripts printed and counted beside the recording: lines with their times, then the maps. */
#include <inttypes.h>
#include <string.h>

#include "cmd/report/report.h"
#include "trace/reader.h"

/* One line or map out of its record. */
struct probe_item {
	bool is_map;
	uint64_t time_ns; /* since the trace began */
	uint64_t pid, tid, clause;
	const char *name, *text, *json; /* of maps: name and JSON */
};

typedef int item_function(void *ctx, const struct probe_item *item);

static const char *string_of(const struct report *report, uint64_t id)
{
	return id < trace_reader_n_strings(report->reader)
		       ? trace_reader_string(report->reader, (uint32_t)id)
		       : "";
}

static bool item_of(
	const struct report *report, const struct trace_record *record, struct probe_item *item)
{
	uint64_t n[4];
	size_t count = record->minor == RECORD_PROBE_LINE ? 4 : 3;

	if (record->major != RECORD_MAJOR_PROBE ||
		(record->minor != RECORD_PROBE_LINE && record->minor != RECORD_PROBE_MAP) ||
		trace_record_numbers(report->reader, record, n, count, NULL) < 0)
		return false;
	*item = (struct probe_item){.is_map = record->minor == RECORD_PROBE_MAP,
		.time_ns = record->time > report->profile->start
				   ? record->time - report->profile->start
				   : 0};
	if (item->is_map) {
		item->name = string_of(report, n[0]);
		item->text = string_of(report, n[1]);
		item->json = string_of(report, n[2]);
	} else {
		item->pid = n[0], item->tid = n[1], item->clause = n[2];
		item->text = string_of(report, n[3]);
	}
	return true;
}

static int each_of_stream(const struct report *report, uint32_t stream, item_function *each,
	void *ctx, struct err *err)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct probe_item item;
	int rc = trace_cursor_open(&cursor, report->reader, stream, 0, UINT64_MAX, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(cursor, &record, err)) > 0)
		if (item_of(report, &record, &item))
			each(ctx, &item);
	trace_cursor_close(cursor);
	return rc;
}

static int each_item(const struct report *report, item_function *each, void *ctx, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 1; rc >= 0 && i < trace_reader_n_streams(report->reader); i++) {
		const struct trace_stream *s = trace_reader_stream(report->reader, i);

		if (s->kind == STREAM_KIND_LIFE && s->number == RECORD_PROBE_STREAM)
			rc = each_of_stream(report, i, each, ctx, err);
	}
	return rc;
}

struct output {
	const struct report *report;
	struct json *json;
	uint64_t n_lines, n_items;
};

static bool is_wanted(struct output *o, const struct probe_item *item)
{
	uint64_t limit = o->report->options->limit;

	if (!report_name_matches(o->report, item->is_map ? item->name : item->text))
		return false;
	return item->is_map || !limit || o->n_lines++ < limit;
}

static int print_item(void *ctx, const struct probe_item *item)
{
	struct output *o = ctx;
	size_t n = strlen(item->text);

	o->n_items++;
	if (!is_wanted(o, item))
		return 0;
	if (!item->is_map)
		fprintf(o->report->out, "%14.6f %7" PRIu64 " %7" PRIu64 "  ",
			(double)item->time_ns / 1e9, item->pid, item->tid);
	fputs(item->text, o->report->out);
	if (!n || item->text[n - 1] != '\n')
		fputc('\n', o->report->out);
	return 0;
}

static int no_scripts(const struct report *report, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
		"'%s': no script ran beside this recording (weir record --probe SCRIPT)",
		trace_reader_name(report->reader));
}

int probes_text(const struct report *report, struct err *err)
{
	struct output o = {.report = report};
	int rc;

	fprintf(report->out, "%14s %7s %7s  %s\n", "Time (s)", "Pid", "Tid", "Text");
	rc = each_item(report, print_item, &o, err);
	return rc < 0 ? rc : o.n_items ? 0 : no_scripts(report, err);
}

static int json_item(void *ctx, const struct probe_item *item)
{
	struct output *o = ctx;
	struct json *j = o->json;

	o->n_items++;
	if (!is_wanted(o, item))
		return 0;
	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "type", item->is_map ? "map" : "line");
	json_u64(j, "time_ns", item->time_ns);
	if (item->is_map) {
		json_string(j, "name", item->name);
		json_string(j, "text", item->text);
		json_string(j, "json", item->json);
	} else {
		json_u64(j, "pid", item->pid);
		json_u64(j, "tid", item->tid);
		json_u64(j, "clause", item->clause);
		json_string(j, "text", item->text);
	}
	json_object_end(j);
	return 0;
}

int probes_json(const struct report *report, struct err *err)
{
	struct json j;
	struct output o = {.report = report, .json = &j};
	int rc;

	report_json_begin(&j, report, "probes");
	report_json_rows(&j);
	rc = each_item(report, json_item, &o, err);
	report_json_end(&j, report);
	return rc;
}
