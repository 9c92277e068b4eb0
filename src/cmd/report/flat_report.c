/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "cmd/report/rows.h"

/* Rows whose base is at least one part in so many of the total are shown as hot. */
#define HOT_PARTS 10

static const struct column columns[] = {
	{"calls", "Calls", 0},
	{"base", "Base", COLUMN_UNIT},
	{"cum", "Cum", COLUMN_UNIT},
	{"Cum2", "Cum2", COLUMN_UNIT},
	{"elapsed", "Elapsed", COLUMN_UNIT | COLUMN_ELAPSED},
	{"samples", "Samples", COLUMN_MERGED}, /* what samples say of the same function */
	{"sampled_base", "SBase", COLUMN_UNIT | COLUMN_ESTIMATED},
	{"sampled_cum", "SCum", COLUMN_UNIT | COLUMN_ESTIMATED},
	{"Base%", "Base%", COLUMN_PERCENT},
	{"Cum%", "Cum%", COLUMN_PERCENT},
	{"Name", "Name", 0},
	{0},
};

void flat_row_put(struct rows *r, const struct flat_row *row)
{
	const struct report *report = r->report;
	const struct profile *p = report->profile;
	const struct calltree_routine *routine = calltree_get_routine(p->tree, row->routine);
	bool is_measured = report_is_measured(report, row->exact);
	bool has_cum = report_has_cum(report, row->routine);
	bool has_estimates = calltree_has_estimates(p->tree);

	row_string(r, "name", routine->name);
	row_text(r, "image", routine->image);
	row_string(r, "kind", report_routine_kind(routine));
	row_count(r, "calls", row->has_events && report_has_calls(report), row->calls);
	row_value(r, "base", is_measured, row->base);
	row_value(r, "cum", is_measured && has_cum, row->cum);
	row_value(r, "cum2", is_measured && has_cum, row->cum2);
	row_value(r, "elapsed", row->has_events && p->is_time, row->elapsed);
	row_value(r, "min", row->has_range, row->min);
	row_value(r, "max", row->has_range, row->max);
	row_count(r, "samples", calltree_has_samples(p->tree), row->samples);
	row_bool(r, "exact", row->exact);
	row_value(r, "sampled_base", has_estimates, row->sampled.base);
	row_value(r, "sampled_cum", has_estimates, row->sampled.cum);
	row_show_percent(r, "Base%", true, row->base, p->total);
	row_show_percent(r, "Cum%", has_cum, row->cum, p->total);
}

int flat_report(const struct report *report, struct err *err)
{
	uint64_t total = report->profile->total;
	struct flat flat;
	struct rows r;
	size_t *order, n;

	(void)err;
	flat_init(&flat, report->profile->tree);
	n = query_functions(&report->options->query, report->profile->tree, &flat, &order);
	rows_begin_plain(&r, report, "flat", columns);
	for (size_t i = 0; i < n; i++) {
		const struct flat_row *row = &flat.rows[order[i]];
		bool is_hot = row->base && row->base >= (total + HOT_PARTS - 1) / HOT_PARTS;

		row_begin(&r, is_hot ? TABLE_STYLE_HOT : TABLE_STYLE_PLAIN);
		flat_row_put(&r, row);
		if (!r.is_json)
			row_value(&r, "Cum2", row->cum2 != row->cum, row->cum2);
		row_showf(&r, "Name", "%s%s", report_mark(report, row->routine),
			calltree_get_routine(report->profile->tree, row->routine)->name);
		row_end(&r);
	}
	rows_end_plain(&r);
	free(order);
	flat_release(&flat);
	return 0;
}
