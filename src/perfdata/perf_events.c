/* SPDX-License-Identifier: MIT */
#include "perfdata/perf_events.h"

#include <stdlib.h>
#include <string.h>

#define ATTR_BYTES_MIN 64 /* PERF_ATTR_SIZE_VER0 */
#define HEADER_BYTES   sizeof(struct perf_event_header)

void perf_events_release(struct perf_events *e)
{
	for (size_t i = 0; i < e->rows.n; i++)
		free(e->rows.v[i].name);
	vec_release(&e->rows);
	map_release(&e->by_id);
}

bool perf_events_add(struct perf_events *e, struct span attr, struct span ids)
{
	struct perf_event_row row = {.name = NULL};
	size_t n = attr.n < sizeof(row.attr) ? attr.n : sizeof(row.attr);
	struct cursor c = cursor_of(ids);

	if (attr.n < ATTR_BYTES_MIN || e->rows.n == PERF_EVENTS_MAX)
		return false;
	memcpy(&row.attr, attr.p, n);
	while (cursor_left(&c) >= sizeof(uint64_t) && e->by_id.n < PERF_EVENT_IDS_MAX)
		*map_ensure(&e->by_id, cursor_u64(&c), NULL) = e->rows.n;
	vec_push(&e->rows, row);
	return true;
}

void perf_events_name(struct perf_events *e, uint64_t id, struct span name)
{
	const uint64_t *at = map_find(&e->by_id, id);
	struct perf_event_row *row = at ? &e->rows.v[*at] : NULL;

	if (!row || row->name || !name.n || !name.p[0])
		return;
	row->name = mem_strndup((const char *)name.p, strnlen((const char *)name.p, name.n));
}

/* Behind how many bytes of a sample, or in front of how many at the end of another record, its id is. */
static size_t id_offset(uint64_t has, bool is_sample)
{
	uint64_t before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	uint64_t behind = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	if (has & PERF_SAMPLE_IDENTIFIER)
		return is_sample ? 0 : 8;
	return 8 * (size_t)__builtin_popcountll(has & (is_sample ? before : behind)) +
	       (is_sample ? 0 : 8);
}

/* All events of a file have it at the same place. */
static bool find_id(const struct perf_event_attr *attr, struct span record, uint64_t *id)
{
	struct perf_event_header h;
	bool is_sample;
	size_t at;

	memcpy(&h, record.p, sizeof(h));
	is_sample = h.type == PERF_RECORD_SAMPLE;
	if (!(attr->sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)) ||
		(!is_sample && !attr->sample_id_all))
		return false;
	at = id_offset(attr->sample_type, is_sample);
	if (record.n < HEADER_BYTES + at + (is_sample ? sizeof(*id) : 0))
		return false;
	at = is_sample ? HEADER_BYTES + at : record.n - at;
	memcpy(id, record.p + at, sizeof(*id));
	return true;
}

size_t perf_events_of_record(const struct perf_events *e, struct span record)
{
	const uint64_t *row;
	uint64_t id;

	if (e->rows.n == 1 || !find_id(&e->rows.v[0].attr, record, &id))
		return 0;
	row = map_find(&e->by_id, id);
	if (row)
		return *row;
	/* What perf makes up itself has no id. */
	return id && record.p[0] == PERF_RECORD_SAMPLE ? SIZE_MAX : 0;
}

/* --- names ------------------------------------------------------------------------------ */

static bool is_clock(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE &&
	       (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

bool perf_event_is_dummy(const struct perf_event_row *row)
{
	return row->attr.type == PERF_TYPE_SOFTWARE && row->attr.config == PERF_COUNT_SW_DUMMY;
}

static const char *software_name(uint64_t config)
{
	static const char *const names[] = {[PERF_COUNT_SW_CPU_CLOCK] = "cpu-clock",
		[PERF_COUNT_SW_TASK_CLOCK] = "task-clock",
		[PERF_COUNT_SW_PAGE_FAULTS] = "page-faults",
		[PERF_COUNT_SW_CONTEXT_SWITCHES] = "context-switches",
		[PERF_COUNT_SW_CPU_MIGRATIONS] = "cpu-migrations",
		[PERF_COUNT_SW_PAGE_FAULTS_MIN] = "minor-faults",
		[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = "major-faults",
		[PERF_COUNT_SW_ALIGNMENT_FAULTS] = "alignment-faults",
		[PERF_COUNT_SW_EMULATION_FAULTS] = "emulation-faults",
		[PERF_COUNT_SW_DUMMY] = "dummy"};

	return config < sizeof(names) / sizeof(names[0]) ? names[config] : NULL;
}

static const char *hardware_name(uint64_t config)
{
	static const char *const names[] = {[PERF_COUNT_HW_CPU_CYCLES] = "cycles",
		[PERF_COUNT_HW_INSTRUCTIONS] = "instructions",
		[PERF_COUNT_HW_CACHE_REFERENCES] = "cache-references",
		[PERF_COUNT_HW_CACHE_MISSES] = "cache-misses",
		[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "branches",
		[PERF_COUNT_HW_BRANCH_MISSES] = "branch-misses"};

	return config < sizeof(names) / sizeof(names[0]) ? names[config] : NULL;
}

char *perf_event_title(const struct perf_events *e, size_t row)
{
	const struct perf_event_row *r = &e->rows.v[row];
	const char *name = r->name;

	if (!name && r->attr.type == PERF_TYPE_SOFTWARE)
		name = software_name(r->attr.config);
	if (!name && r->attr.type == PERF_TYPE_HARDWARE)
		name = hardware_name(r->attr.config);
	if (name)
		return mem_strdup(name);
	if (r->attr.type == PERF_TYPE_TRACEPOINT)
		return mem_printf("tracepoint %llu", r->attr.config);
	return mem_printf("event %u:0x%llx", r->attr.type, r->attr.config);
}

/* Two clocks that fed one metric would count everything twice. */
static bool is_first_clock(const struct perf_events *e, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (is_clock(&e->rows.v[i].attr))
			return false;
	return is_clock(&e->rows.v[row].attr);
}

char *perf_event_metric(const struct perf_events *e, size_t row)
{
	return is_first_clock(e, row) ? mem_strdup("cpu") : perf_event_title(e, row);
}

const char *perf_event_unit(const struct perf_events *e, size_t row)
{
	return is_clock(&e->rows.v[row].attr) ? "ns" : "1";
}
