/* SPDX-License-Identifier: MIT */
/*
 * The trace event format of Chrome. Calls are pairs of B and E, in order of time on each thread: at equal times a
 * call that ends comes before one that begins, and an inner one before its outer one, as they were recorded, so
 * that readers that keep the order match them. Complete (X) events are not used, since readers may turn two of
 * equal times round. A stack that a coroutine runs on is a thread of its own. Times are microseconds
 * with the three places that nanoseconds need.
 *
 * Samples are in the lists "samples" and "stackFrames", which Chrome's own viewer knows, and others skip. Where
 * those lists are, speedscope shows nothing else: without samples they are left out. What their weights are stands in
 * "otherData".
 */
#include "formats/exports.h"

#include <string.h>

#include "base/json.h"
#include "formats/number_text.h"
#include "formats/row_spool.h"
#include "formats/timed_walk.h"

#define NS_PLACES   3		/* of microseconds */
#define CHAIN_TID   1000000000u /* + its lane: beyond the numbers that the kernel gives */
#define ALL_SAMPLES 0		/* their lane in the spool */

enum sample_row {
	SAMPLE_AFTER_NS,
	SAMPLE_THREAD,
	SAMPLE_CPU,
	SAMPLE_NODE,
	SAMPLE_WEIGHT,
	SAMPLE_ROW
};

struct chrome {
	const struct profile *profile;
	struct export_stacks stacks;
	struct row_spool samples;
	uint64_t last_sample; /* its time */
	uint64_t n_waits;
	VEC(bool) has_lane;
	struct json json;
};

static uint64_t since_start(const struct chrome *c, uint64_t time)
{
	return time > c->profile->start ? time - c->profile->start : 0;
}

/* Until end_event() more fields may be added. */
static void begin_event(struct chrome *c, const char *phase, uint32_t thread, uint64_t tid)
{
	json_newline(&c->json);
	json_object_begin(&c->json, NULL);
	json_string(&c->json, "ph", phase);
	json_u64(&c->json, "pid", c->profile->threads[thread].pid);
	json_u64(&c->json, "tid", tid);
}

static void put_time(struct chrome *c, uint64_t time)
{
	fputs(", \"ts\": ", c->json.out);
	put_decimal(c->json.out, since_start(c, time), NS_PLACES);
}

static void end_event(struct chrome *c)
{
	json_object_end(&c->json);
}

/* Says what a process or a thread is called. */
static void put_name(
	struct chrome *c, const char *what, uint32_t thread, uint64_t tid, const char *name)
{
	begin_event(c, "M", thread, tid);
	json_string(&c->json, "name", what);
	json_object_begin(&c->json, "args");
	json_string(&c->json, "name", name);
	json_object_end(&c->json);
	end_event(c);
}

static void put_threads(struct chrome *c)
{
	for (uint32_t id = 1; id < c->profile->n_threads; id++) {
		const struct profile_thread *thread = &c->profile->threads[id];
		const char *name = *thread->name ? thread->name : thread->root_name;

		if (!thread->is_wanted)
			continue;
		if (thread->pid == thread->tid)
			put_name(c, "process_name", id, thread->tid, name);
		put_name(c, "thread_name", id, thread->tid, name);
	}
}

/* ---- what happens ---- */

static uint64_t tid_of_call(struct chrome *c, const struct timed_call *call)
{
	if (!call->chain)
		return c->profile->threads[call->thread].tid;
	vec_ensure_zero(&c->has_lane, call->lane + (size_t)1);
	if (!c->has_lane.v[call->lane])
		put_name(c, "thread_name", call->thread, CHAIN_TID + call->lane, "coroutine");
	c->has_lane.v[call->lane] = true;
	return CHAIN_TID + call->lane;
}

static void put_call(
	struct chrome *c, const struct timed_call *call, const char *phase, uint64_t time)
{
	begin_event(c, phase, call->thread, tid_of_call(c, call));
	put_time(c, time);
	json_string(&c->json, "cat", "call");
	json_string(&c->json, "name", export_stacks_routine(&c->stacks, call->function)->name);
	end_event(c);
}

static void add_enter(void *to, const struct timed_call *call)
{
	put_call(to, call, "B", call->from);
}

static void add_leave(void *to, const struct timed_call *call)
{
	put_call(to, call, "E", call->to);
}

/* Waits may overlap calls: they are asynchronous, which need not nest. */
static void put_wait(
	struct chrome *c, const struct timed_wait *wait, const char *phase, uint64_t time)
{
	begin_event(c, phase, wait->thread, c->profile->threads[wait->thread].tid);
	put_time(c, time);
	json_string(&c->json, "cat", "wait");
	json_u64(&c->json, "id", c->n_waits);
	json_string(&c->json, "name", wait->is_ready ? "ready" : "waiting");
	end_event(c);
}

static void add_wait(void *to, const struct timed_wait *wait)
{
	struct chrome *c = to;

	c->n_waits++;
	put_wait(c, wait, "b", wait->from);
	put_wait(c, wait, "e", wait->to);
}

static void add_mark(void *to, const struct timed_mark *mark)
{
	struct chrome *c = to;
	bool is_loss = timed_mark_is_loss(mark->kind);

	begin_event(c, "i", mark->thread, c->profile->threads[mark->thread].tid);
	put_time(c, mark->time);
	json_string(&c->json, "s", is_loss ? "g" : "t");
	json_string(&c->json, "cat", is_loss ? "loss" : "thread");
	json_string(&c->json, "name", timed_mark_name(mark->kind));
	if (is_loss) {
		json_object_begin(&c->json, "args");
		json_u64(&c->json, "n", mark->n);
		json_string(&c->json, "reason", mark->reason);
		json_object_end(&c->json);
	}
	end_event(c);
}

static void add_sample(void *to, const struct sample_view *sample, uint64_t weight)
{
	struct chrome *c = to;
	uint64_t time = since_start(c, sample->time);
	uint64_t row[SAMPLE_ROW] = {time - c->last_sample, sample->thread,
		sample->cpu > 0 ? (uint64_t)sample->cpu : 0, export_stacks_node(&c->stacks, sample),
		weight};

	c->last_sample = time;
	row_spool_put(&c->samples, ALL_SAMPLES, row);
}

/* ---- the lists behind the events ---- */

static void put_samples(struct chrome *c)
{
	FILE *out = c->json.out;
	uint64_t row[SAMPLE_ROW], time = 0;
	struct row_reader reader;
	bool is_next = false;

	json_array_begin(&c->json, "samples");
	row_reader_open(&reader, &c->samples, ALL_SAMPLES);
	while (row_reader_next(&reader, row)) {
		put_comma(out, &is_next);
		time += row[SAMPLE_AFTER_NS];
		fputs_unlocked("\n{\"cpu\":", out);
		put_number(out, row[SAMPLE_CPU]);
		fputs_unlocked(",\"pid\":", out);
		put_number(out, c->profile->threads[row[SAMPLE_THREAD]].pid);
		fputs_unlocked(",\"tid\":", out);
		put_number(out, c->profile->threads[row[SAMPLE_THREAD]].tid);
		fputs_unlocked(",\"ts\":", out);
		put_decimal(out, time, NS_PLACES);
		fputs_unlocked(",\"name\":\"sample\"", out);
		if (row[SAMPLE_NODE]) {
			fputs_unlocked(",\"sf\":", out);
			put_number(out, row[SAMPLE_NODE]);
		}
		fputs_unlocked(",\"weight\":", out);
		put_number(out, row[SAMPLE_WEIGHT]);
		putc_unlocked('}', out);
	}
	row_reader_close(&reader);
	json_array_end(&c->json);
}

static void put_stack_frames(struct chrome *c)
{
	json_object_begin(&c->json, "stackFrames");
	for (uint32_t id = 1; id < c->stacks.nodes.n; id++) {
		const struct export_node *node = &c->stacks.nodes.v[id];
		const struct calltree_routine *routine =
			export_stacks_routine(&c->stacks, c->stacks.places.v[node->place].function);
		char number[16];

		snprintf(number, sizeof(number), "%u", id);
		json_newline(&c->json);
		json_object_begin(&c->json, number);
		json_string(&c->json, "name", routine->name);
		json_string(&c->json, "category", routine->image);
		if (node->parent)
			json_u64(&c->json, "parent", node->parent);
		json_object_end(&c->json);
	}
	json_object_end(&c->json);
}

/* What the weights of samples are: the format has no place of its own for that. */
static void put_about(struct chrome *c)
{
	json_object_begin(&c->json, "otherData");
	json_string(&c->json, "weirMetric", c->profile->metric);
	json_string(&c->json, "weirUnit", c->profile->unit);
	json_object_end(&c->json);
}

int export_chrome(const struct profile *profile, FILE *out, struct err *err)
{
	static const struct timed_visitor visitor = {.sample = add_sample,
		.enter = add_enter,
		.leave = add_leave,
		.wait = add_wait,
		.mark = add_mark};
	struct chrome c = {.profile = profile};
	int rc;

	if (export_has_tree_alone(profile))
		return err_set(err, ERR_FAILED, "'%s': has no times, which chrome needs",
			trace_reader_name(profile->reader));
	export_stacks_init(&c.stacks, profile);
	row_spool_init(&c.samples, SAMPLE_ROW);
	json_init(&c.json, out);
	json_object_begin(&c.json, NULL);
	json_string(&c.json, "displayTimeUnit", "ns");
	put_about(&c);
	json_array_begin(&c.json, "traceEvents");
	put_threads(&c);
	rc = timed_walk(&c.stacks, &visitor, &c, err);
	json_array_end(&c.json);
	if (row_spool_n_rows(&c.samples, ALL_SAMPLES)) {
		put_samples(&c);
		put_stack_frames(&c);
	}
	json_object_end(&c.json);
	if (rc == 0)
		rc = row_spool_check(&c.samples, err);
	export_stacks_release(&c.stacks);
	row_spool_release(&c.samples);
	vec_release(&c.has_lane);
	return rc;
}
