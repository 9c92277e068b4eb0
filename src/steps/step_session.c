/* SPDX-License-Identifier: MIT */
#include "steps/step_session.h"

#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/host_facts.h"
#include "record/name_frames.h"
#include "record/proc.h"
#include "steps/step_internal.h"

/* Accesses to memory that one record holds; a run is cut there. */
#define DATA_MAX 8192
/* With several threads a run lasts no longer, so that they can be shown in order of time. */
#define RUN_NS_MAX  2000000u
#define FLUSH_NS    1000000000u
#define PROGRESS_NS 250000000u
#define TICK_US	    50000

const struct step_options *step_session_options(const struct step_session *s)
{
	return s->options;
}

struct launch *step_session_launch(struct step_session *s)
{
	return s->options->command ? &s->child : NULL;
}

int step_session_wake_fd(const struct step_session *s)
{
	return s->signal_fd;
}

uint64_t step_session_n_steps(const struct step_session *s)
{
	return s->n_steps;
}

pid_t step_track_pid(const struct step_track *t)
{
	return (pid_t)t->pid;
}

pid_t step_track_tid(const struct step_track *t)
{
	return (pid_t)t->tid;
}

void step_track_set_cookie(struct step_track *t, void *cookie)
{
	t->cookie = cookie;
}

void *step_track_cookie(const struct step_track *t)
{
	return t->cookie;
}

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

/* --- when it is over ---------------------------------------------------------------------- */

static volatile sig_atomic_t has_ticked;

static void tick(int number)
{
	(void)number;
	has_ticked = 1;
}

static void take_signals(struct step_session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		/* What the terminal sends, the command got itself. */
		if (s->child.pid > 0 && info.ssi_code <= 0 && !s->result->has_status)
			kill(s->child.pid, (int)info.ssi_signo);
		s->is_over = true;
	}
}

static void look_around(struct step_session *s)
{
	struct pollfd parent = {.fd = s->options->parent_fd, .events = POLLIN};
	uint64_t now = clock_mono_ns();

	take_signals(s);
	if (parent.fd >= 0 && poll(&parent, 1, 0) > 0) {
		s->is_orphan = true;
		s->is_over = true;
	}
	if (s->options->duration_s > 0 &&
		(double)(now - s->began_ns) / 1e9 >= s->options->duration_s)
		s->is_over = true;
	if (now - s->flushed_ns >= FLUSH_NS)
		step_session_flush(s, now);
}

bool step_session_is_over(struct step_session *s)
{
	if (has_ticked) {
		has_ticked = 0;
		look_around(s);
	}
	return s->is_over;
}

enum step_why step_session_why_over(const struct step_session *s)
{
	return s->options->max && s->n_steps >= s->options->max ? STEP_WHY_MAX : STEP_WHY_END;
}

void step_session_progress(struct step_session *s)
{
	uint64_t now;

	if (!s->options->progress)
		return;
	now = clock_mono_ns();
	if (now - s->progress_ns < PROGRESS_NS)
		return;
	s->progress_ns = now;
	s->options->progress(s->options->ctx, s->n_steps, (double)(now - s->began_ns) / 1e9);
}

void step_session_command_ended(struct step_session *s, int wait_status)
{
	s->result->has_status = true;
	s->result->wait_status = wait_status;
}

/* --- runs --------------------------------------------------------------------------------- */

static void end_run(struct step_session *s, struct step_track *t, uint64_t time)
{
	struct buf b = {0};

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

void step_session_flush(struct step_session *s, uint64_t time)
{
	struct err err;

	s->flushed_ns = time;
	for (size_t i = 0; i < s->tracks.n; i++)
		end_run(s, s->tracks.v[i], time);
	if (!s->result->write_error.code && trace_writer_flush(s->env.w, &err) < 0)
		s->result->write_error = err;
}

static void begin_run(struct step_track *t, uint64_t time)
{
	step_run_begin(&t->run, t->n_steps, t->space->number, t->space->generation);
	t->is_open = true;
	t->run_began = time;
}

void step_session_step(struct step_session *s, struct step_track *t, uint64_t addr,
	const uint8_t *bytes, size_t n, bool is_64)
{
	uint64_t now = clock_mono_ns();
	struct step_entry *e;

	if (s->options->max && s->n_steps >= s->options->max)
		return;
	e = step_space_execute(t->space, &s->env, addr, bytes, n, is_64, now);

	if (t->is_open && t->run.head.generation == t->space->generation && e->is_string &&
		t->run.last == addr) {
		step_run_again(&t->run);
		return;
	}
	if (t->is_open &&
		(step_run_is_full(&t->run) || t->run.head.generation != t->space->generation ||
			(s->n_live > 1 && now - t->run_began > RUN_NS_MAX)))
		end_run(s, t, now);
	if (!t->is_open)
		begin_run(t, now);
	step_run_add(&t->run, addr);
	t->n_steps++;
	s->n_steps++;
	if (s->options->max && s->n_steps >= s->options->max)
		s->is_over = true;
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

void step_session_mark(struct step_session *s, struct step_track *t, enum step_mark_kind kind,
	int64_t a, int64_t b, int64_t c)
{
	struct step_mark m = {.kind = kind, .a = a, .b = b, .c = c};

	write_mark(s, t, &m);
	if (kind == STEP_MARK_LOST) {
		s->result->n_lost += (uint64_t)a;
		trace_writer_loss(s->env.w, s->life_stream, clock_mono_ns(), RECORD_LOSS_EVENTS,
			(uint64_t)a, "the buffer of the thread was full");
	}
}

void step_session_datum(struct step_session *s, struct step_track *t, uint64_t addr, unsigned how,
	const uint8_t *value, size_t n, bool has_value)
{
	struct step_datum d = {.at = t->n_steps - 1, .addr = addr, .how = (uint8_t)how};

	if (!t->is_open)
		return;
	d.n = (uint8_t)(n < STEP_DATA_BYTES_MAX ? n : STEP_DATA_BYTES_MAX);
	d.has_value = has_value;
	if (has_value)
		memcpy(d.value, value, d.n);
	vec_push(&t->data, d);
	if (t->data.n == DATA_MAX) /* also between two iterations of a string instruction */
		end_run(s, t, clock_mono_ns());
}

/* --- processes and threads ---------------------------------------------------------------- */

static struct step_space *new_space(struct step_session *s, struct process *p)
{
	struct step_space *space = step_space_new((uint32_t)s->spaces.n + 1, p);

	vec_push(&s->spaces, space);
	return space;
}

static struct step_track *new_track(
	struct step_session *s, struct step_space *space, pid_t pid, pid_t tid, uint64_t time)
{
	struct thread *thread = processes_thread(s->processes, (uint32_t)pid, (uint32_t)tid, time);
	struct step_track *t = mem_zalloc(sizeof(*t));
	char name[64];

	t->pid = (uint32_t)pid;
	t->tid = (uint32_t)tid;
	t->space = space;
	t->trace_thread = thread->trace_id;
	t->stream = trace_writer_stream(s->env.w, STREAM_KIND_THREAD, thread->trace_id);
	proc_name(pid, tid, name, sizeof(name));
	if (name[0])
		processes_name_thread(s->processes, t->pid, t->tid, time, name);
	vec_push(&s->tracks, t);
	space->n_tracks++;
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

	if (!m->t)
		return;
	mark.text = trace_writer_string(m->s->env.w, change->path);
	write_mark(m->s, m->t, &mark);
}

static void read_maps(struct step_session *s, struct step_space *space, struct step_track *t)
{
	step_space_read_maps(space, &s->env, (pid_t)space->process->pid, clock_mono_ns(),
		mark_change, &(struct map_marks){s, t});
}

void step_session_maps(struct step_session *s, struct step_track *t)
{
	read_maps(s, t->space, t);
}

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

	step_session_mark(s, by, STEP_MARK_FORK, pid, tid, is_thread);
	processes_fork(s->processes, &(struct thread_id){(uint32_t)pid, (uint32_t)tid},
		&(struct thread_id){by->pid, by->tid}, time);
	if (!is_thread) {
		space = new_space(s, processes_get(s->processes, (uint32_t)pid, time));
		step_space_copy_regions(space, by->space);
		s->result->n_processes++;
	}
	return new_track(s, space, pid, tid, time);
}

void step_session_exec(struct step_session *s, struct step_track *t)
{
	uint64_t time = clock_mono_ns();
	struct process *p = processes_get(s->processes, t->pid, time);
	struct step_mark mark = {.kind = STEP_MARK_EXEC};
	char path[64], target[4096], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", t->pid);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	mark.text = trace_writer_string(s->env.w, target);
	write_mark(s, t, &mark);
	module_history_exec(s->env.modules, p, time);
	proc_name((pid_t)t->pid, (pid_t)t->pid, name, sizeof(name));
	processes_exec(s->processes, t->pid, time, name);
	processes_name_thread(s->processes, t->pid, t->tid, time, name);
	t->space->n_tracks--;
	t->space = new_space(s, p);
	t->space->n_tracks++;
	read_maps(s, t->space, t);
}

void step_session_exit(struct step_session *s, struct step_track *t, int wait_status)
{
	uint64_t time = clock_mono_ns();
	struct process *p;

	if (t->has_ended)
		return;
	step_session_mark(s, t, STEP_MARK_EXIT, wait_status, 0, 0);
	t->has_ended = true;
	s->n_live--;
	t->space->n_tracks--;
	p = processes_thread(s->processes, t->pid, t->tid, time)->process;
	if (p->n_live == 1)
		module_history_end(s->env.modules, p, time, MODULE_END_EXIT);
	processes_exit(s->processes, t->pid, t->tid, time);
}

bool step_session_place(
	struct step_session *s, const struct step_track *t, uint64_t addr, struct step_place *place)
{
	const struct step_region *r = step_space_region(t->space, addr);

	(void)s;
	if (!r)
		return false;
	*place = (struct step_place){.start = r->start,
		.end = r->end,
		.path = r->path,
		.is_file = r->is_file && !r->was_written};
	return true;
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

bool step_session_knows(const struct step_track *t, uint64_t addr)
{
	return step_space_known(t->space, addr) != NULL;
}

/* --- one recording ------------------------------------------------------------------------ */

static void write_facts(struct step_session *s)
{
	const struct step_options *o = s->options;
	struct buf b = {0};

	host_facts_write(s->env.w);
	for (size_t i = 0; o->command && o->command[i]; i++)
		buf_printf(&b, "%s%s", i ? " " : "", o->command[i]);
	if (o->command)
		trace_writer_meta(s->env.w, "command", buf_text(&b));
	for (size_t i = 0; i < o->n_pids; i++)
		buf_printf(&b, "%s%d", i ? "," : "", o->pids[i]);
	if (!o->command)
		trace_writer_meta(s->env.w, "pids", buf_text(&b));
	trace_writer_meta(s->env.w, "mode", o->command ? "launch" : "attach");
	trace_writer_meta(s->env.w, "event", "steps");
	trace_writer_meta(s->env.w, "engine", s->engine->name);
	trace_writer_meta(s->env.w, "clock", "CLOCK_MONOTONIC");
	buf_release(&b);
}

static int choose_engine(struct step_session *s, struct err *err)
{
	const struct step_engine *e;
	const char *why = NULL;
	struct err first = {0};

	if (s->options->engine) {
		e = step_engine_find(s->options->engine);
		if (!e)
			return err_set(err, ERR_NOT_FOUND, "--engine: '%s' is none of them",
				s->options->engine);
		why = e->hindrance();
		if (why)
			return err_set(err, ERR_UNSUPPORTED, "engine '%s' does not work here: %s",
				e->name, why);
		s->engine = e;
		return e->accepts(s, err);
	}
	for (size_t i = 0; step_engines[i]; i++) {
		e = step_engines[i];
		if (e->hindrance())
			continue;
		if (e->accepts(s, first.code ? err : &first) == 0) {
			s->engine = e;
			return 0;
		}
	}
	*err = first;
	return first.code ? first.code : err_set(err, ERR_UNSUPPORTED, "no engine works here");
}

static int open_signals(struct step_session *s, struct err *err)
{
	static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		sigaddset(&mask, handled[i]);
	sigprocmask(SIG_BLOCK, &mask, &s->old_mask);
	s->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? err_sys(err, errno, "cannot make a signalfd") : 0;
}

/* After the fork: the command keeps its own. The timer makes waiting end now and then. */
static void settle_signals(void)
{
	struct sigaction a = {.sa_handler = tick};
	struct itimerval every = {{0, TICK_US}, {0, TICK_US}};
	sigset_t mask;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGALRM, &a, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void unsettle_signals(struct step_session *s)
{
	struct itimerval never = {{0, 0}, {0, 0}};

	setitimer(ITIMER_REAL, &never, NULL);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

static void end_process(void *ctx, struct process *p)
{
	struct step_session *s = ctx;

	if (p->n_live)
		module_history_end_snapshot(s->env.modules, p, clock_mono_ns());
}

static void finish(struct step_session *s)
{
	uint64_t now = clock_mono_ns();
	struct err err;

	step_session_flush(s, now);
	trace_writer_numbers(
		s->env.w, s->life_stream, now, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, NULL, 0);
	processes_each(s->processes, end_process, s);
	module_history_write_index(s->env.modules, now);
	images_write_facts(s->env.images, s->env.w);
	name_frames(s->env.w, s->env.images, 0);
	s->result->wall_ns = now - s->began_ns;
	s->result->n_steps = s->n_steps;
	if (trace_writer_flush(s->env.w, &err) == 0)
		s->result->trace_bytes = trace_writer_bytes(s->env.w);
	if (trace_writer_close(s->env.w, &err) < 0 && !s->result->write_error.code)
		s->result->write_error = err;
	s->env.w = NULL;
}

static void release(struct step_session *s)
{
	trace_writer_close(s->env.w, NULL);
	for (size_t i = 0; i < s->tracks.n; i++) {
		step_run_release(&s->tracks.v[i]->run);
		vec_release(&s->tracks.v[i]->data);
		free(s->tracks.v[i]);
	}
	vec_release(&s->tracks);
	for (size_t i = 0; i < s->spaces.n; i++)
		step_space_free(s->spaces.v[i]);
	vec_release(&s->spaces);
	module_history_free(s->env.modules);
	processes_free(s->processes);
	step_find_release(s);
	images_free(s->env.images);
}

static int open_trace_file(struct step_session *s, struct err *err)
{
	int rc = trace_writer_open(&s->env.w, s->options->output, err);
	static const struct module_options modules = {.all_modules = true};

	if (rc < 0)
		return rc;
	s->env.images = images_new();
	s->life_stream = trace_writer_stream(s->env.w, STREAM_KIND_LIFE, 0);
	s->env.code_stream =
		trace_writer_stream(s->env.w, STREAM_KIND_LIFE, RECORD_STEP_CODE_STREAM);
	s->processes = processes_new(s->env.w, s->life_stream);
	s->env.modules = module_history_new(s->env.w, s->life_stream, s->env.images, &modules);
	write_facts(s);
	return 0;
}

/* The recording is complete on disk, and the command still runs. */
static void wait_for_command(struct step_session *s)
{
	int status;
	pid_t pid;

	if (!s->options->command || s->result->has_status || s->is_orphan || s->child.pid <= 0)
		return;
	do
		pid = waitpid(s->child.pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	if (pid == s->child.pid)
		step_session_command_ended(s, status);
}

static int start(struct step_session *s, struct err *err)
{
	int rc = choose_engine(s, err);

	if (rc == 0)
		rc = open_signals(s, err);
	if (rc == 0 && s->options->command) {
		rc = launch_prepare(&s->child, s->options->command, &s->old_mask, err);
		s->is_launched = rc == 0;
	}
	if (rc == 0)
		rc = open_trace_file(s, err);
	if (rc < 0)
		return rc;
	settle_signals();
	for (size_t i = 0; i < s->options->n_pids; i++)
		step_session_process(s, s->options->pids[i], true);
	if (s->options->command)
		step_session_process(s, s->child.pid, false);
	module_history_set_started(s->env.modules);
	trace_writer_numbers(s->env.w, s->life_stream, clock_mono_ns(), RECORD_MAJOR_PHASE,
		RECORD_PHASE_STARTED, NULL, 0);
	rc = trace_writer_flush(s->env.w, err);
	s->began_ns = s->flushed_ns = s->progress_ns = clock_mono_ns();
	return rc;
}

int step_record(const struct step_options *options, struct step_result *result, struct err *err)
{
	struct step_session s = {.options = options, .result = result, .signal_fd = -1};
	int rc;

	memset(result, 0, sizeof(*result));
	rc = start(&s, err);
	if (rc == 0) {
		result->engine = s.engine->name;
		rc = s.engine->run(&s, err);
	}
	if (rc == 0) {
		finish(&s);
	} else if (s.is_launched && s.child.path) {
		launch_abandon(&s.child);
	}
	release(&s);
	unsettle_signals(&s);
	if (rc == 0)
		wait_for_command(&s);
	return rc;
}
