/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "cmd/report/rows.h"

static const struct column columns[] = {{"count", "Count", 0}, {"reason", "What", 0}, {0}};

static void put_count(struct rows *r, const char *what, uint64_t n)
{
	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "reason", what);
	row_number(r, "count", n);
	row_end(r);
}

/* In JSON they are an object beside the rows. */
static const struct {
	const char *key, *what;
	size_t offset;
} counters[] = {
	{"samples_lost", "samples lost", offsetof(struct loss, samples_lost)},
	{"events_lost", "events lost", offsetof(struct loss, events_lost)},
	{"records_lost", "side-band records lost", offsetof(struct loss, records_lost)},
	{"records_unknown", "records with an unknown code", offsetof(struct loss, records_unknown)},
	{"stacks", "sampled stacks", offsetof(struct loss, stacks)},
	{"stacks_complete", "of them complete", offsetof(struct loss, stacks_complete)},
	{"frames", "frames in samples", offsetof(struct loss, frames)},
	{"frames_unresolved", "of them without a true name",
		offsetof(struct loss, frames_unresolved)},
};
#define N_COUNTERS (sizeof(counters) / sizeof(counters[0]))

/* Where the CPU time is known. */
static const struct {
	const char *key, *what;
	size_t offset;
} coverage[] = {
	{"cpu_ns", "ns of CPU time that there was to sample", offsetof(struct loss, cpu_ns)},
	{"sampled_ns", "ns that the samples stand for", offsetof(struct loss, sampled_ns)},
};
#define N_COVERAGE (sizeof(coverage) / sizeof(coverage[0]))

static uint64_t covered(const struct loss *loss, size_t i)
{
	return *(const uint64_t *)((const char *)loss + coverage[i].offset);
}

static uint64_t counter(const struct loss *loss, size_t i)
{
	return *(const uint64_t *)((const char *)loss + counters[i].offset);
}

void report_json_loss(struct json *j, const struct loss *loss)
{
	json_object_begin(j, "loss");
	for (size_t i = 0; i < N_COUNTERS; i++)
		json_u64(j, counters[i].key, counter(loss, i));
	for (size_t i = 0; loss->cpu_ns && i < N_COVERAGE; i++)
		json_u64(j, coverage[i].key, covered(loss, i));
	json_bool(j, "cut", loss->is_cut);
	json_object_begin(j, "reasons");
	for (size_t i = 0; i < loss->n_reasons; i++)
		json_u64(j, loss->reasons[i].phrase, loss->reasons[i].n);
	json_object_end(j);
	json_object_end(j);
}

void loss_say(const char *trace, const struct loss *loss)
{
	const struct {
		uint64_t n;
		const char *what;
	} lost[] = {{loss->samples_lost, "sample"}, {loss->events_lost, "event"},
		{loss->records_lost, "side-band record"}};
	struct buf b = {0};
	uint64_t n_all = 0;

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		if (!lost[i].n)
			continue;
		buf_printf(&b, "%s%" PRIu64 " %s%s", n_all ? ", " : "", lost[i].n, lost[i].what,
			lost[i].n == 1 ? "" : "s");
		n_all += lost[i].n;
	}
	if (n_all)
		buf_printf(&b, " %s lost", n_all == 1 ? "is" : "are");
	if (loss->is_cut)
		buf_printf(&b, "%sits end is missing, or a part cannot be read",
			n_all ? ", and " : "");
	fprintf(stderr, "weir: '%s': %s: this is what is there ('weir report loss' says why)\n",
		trace, buf_text(&b));
	buf_release(&b);
}

int loss_report(const struct report *report, struct err *err)
{
	const struct loss *loss = &report->profile->loss;
	struct rows r;

	(void)err;
	rows_begin_plain(&r, report, "loss", columns);
	for (size_t i = 0; !r.is_json && i < N_COUNTERS; i++)
		put_count(&r, counters[i].what, counter(loss, i));
	for (size_t i = 0; !r.is_json && loss->cpu_ns && i < N_COVERAGE; i++)
		put_count(&r, coverage[i].what, covered(loss, i));
	if (!r.is_json && loss->n_reasons)
		table_line(&r.table, "");
	for (size_t i = 0; i < loss->n_reasons; i++)
		put_count(&r, loss->reasons[i].phrase, loss->reasons[i].n);
	rows_end_plain(&r);
	return 0;
}
