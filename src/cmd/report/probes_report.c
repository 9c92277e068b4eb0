/* SPDX-License-Identifier: MIT */
/* What scripts printed and counted beside the recording: lines with their times, then the maps. */
#include <inttypes.h>
#include <stdlib.h>

#include "cmd/report/rows.h"
#include "cmd/report/script_lines.h"
#include "trace/reader.h"

#define TIME_WIDTH 12
#define PID_WIDTH  7

/* --limit is about lines; maps are few. */
static bool is_shown(const struct report *report, const struct script_line *line, uint64_t *n_lines)
{
	uint64_t limit = report->options->query.limit;

	return line->is_map || !limit || (*n_lines)++ < limit;
}

static const struct column columns[] = {
	{"time", "Time[ns]", COLUMN_WIDTH(TIME_WIDTH)},
	{"Pid", "Pid", COLUMN_WIDTH(PID_WIDTH)},
	{"Tid", "Tid", COLUMN_WIDTH(PID_WIDTH)},
	{"Text", "Text", 0},
	{0},
};

static void put_line(struct rows *r, const struct script_line *line, const char *text)
{
	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "kind", line->is_map ? "map" : "line");
	row_number(r, "time", line->time_ns);
	row_count(r, "pid", line->pid, line->pid);
	row_count(r, "tid", line->tid, line->tid);
	row_count(r, "clause", !line->is_map, line->clause);
	row_text(r, "name", line->name);
	row_string(r, "text", line->text);
	row_text(r, "json", line->json);
	row_showf(r, "Pid", "%" PRIu64, line->pid);
	row_showf(r, "Tid", "%" PRIu64, line->tid);
	row_show(r, "Text", text);
	row_end(r);
}

int probes_report(const struct report *report, struct err *err)
{
	struct script_lines lines;
	uint64_t n_lines = 0;
	struct rows r;
	int rc = script_lines_read(&lines, report, err);

	if (rc < 0)
		return rc;
	rows_begin_plain(&r, report, "probes", columns);
	for (size_t i = 0; i < lines.n; i++) {
		const struct script_line *line = &lines.v[i];
		char *text;

		if (!is_shown(report, line, &n_lines))
			continue;
		text = script_line_text(line);
		if (line->is_map && !r.is_json)
			fprintf(report->out, "%s\n", text);
		else
			put_line(&r, line, text);
		free(text);
	}
	rows_end_plain(&r);
	if (!lines.n && !r.is_json)
		fputs("No script ran beside this recording (weir record --probe FILE), or none of "
		      "its lines is wanted.\n",
			report->out);
	vec_release(&lines);
	return 0;
}
