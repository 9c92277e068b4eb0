/* SPDX-License-Identifier: MIT */
#include "cmd/report/rows.h"

static const struct column columns[] = {{"count", "Count", 0}, {"reason", "What", 0}, {0}};

static void put_count(struct rows *r, const char *what, uint64_t n)
{
	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "reason", what);
	row_number(r, "count", n);
	row_end(r);
}

/* Of which JSON has an object. */
static void put_counts(struct rows *r, const struct loss *loss)
{
	put_count(r, "samples lost", loss->samples_lost);
	put_count(r, "events lost", loss->events_lost);
	put_count(r, "side-band records lost", loss->records_lost);
	put_count(r, "records with an unknown code", loss->records_unknown);
	put_count(r, "sampled stacks", loss->stacks);
	put_count(r, "of them complete", loss->stacks_complete);
	put_count(r, "frames in samples", loss->frames);
	put_count(r, "of them without a true name", loss->frames_unresolved);
	if (loss->n_reasons)
		table_line(&r->table, "");
}

int loss_report(const struct report *report, struct err *err)
{
	const struct loss *loss = &report->profile->loss;
	struct rows r;

	(void)err;
	rows_begin_plain(&r, report, "loss", columns);
	if (!r.is_json)
		put_counts(&r, loss);
	for (size_t i = 0; i < loss->n_reasons; i++)
		put_count(&r, loss->reasons[i].phrase, loss->reasons[i].n);
	rows_end_plain(&r);
	return 0;
}
