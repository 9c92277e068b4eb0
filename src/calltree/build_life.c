/* SPDX-License-Identifier: MIT */
/*
 * Everything in a trace that is neither sample nor event: names of threads, losses, codes that are
 * not known. The life streams are short and are read first, so that threads have their names when
 * the filter asks for one.
 */
#include "calltree/build_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A note that some traces have of what went well. */
static const char success[] = "deep stack completed beyond the kernel's copy";

static void add_loss(struct builder *b, const struct trace_record *record)
{
	struct loss *loss = &b->profile->loss;
	uint64_t numbers[2]; /* count, reason */
	const char *reason = "no reason given";

	if (trace_record_numbers(b->reader, record, numbers, 2, NULL) < 0) {
		loss_add_reason(loss, "a loss record is damaged", 1);
		return;
	}
	if (numbers[1] && numbers[1] < trace_reader_n_strings(b->reader))
		reason = trace_reader_string(b->reader, (uint32_t)numbers[1]);
	if (record->minor == RECORD_LOSS_SAMPLES)
		loss->samples_lost += numbers[0];
	else if (record->minor == RECORD_LOSS_EVENTS)
		loss->events_lost += numbers[0];
	else if (record->minor == RECORD_LOSS_RECORDS)
		loss->records_lost += numbers[0];
	else if (record->minor == RECORD_LOSS_PART)
		loss->is_cut = true;
	if (record->minor != RECORD_LOSS_NOTE || strcmp(reason, success) != 0)
		loss_add_reason(loss, reason, numbers[0]);
}

static void note_alive(struct builder *b, uint64_t thread, uint64_t time)
{
	if (thread < b->profile->n_threads && !b->alive_since[thread])
		b->alive_since[thread] = time + 1;
}

static void name_thread(struct builder *b, const struct trace_record *record)
{
	uint64_t numbers[4]; /* thread, runtime tid, system?, name */

	if (trace_record_numbers(b->reader, record, numbers, 4, NULL) < 0 ||
		numbers[0] >= b->profile->n_threads ||
		numbers[3] >= trace_reader_n_strings(b->reader)) {
		loss_add_reason(&b->profile->loss, "a thread's name is damaged", 1);
		return;
	}
	note_alive(b, (uint32_t)numbers[0], record->time);
	b->profile->threads[numbers[0]].name = trace_reader_string(b->reader, (uint32_t)numbers[3]);
	if (numbers[2] && numbers[2] <= RECORD_THREAD_IS_COLLECTOR)
		b->profile->threads[numbers[0]].role = (enum record_thread_role)numbers[2];
}

static void note_collector(struct builder *b, uint64_t thread)
{
	if (thread < b->profile->n_threads)
		b->profile->threads[thread].role = RECORD_THREAD_IS_COLLECTOR;
}

static bool is_known(const struct trace_record *record)
{
	uint32_t minor = record->minor;

	switch (record->major) {
	case RECORD_MAJOR_THREAD:
		return minor >= RECORD_THREAD_CREATED && minor <= RECORD_THREAD_ENDED;
	case RECORD_MAJOR_MODULE:
		return minor == RECORD_MODULE_LOAD || minor == RECORD_MODULE_UNLOAD ||
		       minor == RECORD_MODULE_SNAPSHOT || minor == RECORD_MODULE_CLASS_LOAD ||
		       minor == RECORD_MODULE_CLASS_UNLOAD || minor == RECORD_MODULE_JIT_UNLOAD;
	case RECORD_MAJOR_PROCESS:
		return minor >= RECORD_PROCESS_START && minor <= RECORD_PROCESS_END;
	case RECORD_MAJOR_PROBE:
		return minor == RECORD_PROBE_LINE || minor == RECORD_PROBE_MAP;
	case RECORD_MAJOR_STEP:
		return minor >= RECORD_STEP_RUN && minor <= RECORD_STEP_WAY;
	case RECORD_MAJOR_PHASE:
		return minor == RECORD_PHASE_STARTED || minor == RECORD_PHASE_ENDED;
	}
	return false;
}

void build_life_record(struct builder *b, const struct trace_record *record)
{
	uint64_t thread;

	if (record->major == RECORD_MAJOR_LOSS && record->minor >= RECORD_LOSS_SAMPLES &&
		record->minor <= RECORD_LOSS_PART)
		add_loss(b, record);
	else if (record->major == RECORD_MAJOR_THREAD && record->minor == RECORD_THREAD_NAMED)
		name_thread(b, record);
	else if (record->major == RECORD_MAJOR_THREAD && record->minor == RECORD_THREAD_CREATED &&
		 trace_record_numbers(b->reader, record, &thread, 1, NULL) == 0)
		note_alive(b, thread, record->time);
	else if (record->major == RECORD_MAJOR_THREAD && record->minor == RECORD_THREAD_GC &&
		 trace_record_numbers(b->reader, record, &thread, 1, NULL) == 0)
		note_collector(b, thread);
	else if (record->major == RECORD_MAJOR_HOOK &&
		 (record->minor == RECORD_HOOK_FUNCTION || record->minor == RECORD_HOOK_COST ||
			 record->minor == RECORD_HOOK_FRAME))
		build_hook_record(b, record);
	else if (!is_known(record))
		b->profile->loss.records_unknown++;
}

void build_note_damage(struct builder *b, const struct err *err)
{
	loss_add_reason(&b->profile->loss, err->text, 1);
	b->profile->loss.is_cut = true;
}

static void read_life_stream(struct builder *b, uint32_t stream)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct err err = {0};
	int rc = trace_cursor_open(&cursor, b->reader, stream, 0, UINT64_MAX, &err);

	if (rc == 0) {
		while ((rc = trace_cursor_next(cursor, &record, &err)) != 0)
			if (rc <
				0) /* costs that chunk alone; the walk meets it again and says what it is */
				b->profile->loss.is_cut = true;
			else if (!build_is_of_the_walk(&record)) /* even in a stream of life */
				build_life_record(b, &record);
		trace_cursor_close(cursor);
	}
	if (rc < 0)
		b->profile->loss.is_cut = true;
}

/* What they defined is unknown, and shown as such where it is referred to. */
static void note_damaged_tables(struct builder *b)
{
	struct loss *loss = &b->profile->loss;
	const char *why;
	uint32_t n = trace_reader_n_damaged_tables(b->reader, &why);

	if (!n)
		return;
	loss->is_cut = true;
	loss_add_reason(loss, why, 1);
	if (n > 1)
		loss_add_reason(loss, "more chunks of definitions are damaged", n - 1);
	if (trace_reader_n_unplaced(b->reader))
		loss_add_reason(loss, "records of a stream whose definition is damaged",
			trace_reader_n_unplaced(b->reader));
}

void build_read_life(struct builder *b)
{
	const char *why;

	for (uint32_t id = 1; id < trace_reader_n_streams(b->reader); id++)
		if (trace_reader_stream(b->reader, id)->kind == STREAM_KIND_LIFE)
			read_life_stream(b, id);
	note_damaged_tables(b);
	if (trace_reader_is_recovered(b->reader, &why)) {
		b->profile->loss.is_cut = true;
		loss_add_reason(
			&b->profile->loss, why ? why : "the end of the trace is missing", 1);
	}
}

/* PID_TID; imports without numbers are "pid_tid" and "pid_TID". A pid that was used again gets a
 * number behind it, so that two threads never share a root. */
static char *make_root_name(const struct profile_thread *thread, struct map *n_seen)
{
	uint64_t *n = map_ensure(n_seen, (uint64_t)thread->pid << 32 | thread->tid, NULL);
	char name[64], *end = name;

	if (thread->pid)
		end += sprintf(end, "%" PRIu32 "_%" PRIu32, thread->pid, thread->tid);
	else if (thread->tid)
		end += sprintf(end, "pid_%" PRIu32, thread->tid);
	else
		end += sprintf(end, "pid_tid");
	if (++*n > 1)
		sprintf(end, "#%" PRIu64, *n);
	return mem_strdup(name);
}

static bool matches(const struct profile_thread *thread, const char *wanted)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%" PRIu32, thread->tid);
	return !strcmp(tid, wanted) || !strcmp(thread->root_name, wanted) ||
	       !strcmp(thread->name, wanted);
}

int build_select_threads(struct builder *b, const char *wanted, struct err *err)
{
	struct profile *p = b->profile;
	struct map n_seen = {0};
	bool found = false;

	for (uint32_t id = 1; id < p->n_threads; id++) {
		const struct trace_thread *thread = trace_reader_thread(b->reader, id);

		p->threads[id].pid = thread->pid;
		p->threads[id].tid = thread->tid;
		p->threads[id].root_name = make_root_name(&p->threads[id], &n_seen);
		p->threads[id].is_wanted = !wanted || matches(&p->threads[id], wanted);
		found |= p->threads[id].is_wanted;
	}
	map_release(&n_seen);
	if (wanted && !found)
		return err_set(err, ERR_NOT_FOUND, "'%s': has no thread '%s'",
			trace_reader_name(b->reader), wanted);
	return 0;
}
