/* SPDX-License-Identifier: MIT */
#include "formats/export_limits.h"

#include <string.h>

#include "formats/export_stacks.h"

static bool is_metric(const struct profile *p, uint32_t id, const char *name)
{
	return !strcmp(
		trace_reader_string(p->reader, trace_reader_metric(p->reader, id)->name), name);
}

/* "samples" and the two halves of "wall" come along with another one. */
static bool has_more_metrics(const struct profile *p)
{
	size_t n = 0;

	for (uint32_t id = 1; id < trace_reader_n_metrics(p->reader); id++)
		n += !is_metric(p, id, "samples") && !is_metric(p, id, "wait");
	return n > 1;
}

static bool has_losses(const struct profile *p)
{
	const struct loss *loss = &p->loss;

	return loss->samples_lost || loss->events_lost || loss->records_lost || loss->is_cut;
}

static bool is_plain_unit(const struct profile *p)
{
	return !strcmp(p->unit, "ns") || !strcmp(p->unit, "bytes") || !strcmp(p->metric, "samples");
}

static bool has(const struct profile *p, enum export_lack lack)
{
	switch (lack) {
	case EXPORT_LACKS_CALLS:
	case EXPORT_LACKS_WHEN:
		return p->n_events > 0;
	case EXPORT_LACKS_WAITS:
		return p->n_switches > 0;
	case EXPORT_LACKS_LOSSES:
		return has_losses(p);
	case EXPORT_LACKS_WEIGHTS:
		return p->n_samples > 0 && strcmp(p->metric, "samples") != 0;
	case EXPORT_LACKS_METRICS:
		return has_more_metrics(p);
	case EXPORT_LACKS_UNITS:
		return (p->n_samples || export_has_tree_alone(p)) && !is_plain_unit(p);
	case EXPORT_LACKS_TREES:
		return p->n_kept_nodes && p->n_samples;
	}
	return false;
}

void export_limits_say(struct buf *to, const struct profile *profile, unsigned int lacks)
{
	static const struct {
		enum export_lack lack;
		const char *words;
	} rows[] = {
		{EXPORT_LACKS_CALLS, "calls"},
		{EXPORT_LACKS_WHEN, "times of calls"},
		{EXPORT_LACKS_WAITS, "waits of threads"},
		{EXPORT_LACKS_LOSSES, "losses"},
		{EXPORT_LACKS_WEIGHTS, "weights of samples"},
		{EXPORT_LACKS_METRICS, "a second metric"},
		{EXPORT_LACKS_UNITS, "the unit of the metric"},
		{EXPORT_LACKS_TREES, "calls kept as a tree"},
	};
	size_t begin = to->n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (lacks & rows[i].lack && has(profile, rows[i].lack))
			buf_printf(to, "%s%s", to->n > begin ? ", " : "", rows[i].words);
}
