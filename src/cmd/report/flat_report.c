/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report.h"
#include "cmd/report/values.h"

/* Rows whose base is at least one part in so many of the total are shown as hot. */
#define HOT_PARTS 10

static void print_head(struct table *t, const struct report *report)
{
	table_row(t, TABLE_STYLE_STRONG);
	table_cell(t, "Calls");
	unit_head(t, report, "Base");
	unit_head(t, report, "Cum");
	unit_head(t, report, "Cum2");
	if (report->options->elapsed)
		unit_head(t, report, "Elapsed");
	if (report->profile->is_merged) /* what samples say of the same function */
		table_cell(t, "Samples");
	if (report->profile->is_merged && calltree_has_estimates(report->profile->tree)) {
		unit_head(t, report, "SBase");
		unit_head(t, report, "SCum");
	}
	if (report->options->percent) {
		table_cell(t, "Base%");
		table_cell(t, "Cum%");
	}
	table_cell(t, "Name");
}

static void print_row(struct table *t, const struct report *report, const struct flat_row *row)
{
	const struct profile *p = report->profile;
	const struct calltree *tree = p->tree;
	uint64_t total = p->total;
	bool is_measured = report_is_measured(report, row->exact);
	bool has_cum = report_has_cum(report, row->routine);
	bool is_hot = row->base && row->base >= (total + HOT_PARTS - 1) / HOT_PARTS;

	table_row(t, is_hot ? TABLE_STYLE_HOT : TABLE_STYLE_PLAIN);
	count_cell(t, row->has_events && report_has_calls(report), row->calls);
	value_cell(t, report, is_measured, row->base);
	value_cell(t, report, is_measured && has_cum, row->cum);
	value_cell(t, report, row->cum2 != row->cum, row->cum2);
	if (report->options->elapsed)
		value_cell(t, report, row->has_events && p->is_time, row->elapsed);
	if (p->is_merged)
		count_cell(t, true, row->samples);
	if (p->is_merged && calltree_has_estimates(tree)) {
		value_cell(t, report, true, row->sampled.base);
		value_cell(t, report, true, row->sampled.cum);
	}
	if (report->options->percent) {
		percent_cell(t, row->base, total);
		if (has_cum)
			percent_cell(t, row->cum, total);
		else
			table_cell(t, ".");
	}
	table_cellf(t, "%s%s", report_mark(report, row->routine),
		calltree_get_routine(tree, row->routine)->name);
}

int flat_text(const struct report *report, struct err *err)
{
	struct table t = {0};
	struct flat flat;
	size_t *rows, n;

	(void)err;
	flat_init(&flat, report->profile->tree);
	n = report_select_flat(report, &flat, &rows);
	print_head(&t, report);
	for (size_t i = 0; i < n; i++)
		print_row(&t, report, &flat.rows[rows[i]]);
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	free(rows);
	flat_release(&flat);
	return 0;
}

int flat_json(const struct report *report, struct err *err)
{
	struct flat flat;
	struct json j;
	size_t *rows, n;

	(void)err;
	flat_init(&flat, report->profile->tree);
	n = report_select_flat(report, &flat, &rows);
	report_json_begin(&j, report, "flat");
	report_json_rows(&j);
	for (size_t i = 0; i < n; i++)
		report_json_flat_row(&j, report, &flat.rows[rows[i]]);
	report_json_end(&j, report);
	free(rows);
	flat_release(&flat);
	return 0;
}
