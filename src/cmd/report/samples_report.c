/* SPDX-License-Identifier: MIT */
/* Each sample with its stack and each line of a script beside the recording, in order of time;
 * times count from the start of the trace. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "calltree/frame_names.h"
#include "calltree/sample_walk.h"
#include "cmd/report/rows.h"
#include "cmd/report/script_lines.h"

#define TIME_WIDTH 12
#define PID_WIDTH  7
#define CPU_WIDTH  3
#define KIND_WIDTH 6

struct samples_view {
	const struct report *report;
	struct sample_walk walk;
	struct sample_view sample;
	VEC(uint32_t) frames; /* of the sample, innermost first */
	uint64_t n_shown;
	struct frame_levels levels;
	struct script_lines lines;
	size_t line_i; /* the next one */
	struct buf text;
};

static const char *const kind_names[] = {
	[SAMPLE_KIND_SAMPLE] = "sample",
	[SAMPLE_KIND_TICK] = "tick",
	[SAMPLE_KIND_EVENT] = "event",
};

static int view_open(struct samples_view *v, const struct report *report, struct err *err)
{
	int rc;

	memset(v, 0, sizeof(*v));
	v->report = report;
	rc = script_lines_read(&v->lines, report, err);
	if (rc < 0)
		return rc;
	rc = sample_walk_open(&v->walk, report->profile, err);
	if (rc < 0)
		vec_release(&v->lines);
	return rc;
}

static void view_close(struct samples_view *v)
{
	sample_walk_close(&v->walk);
	vec_release(&v->lines);
	vec_release(&v->frames);
	buf_release(&v->text);
}

static void collect_frames(struct samples_view *v)
{
	v->frames.n = 0;
	if (v->sample.frame)
		vec_push(&v->frames, v->sample.frame);
	for (uint32_t stack = v->sample.stack; stack;
		stack = trace_reader_stack(v->report->reader, stack)->parent)
		vec_push(&v->frames, trace_reader_stack(v->report->reader, stack)->frame);
}

static bool stack_matches(struct samples_view *v)
{
	if (!v->report->options->query.filter)
		return true;
	for (size_t i = 0; i < v->frames.n; i++) {
		frame_names_get(v->report->reader, v->frames.v[i], &v->levels);
		for (size_t level = 0; level < v->levels.n; level++)
			if (query_matches(&v->report->options->query, v->levels.v[level].name))
				return true;
	}
	return false;
}

static bool next_shown(struct samples_view *v)
{
	uint64_t limit = v->report->options->query.limit;

	if (limit && v->n_shown == limit)
		return false;
	while (sample_walk_next(&v->walk, &v->sample)) {
		collect_frames(v);
		if (stack_matches(v)) {
			v->n_shown++;
			return true;
		}
	}
	return false;
}

/* The next line that a script printed up to this time; NULL: there is none. */
static const struct script_line *next_line(struct samples_view *v, uint64_t up_to_ns)
{
	while (v->line_i < v->lines.n && v->lines.v[v->line_i].is_map)
		v->line_i++;
	if (v->line_i == v->lines.n || v->lines.v[v->line_i].time_ns > up_to_ns)
		return NULL;
	return &v->lines.v[v->line_i++];
}

static void put_begin(
	struct rows *r, uint64_t time, uint64_t pid, uint64_t tid, int64_t cpu, const char *kind)
{
	row_begin(r, TABLE_STYLE_PLAIN);
	row_number(r, "time", time);
	row_count(r, "pid", pid, pid);
	row_count(r, "tid", tid, tid);
	row_count(r, "cpu", cpu >= 0, (uint64_t)cpu);
	row_string(r, "kind", kind);
}

static void put_lines(struct rows *r, struct samples_view *v, uint64_t up_to_ns)
{
	const struct script_line *line;

	while ((line = next_line(v, up_to_ns)) != NULL) {
		char *text = script_line_text(line);

		put_begin(r, line->time_ns, line->pid, line->tid, -1, "script");
		row_string(r, "text", line->text);
		row_show(r, "Stack", text);
		row_end(r);
		free(text);
	}
}

static void json_level(struct rows *r, const struct frame_level *level)
{
	row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
	row_string(r, "name", level->name);
	row_text(r, "image", level->image);
	row_count(r, "offset", level->has_offset, level->offset);
	row_text(r, "file", level->file);
	row_count(r, "line", level->line, level->line);
	row_end(r);
}

static void put_stack(struct rows *r, struct samples_view *v)
{
	buf_reset(&v->text);
	if (r->is_json)
		json_array_begin(&r->json, "stack");
	for (size_t i = v->frames.n; i-- > 0;) {
		frame_names_get(v->report->reader, v->frames.v[i], &v->levels);
		for (size_t level = v->levels.n; level-- > 0;) {
			if (r->is_json)
				json_level(r, &v->levels.v[level]);
			else if (i + 1 < v->frames.n || level + 1 < v->levels.n)
				buf_put_cstr(&v->text, ";");
			buf_put_cstr(&v->text, v->levels.v[level].name);
		}
	}
	if (r->is_json)
		json_array_end(&r->json);
	row_show(r, "Stack", v->frames.n ? buf_text(&v->text) : ".");
}

static void put_sample(struct rows *r, struct samples_view *v)
{
	const struct profile *p = v->report->profile;
	const struct profile_thread *thread = &p->threads[v->sample.thread];

	put_begin(r, v->sample.time - p->start, thread->pid, thread->tid, v->sample.cpu,
		kind_names[v->sample.kind]);
	put_stack(r, v);
	row_end(r);
}

int samples_report(const struct report *report, struct err *err)
{
	bool is_clock = trace_reader_meta(report->reader, "clock") != NULL, has_kinds;
	static const struct column kind = {"kind", "Kind", COLUMN_LEFT | COLUMN_WIDTH(KIND_WIDTH)},
				   stack = {"Stack", "Stack", 0}, none = {0};
	struct samples_view v;
	struct rows r;
	int rc = view_open(&v, report, err);

	if (rc < 0)
		return rc;
	has_kinds = report->profile->n_stack_events || v.lines.n;
	rows_begin_plain(&r, report, "samples",
		(const struct column[]){
			{"time", is_clock ? "Time[ns]" : "Time", COLUMN_WIDTH(TIME_WIDTH)},
			{"pid", "Pid", COLUMN_WIDTH(PID_WIDTH)},
			{"tid", "Tid", COLUMN_WIDTH(PID_WIDTH)},
			{"cpu", "Cpu", COLUMN_WIDTH(CPU_WIDTH)},
			has_kinds ? kind : stack,
			has_kinds ? stack : none,
			none,
		});
	while (next_shown(&v)) {
		put_lines(&r, &v, v.sample.time - report->profile->start);
		put_sample(&r, &v);
	}
	put_lines(&r, &v, UINT64_MAX);
	rows_end_plain(&r);
	view_close(&v);
	return 0;
}
