/* SPDX-License-Identifier: MIT */
#include "cmd/report/branches_view.h"

#include <inttypes.h>

#include "cmd/report/steps_view.h"

static int walk(struct branch_table *t, struct steps_view *view, struct err *err)
{
	struct steps_source *source = NULL, *last = NULL;
	struct step_item item;
	int rc;

	while ((rc = steps_view_next(view, &source, &item, err)) > 0) {
		if (source != last)
			branch_table_begin_thread(t);
		last = source;
		branch_table_add(t, &item);
		steps_view_note_item(view->report->loss, &item);
	}
	return rc;
}

int branches_read(struct branch_table *t, const struct report *report, struct err *err)
{
	struct report_options options = *report->options;
	struct report in_turn = *report;
	struct steps_view view;
	int rc;

	options.interleave = false; /* the table follows one thread at a time */
	in_turn.options = &options;
	rc = steps_view_open(&view, &in_turn, err);
	if (rc < 0)
		return rc;
	steps_view_note_opening(report);
	branch_table_init_steps(t, report->steps, report->options->returns);
	rc = walk(t, &view, err);
	steps_view_close(&view);
	loss_sort_reasons(report->loss);
	if (rc < 0)
		branch_table_release(t);
	else
		branch_table_finish_steps(t, report->steps);
	return rc;
}

void branches_print_loss(const struct report *report)
{
	const struct loss *loss = report->loss;
	const char *why;

	if (trace_reader_is_recovered(report->reader, &why))
		fprintf(report->out, "the end of the trace is missing: %s\n", why);
	for (size_t i = 0; i < loss->n_reasons; i++)
		fprintf(report->out, "missing: %s (%" PRIu64 ")\n", loss->reasons[i].phrase,
			loss->reasons[i].n);
}
