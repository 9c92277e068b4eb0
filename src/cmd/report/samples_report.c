/* SPDX-License-Identifier: MIT */
/* Each sample with its stack and each line of a script beside the recording, in order of time;
 * times count from the start of the trace. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "calltree/frame_names.h"
#include "calltree/sample_walk.h"
#include "cmd/report/report.h"
#include "cmd/report/script_lines.h"

#define TIME_WIDTH 12
#define PID_WIDTH  7
#define CPU_WIDTH  3
#define KIND_WIDTH 6

struct samples_view {
	const struct report *report;
	struct sample_walk walk;
	struct sample_view sample;
	VEC(uint32_t) frames; /* of the sample, outermost first */
	uint64_t n_shown;
	struct frame_levels levels;
	struct script_lines lines;
	size_t line_i; /* the next one */
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
		script_lines_release(&v->lines);
	return rc;
}

static void view_close(struct samples_view *v)
{
	sample_walk_close(&v->walk);
	script_lines_release(&v->lines);
	vec_release(&v->frames);
}

static void collect_frames(struct samples_view *v)
{
	size_t i = 0, j;

	v->frames.n = 0;
	if (v->sample.frame)
		vec_push(&v->frames, v->sample.frame);
	for (uint32_t stack = v->sample.stack; stack;
		stack = trace_reader_stack(v->report->reader, stack)->parent)
		vec_push(&v->frames, trace_reader_stack(v->report->reader, stack)->frame);
	for (j = v->frames.n; i + 1 < j; i++) {
		uint32_t swap = v->frames.v[i];

		v->frames.v[i] = v->frames.v[--j];
		v->frames.v[j] = swap;
	}
}

static bool stack_matches(struct samples_view *v)
{
	if (!v->report->options->filter)
		return true;
	for (size_t i = 0; i < v->frames.n; i++) {
		frame_names_get(v->report->reader, v->frames.v[i], &v->levels);
		for (size_t level = 0; level < v->levels.n; level++)
			if (report_name_matches(v->report, v->levels.v[level].name))
				return true;
	}
	return false;
}

static bool next_shown(struct samples_view *v)
{
	uint64_t limit = v->report->options->limit;

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

static void print_number(FILE *out, int width, bool is_known, uint64_t number)
{
	if (is_known)
		fprintf(out, "%*" PRIu64 "  ", width, number);
	else
		fprintf(out, "%*s  ", width, ".");
}

static bool has_kinds(const struct samples_view *v)
{
	return v->report->profile->n_stack_events || v->lines.v.n;
}

/* The next line that a script printed up to this time; NULL: there is none. */
static const struct script_line *next_line(struct samples_view *v, uint64_t up_to_ns)
{
	while (v->line_i < v->lines.v.n && v->lines.v.v[v->line_i].is_map)
		v->line_i++;
	if (v->line_i == v->lines.v.n || v->lines.v.v[v->line_i].time_ns > up_to_ns)
		return NULL;
	return &v->lines.v.v[v->line_i++];
}

static void print_lines(struct samples_view *v, uint64_t up_to_ns)
{
	const struct script_line *line;
	FILE *out = v->report->out;

	while ((line = next_line(v, up_to_ns)) != NULL) {
		print_number(out, TIME_WIDTH, true, line->time_ns);
		print_number(out, PID_WIDTH, line->pid, line->pid);
		print_number(out, PID_WIDTH, line->tid, line->tid);
		print_number(out, CPU_WIDTH, false, 0);
		fprintf(out, "%-*s  ", KIND_WIDTH, "script");
		script_line_print(line, out);
		fputc('\n', out);
	}
}

/* Columns are as wide as usual values, since the samples stream by. */
static void print_sample(struct samples_view *v)
{
	const struct profile *p = v->report->profile;
	const struct profile_thread *thread = &p->threads[v->sample.thread];
	FILE *out = v->report->out;

	print_number(out, TIME_WIDTH, true, v->sample.time - p->start);
	print_number(out, PID_WIDTH, thread->pid, thread->pid);
	print_number(out, PID_WIDTH, thread->tid, thread->tid);
	print_number(out, CPU_WIDTH, v->sample.cpu >= 0, (uint64_t)v->sample.cpu);
	if (has_kinds(v))
		fprintf(out, "%-*s  ", KIND_WIDTH, kind_names[v->sample.kind]);
	for (size_t i = 0; i < v->frames.n; i++) {
		frame_names_get(v->report->reader, v->frames.v[i], &v->levels);
		for (size_t level = v->levels.n; level-- > 0;)
			fprintf(out, "%s%s", i || level + 1 < v->levels.n ? ";" : "",
				v->levels.v[level].name);
	}
	fputs(v->frames.n ? "\n" : ".\n", out);
}

int samples_text(const struct report *report, struct err *err)
{
	bool is_clock = trace_reader_meta(report->reader, "clock") != NULL;
	bool color = report->options->color;
	struct samples_view v;
	int rc = view_open(&v, report, err);

	if (rc < 0)
		return rc;
	fprintf(report->out, "%s%*s  %*s  %*s  %*s  %sStack%s\n", color ? "\033[1m" : "",
		TIME_WIDTH, is_clock ? "Time[ns]" : "Time", PID_WIDTH, "Pid", PID_WIDTH, "Tid",
		CPU_WIDTH, "Cpu", has_kinds(&v) ? "Kind    " : "", color ? "\033[0m" : "");
	while (next_shown(&v)) {
		print_lines(&v, v.sample.time - report->profile->start);
		print_sample(&v);
	}
	print_lines(&v, UINT64_MAX);
	view_close(&v);
	return 0;
}

static void json_lines(struct json *j, struct samples_view *v, uint64_t up_to_ns)
{
	const struct script_line *line;

	while ((line = next_line(v, up_to_ns)) != NULL) {
		json_newline(j);
		json_object_begin(j, NULL);
		json_u64(j, "time", line->time_ns);
		report_json_measured(j, "pid", line->pid, line->pid);
		report_json_measured(j, "tid", line->tid, line->tid);
		report_json_measured(j, "cpu", false, 0);
		json_string(j, "kind", "script");
		json_string(j, "text", line->text);
		json_object_end(j);
	}
}

static void json_sample(struct json *j, struct samples_view *v)
{
	const struct profile *p = v->report->profile;
	const struct profile_thread *thread = &p->threads[v->sample.thread];

	json_newline(j);
	json_object_begin(j, NULL);
	json_u64(j, "time", v->sample.time - p->start);
	report_json_measured(j, "pid", thread->pid, thread->pid);
	report_json_measured(j, "tid", thread->tid, thread->tid);
	report_json_measured(j, "cpu", v->sample.cpu >= 0, (uint64_t)v->sample.cpu);
	json_string(j, "kind", kind_names[v->sample.kind]);
	json_array_begin(j, "stack");
	for (size_t i = 0; i < v->frames.n; i++) {
		frame_names_get(v->report->reader, v->frames.v[i], &v->levels);
		for (size_t n = v->levels.n; n-- > 0;) {
			const struct frame_level *level = &v->levels.v[n];

			json_object_begin(j, NULL);
			json_string(j, "name", level->name);
			report_json_text(j, "image", level->image);
			report_json_measured(j, "offset", level->has_offset, level->offset);
			report_json_text(j, "file", level->file);
			report_json_measured(j, "line", level->line, level->line);
			json_object_end(j);
		}
	}
	json_array_end(j);
	json_object_end(j);
}

int samples_json(const struct report *report, struct err *err)
{
	struct samples_view v;
	struct json j;
	int rc = view_open(&v, report, err);

	if (rc < 0)
		return rc;
	report_json_begin(&j, report, "samples");
	report_json_rows(&j);
	while (next_shown(&v)) {
		json_lines(&j, &v, v.sample.time - report->profile->start);
		json_sample(&j, &v);
	}
	json_lines(&j, &v, UINT64_MAX);
	report_json_end(&j, report);
	view_close(&v);
	return 0;
}
