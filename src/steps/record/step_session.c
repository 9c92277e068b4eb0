/* SPDX-License-Identifier: MIT */
#include "steps/record/step_session.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "process/proc.h"
#include "steps/record/step_internal.h"
#include "steps/record/step_memory.h"

/* Accesses to memory that one record holds, beside those of its last step; a run is cut there. */
#define DATA_MAX 8192
/* With several threads a run lasts no longer, so that they can be shown in order of time. */
#define RUN_NS_MAX 2000000u
#define PAGE_SHIFT 12
/* i386 */
#define SIGRETURN_32	119
#define RT_SIGRETURN_32 173

void step_session_note(struct step_session *s, const char *fmt, ...)
{
	va_list ap;
	char text[512];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	trace_writer_loss(s->env.w, s->life_stream, clock_mono_ns(), RECORD_LOSS_NOTE, 1, text);
	if (s->options->note)
		s->options->note(s->options->ctx, text);
}

/* --- runs --------------------------------------------------------------------------------- */

static void end_way(struct step_session *s, struct step_track *t, uint64_t time)
{
	struct buf b = {0};

	t->is_in_way = false;
	step_space_write_code(t->space, &s->env, time);
	step_way_end(&t->way, &b);
	trace_writer_record(
		s->env.w, t->stream, time, RECORD_MAJOR_STEP, RECORD_STEP_WAY, b.p, b.n);
	buf_release(&b);
}

static void end_run(struct step_session *s, struct step_track *t, uint64_t time)
{
	struct buf b = {0};

	if (t->is_in_way)
		end_way(s, t, time);
	if (!t->is_open)
		return;
	t->is_open = false;
	step_space_write_code(t->space, &s->env, time);
	step_run_end(&t->run, &b);
	trace_writer_record(
		s->env.w, t->stream, time, RECORD_MAJOR_STEP, RECORD_STEP_RUN, b.p, b.n);
	if (t->data.n) {
		b.n = 0;
		step_data_encode(&b, t->data.v, (uint32_t)t->data.n);
		trace_writer_record(
			s->env.w, t->stream, time, RECORD_MAJOR_STEP, RECORD_STEP_DATA, b.p, b.n);
		t->data.n = 0;
	}
	buf_release(&b);
}

void step_session_flush(struct step_session *s, uint64_t time, bool is_end)
{
	struct err err;

	s->flushed_ns = time;
	/* A string instruction that is still going round is one step, however long it takes. */
	for (size_t i = 0; i < s->tracks.n; i++)
		if (!s->tracks.v[i]->is_in_string || is_end)
			end_run(s, s->tracks.v[i], time);
	if (!s->result->write_error.code && trace_writer_flush(s->env.w, &err) < 0)
		s->result->write_error = err;
}

void step_session_end_run(struct step_session *s, struct step_track *t)
{
	end_run(s, t, clock_mono_ns());
}

void step_session_begin_way(
	struct step_session *s, struct step_track *t, uint32_t generation, uint32_t block)
{
	end_run(s, t, clock_mono_ns());
	step_way_begin(&t->way, t->n_steps, t->space->number, generation, block);
	t->is_in_way = true;
}

static void begin_run(struct step_track *t, uint64_t time)
{
	step_run_begin(&t->run, t->n_steps, t->space->number, t->space->generation);
	t->is_open = true;
	t->run_began = time;
}

bool step_session_step(struct step_session *s, struct step_track *t, uint64_t addr,
	const uint8_t *bytes, size_t n, bool is_64)
{
	uint64_t now = clock_mono_ns();
	struct step_entry *e;

	if (s->options->max && s->n_steps >= s->options->max)
		return false;
	e = step_space_execute(t->space, &s->env, addr, bytes, n, is_64, now);
	if (s->sink) {
		s->n_steps += s->sink->step(s->sink_ctx, t, addr, bytes, n, is_64);
		return true;
	}
	if (t->data.n >= DATA_MAX) /* also between two iterations of a string instruction */
		end_run(s, t, now);
	if (t->is_open && t->run.head.generation == t->space->generation && e->is_string &&
		t->run.last == addr) {
		step_run_again(&t->run, 1);
		return true;
	}
	if (t->is_open &&
		(step_run_is_full(&t->run) || t->run.head.generation != t->space->generation ||
			(s->n_live > 1 && now - t->run_began > RUN_NS_MAX)))
		end_run(s, t, now);
	if (!t->is_open)
		begin_run(t, now);
	step_run_add(&t->run, addr);
	t->is_in_string = e->is_string;
	t->n_steps++;
	s->n_steps++;
	if (s->options->max && s->n_steps >= s->options->max)
		s->run.is_over = true;
	return true;
}

static void write_mark(struct step_session *s, struct step_track *t, struct step_mark *m)
{
	uint64_t now = clock_mono_ns();
	struct buf b = {0};

	end_run(s, t, now);
	m->at = t->n_steps;
	step_mark_encode(&b, m);
	trace_writer_record(
		s->env.w, t->stream, now, RECORD_MAJOR_STEP, RECORD_STEP_MARK, b.p, b.n);
	buf_release(&b);
}

static bool is_sigreturn(int64_t number, bool is_32)
{
	return is_32 ? number == SIGRETURN_32 || number == RT_SIGRETURN_32 : number == SYS_rt_sigreturn;
}

void step_session_mark(struct step_session *s, struct step_track *t, enum step_mark_kind kind,
	int64_t a, int64_t b, int64_t c)
{
	struct step_mark m = {.kind = kind, .a = a, .b = b, .c = c};

	if (!s->sink)
		write_mark(s, t, &m);
	else if (kind == STEP_MARK_SYSCALL && is_sigreturn(a, c & STEP_CALL_I386))
		s->sink->handler_ended(s->sink_ctx, t);
}

void step_session_handler(struct step_session *s, struct step_track *t, uint64_t addr)
{
	if (s->sink)
		s->sink->handler(s->sink_ctx, t, addr);
}

void step_session_pause(
	struct step_session *s, struct step_track *t, enum step_why why, const char *reason)
{
	struct step_mark m = {.kind = STEP_MARK_PAUSE, .a = why};

	m.text = trace_writer_string(s->env.w, reason);
	write_mark(s, t, &m);
}

void step_session_lost(
	struct step_session *s, struct step_track *t, uint64_t steps, const char *why)
{
	if (s->sink) {
		s->sink->lost(s->sink_ctx, t, steps, why);
		return;
	}
	step_session_mark(s, t, STEP_MARK_LOST, (int64_t)steps, 0, 0);
	s->result->n_lost += steps;
	trace_writer_loss(
		s->env.w, s->life_stream, clock_mono_ns(), RECORD_LOSS_EVENTS, steps, why);
}

/* --- processes and threads ---------------------------------------------------------------- */

static struct step_space *new_space(struct step_session *s, struct process *p)
{
	struct step_space *space = step_space_new((uint32_t)s->spaces.n + 1, p);

	if (s->options->data)
		space->memory = step_memory_new();
	space->is_sunk = s->sink;
	if (s->sink)
		s->sink->program(s->sink_ctx, space);
	vec_push(&s->spaces, space);
	return space;
}

void step_session_look_at_name(struct step_session *s, const struct step_track *t)
{
	char name[64];

	proc_name((pid_t)t->pid, (pid_t)t->tid, name, sizeof(name));
	if (name[0])
		processes_name_thread(s->processes, t->pid, t->tid, clock_mono_ns(), name);
}

static struct step_track *new_track(
	struct step_session *s, struct step_space *space, pid_t pid, pid_t tid, uint64_t time)
{
	struct thread *thread = processes_thread(s->processes, (uint32_t)pid, (uint32_t)tid, time);
	struct step_track *t = mem_zalloc(sizeof(*t));

	t->pid = (uint32_t)pid;
	t->tid = (uint32_t)tid;
	t->space = space;
	t->trace_thread = thread->trace_id;
	if (!s->sink)
		t->stream = trace_writer_stream(s->env.w, STREAM_KIND_THREAD, thread->trace_id);
	vec_push(&s->tracks, t);
	step_session_look_at_name(s, t);
	s->n_live++;
	s->result->n_threads++;
	return t;
}

struct map_marks {
	struct step_session *s;
	struct step_track *t;
};

static void mark_change(void *ctx, const struct step_change *change)
{
	struct map_marks *m = ctx;
	struct step_mark mark = {.kind = STEP_MARK_MAP,
		.a = change->what,
		.b = (int64_t)change->start,
		.c = (int64_t)(change->end - change->start)};

	if (!m->t || m->s->sink)
		return;
	mark.text = trace_writer_string(m->s->env.w, change->path);
	write_mark(m->s, m->t, &mark);
}

/* Runs that are recorded up to now were executed before the change; but a string instruction that is
 * still going round is one step, and so is that of `busy`, which is being looked at. */
static void tell_memory(
	struct step_session *s, struct step_space *space, const struct step_track *busy)
{
	uint64_t time = clock_mono_ns();
	bool has_losses;

	if (!space->memory || !space->memory->changes.n)
		return;
	has_losses = step_memory_has_losses(space->memory);
	for (size_t i = 0; has_losses && i < s->tracks.n; i++) {
		struct step_track *t = s->tracks.v[i];

		if (t->space == space && !t->is_in_string && t != busy)
			end_run(s, t, time);
	}
	step_memory_tell(space->memory, &s->env, space->number, time + 1);
}

static void read_maps(struct step_session *s, struct step_space *space, struct step_track *t)
{
	step_space_read_maps(space, &s->env, (pid_t)space->process->pid, clock_mono_ns(),
		mark_change, &(struct map_marks){s, t});
	tell_memory(s, space, NULL);
}

void step_session_maps(struct step_session *s, struct step_track *t)
{
	read_maps(s, t->space, t);
}

/* --- accesses ------------------------------------------------------------------------------ */

/* Stacks grow without a word: where nothing is known, /proc is asked again, once for a page. */
static void note_place(struct step_session *s, struct step_track *t, uint64_t addr)
{
	struct step_memory *m = t->space->memory;

	for (int tries = 0; m; tries++) {
		if (step_memory_access(
			    m, &s->env, t->space, addr, clock_mono_ns(), step_find_variables, s) ||
			m->unknown_page == addr >> PAGE_SHIFT)
			return;
		if (tries) {
			m->unknown_page = addr >> PAGE_SHIFT;
			return;
		}
		step_space_read_memory(t->space, &s->env, (pid_t)t->pid);
		tell_memory(s, t->space, t);
	}
}

void step_session_datum(struct step_session *s, struct step_track *t, uint64_t addr, unsigned how,
	const uint8_t *value, size_t n, bool has_value)
{
	struct step_datum d = {.at = t->n_steps - 1, .addr = addr, .how = (uint8_t)how};

	note_place(s, t, addr);
	d.n = (uint8_t)(n < STEP_DATA_BYTES_MAX ? n : STEP_DATA_BYTES_MAX);
	d.has_value = has_value;
	if (has_value)
		memcpy(d.value, value, d.n);
	vec_push(&t->data, d);
}

/* --- beginnings and ends ------------------------------------------------------------------- */

void step_session_process(struct step_session *s, pid_t pid, bool was_running)
{
	char command_line[4096];
	uint64_t time = clock_mono_ns();
	struct process *p;

	proc_command_line(pid, command_line, sizeof(command_line));
	p = processes_start(s->processes, (uint32_t)pid, (uint32_t)proc_parent(pid),
		was_running ? proc_start_ns(pid) : time, time, was_running ? command_line : "");
	p->was_running = was_running;
	p->is_named = true;
	s->result->n_processes++;
	if (was_running)
		read_maps(s, new_space(s, p), NULL);
	else
		new_space(s, p);
}

static struct step_space *space_of(struct step_session *s, pid_t pid)
{
	for (size_t i = s->spaces.n; i--;)
		if (s->spaces.v[i]->process->pid == (uint32_t)pid &&
			!s->spaces.v[i]->process->has_ended)
			return s->spaces.v[i];
	step_session_process(s, pid, true);
	return s->spaces.v[s->spaces.n - 1];
}

struct step_track *step_session_thread(struct step_session *s, pid_t pid, pid_t tid)
{
	return new_track(s, space_of(s, pid), pid, tid, clock_mono_ns());
}

struct step_track *step_session_forked(
	struct step_session *s, struct step_track *by, pid_t pid, pid_t tid)
{
	uint64_t time = clock_mono_ns();
	struct step_space *space = by->space;
	bool is_thread = (uint32_t)pid == by->pid;
	struct step_track *t;

	step_session_mark(s, by, STEP_MARK_FORK, pid, tid, is_thread);
	processes_fork(s->processes, &(struct thread_id){(uint32_t)pid, (uint32_t)tid},
		&(struct thread_id){by->pid, by->tid}, time);
	if (!is_thread) {
		space = new_space(s, processes_get(s->processes, (uint32_t)pid, time));
		step_space_copy_regions(space, by->space);
		s->result->n_processes++;
	}
	t = new_track(s, space, pid, tid, time);
	if (s->sink)
		s->sink->thread(s->sink_ctx, t, by);
	return t;
}

struct step_track *step_session_adopt(struct step_session *s, pid_t pid)
{
	uint64_t time = clock_mono_ns();
	struct step_space *space = new_space(s, processes_get(s->processes, (uint32_t)pid, time));
	struct step_track *t = new_track(s, space, pid, pid, time);

	s->result->n_threads--; /* whoever had it has counted it */
	s->sink->thread(s->sink_ctx, t, NULL);
	read_maps(s, space, t);
	return t;
}

void step_session_leave(struct step_session *s, struct step_track *t)
{
	if (t->has_ended)
		return;
	if (s->sink)
		s->sink->gone(s->sink_ctx, t);
	t->has_ended = true;
	s->n_live--;
}

void step_session_exec(struct step_session *s, struct step_track *t)
{
	uint64_t time = clock_mono_ns();
	struct process *p = processes_get(s->processes, t->pid, time);
	struct step_mark mark = {.kind = STEP_MARK_EXEC};
	char target[4096], name[64];

	if (s->sink) {
		s->sink->gone(s->sink_ctx, t);
	} else {
		proc_exe((pid_t)t->pid, target, sizeof(target));
		mark.text = trace_writer_string(s->env.w, target);
		write_mark(s, t, &mark);
	}
	module_history_exec(s->env.modules, p, time);
	proc_name((pid_t)t->pid, (pid_t)t->pid, name, sizeof(name));
	processes_exec(s->processes, t->pid, time, name);
	processes_name_thread(s->processes, t->pid, t->tid, time, name);
	t->space = new_space(s, p);
	if (s->sink)
		s->sink->thread(s->sink_ctx, t, NULL);
	read_maps(s, t->space, t);
}

void step_session_exit(struct step_session *s, struct step_track *t, int wait_status)
{
	uint64_t time = clock_mono_ns();
	struct process *p;

	if (t->has_ended)
		return;
	step_session_mark(s, t, STEP_MARK_EXIT, wait_status, 0, 0);
	step_session_leave(s, t);
	p = processes_thread(s->processes, t->pid, t->tid, time)->process;
	if (p->n_live == 1)
		module_history_end(s->env.modules, p, time, MODULE_END_EXIT);
	processes_exit(s->processes, t->pid, t->tid, time);
}

bool step_session_wants(struct step_session *s, const struct step_track *t, uint64_t addr)
{
	const struct step_region *r;
	const char *name;

	if (!s->options->user_code)
		return true;
	r = step_space_region(t->space, addr);
	if (!r)
		return false;
	name = strrchr(r->path, '/');
	return !fnmatch(s->options->user_code, r->path, 0) ||
	       (name && !fnmatch(s->options->user_code, name + 1, 0));
}
