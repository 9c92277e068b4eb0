/* SPDX-License-Identifier: MIT */
#include "cmd/report/report.h"
#include "cmd/report/values.h"

static void count(struct table *t, const char *what, uint64_t n)
{
	table_row(t, TABLE_STYLE_PLAIN);
	count_cell(t, true, n);
	table_cell(t, what);
}

int loss_text(const struct report *report, struct err *err)
{
	const struct loss *loss = &report->profile->loss;
	struct table t = {0};

	(void)err;
	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Count");
	table_cell(&t, "What");
	count(&t, "samples lost", loss->samples_lost);
	count(&t, "events lost", loss->events_lost);
	count(&t, "side-band records lost", loss->records_lost);
	count(&t, "records with an unknown code", loss->records_unknown);
	count(&t, "sampled stacks", loss->stacks);
	count(&t, "of them complete", loss->stacks_complete);
	count(&t, "frames in samples", loss->frames);
	count(&t, "of them without a true name", loss->frames_unresolved);
	if (loss->n_reasons)
		table_line(&t, "");
	for (size_t i = 0; i < loss->n_reasons; i++)
		count(&t, loss->reasons[i].phrase, loss->reasons[i].n);
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	return 0;
}

int loss_json(const struct report *report, struct err *err)
{
	const struct loss *loss = &report->profile->loss;
	struct json j;

	(void)err;
	report_json_begin(&j, report, "loss");
	report_json_rows(&j);
	for (size_t i = 0; i < loss->n_reasons; i++) {
		json_newline(&j);
		json_object_begin(&j, NULL);
		json_string(&j, "reason", loss->reasons[i].phrase);
		json_u64(&j, "count", loss->reasons[i].n);
		json_object_end(&j);
	}
	report_json_end(&j, report);
	return 0;
}
