/* SPDX-License-Identifier: MIT */
/*
 * Opens the steps of a trace: reads all code, finds the threads and how many steps each has, by
 * their last records. The steps themselves are left for cursors.
 */
#include "steps/read/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/order.h"
#include "steps/read/steps_internal.h"
#include "trace/record_run.h"

/* Only the first sentence is kept. */
static void note_damage(struct steps *s, const char *sentence)
{
	if (!s->n_damaged++)
		s->damaged = mem_strdup(sentence);
}

/* Calls `take` for each record of the stream that can be read. */
static void each_record(struct steps *s, uint32_t stream, void *ctx,
	void (*take)(struct steps *s, void *ctx, const struct trace_run_record *record))
{
	struct trace_run_record record;
	struct trace_runs *runs;
	struct trace_run run;
	const uint8_t *behind;
	struct err err;
	int rc;

	if (trace_runs_open(&runs, s->r, stream, NULL, &err) < 0) {
		note_damage(s, err.text);
		return;
	}
	while ((rc = trace_run_next(runs, &run, &err)) != 0) {
		for (; run.n_left && (behind = trace_run_peek(&run, &record));
			trace_run_take(&run, &record, behind))
			take(s, ctx, &record);
		if (run.n_left)
			rc = trace_run_damage(runs, &run, &err);
		if (rc < 0)
			note_damage(s, err.text);
	}
	trace_runs_close(runs);
}

/* --- places -------------------------------------------------------------------------------- */

static void take_place(struct steps *s, const struct trace_run_record *record)
{
	struct step_place place;
	struct err err;

	if (step_place_decode(&place, record->payload) &&
		place.image < trace_reader_n_images(s->r) &&
		place.name < trace_reader_n_strings(s->r)) {
		step_places_add(&s->places, &place, record->time);
		return;
	}
	err_set(&err, ERR_FORMAT, "'%s': a record of what is in memory is damaged",
		trace_reader_name(s->r));
	note_damage(s, err.text);
}

static void finish_places(struct steps *s)
{
	struct err err;

	step_places_finish(&s->places);
	if (!step_places_n_lost(&s->places))
		return;
	err_set(&err, ERR_LIMIT, "'%s': has more places in memory than can be held",
		trace_reader_name(s->r));
	note_damage(s, err.text);
}

bool steps_where(const struct steps *s, uint32_t space, uint64_t addr, uint64_t time,
	struct step_where *where)
{
	const struct step_place *p = step_places_find(&s->places, space, addr, time);

	if (!p)
		return false;
	*where = (struct step_where){p->kind, p->image, p->name, addr - p->start + p->at};
	return true;
}

void step_where_put(struct buf *to, const struct steps *s, const struct step_where *where)
{
	const char *name = trace_reader_string(s->r, where->name);
	const char *image = trace_reader_string(s->r, trace_reader_image(s->r, where->image)->path);
	size_t begin = to->n;

	switch (where->kind) {
	case STEP_PLACE_NONE:
		break;
	case STEP_PLACE_VARIABLE:
		buf_printf(to, "%s(%s+0x%" PRIx64 ")", path_base_name(image), name, where->offset);
		break;
	case STEP_PLACE_IMAGE:
		buf_printf(to, "%s+0x%" PRIx64, path_base_name(image), where->offset);
		break;
	case STEP_PLACE_MEMORY:
		buf_put_cstr(to, name);
		break;
	case STEP_PLACE_FILE:
		buf_printf(to, "%s+0x%" PRIx64, path_base_name(name), where->offset);
		break;
	}
	/* Names are from outside; what would break a line or its columns is not shown. */
	for (; begin < to->n; begin++)
		if (to->p[begin] < ' ' || to->p[begin] == 0x7f)
			to->p[begin] = '?';
}

/* --- code ---------------------------------------------------------------------------------- */

static void take_code(struct steps *s, void *ctx, const struct trace_run_record *record)
{
	struct step_code_walk w;
	struct step_code code;
	struct err err;
	int rc;

	(void)ctx;
	if (s->minors[record->kind] == RECORD_STEP_PLACE)
		take_place(s, record);
	if (s->minors[record->kind] == RECORD_STEP_BLOCKS &&
		!way_blocks_add(&s->blocks, record->payload)) {
		err_set(&err, ERR_FORMAT, "'%s': a record of blocks of code is damaged",
			trace_reader_name(s->r));
		note_damage(s, err.text);
	}
	if (s->minors[record->kind] != RECORD_STEP_CODE)
		return;
	rc = step_code_open(&w, record->payload) ? 1 : -1;
	while (rc > 0 && (rc = step_code_next(&w, &code)) > 0) {
		if (code.frame >= trace_reader_n_frames(s->r)) {
			err_set(&err, ERR_FORMAT,
				"'%s': code at 0x%" PRIx64 " has frame %" PRIu32
				", which is not defined",
				trace_reader_name(s->r), code.addr, code.frame);
			note_damage(s, err.text);
			code.frame = 0;
		}
		if (!step_insns_add(&s->insns, &w.head, &code))
			break;
	}
	if (rc == 0)
		return;
	err_set(&err, ERR_FORMAT,
		rc < 0 ? "'%s': a record of code of process %" PRIu32 " is damaged"
		       : "'%s': has more code than can be held, that of process %" PRIu32
			 " is left out",
		trace_reader_name(s->r), w.head.pid);
	note_damage(s, err.text);
}

/* --- threads ------------------------------------------------------------------------------- */

static void take_name(struct steps *s, void *ctx, const struct trace_run_record *record)
{
	const struct trace_kind *kind = trace_reader_kind(s->r, record->kind);
	struct cursor c = cursor_of(record->payload);
	uint64_t thread, name;
	const char **names = ctx;

	if (kind->major != RECORD_MAJOR_THREAD || kind->minor != RECORD_THREAD_NAMED)
		return;
	thread = cursor_uleb(&c);
	cursor_uleb(&c);
	cursor_uleb(&c);
	name = cursor_uleb(&c);
	if (!c.failed && thread < trace_reader_n_threads(s->r) &&
		name < trace_reader_n_strings(s->r))
		names[thread] = trace_reader_string(s->r, (uint32_t)name);
}

bool steps_record_number(uint32_t minor, struct span payload, uint64_t *number, uint64_t *behind)
{
	struct step_run_head head;
	struct step_way_head way;
	struct step_mark mark;

	if (minor == RECORD_STEP_RUN && step_run_head(&head, payload)) {
		*number = head.first;
		*behind = head.first + head.n;
		return true;
	}
	if (step_is_way(minor) && step_way_head(&way, payload)) {
		*number = way.first;
		*behind = way.first + way.n;
		return true;
	}
	if (minor == RECORD_STEP_MARK && step_mark_decode(&mark, payload)) {
		*number = *behind = mark.at;
		return true;
	}
	return false;
}

/* How many steps the chunk's last record tells of; false when none tells. */
static bool count_in_chunk(const struct steps *s, struct trace_run *run, uint64_t *n_steps)
{
	struct trace_run_record record;
	const uint8_t *behind;
	uint64_t number;
	bool is_found = false;

	for (; run->n_left && (behind = trace_run_peek(run, &record));
		trace_run_take(run, &record, behind))
		is_found |= steps_record_number(
			s->minors[record.kind], record.payload, &number, n_steps);
	return is_found;
}

/* From the end of the stream. False when it has no steps. */
static bool count_steps(struct steps *s, uint32_t stream, uint64_t *n_steps)
{
	struct trace_runs *runs;
	struct trace_run run;
	struct err err;
	bool is_found = false, is_damaged = false;

	if (trace_runs_open(&runs, s->r, stream, NULL, &err) < 0) {
		note_damage(s, err.text);
		return false;
	}
	for (uint32_t i = trace_runs_n_chunks(runs); i-- > 0 && !is_found;) {
		trace_runs_seek(runs, i);
		if (trace_run_next(runs, &run, &err) > 0)
			is_found = count_in_chunk(s, &run, n_steps);
		else
			is_damaged = true;
	}
	if (!is_found && is_damaged) /* else walking will tell */
		note_damage(s, err.text);
	trace_runs_close(runs);
	return is_found;
}

ORDER_BY(compare_threads, struct step_thread, pid, tid, stream)

static void find_threads(struct steps *s)
{
	const struct trace_reader *r = s->r;
	const char **names = mem_calloc(trace_reader_n_threads(r), sizeof(*names));

	for (uint32_t i = 1; i < trace_reader_n_streams(r); i++)
		if (trace_reader_stream(r, i)->kind == STREAM_KIND_LIFE &&
			trace_reader_stream(r, i)->number != RECORD_STEP_CODE_STREAM)
			each_record(s, i, names, take_name);
	for (uint32_t i = 1; i < trace_reader_n_streams(r); i++) {
		const struct trace_stream *stream = trace_reader_stream(r, i);
		struct step_thread thread = {.stream = i, .thread = stream->number};

		if (stream->kind != STREAM_KIND_THREAD || !count_steps(s, i, &thread.n_steps))
			continue;
		thread.pid = trace_reader_thread(r, stream->number)->pid;
		thread.tid = trace_reader_thread(r, stream->number)->tid;
		thread.name = names[stream->number] ? names[stream->number] : "";
		trace_reader_stream_times(r, i, &thread.first_time, &thread.last_time);
		vec_push(&s->threads, thread);
		s->total = thread.n_steps > UINT64_MAX - s->total ? UINT64_MAX
								  : s->total + thread.n_steps;
	}
	vec_sort(&s->threads, compare_threads);
	free(names);
}

/* --- the whole ----------------------------------------------------------------------------- */

struct steps *steps_open(const struct trace_reader *r)
{
	struct steps *s = mem_zalloc(sizeof(*s));
	bool has_any = false;

	s->r = r;
	s->minors = mem_calloc(trace_reader_n_kinds(r), sizeof(*s->minors));
	for (uint32_t i = 1; i < trace_reader_n_kinds(r); i++)
		if (trace_reader_kind(r, i)->major == RECORD_MAJOR_STEP) {
			s->minors[i] = trace_reader_kind(r, i)->minor;
			has_any = true;
		}
	if (has_any) {
		for (uint32_t i = 1; i < trace_reader_n_streams(r); i++)
			if (trace_reader_stream(r, i)->kind == STREAM_KIND_LIFE &&
				trace_reader_stream(r, i)->number == RECORD_STEP_CODE_STREAM)
				each_record(s, i, NULL, take_code);
		find_threads(s);
	}
	step_insns_finish(&s->insns);
	finish_places(s);
	return s;
}

void steps_close(struct steps *s)
{
	if (!s)
		return;
	step_insns_release(&s->insns);
	step_places_release(&s->places);
	way_blocks_release(&s->blocks);
	vec_release(&s->threads);
	free(s->minors);
	free(s->damaged);
	free(s);
}

uint32_t steps_n_damaged(const struct steps *s, const char **first)
{
	if (first)
		*first = s->damaged;
	return s->n_damaged;
}

uint32_t steps_n_threads(const struct steps *s)
{
	return (uint32_t)s->threads.n;
}

const struct step_thread *steps_thread(const struct steps *s, uint32_t i)
{
	return &s->threads.v[i];
}

bool step_thread_is(const struct step_thread *t, const char *wanted)
{
	char tid[16], both[32];

	snprintf(tid, sizeof(tid), "%" PRIu32, t->tid);
	snprintf(both, sizeof(both), "%" PRIu32 "_%" PRIu32, t->pid, t->tid);
	return !strcmp(tid, wanted) || !strcmp(both, wanted) || !strcmp(t->name, wanted);
}

uint64_t steps_total(const struct steps *s)
{
	return s->total;
}

const struct trace_reader *steps_reader(const struct steps *s)
{
	return s->r;
}

uint32_t steps_n_insns(const struct steps *s)
{
	return (uint32_t)s->insns.insns.n;
}

const struct step_insn *steps_insn(const struct steps *s, uint32_t number)
{
	return &s->insns.insns.v[number];
}

uint32_t steps_find(const struct steps *s, uint32_t space, uint64_t addr, uint32_t generation)
{
	return step_insns_find(&s->insns, space, addr, generation);
}
