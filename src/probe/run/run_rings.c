/* SPDX-License-Identifier: MIT */
/*
 * Records of both rings in order of time. What is in the rings is looked at without taking it out,
 * sorted, handed out, and only then given back; records that programs on several CPUs made at the
 * same moment lie in a ring in the order in which they got their room.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "bpf/kernel_map.h"
#include "probe/run/run.h"

#define BATCH_RECORDS 4096
#define BATCH_SLOW    8		/* where a record may start a program */
#define TURN_NS	      100000000 /* then the caller gets its turn, however fast records come */

struct seen {
	uint64_t time_ns;
	uint32_t order; /* keeps records of one time in their order */
	uint32_t n;
	const uint8_t *p;
};

struct batch {
	struct seen *v;
	uint32_t n;
};

ORDER_BY(compare_seen, struct seen, time_ns, order)

/* One after the other: what is known of processes is that of the moment of each. */
void probe_session_copies(struct probe_session *s, uint64_t until_ns, uint64_t id)
{
	unsigned long at = s->copies.bytes ? *s->copies.consumer : 0;
	struct bpf_ring_record r;

	while (s->copies.bytes && bpf_ring_next(&s->copies, &at, &r)) {
		const struct stack_copy *copy = (const void *)r.p;
		bool is_last = r.n < sizeof(*copy) || copy->id == id;

		if (r.n >= sizeof(*copy) && copy->time_ns > until_ns)
			return;
		if (r.n >= sizeof(*copy) && s->output.copy)
			s->output.copy(s->output.ctx, copy, r.n);
		bpf_ring_consume(&s->copies, at);
		if (is_last)
			return;
	}
	if (s->copies.bytes)
		bpf_ring_consume(&s->copies, at);
}

void probe_session_learn(
	struct probe_session *s, const struct stack_rule_key *key, const struct stack_rule *rule)
{
	if (s->maps[STREAM_MAP_RULES] < 0)
		return;
	if (rule)
		bpf_map_update(s->maps[STREAM_MAP_RULES], key, rule);
	else
		bpf_map_delete(s->maps[STREAM_MAP_RULES], key);
}

/* At most `max` records; the place behind the last one of them. */
static unsigned long collect(struct bpf_ring *ring, struct batch *batch, uint32_t max)
{
	unsigned long at = *ring->consumer;
	struct bpf_ring_record r;

	while (max && bpf_ring_next(ring, &at, &r)) {
		struct seen *seen = &batch->v[batch->n];

		max--;
		if (r.n < sizeof(struct stream_record))
			continue;
		*seen = (struct seen){.order = batch->n, .n = (uint32_t)r.n, .p = r.p};
		memcpy(&seen->time_ns, r.p, sizeof(seen->time_ns));
		batch->n++;
	}
	return at;
}

static void do_exit(struct probe_session *s, const struct stream_record *r, struct span args)
{
	uint64_t status = 0;

	if (s->is_exiting)
		return;
	if (args.n >= sizeof(status))
		memcpy(&status, args.p, sizeof(status));
	s->is_exiting = true;
	missed_hits_end(s);
	s->exit_ns = r->time_ns;
	s->exit_status = (int)status;
}

static void do_enable(struct probe_session *s, struct span args, bool is_on)
{
	uint64_t clause = 0; /* from 1 */

	if (args.n >= sizeof(clause))
		memcpy(&clause, args.p, sizeof(clause));
	if (clause && clause <= s->stream->clauses.n)
		probe_session_enable(s, (uint32_t)clause - 1, is_on);
}

static void hand_out(struct probe_session *s, const struct seen *seen)
{
	struct stream_record r;
	struct span args = {seen->p + sizeof(r), seen->n - sizeof(r)};
	const struct stream_format *format;

	memcpy(&r, seen->p, sizeof(r));
	if (r.time_ns > s->exit_ns || r.format >= s->stream->formats.n)
		return;
	format = &s->stream->formats.v[r.format];
	switch (format->kind) {
	case FORMAT_EXIT:
		do_exit(s, &r, args);
		return;
	case FORMAT_ENABLE:
	case FORMAT_DISABLE:
		do_enable(s, args, format->kind == FORMAT_ENABLE);
		return;
	case FORMAT_CLEAR_MAP:
	case FORMAT_ZERO_MAP:
		probe_session_map_clear(s, format->map_i, format->kind == FORMAT_ZERO_MAP);
		return;
	default:
		s->output.record(s->output.ctx, &r, args);
	}
}

/* system() and cat() take time, and may be what makes the next records. */
static uint32_t batch_records(const struct probe_session *s)
{
	for (size_t i = 0; i < s->stream->formats.n; i++)
		if (s->stream->formats.v[i].kind == FORMAT_SYSTEM ||
			s->stream->formats.v[i].kind == FORMAT_CAT)
			return BATCH_SLOW;
	return BATCH_RECORDS;
}

/* False when there is nothing. */
static bool drain_batch(struct probe_session *s, struct batch *batch, uint32_t max)
{
	struct bpf_ring *rings[] = {&s->control, &s->records};
	unsigned long ends[2] = {0};
	bool is_more = false;

	batch->n = 0;
	for (int i = 0; i < 2; i++)
		if (rings[i]->bytes)
			ends[i] = collect(rings[i], batch, max);
	qsort(batch->v, batch->n, sizeof(*batch->v), compare_seen);
	for (uint32_t i = 0; i < batch->n; i++)
		hand_out(s, &batch->v[i]);
	for (int i = 0; i < 2; i++) {
		if (!rings[i]->bytes)
			continue;
		is_more |= ends[i] != *rings[i]->consumer;
		bpf_ring_consume(rings[i], ends[i]);
	}
	return is_more;
}

static void drain(struct probe_session *s, uint64_t turn_ns)
{
	struct batch batch = {.v = mem_alloc(2 * BATCH_RECORDS * sizeof(*batch.v))};
	uint64_t began_ns = clock_mono_ns();
	uint32_t max = batch_records(s);

	while (drain_batch(s, &batch, max) && clock_mono_ns() - began_ns < turn_ns)
		;
	probe_session_copies(s, began_ns, 0); /* all records of earlier have been handed out */
	free(batch.v);
}

void run_rings_drain(struct probe_session *s)
{
	drain(s, TURN_NS);
}

void run_rings_empty(struct probe_session *s)
{
	drain(s, UINT64_MAX);
}
