/* SPDX-License-Identifier: MIT */
/* What scripts printed and counted beside the recording: lines with their times, then the maps. */
#include <inttypes.h>

#include "cmd/report/report.h"
#include "cmd/report/script_lines.h"
#include "trace/reader.h"

#define TIME_WIDTH 12
#define PID_WIDTH  7

/* --limit is about lines; maps are few. */
static bool is_shown(const struct report *report, const struct script_line *line, uint64_t *n_lines)
{
	return line->is_map || !report->options->limit || (*n_lines)++ < report->options->limit;
}

int probes_text(const struct report *report, struct err *err)
{
	struct script_lines lines;
	uint64_t n_lines = 0;
	int rc = script_lines_read(&lines, report, err);

	if (rc < 0)
		return rc;
	fprintf(report->out, "%*s  %*s  %*s  Text\n", TIME_WIDTH, "Time[ns]", PID_WIDTH, "Pid",
		PID_WIDTH, "Tid");
	for (size_t i = 0; i < lines.v.n; i++) {
		const struct script_line *line = &lines.v.v[i];

		if (!is_shown(report, line, &n_lines))
			continue;
		if (!line->is_map)
			fprintf(report->out, "%*" PRIu64 "  %*" PRIu64 "  %*" PRIu64 "  ",
				TIME_WIDTH, line->time_ns, PID_WIDTH, line->pid, PID_WIDTH,
				line->tid);
		script_line_print(line, report->out);
		fputc('\n', report->out);
	}
	if (!lines.v.n)
		fputs("No script ran beside this recording (weir record --probe FILE), or none of "
		      "its lines is wanted.\n",
			report->out);
	script_lines_release(&lines);
	return 0;
}

int probes_json(const struct report *report, struct err *err)
{
	struct script_lines lines;
	uint64_t n_lines = 0;
	struct json j;
	int rc = script_lines_read(&lines, report, err);

	if (rc < 0)
		return rc;
	report_json_begin(&j, report, "probes");
	report_json_rows(&j);
	for (size_t i = 0; i < lines.v.n; i++) {
		const struct script_line *line = &lines.v.v[i];

		if (!is_shown(report, line, &n_lines))
			continue;
		json_newline(&j);
		json_object_begin(&j, NULL);
		json_string(&j, "kind", line->is_map ? "map" : "line");
		json_u64(&j, "time", line->time_ns);
		report_json_measured(&j, "pid", line->pid, line->pid);
		report_json_measured(&j, "tid", line->tid, line->tid);
		report_json_measured(&j, "clause", !line->is_map, line->clause);
		report_json_text(&j, "name", line->name ? line->name : "");
		json_string(&j, "text", line->text);
		report_json_text(&j, "json", line->json ? line->json : "");
		json_object_end(&j);
	}
	report_json_end(&j, report);
	script_lines_release(&lines);
	return 0;
}
