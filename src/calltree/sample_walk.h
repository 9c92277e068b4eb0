/* SPDX-License-Identifier: MIT */
/* The samples of a profile and its stacks at routines one by one, in order of time: those of its
 * threads and its window. */
#ifndef WEIR_CALLTREE_SAMPLE_WALK_H
#define WEIR_CALLTREE_SAMPLE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "calltree/build.h"

enum sample_kind {
	SAMPLE_KIND_SAMPLE, /* 0x40: a stack at a timer interrupt */
	SAMPLE_KIND_TICK,   /* 0x10/0x03: the program counter alone */
	SAMPLE_KIND_EVENT   /* 0x41: a stack at the entry of a routine */
};

struct sample_view {
	uint64_t time; /* as in the trace */
	enum sample_kind kind;
	uint32_t thread;
	uint32_t stack; /* 0 for a tick */
	uint32_t frame; /* of a tick, else 0 */
	uint32_t metric;
	uint64_t weight;
	int64_t cpu; /* -1 when not known */
};

struct sample_walk {
	const struct profile *profile;
	struct trace_cursor *cursor;
};

int sample_walk_open(struct sample_walk *walk, const struct profile *profile, struct err *err);
/* False at the end. What cannot be read was counted when the profile was built. */
bool sample_walk_next(struct sample_walk *walk, struct sample_view *sample);
void sample_walk_close(struct sample_walk *walk);
/* A tick as a sample, without time and CPU; false when the record is damaged. */
bool sample_view_tick(const struct trace_reader *r, const struct trace_record *record,
	struct sample_view *sample);

/* Whether it is one of those that the tree of the profile is made of. */
bool sample_view_counts(const struct profile *p, const struct sample_view *sample);

/* What samples say of places in code, for answers by source line: adds to `weights` by innermost
 * frame what they weigh in the metric of the profile. */
int sample_frames_sum(struct map *weights, const struct profile *profile, struct err *err);

#endif
