/* SPDX-License-Identifier: MIT */
#include "formats/sample_sums.h"

#include <string.h>

static const char *metric_name(const struct trace_reader *r, uint32_t metric)
{
	return trace_reader_string(r, trace_reader_metric(r, metric)->name);
}

/* The value of a metric's samples; 0 stands for their number, which "samples" is too. */
static size_t value_of_metric(struct sample_sums *s, uint32_t metric)
{
	if (!metric || !strcmp(metric_name(s->profile->reader, metric), "samples"))
		return 0;
	for (size_t i = 0; i < s->n_metrics; i++)
		if (s->metrics[i] == metric)
			return i + 1;
	if (s->n_metrics == SAMPLE_SUMS_METRICS_MAX)
		return 0;
	s->metrics[s->n_metrics++] = metric;
	return s->n_metrics;
}

static void add_sample(struct sample_sums *s, const struct sample_view *sample)
{
	uint64_t what = sample->stack ? sample->stack : (uint64_t)sample->frame << 32;
	bool created;
	uint64_t *place = map_ensure(&s->row_of, map_hash_mix(sample->thread, what), &created);
	size_t value = value_of_metric(s, sample->metric);

	/* Two samples whose hashes are equal by chance are merely not added up. */
	if (!created) {
		const struct sample_view *first = &s->rows.v[*place].sample;

		created = first->thread != sample->thread || first->stack != sample->stack ||
			  first->frame != sample->frame;
	}
	if (created) {
		struct sample_sums_row fresh = {.sample = *sample};

		*place = s->rows.n;
		vec_push(&s->rows, fresh);
	}
	if (sample_is_selected(&s->counting, sample->metric))
		s->rows.v[*place].values[0] +=
			sample_weight(&s->counting, sample->metric, sample->weight);
	if (value)
		s->rows.v[*place].values[value] += sample->weight;
}

/* Those of the main event, as in reports. */
static struct sample_weighing count_samples(const struct trace_reader *r)
{
	struct sample_weighing counting = {.kind = METRIC_KIND_SAMPLES};

	for (uint32_t id = 1; id < trace_reader_n_metrics(r) && !counting.metric_id; id++)
		if (!strcmp(metric_name(r, id), "samples"))
			counting.metric_id = id;
	return counting;
}

int sample_sums_init(struct sample_sums *s, const struct profile *profile, struct err *err)
{
	struct sample_view sample;
	struct sample_walk walk;
	int rc = sample_walk_open(&walk, profile, err);

	*s = (struct sample_sums){.profile = profile, .counting = count_samples(profile->reader)};
	if (rc < 0)
		return rc;
	while (sample_walk_next(&walk, &sample))
		if (sample.kind != SAMPLE_KIND_EVENT &&
			!sample_is_of_hook(&profile->weighing, profile->reader, sample.stack))
			add_sample(s, &sample);
	sample_walk_close(&walk);
	return 0;
}

void sample_sums_release(struct sample_sums *s)
{
	vec_release(&s->rows);
	map_release(&s->row_of);
}

const char *sample_sums_name(const struct sample_sums *s, size_t metric)
{
	return metric_name(s->profile->reader, s->metrics[metric]);
}

const char *sample_sums_unit(const struct sample_sums *s, size_t metric)
{
	const struct trace_reader *r = s->profile->reader;

	return trace_reader_string(r, trace_reader_metric(r, s->metrics[metric])->unit);
}
