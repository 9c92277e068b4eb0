/* SPDX-License-Identifier: MIT */
/*
 * Walks the steps of a thread, record by record. Finding a step is a binary search over the chunks
 * of the thread's stream by the first number in each, then records are passed over by their heads,
 * and the run that has the step is decoded up to it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/search.h"
#include "steps/read/steps_internal.h"
#include "trace/record_run.h"

#define BLOCK_STEPS 512 /* decoded at a time */

/* What is passed over after a search. */
enum seek_by { SEEK_BY_NOTHING, SEEK_BY_STEP, SEEK_BY_TIME };

struct step_cursor {
	const struct steps *s;
	const struct step_thread *thread;
	struct trace_runs *runs;
	struct trace_run run; /* the chunk; no records left: on to the next */
	enum seek_by seek_by;
	uint64_t sought; /* step or time */
	bool has_next;	 /* the number of the next step is known ... */
	uint64_t next;	 /* ... and it is this one */
	uint64_t time;	 /* of the record that was taken last */
	bool is_in_run;
	bool is_way; /* of blocks: `way`, else `walk` */
	struct step_run_walk walk;
	struct way_steps way;
	uint32_t space, generation; /* of the run */
	struct step steps[STEP_ITEM_STEPS_MAX];
	struct err err; /* the sentence of an item of damage */
};

int step_cursor_open(struct step_cursor **out, const struct steps *s, uint32_t i, struct err *err)
{
	struct step_cursor *c;
	struct trace_runs *runs;
	int rc;

	if (i >= s->threads.n)
		return err_set(err, ERR_NOT_FOUND,
			"'%s': has no thread number %" PRIu32 " with steps",
			trace_reader_name(s->r), i);
	rc = trace_runs_open(&runs, s->r, s->threads.v[i].stream, NULL, err);
	if (rc < 0)
		return rc;
	c = mem_zalloc(sizeof(*c));
	c->s = s;
	c->thread = &s->threads.v[i];
	c->runs = runs;
	*out = c;
	return 0;
}

void step_cursor_close(struct step_cursor *c)
{
	if (!c)
		return;
	trace_runs_close(c->runs);
	way_steps_release(&c->way);
	free(c);
}

/* --- items --------------------------------------------------------------------------------- */

static struct step_item item_of(const struct step_cursor *c, enum step_item_kind kind)
{
	return (struct step_item){.kind = kind, .time = c->time, .first = c->next};
}

/* c->err has the sentence. */
static int damage(struct step_cursor *c, struct step_item *item)
{
	*item = item_of(c, STEP_ITEM_DAMAGE);
	item->sentence = c->err.text;
	return 1;
}

/* A record with readable bytes around it. From here on the numbers are anyone's guess. */
static int damaged_record(struct step_cursor *c, struct step_item *item, const char *what)
{
	err_set(&c->err, ERR_FORMAT,
		"'%s': thread %" PRIu32 ": %s near step %" PRIu64 " is damaged",
		trace_reader_name(c->s->r), c->thread->tid, what, c->next);
	c->has_next = false;
	return damage(c, item);
}

/* The record says that step `number` comes next. Whether that is not so; then *item tells. */
static bool is_gap(struct step_cursor *c, uint64_t number, struct step_item *item)
{
	uint64_t next = c->next;
	bool is_wrong = c->has_next && number != next;

	c->next = number;
	c->has_next = true;
	if (!is_wrong)
		return false;
	if (number > next)
		err_set(&c->err, ERR_FORMAT,
			"'%s': thread %" PRIu32 ": steps %" PRIu64 " to %" PRIu64 " are missing",
			trace_reader_name(c->s->r), c->thread->tid, next, number - 1);
	else
		err_set(&c->err, ERR_FORMAT,
			"'%s': thread %" PRIu32 ": step %" PRIu64 " comes where %" PRIu64
			" is expected",
			trace_reader_name(c->s->r), c->thread->tid, number, next);
	damage(c, item);
	return true;
}

static int take_some(struct step_cursor *c, struct step_at *to, uint32_t max)
{
	return c->is_way ? way_steps_take(&c->way, to, max) : step_run_take(&c->walk, to, max);
}

/* Decodes up to `max` steps of the run and looks up their instructions. */
static uint32_t fill(struct step_cursor *c, uint32_t max)
{
	const struct step_insns *insns = &c->s->insns;
	uint32_t n = 0;
	struct step_at block[BLOCK_STEPS];
	int got;

	while (n < max) {
		got = take_some(c, block, max - n < BLOCK_STEPS ? max - n : BLOCK_STEPS);
		if (got <= 0)
			break;
		for (int i = 0; i < got; i++)
			c->steps[n++] = (struct step){.addr = block[i].addr,
				.insn = step_insns_find(
					insns, c->space, block[i].addr, c->generation),
				.times = block[i].times > UINT32_MAX ? UINT32_MAX
								     : (uint32_t)block[i].times};
	}
	return n;
}

/* The next steps of the run; 0 when there are none left. */
static int take_steps(struct step_cursor *c, struct step_item *item)
{
	struct step_at nothing;
	uint32_t n = fill(c, STEP_ITEM_STEPS_MAX);

	if (!n) {
		c->is_in_run = false;
		return take_some(c, &nothing, 1) < 0 ? damaged_record(c, item, "a run of steps")
						     : 0;
	}
	*item = item_of(c, STEP_ITEM_STEPS);
	item->space = c->space;
	item->generation = c->generation;
	item->steps = c->steps;
	item->n = n;
	c->next += n;
	c->seek_by = SEEK_BY_NOTHING;
	return 1;
}

/* Decodes the run up to the step that is sought. */
static void pass_steps(struct step_cursor *c)
{
	struct step_at block[BLOCK_STEPS];
	int got = 1;

	while (c->next < c->sought && got > 0) {
		uint64_t n = c->sought - c->next;

		got = take_some(c, block, n < BLOCK_STEPS ? (uint32_t)n : BLOCK_STEPS);
		c->next += got > 0 ? (uint32_t)got : 0;
	}
}

/* The run has the step that is sought, or there is none. */
static int take_run(
	struct step_cursor *c, const struct trace_run_record *record, struct step_item *item)
{
	uint32_t minor = c->s->minors[record->kind];

	c->is_way = step_is_way(minor);
	if (c->is_way ? !way_steps_open(&c->way, &c->s->blocks, minor, record->payload)
		      : !step_run_open(&c->walk, record->payload))
		return damaged_record(c, item, "a run of steps");
	c->is_in_run = true;
	c->space = c->is_way ? c->way.walk.head.space : c->walk.head.space;
	c->generation = c->is_way ? c->way.walk.head.generation : c->walk.head.generation;
	if (c->seek_by == SEEK_BY_STEP)
		pass_steps(c);
	return 0;
}

static int take_mark(
	struct step_cursor *c, const struct trace_run_record *record, struct step_item *item)
{
	struct step_mark mark;

	if (!step_mark_decode(&mark, record->payload) ||
		mark.text >= trace_reader_n_strings(c->s->r))
		return damaged_record(c, item, "a mark");
	*item = item_of(c, STEP_ITEM_MARK);
	item->mark = mark;
	c->seek_by = SEEK_BY_NOTHING;
	return 1;
}

static int take_data(
	struct step_cursor *c, const struct trace_run_record *record, struct step_item *item)
{
	struct step_data_walk w;
	struct step_datum datum;
	int rc;

	if (c->seek_by != SEEK_BY_NOTHING)
		return 0;
	rc = step_data_open(&w, record->payload) ? 1 : -1;
	while (rc > 0)
		rc = step_data_next(&w, &datum);
	if (rc < 0)
		return damaged_record(c, item, "a record of data");
	*item = item_of(c, STEP_ITEM_DATA);
	item->data = record->payload;
	return 1;
}

/* Whether the record is in front of what is sought. A mark belongs to the step behind it. */
static bool is_passed_over(
	const struct step_cursor *c, uint64_t number, uint64_t behind, uint64_t time)
{
	if (c->seek_by == SEEK_BY_STEP)
		return number < c->sought && behind <= c->sought;
	return c->seek_by == SEEK_BY_TIME && time < c->sought;
}

/* The next record; 0 when it makes no item. */
static int take_record(struct step_cursor *c, struct step_item *item)
{
	struct trace_run_record record;
	const uint8_t *end = trace_run_peek(&c->run, &record);
	uint64_t number, behind;
	uint32_t minor;

	if (!end) {
		trace_run_damage(c->runs, &c->run, &c->err);
		c->run.n_left = 0;
		c->has_next = false;
		return damage(c, item);
	}
	c->time = record.time;
	minor = c->s->minors[record.kind];
	if (steps_record_number(minor, record.payload, &number, &behind)) {
		if (is_passed_over(c, number, behind, record.time)) {
			c->next = behind;
			c->has_next = true;
			minor = 0;
		} else if (is_gap(c, number, item)) {
			return 1; /* and the record is taken by the next call */
		}
	}
	trace_run_take(&c->run, &record, end);
	switch (minor) {
	case RECORD_STEP_RUN:
	case RECORD_STEP_WAY:
	case RECORD_STEP_SHORT_WAY:
		return take_run(c, &record, item);
	case RECORD_STEP_MARK:
		return take_mark(c, &record, item);
	case RECORD_STEP_DATA:
		return take_data(c, &record, item);
	}
	return 0;
}

int step_cursor_next(struct step_cursor *c, struct step_item *item)
{
	int rc;

	for (;;) {
		if (c->is_in_run) {
			if (take_steps(c, item))
				return 1;
		} else if (c->run.n_left) {
			if (take_record(c, item))
				return 1;
		} else {
			rc = trace_run_next(c->runs, &c->run, &c->err);
			if (rc == 0)
				return 0;
			if (rc < 0) {
				c->has_next = false;
				return damage(c, item);
			}
		}
	}
}

/* --- finding a place ------------------------------------------------------------------------ */

/* The first number in the chunk; false when it has none. */
static bool chunk_number(struct step_cursor *c, uint32_t i, uint64_t *number)
{
	struct trace_run_record record;
	struct trace_run run;
	const uint8_t *behind;
	uint64_t last;

	trace_runs_seek(c->runs, i);
	if (trace_run_next(c->runs, &run, NULL) <= 0)
		return false;
	for (; run.n_left && (behind = trace_run_peek(&run, &record));
		trace_run_take(&run, &record, behind))
		if (steps_record_number(c->s->minors[record.kind], record.payload, number, &last))
			return true;
	return false;
}

/* The last chunk that begins before the step; marks in front of the step may be at its end. */
static uint32_t find_chunk(struct step_cursor *c, uint64_t step)
{
	uint32_t low = 0, high = trace_runs_n_chunks(c->runs);

	while (high - low > 1 && high) {
		uint32_t middle = low + (high - low) / 2, i = middle;
		uint64_t number = 0;

		while (i < high && !chunk_number(c, i, &number))
			i++;
		if (i < high && number < step)
			low = i;
		else
			high = middle;
	}
	return low;
}

/* Likewise by time. */
static uint32_t find_chunk_of_time(const struct step_cursor *c, uint64_t time)
{
	size_t behind = SEARCH(0, trace_runs_n_chunks(c->runs), i,
		trace_runs_chunk_time(c->runs, (uint32_t)i) < time);

	return behind ? (uint32_t)behind - 1 : 0;
}

static void begin_at(struct step_cursor *c, uint32_t chunk, enum seek_by by, uint64_t sought)
{
	trace_runs_seek(c->runs, chunk);
	c->run = (struct trace_run){0};
	c->is_in_run = c->has_next = false;
	c->next = c->time = 0;
	c->seek_by = by;
	c->sought = sought;
}

void step_cursor_seek(struct step_cursor *c, uint64_t step)
{
	begin_at(c, find_chunk(c, step), SEEK_BY_STEP, step);
}

void step_cursor_seek_time(struct step_cursor *c, uint64_t time)
{
	begin_at(c, find_chunk_of_time(c, time), SEEK_BY_TIME, time);
}
