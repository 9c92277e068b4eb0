/* SPDX-License-Identifier: MIT */
/* The events of a perf.data: their attributes, which say what fields their records have, ids and names. */
#ifndef WEIR_PERFDATA_PERF_EVENTS_H
#define WEIR_PERFDATA_PERF_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"

#define PERF_EVENTS_MAX	   65536u
#define PERF_EVENT_IDS_MAX ((size_t)4 << 20)

struct perf_event_row {
	struct perf_event_attr attr;
	char *name; /* as perf writes it: "cycles:u"; NULL: not known */
};

/* Zero-initialise it. */
struct perf_events {
	VEC(struct perf_event_row) rows;
	struct map by_id; /* perf's id -> row */
};
void perf_events_release(struct perf_events *e);

/* An attribute as some perf wrote it, longer or shorter than ours, and 8-byte ids. False when it makes no sense or
 * there are too many. */
bool perf_events_add(struct perf_events *e, struct span attr, struct span ids);
/* The name of the event with this id. */
void perf_events_name(struct perf_events *e, uint64_t id, struct span name);
/* The one that a record is of; SIZE_MAX: a sample whose event is not known. There is at least one event. */
size_t perf_events_of_record(const struct perf_events *e, struct span record);

/* "cpu" for its first clock, else the event's name; owned by the caller. */
char *perf_event_metric(const struct perf_events *e, size_t row);
/* Its name, or what its attributes say; owned by the caller. */
char *perf_event_title(const struct perf_events *e, size_t row);
const char *perf_event_unit(const struct perf_events *e, size_t row);
/* It counts nothing, and is there for the records about processes. */
bool perf_event_is_dummy(const struct perf_event_row *row);

#endif
