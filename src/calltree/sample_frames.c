/* SPDX-License-Identifier: MIT */
#include "calltree/sample_frames.h"

#include <string.h>

#include "calltree/sample_walk.h"

static uint64_t weight_of(const struct profile *p, const struct sample_view *sample)
{
	const char *name;

	if (!strcmp(p->metric, "samples"))
		return 1;
	if (!sample->metric)
		return 0;
	name = trace_reader_string(p->reader, trace_reader_metric(p->reader, sample->metric)->name);
	return strcmp(name, p->metric) ? 0 : sample->weight;
}

int sample_frames_sum(struct map *weights, const struct profile *profile, struct err *err)
{
	struct sample_view sample;
	struct sample_walk walk;
	int rc = sample_walk_open(&walk, profile, err);

	if (rc < 0)
		return rc;
	while (sample_walk_next(&walk, &sample)) {
		uint32_t frame = sample.frame;

		if (sample.kind == SAMPLE_KIND_EVENT)
			continue;
		if (!frame && sample.stack)
			frame = trace_reader_stack(profile->reader, sample.stack)->frame;
		if (frame)
			*map_ensure(weights, frame, NULL) += weight_of(profile, &sample);
	}
	sample_walk_close(&walk);
	return 0;
}
