/* SPDX-License-Identifier: MIT */
/*
 * Records are played in order of time, each into its process: a pid and a start, since pids are
 * used again.
 *
 * Invariants:
 * 1. A forked process has a parent (as of the fork) until it maps or unmaps something itself: then
 *    it gets rows for all that it has from there. That parent is never one that is itself still
 *    without rows of its own: then it is the parent's parent.
 * 2. A mapping whose beginning is not known (of a snapshot, or marked as there from the start) goes
 *    back to the process's base, the beginning of its current program, unless something else was
 *    there in between.
 * 3. What a process says of its end becomes true when nothing more is heard of it: the record is
 *    that of its first thread, and others may live on.
 */
#include "symbols/resolve/module_replay.h"

#include <elf.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/order.h"
#include "symbols/catalog/match.h"
#include "symbols/resolve/module_map.h"
#include "symbols/resolve/module_rows.h"

#define INHERITED_MAX (1u << 22) /* rows of all processes together */

struct process {
	struct module_space space;
	uint64_t end_time;		 /* when it said that it ended; UINT64_MAX = it did not */
	bool is_forked_only;		 /* only a fork record speaks of it: its start is a guess */
	VEC(struct module_piece) at_end; /* the end snapshot, not yet compared */
	uint64_t at_end_time;
};

struct player {
	struct module_replay *out;
	const struct trace_reader *r;
	bool has_rows;
	bool has_started; /* start-up records are complete */
	struct module_rows rows;
	VEC(struct process) processes; /* beside out->processes */
	struct map by_pid;	       /* -> index + 1 of the newest */
	struct map by_key;	       /* hash of pid and start -> index + 1 */
	uint64_t n_inherited;
};

/* --- processes --------------------------------------------------------------------------- */

static bool find_current(const struct player *p, uint32_t pid, uint32_t *i)
{
	const uint64_t *at = map_find(&p->by_pid, pid);

	if (at)
		*i = (uint32_t)*at - 1;
	return at != NULL;
}

static uint64_t key_of(uint32_t pid, uint64_t start)
{
	return map_hash_mix(map_hash(pid), start);
}

ORDER_BY(by_start, struct module_piece, start)

/*
 * The end snapshot is complete: what is open and not in it has ended before; what is in it and not
 * open was mapped at some time.
 */
static void compare_with_end(struct player *p, uint32_t i)
{
	struct process *process = &p->processes.v[i];
	struct module_space *space = &process->space;
	uint64_t time = process->at_end_time, covered = 0;
	struct module_piece *pieces = process->at_end.v;
	size_t n = process->at_end.n;

	if (!n)
		return;
	process->at_end.n = 0;
	qsort(pieces, n, sizeof(*pieces), by_start);
	for (size_t k = 0; k < n; k++) {
		if (pieces[k].start > covered)
			module_rows_cut(&p->rows, space, covered, pieces[k].start, time,
				MODULE_END_SNAPSHOT);
		module_rows_cut_others(&p->rows, space, &pieces[k], time, MODULE_END_SNAPSHOT);
		if (pieces[k].end > covered)
			covered = pieces[k].end;
	}
	module_rows_cut(&p->rows, space, covered, UINT64_MAX, time, MODULE_END_SNAPSHOT);
	for (size_t k = 0; k < n; k++)
		module_rows_fill(&p->rows, space, &pieces[k], time, true);
}

/* Nothing more is heard of it: by its own word, or for the given reason. UINT64_MAX: the trace
 * ends. */
static void close_process(struct player *p, uint32_t i, uint64_t time, enum module_end how)
{
	struct process *process = &p->processes.v[i];

	compare_with_end(p, i);
	if (process->end_time != UINT64_MAX) {
		time = process->end_time;
		how = MODULE_END_EXIT;
	}
	if (time == UINT64_MAX)
		return;
	module_rows_cut(&p->rows, &process->space, 0, UINT64_MAX, time, how);
	if (p->out->processes.v[i].until > time)
		p->out->processes.v[i].until = time;
}

static uint32_t add_process(struct player *p, uint32_t pid, uint64_t start, uint64_t time)
{
	uint32_t i = (uint32_t)p->processes.n, before;
	struct process process = {.space = {.owner = i}, .end_time = UINT64_MAX};

	if (find_current(p, pid, &before))
		close_process(p, before, time, MODULE_END_REUSED);
	if (p->has_started && start)
		process.space.base = start < time ? start : time;
	vec_push(&p->processes, process);
	vec_push(&p->out->processes, ((struct module_process){.pid = pid, .start = start}));
	*map_ensure(&p->by_pid, pid, NULL) = i + 1;
	*map_ensure(&p->by_key, key_of(pid, start), NULL) = i + 1;
	return i;
}

static bool find_key(const struct player *p, uint32_t pid, uint64_t start, uint32_t *i)
{
	const uint64_t *at = map_find(&p->by_key, key_of(pid, start));

	if (!at || p->out->processes.v[*at - 1].pid != pid ||
		p->out->processes.v[*at - 1].start != start)
		return false;
	*i = (uint32_t)*at - 1;
	return true;
}

/* The process that a record names. */
static uint32_t ensure_process(struct player *p, uint32_t pid, uint64_t start, uint64_t time)
{
	uint32_t i;

	if (find_key(p, pid, start, &i))
		return i;
	/* The time of a fork record may have been raised (docs/format/records.md). */
	if (find_current(p, pid, &i) && p->processes.v[i].is_forked_only && start &&
		start < p->out->processes.v[i].start) {
		p->out->processes.v[i].start = start;
		p->processes.v[i].is_forked_only = false;
		*map_ensure(&p->by_key, key_of(pid, start), NULL) = i + 1;
		return i;
	}
	return add_process(p, pid, start, time);
}

/* A process that maps or unmaps something gets rows for what it has from its parent. */
static void take_inherited(struct player *p, uint32_t i)
{
	struct module_process *m = &p->out->processes.v[i];
	const struct module_space *from;

	if (!m->parent || m->until != UINT64_MAX)
		return;
	from = &p->processes.v[m->parent - 1].space;
	m->parent = 0;
	if (!module_rows_spend(&p->rows, from->all.n))
		return;
	for (size_t k = 0; k < from->all.n; k++) {
		struct trace_module_span s = p->rows.rows.v[from->all.v[k]];
		struct module_piece piece = {s.start, s.end, s.image, s.bias, false, false};

		if (s.from > m->fork_time || s.to <= m->fork_time)
			continue;
		if (p->n_inherited++ < INHERITED_MAX)
			module_rows_open(&p->rows, &p->processes.v[i].space, &piece, m->since);
		else
			p->out->n_lost++;
	}
}

static void play_fork(struct player *p, uint32_t pid, uint32_t parent_pid, uint64_t time)
{
	struct module_process *m, *parent;
	uint32_t i, parent_i;

	/* A thread, or a process that other records have spoken of already. */
	if (pid == parent_pid || find_key(p, pid, time, &i))
		return;
	i = add_process(p, pid, time, time);
	p->processes.v[i].is_forked_only = true;
	if (!find_current(p, parent_pid, &parent_i))
		return;
	m = &p->out->processes.v[i];
	parent = &p->out->processes.v[parent_i];
	m->since = time;
	m->until = UINT64_MAX;
	if (!p->has_rows && parent->parent && parent->until == UINT64_MAX) {
		m->parent = parent->parent;
		m->fork_time = parent->fork_time;
	} else {
		m->parent = parent_i + 1;
		m->fork_time = time;
	}
}

static void play_exec(struct player *p, uint32_t i, uint64_t time)
{
	struct process *process = &p->processes.v[i];

	compare_with_end(p, i);
	module_rows_cut(&p->rows, &process->space, 0, UINT64_MAX, time, MODULE_END_EXEC);
	process->space.closed.n = 0;
	process->space.base = time;
	process->end_time = UINT64_MAX;
	if (p->out->processes.v[i].until > time)
		p->out->processes.v[i].until = time;
}

static void play_process(struct player *p, const struct trace_record *record)
{
	static const size_t n_numbers[] = {[RECORD_PROCESS_START] = 3,
		[RECORD_PROCESS_FORK] = 2,
		[RECORD_PROCESS_EXEC] = 1,
		[RECORD_PROCESS_END] = 1};
	uint64_t n[3] = {0};
	uint32_t i;

	if (record->minor < RECORD_PROCESS_START || record->minor > RECORD_PROCESS_END)
		return;
	if (trace_record_numbers(p->r, record, n, n_numbers[record->minor], NULL) < 0 ||
		n[0] > UINT32_MAX || n[1] > UINT32_MAX) {
		p->out->n_lost++;
		return;
	}
	switch (record->minor) {
	case RECORD_PROCESS_START:
		ensure_process(p, (uint32_t)n[0], n[2], record->time);
		break;
	case RECORD_PROCESS_FORK:
		play_fork(p, (uint32_t)n[0], (uint32_t)n[1], record->time);
		break;
	case RECORD_PROCESS_EXEC:
		if (find_current(p, (uint32_t)n[0], &i))
			play_exec(p, i, record->time);
		break;
	case RECORD_PROCESS_END:
		if (find_current(p, (uint32_t)n[0], &i))
			p->processes.v[i].end_time = record->time;
		break;
	}
}

/* --- modules ----------------------------------------------------------------------------- */

/* Checks the numbers that all module records begin with, and the image. */
static bool take_piece(
	const struct player *p, const uint64_t n[4], uint64_t image, struct module_piece *piece)
{
	if (n[0] > UINT32_MAX || !n[3] || n[3] > UINT64_MAX - n[2] ||
		image >= trace_reader_n_images(p->r))
		return false;
	*piece = (struct module_piece){.start = n[2], .end = n[2] + n[3], .image = (uint32_t)image};
	return true;
}

/* The process of a module record, ready to be changed. */
static struct process *touch_process(
	struct player *p, const uint64_t n[2], uint64_t time, bool is_at_end)
{
	uint32_t i = ensure_process(p, (uint32_t)n[0], n[1], time);
	struct process *process = &p->processes.v[i];

	if (process->end_time < time)
		process->end_time = time;
	take_inherited(p, i);
	if (!is_at_end || process->at_end_time != time)
		compare_with_end(p, i);
	return process;
}

#define PAGE_BYTES ((uint64_t)4096)

/* A load record without a bias, of a writer that did not look into the image: the trace may have
 * the image's segments, and the one that was loaded is found by its place in the file or, when that
 * says nothing, as segment_match() says. `n` is the record's. */
static uint64_t bias_by_segment(const struct player *p, const uint64_t n[8])
{
	const struct trace_image_facts *facts = trace_reader_image_facts(p->r, (uint32_t)n[5]);
	const uint64_t page = ~(PAGE_BYTES - 1);
	struct image_segment sections[TRACE_SEGMENTS_MAX] = {0};
	struct image_segment loaded = {.addr = n[2], .mem_bytes = n[3]};
	size_t n_sections = 0, found;

	for (uint32_t i = 0; facts && i < facts->n_segments && i < TRACE_SEGMENTS_MAX; i++) {
		const struct trace_segment *s = &facts->segments[i];
		uint64_t skipped = s->addr & ~page;

		if (!(s->flags & PF_X))
			continue;
		if (n[6] && n[6] == (s->offset & page))
			return n[2] - (s->addr & page);
		sections[n_sections].addr = s->addr & page;
		sections[n_sections++].mem_bytes = (s->mem_bytes + skipped + PAGE_BYTES - 1) & page;
	}
	found = segment_match(&loaded, sections, n_sections, NULL);
	return found == SIZE_MAX ? MODULE_BIAS_UNKNOWN : n[2] - sections[found].addr;
}

static bool play_load(struct player *p, const struct trace_record *record)
{
	struct module_piece piece;
	struct process *process;
	bool found;
	uint64_t n[9];

	if (trace_record_numbers(p->r, record, n, 8, NULL) < 0 || !n[5] ||
		!take_piece(p, n, n[5], &piece))
		return false;
	if (trace_record_numbers(p->r, record, n, 9, NULL) < 0)
		n[8] = bias_by_segment(p, n);
	piece.bias = n[8];
	piece.at_start = n[7] != 0;
	piece.is_used = true;
	process = touch_process(p, n, record->time, false);
	found = module_rows_cut_others(
		&p->rows, &process->space, &piece, record->time, MODULE_END_OVERLAP);
	module_rows_fill(&p->rows, &process->space, &piece, record->time, piece.at_start && !found);
	return true;
}

static bool play_unload(struct player *p, const struct trace_record *record)
{
	enum module_end how = MODULE_END_MUNMAP;
	struct module_piece piece;
	struct process *process;
	uint64_t n[5];

	if (trace_record_numbers(p->r, record, n, 5, NULL) < 0 || !take_piece(p, n, 0, &piece))
		return false;
	if (n[4] > MODULE_END_NONE && n[4] < MODULE_N_ENDS)
		how = (enum module_end)n[4];
	process = touch_process(p, n, record->time, false);
	module_rows_cut(&p->rows, &process->space, piece.start, piece.end, record->time, how);
	return true;
}

static bool play_snapshot(struct player *p, const struct trace_record *record)
{
	struct module_piece piece;
	struct process *process;
	uint64_t n[7];

	if (trace_record_numbers(p->r, record, n, 7, NULL) < 0 || !n[4] ||
		!take_piece(p, n, n[4], &piece))
		return false;
	piece.bias = n[5];
	process = touch_process(p, n, record->time, n[6] != 0);
	if (n[6]) {
		process->at_end_time = record->time;
		vec_push(&process->at_end, piece);
		return true;
	}
	piece.at_start = !process->space.base;
	module_rows_fill(&p->rows, &process->space, &piece, record->time, true);
	return true;
}

static void play_module(struct player *p, const struct trace_record *record)
{
	bool is_fine = true;

	if (p->has_rows)
		return;
	switch (record->minor) {
	case RECORD_MODULE_LOAD:
		is_fine = play_load(p, record);
		break;
	case RECORD_MODULE_UNLOAD:
		is_fine = play_unload(p, record);
		break;
	case RECORD_MODULE_SNAPSHOT:
		is_fine = play_snapshot(p, record);
		break;
	}
	p->out->n_lost += !is_fine;
}

/* --- the trace --------------------------------------------------------------------------- */

/* The stream that has all records of this kind; 0 when there is none. */
static uint32_t life_stream(const struct trace_reader *r)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < trace_reader_n_streams(r); i++) {
		if (trace_reader_stream(r, i)->kind != STREAM_KIND_LIFE)
			continue;
		if (found)
			return TRACE_ALL_STREAMS;
		found = i;
	}
	return found;
}

static int play_all(struct player *p, uint32_t stream, struct err *err)
{
	struct trace_record record;
	struct trace_cursor *c;
	int rc = trace_cursor_open(&c, p->r, stream, 0, UINT64_MAX, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(c, &record, NULL)) != 0) {
		if (rc < 0)
			p->out->n_lost++;
		else if (record.major == RECORD_MAJOR_PROCESS)
			play_process(p, &record);
		else if (record.major == RECORD_MAJOR_MODULE)
			play_module(p, &record);
		else if (record.major == RECORD_MAJOR_PHASE && record.minor == RECORD_PHASE_STARTED)
			p->has_started = true;
	}
	trace_cursor_close(c);
	return 0;
}

/* Hands the rows over, each with the name of its process. */
static void finish(struct player *p)
{
	struct module_replay *out = p->out;

	for (uint32_t i = 0; i < p->processes.n; i++)
		close_process(p, i, UINT64_MAX, MODULE_END_NONE);
	vec_reserve(&out->rows, p->rows.rows.n);
	for (size_t i = 0; i < p->rows.rows.n; i++) {
		const struct module_process *m = &out->processes.v[p->rows.owners.v[i]];
		struct trace_module_span span = p->rows.rows.v[i];

		span.pid = m->pid;
		span.process_start = m->start;
		vec_push(&out->rows, span);
	}
	out->n_lost += p->rows.n_lost;
}

int module_replay_run(
	struct module_replay *out, const struct trace_reader *r, bool has_rows, struct err *err)
{
	struct player p = {.out = out, .r = r, .has_rows = has_rows};
	uint32_t stream = life_stream(r);
	int rc;

	*out = (struct module_replay){0};
	rc = stream ? play_all(&p, stream, err) : 0;
	finish(&p);
	for (size_t i = 0; i < p.processes.n; i++) {
		module_space_release(&p.processes.v[i].space);
		vec_release(&p.processes.v[i].at_end);
	}
	vec_release(&p.processes);
	module_rows_release(&p.rows);
	map_release(&p.by_pid);
	map_release(&p.by_key);
	return rc;
}

void module_replay_release(struct module_replay *replay)
{
	vec_release(&replay->rows);
	vec_release(&replay->processes);
}
