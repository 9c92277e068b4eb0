/* SPDX-License-Identifier: MIT */
/* Samples added up by thread and stack, for formats without a time line: a value for their number and one for each metric. */
#ifndef WEIR_FORMATS_SAMPLE_SUMS_H
#define WEIR_FORMATS_SAMPLE_SUMS_H

#include "base/map.h"
#include "base/mem.h"
#include "calltree/build.h"
#include "calltree/sample_walk.h"

#define SAMPLE_SUMS_METRICS_MAX 16 /* further ones of a trace are left out */

/* Samples with the same thread and stack. */
struct sample_sums_row {
	struct sample_view sample;		      /* the first of them */
	uint64_t values[1 + SAMPLE_SUMS_METRICS_MAX]; /* number, then one for each metric */
};

struct sample_sums {
	const struct profile *profile;
	uint32_t metrics[SAMPLE_SUMS_METRICS_MAX]; /* trace's ids, in order of value */
	size_t n_metrics;
	struct sample_weighing counting; /* of the value that is the number */
	VEC(struct sample_sums_row) rows;
	struct map row_of;
};

/* Reads all samples of the profile; those of a hook's own time are of no function. */
int sample_sums_init(struct sample_sums *s, const struct profile *profile, struct err *err);
void sample_sums_release(struct sample_sums *s);
/* Name and unit of a metric, by its number from 0 on. */
const char *sample_sums_name(const struct sample_sums *s, size_t metric);
const char *sample_sums_unit(const struct sample_sums *s, size_t metric);

#endif
