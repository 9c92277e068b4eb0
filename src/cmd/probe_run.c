/* SPDX-License-Identifier: MIT */
/*
 * Running a stream: the command is started but held, everything is attached, the command is let go;
 * then records are written as they come until the command or the processes have ended, the script
 * says exit(), the time is up, or a signal comes. At the end maps are printed and losses told.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cmd/probe.h"
#include "cmd/probe_control.h"
#include "cmd/probe_output.h"
#include "process/launch.h"
#include "process/proc.h"

#define STRICT_LOOK_NS	50000000   /* how often losses are looked at with --strict */
#define COMMAND_WAIT_NS 1000000000 /* for a command that was told to end */
#define SIGNAL_ECHO_MS	20	   /* within which a signal again is the same one */
#define NS_PER_MS	1000000
#define N_FIXED_FDS	4 /* of the loop: session, signals, control, names */

struct run {
	const struct probe_setup *setup;
	const struct stream *stream;
	struct probe_session *session;
	struct probe_output output;
	struct probe_control control;
	struct launch launch;
	bool is_launched; /* the command is there, held or running */
	VEC(pid_t) pids;  /* traced: those of -p, then the command */
	VEC(int) pid_fds; /* of -p: readable when it has ended; -1 then */
	sigset_t mask;	  /* as it was */
	int signal_fd;
	uint64_t end_ns;       /* of --duration; 0 = none */
	uint64_t next_look_ns; /* of --strict; 0 = none */
	bool is_strict_end;
};

/* ---- beginning ---- */

/* Blocked, not ignored: what is ignored stays so in the command. */
static int take_signals(struct run *r, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, &r->mask);
	sigdelset(&set, SIGPIPE);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? err_sys(err, errno, "cannot make a signal descriptor") : 0;
}

struct kinship {
	struct run *r;
	bool has_grown;
};

static bool is_traced(const struct run *r, pid_t pid)
{
	for (size_t i = 0; i < r->pids.n; i++)
		if (r->pids.v[i] == pid)
			return true;
	return false;
}

static void take_child(void *ctx, pid_t pid)
{
	struct kinship *k = ctx;

	if (!is_traced(k->r, pid) && is_traced(k->r, proc_parent(pid))) {
		vec_push(&k->r->pids, pid);
		k->has_grown = true;
	}
}

/* Children that are there already; those to come are followed by the session. */
static void take_children(struct run *r)
{
	struct kinship k = {r, true};

	while (k.has_grown) {
		k.has_grown = false;
		proc_each_task(0, take_child, &k);
	}
}

static int watch_pids(struct run *r, struct err *err)
{
	for (size_t i = 0; i < r->setup->pids.n; i++) {
		pid_t pid = r->setup->pids.v[i];
		int fd = (int)syscall(SYS_pidfd_open, pid, 0);

		if (fd < 0)
			return err_sys(err, errno, "process %d", pid);
		vec_push(&r->pid_fds, fd);
		vec_push(&r->pids, pid);
	}
	if (r->pids.n)
		take_children(r);
	return 0;
}

static int hold_command(struct run *r, struct err *err)
{
	int rc;

	if (!r->setup->program)
		return 0;
	rc = launch_prepare(&r->launch, (char *const *)r->setup->words.v, &r->mask, err);
	if (rc < 0)
		return rc;
	r->is_launched = true;
	vec_push(&r->pids, r->launch.pid);
	return 0;
}

static int open_session(struct run *r, struct err *err)
{
	const struct probe_arguments *a = r->setup->a;
	struct probe_session_options options = {.pids = r->pids.v,
		.n_pids = r->pids.n,
		.find = r->setup->find,
		.max_entries = (uint32_t)a->max_entries,
		.ring_bytes = (uint32_t)(a->ring_kb * 1024 > UINT32_MAX ? (uint64_t)1 << 31
									: a->ring_kb * 1024),
		.without = a->without};
	struct probe_session_output output = {
		.ctx = &r->output, .record = probe_output_record, .note = probe_output_note};
	int rc = probe_session_open(r->stream, &options, &output, &r->session, err);

	if (rc >= 0)
		probe_output_set_session(&r->output, r->session);
	return rc;
}

/* begin, end, error and intervals count although they are attached to nothing. */
static uint32_t count_unattached(const struct stream *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->points.n; i++)
		n += s->points.v[i].spec.kind <= POINT_INTERVAL;
	return n;
}

static bool has_file_points(const struct stream *s)
{
	for (size_t i = 0; i < s->points.n; i++)
		if (s->points.v[i].spec.kind >= POINT_UPROBE &&
			s->points.v[i].spec.kind <= POINT_USDT)
			return true;
	return false;
}

static void say_attached(const struct run *r)
{
	const struct probe_arguments *a = r->setup->a;
	struct probe_session_facts facts = {0};

	probe_session_facts(r->session, &facts);
	facts.n_sites += count_unattached(r->stream);
	if (r->setup->is_json)
		fprintf(r->setup->out,
			"{\"type\": \"attached_probes\", \"data\": {\"probes\": %u}}\n",
			facts.n_sites);
	if (a->quiet)
		return;
	fprintf(stderr, "Attached %u probe%s\n", facts.n_sites, facts.n_sites == 1 ? "" : "s");
	if (!a->verbose)
		return;
	fprintf(stderr, "weir: %u program%s, %u link%s, ready in %.1f ms", facts.n_programs,
		facts.n_programs == 1 ? "" : "s", facts.n_links, facts.n_links == 1 ? "" : "s",
		(double)facts.open_ns / NS_PER_MS);
	if (has_file_points(r->stream))
		fprintf(stderr, "%s; %s",
			facts.sleeps ? "; memory that is not resident is read, too" : "",
			facts.arms_only_asked ? "breakpoints in the traced processes only"
			: facts.uses_multi    ? "one link for all sites of a file"
					      : "one event for each site");
	if (facts.why_everywhere[0])
		fprintf(stderr, "; breakpoints in every process that maps the file: %s",
			facts.why_everywhere);
	fputc('\n', stderr);
}

static int start(struct run *r, struct err *err)
{
	int rc = take_signals(r, err);

	if (rc >= 0)
		rc = probe_control_open(&r->control, r->setup->a->control, err);
	if (rc >= 0)
		rc = watch_pids(r, err);
	if (rc >= 0)
		rc = hold_command(r, err);
	if (rc < 0)
		return rc;
	probe_output_init(&r->output, r->pids.v, r->pids.n);
	rc = open_session(r, err);
	if (rc < 0)
		return rc;
	say_attached(r);
	probe_output_flush(&r->output);
	rc = probe_session_begin(r->session, err);
	if (rc >= 0 && r->is_launched) {
		rc = launch_go(&r->launch, (char *const *)r->setup->words.v, err);
		r->is_launched = rc >= 0;
	}
	return rc;
}

/* ---- while it runs ---- */

static bool command_has_ended(struct run *r)
{
	int status;

	if (!r->is_launched || waitpid(r->launch.pid, &status, WNOHANG) != r->launch.pid)
		return false;
	r->is_launched = false;
	return true;
}

/* timeout(1) sends a signal to the program and then to its group: that is one, not two. */
static void drop_echo(const struct run *r)
{
	struct pollfd fd = {.fd = r->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (poll(&fd, 1, SIGNAL_ECHO_MS) > 0 && read(r->signal_fd, &info, sizeof(info)) < 0)
		return;
}

/* False when a signal says that it is enough. From then on another one ends us at once, as
 * it would have without us. */
static bool take_signal(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		sigset_t set;

		if (info.ssi_signo == SIGCHLD) {
			if (command_has_ended(r))
				return false;
			continue;
		}
		drop_echo(r);
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		sigaddset(&set, SIGTERM);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		return false;
	}
	return true;
}

/* Nothing can happen but what has happened in begin{}. */
static bool is_only_begin(const struct stream *s)
{
	for (size_t i = 0; i < s->points.n; i++)
		if (s->points.v[i].spec.kind > POINT_ERROR)
			return false;
	return true;
}

/* --strict looks at the losses now and then. */
static bool is_strict_end(struct run *r)
{
	uint64_t now = clock_mono_ns();

	if (!r->next_look_ns || now < r->next_look_ns)
		return false;
	r->next_look_ns = now + STRICT_LOOK_NS;
	r->is_strict_end = probe_has_losses(r->stream, r->session);
	return r->is_strict_end;
}

static bool pids_have_ended(struct run *r, const struct pollfd *fds)
{
	size_t n_left = 0;

	for (size_t i = 0; i < r->pid_fds.n; i++) {
		if (r->pid_fds.v[i] >= 0 && fds[i].revents)
			fd_cleanup(&r->pid_fds.v[i]);
		n_left += r->pid_fds.v[i] >= 0;
	}
	return r->pid_fds.n && !n_left && !r->is_launched;
}

static int timeout_ms(const struct run *r)
{
	uint64_t now = clock_mono_ns(), until = UINT64_MAX, ms;

	if (r->next_look_ns)
		until = r->next_look_ns;
	if (r->end_ns && r->end_ns < until)
		until = r->end_ns;
	if (until == UINT64_MAX)
		return -1;
	ms = until <= now ? 0 : (until - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* One round; false when the run is over. */
static bool work(struct run *r, struct pollfd *fds, size_t n_fds)
{
	bool goes_on = true;
	int n;

	for (size_t i = 0; i < r->pid_fds.n; i++)
		fds[N_FIXED_FDS + i] = (struct pollfd){.fd = r->pid_fds.v[i], .events = POLLIN};
	n = poll(fds, n_fds, timeout_ms(r));
	if (n < 0 && errno != EINTR)
		return false;
	if (n > 0 && fds[1].revents)
		goes_on = take_signal(r);
	if (n > 0 && fds[2].revents)
		goes_on &= probe_control_work(&r->control, &r->output);
	if (n > 0 && fds[3].revents)
		session_names_work(r->output.names);
	goes_on &= probe_session_work(r->session);
	probe_output_flush(&r->output);
	if (n > 0 && pids_have_ended(r, fds + N_FIXED_FDS))
		goes_on = false;
	if (is_strict_end(r))
		goes_on = false;
	if (r->end_ns && clock_mono_ns() >= r->end_ns)
		goes_on = false;
	return goes_on && !r->output.write_errno;
}

static void loop(struct run *r)
{
	size_t n_fds = N_FIXED_FDS + r->pid_fds.n;
	struct pollfd *fds = mem_calloc(n_fds, sizeof(fds[0]));
	const struct probe_arguments *a = r->setup->a;
	bool goes_on;

	fds[0] = (struct pollfd){.fd = probe_session_fd(r->session), .events = POLLIN};
	fds[1] = (struct pollfd){.fd = r->signal_fd, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = r->control.fd, .events = POLLIN};
	fds[3] = (struct pollfd){.fd = session_names_fd(r->output.names), .events = POLLIN};
	if (a->duration_s > 0)
		r->end_ns = clock_mono_ns() + (uint64_t)(a->duration_s * 1e9);
	if (a->strict)
		r->next_look_ns = clock_mono_ns();
	goes_on = probe_session_work(r->session) && (r->is_launched || !is_only_begin(r->stream));
	probe_output_flush(&r->output); /* begin{} may be all that is to be seen for long */
	while (goes_on)
		goes_on = work(r, fds, n_fds);
	free(fds);
}

/* ---- end ---- */

/* A command that still runs is told to end, as Ctrl-C on a terminal would. */
static void end_command(struct run *r)
{
	uint64_t until = clock_mono_ns() + COMMAND_WAIT_NS;
	struct pollfd fd = {.fd = r->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (!r->is_launched)
		return;
	kill(r->launch.pid, SIGTERM);
	while (!command_has_ended(r)) {
		if (clock_mono_ns() >= until) {
			fprintf(stderr, "weir: '%s' (process %d) goes on running\n",
				r->setup->words.v[0], r->launch.pid);
			return;
		}
		if (poll(&fd, 1, 10) > 0 && read(r->signal_fd, &info, sizeof(info)) < 0)
			return;
	}
}

static int finish(struct run *r)
{
	int status;
	bool has_losses;

	probe_session_end(r->session);
	if (!r->output.write_errno)
		probe_output_maps(&r->output);
	probe_output_flush(&r->output);
	end_command(r);
	has_losses = probe_print_losses(r->setup, r->stream, r->session, r->setup->out);
	if (session_names_n_lost(r->output.names))
		fprintf(stderr,
			"weir: %" PRIu64 " records of mappings were lost: names may be missing\n",
			session_names_n_lost(r->output.names));
	if (r->is_strict_end)
		fputs("weir: --strict: ended because of the losses above\n", stderr);
	status = probe_session_exit_status(r->session);
	return has_losses && status == STATUS_DONE ? STATUS_LOSSES : status;
}

static void release(struct run *r)
{
	probe_output_release(&r->output);
	probe_session_close(r->session);
	if (r->is_launched && r->launch.go_fd >= 0)
		launch_abandon(&r->launch);
	probe_control_close(&r->control);
	for (size_t i = 0; i < r->pid_fds.n; i++)
		fd_cleanup(&r->pid_fds.v[i]);
	vec_release(&r->pid_fds);
	vec_release(&r->pids);
	fd_cleanup(&r->signal_fd);
}

/* Nobody reads any more: we end as programs that do not care about it. */
static int end_unwritten(const struct run *r)
{
	if (r->output.write_errno == EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		sigprocmask(SIG_SETMASK, &r->mask, NULL);
		raise(SIGPIPE);
	}
	fprintf(stderr, "weir: the output cannot be written: %s\n",
		strerror(r->output.write_errno));
	return STATUS_FAILED;
}

int probe_run(const struct probe_setup *setup, const struct stream *s)
{
	struct run r = {.setup = setup, .stream = s, .signal_fd = -1, .control = {.fd = -1}};
	struct err err = {0};
	int status;

	r.output = (struct probe_output){.setup = setup, .stream = s, .mask = &r.mask};
	if (start(&r, &err) < 0) {
		status = command_fail(&err);
	} else {
		loop(&r);
		status = finish(&r);
	}
	release(&r);
	if (r.output.write_errno)
		status = end_unwritten(&r);
	else
		sigprocmask(SIG_SETMASK, &r.mask, NULL);
	return status;
}
