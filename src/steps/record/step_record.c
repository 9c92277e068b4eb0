/* SPDX-License-Identifier: MIT */
/* A recording of steps from its start to its end: engine, signals, trace file, the command's end.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "process/host_facts.h"
#include "record/name_frames.h"
#include "steps/record/step_internal.h"

#define FLUSH_NS    1000000000u
#define PROGRESS_NS 250000000u
#define TICK_US	    50000
/* Within which a signal again is the same one. */
#define SIGNAL_ECHO_NS 100000000u
/* For a command that was told to end, and until it is said that it goes on. */
#define PATIENCE_NS 2000000000u
#define SOON_NS	    300000000u

/* --- when it is over ---------------------------------------------------------------------- */

static volatile sig_atomic_t has_ticked;

static void tick(int number)
{
	(void)number;
	has_ticked = 1;
}

/* A signal that is sent to the whole group reaches us twice: the visible process passes it on. */
static bool is_echo(struct step_session *s, int number)
{
	uint64_t now = clock_mono_ns();
	bool is_again = number == s->last_signal && now - s->last_signal_ns < SIGNAL_ECHO_NS;

	s->last_signal = number;
	s->last_signal_ns = now;
	return is_again;
}

static void take_signals(struct step_session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;

		if (is_echo(s, number))
			continue;
		/* What the terminal sends, the command got itself. */
		if (s->child.pid > 0 && info.ssi_code <= 0 && !s->result->has_status)
			kill(s->child.pid, number);
		if (number == SIGUSR1 || number == SIGUSR2)
			continue;
		s->is_impatient = s->is_interrupted;
		s->is_interrupted = true;
		s->is_killed = info.ssi_code <= 0;
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
		step_session_flush(s, now, false);
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

/* --- one recording ------------------------------------------------------------------------ */

static void write_facts(struct step_session *s)
{
	const struct step_options *o = s->options;

	host_facts_write(s->env.w);
	host_facts_targets(s->env.w, &(struct host_targets){o->command, o->pids, o->n_pids, false});
	trace_writer_meta(s->env.w, "event", "steps");
	trace_writer_meta(s->env.w, "engine", s->engine->name);
	trace_writer_meta(s->env.w, "clock", "CLOCK_MONOTONIC");
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
	static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
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
	signal(SIGXFSZ, SIG_IGN); /* a trace that may not grow is a failed write */
	signal(SIGCHLD, SIG_DFL); /* ignored, it would take the command's status away */
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
	if (s->signal_fd < 0)
		return;
	take_signals(s); /* one that came with the end would act when it is let through again */
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

	step_session_flush(s, now, true);
	trace_writer_numbers(
		s->env.w, s->life_stream, now, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, NULL, 0);
	processes_each(s->processes, end_process, s);
	module_history_write_index(s->env.modules, now);
	images_drop_changed(s->env.images);
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

/* A start that failed leaves no file behind, and the older trace where it was. */
static void release(struct step_session *s, int rc)
{
	if (s->env.w)
		trace_writer_settle(s->env.w, rc, NULL);
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

static void say_it_goes_on(const struct step_session *s)
{
	char text[512];

	if (!s->options->note)
		return;
	snprintf(text, sizeof(text), "'%s': the recording is complete; '%s' goes on running",
		s->options->output, s->options->command[0]);
	s->options->note(s->options->ctx, text);
}

/* The recording is complete on disk, and the command still runs. Who ended the recording by a
 * signal to weir does not want to wait for a command that ignores it. */
static void wait_for_command(struct step_session *s)
{
	uint64_t began = clock_mono_ns();
	bool has_said = false;
	FD_AUTO pid_fd = -1;

	if (!s->options->command || s->result->has_status || s->child.pid <= 0)
		return;
	pid_fd = (int)syscall(SYS_pidfd_open, s->child.pid, 0);
	while (!s->is_orphan && !s->is_impatient) {
		struct pollfd fds[3] = {{.fd = s->signal_fd, .events = POLLIN},
			{.fd = s->options->parent_fd, .events = POLLIN},
			{.fd = pid_fd, .events = POLLIN}};
		uint64_t waited = clock_mono_ns() - began;
		int status;
		pid_t pid = waitpid(s->child.pid, &status, WNOHANG);

		if (pid == s->child.pid)
			step_session_command_ended(s, status);
		if (pid != 0 || (s->is_killed && waited > PATIENCE_NS))
			return;
		if (waited > SOON_NS && !has_said)
			say_it_goes_on(s);
		has_said |= waited > SOON_NS;
		poll(fds, 3, TICK_US / 1000);
		take_signals(s);
		s->is_orphan |= fds[1].revents != 0;
	}
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
	release(&s, rc);
	if (rc == 0)
		wait_for_command(&s);
	unsettle_signals(&s);
	return rc;
}
