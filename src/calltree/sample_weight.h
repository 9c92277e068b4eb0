/* SPDX-License-Identifier: MIT */
/* What a sample counts for in the metric of a profile: the same for its tree, for source lines and for exports. */
#ifndef WEIR_CALLTREE_SAMPLE_WEIGHT_H
#define WEIR_CALLTREE_SAMPLE_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

enum metric_kind {
	METRIC_KIND_TIME,    /* passes between events; stands still while switched out */
	METRIC_KIND_WALL,    /* passes between events, whatever the thread does */
	METRIC_KIND_SAMPLES, /* one for each sample */
	METRIC_KIND_CALLS,   /* one for each call */
	METRIC_KIND_COUNT    /* what samples and resource records add up to */
};

struct sample_weighing {
	enum metric_kind kind;
	uint32_t metric_id;  /* 0: not in the trace's table */
	uint32_t wait_id;    /* the other half of "wall" in a trace of samples, else 0 */
	uint32_t hook_frame; /* samples in it are of no function; 0 = there are none */
};

/*
 * Whether a sample is one of those that the profile is about. A trace may hold samples of several
 * events: they are counted by the event's own metric, and "samples" are those of the main one.
 */
bool sample_is_selected(const struct sample_weighing *w, uint32_t metric);
/* What a selected one counts for. */
uint64_t sample_weight(const struct sample_weighing *w, uint32_t metric, uint64_t weight);
/* Whether it is of a hook's own time, which is in no function. */
bool sample_is_of_hook(
	const struct sample_weighing *w, const struct trace_reader *r, uint32_t stack);

#endif
