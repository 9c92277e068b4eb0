/* SPDX-License-Identifier: MIT */
/*
 * Two processes: the one that the user has started and sees, which waits, and its child, the
 * keeper, which traces and writes.
 *
 * A tracer that is killed while its program stands in the stop of a single step takes it along: the
 * kernel has nobody left to ask and delivers the SIGTRAP. No signal handler can help against
 * SIGKILL; so the process that gets killed (by the user, by a supervisor, with the terminal) is one
 * that traces nothing. The keeper sees the other end of its socket close, lets the program go and
 * completes the trace.
 *
 *   visible  <-- notes, progress, at last the result or why there is none --  keeper
 *
 * 1. Both are in one process group: what is typed on the terminal (Ctrl-C, Ctrl-Z) reaches both,
 * and the command. Signals that are sent to the visible process alone are passed on to the keeper.
 * 2. The keeper has the signal mask and the dispositions that the visible process began with, since
 *    the command gets them from it; it is the command's parent.
 * 3. Only the visible process prints.
 */
#include "cmd/steps_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/options.h"
#include "steps/record/step_engine.h"

enum packet_kind { PACKET_NOTE, PACKET_PROGRESS, PACKET_FAILED, PACKET_RESULT };

/* What the keeper says, one packet each. */
struct packet {
	enum packet_kind kind;
	union {
		char note[1024];
		struct {
			uint64_t steps;
			double seconds;
		} progress;
		struct err failed;
		struct step_result result;
	};
	char engine[32]; /* of the result, whose pointer is the keeper's */
};

/* --- the keeper -------------------------------------------------------------------------- */

/* Whether somebody is there to read it makes no difference to the recording. */
static void send_packet(int fd, const struct packet *p, int flags)
{
	ssize_t n;

	do
		n = send(fd, p, sizeof(*p), MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
}

static void send_note(void *ctx, const char *sentence)
{
	struct packet p = {.kind = PACKET_NOTE};

	snprintf(p.note, sizeof(p.note), "%s", sentence);
	send_packet(*(int *)ctx, &p, 0);
}

/* Not worth waiting for. */
static void send_progress(void *ctx, uint64_t steps, double seconds)
{
	struct packet p = {.kind = PACKET_PROGRESS, .progress = {steps, seconds}};

	send_packet(*(int *)ctx, &p, MSG_DONTWAIT);
}

static void keep(const struct step_options *options, int fd, bool has_progress)
{
	struct step_options o = *options;
	struct packet end = {0};
	struct step_result result;
	struct err err = {0};

	prctl(PR_SET_NAME, "weir-keeper");
	o.parent_fd = fd;
	o.ctx = &fd;
	o.note = send_note;
	o.progress = has_progress ? send_progress : NULL;
	if (step_record(&o, &result, &err) < 0) {
		end.kind = PACKET_FAILED;
		end.failed = err;
	} else {
		end.kind = PACKET_RESULT;
		end.result = result;
		snprintf(end.engine, sizeof(end.engine), "%s", result.engine ? result.engine : "?");
	}
	send_packet(fd, &end, 0);
	_exit(STATUS_DONE);
}

/* --- the visible process ----------------------------------------------------------------- */

struct watch {
	const struct step_options *options;
	enum record_talk level;
	bool has_progress; /* a progress line stands on the terminal */
	uint64_t last_steps;
	double last_seconds;
	pid_t keeper;
	int fd, signal_fd;
	sigset_t old_mask;
	bool has_end;
	struct packet end; /* a result or a failure */
};

static void clear_progress(struct watch *w)
{
	if (w->has_progress)
		fputs("\r\033[K", stderr);
	w->has_progress = false;
}

static void show_progress(struct watch *w, uint64_t steps, double seconds)
{
	double passed = seconds - w->last_seconds;

	fprintf(stderr, "\r\033[Kweir: %.1f s, %lu steps", seconds, steps);
	if (passed > 0 && steps >= w->last_steps)
		fprintf(stderr, ", %.0f steps/s", (double)(steps - w->last_steps) / passed);
	w->last_steps = steps;
	w->last_seconds = seconds;
	w->has_progress = true;
}

static void show_note(struct watch *w, const char *sentence)
{
	clear_progress(w);
	if (w->level != RECORD_QUIET)
		fprintf(stderr, "weir: note: %s\n", sentence);
}

/* False at the end of the keeper. */
static bool take_packet(struct watch *w)
{
	struct packet p;
	ssize_t n = recv(w->fd, &p, sizeof(p), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n != (ssize_t)sizeof(p))
		return false;
	if (p.kind == PACKET_NOTE)
		show_note(w, p.note);
	else if (p.kind == PACKET_PROGRESS)
		show_progress(w, p.progress.steps, p.progress.seconds);
	else
		w->end = p;
	w->has_end |= p.kind == PACKET_FAILED || p.kind == PACKET_RESULT;
	return true;
}

/* What comes from the terminal has reached the keeper, too; what is sent to us alone has not. */
static void pass_signals(struct watch *w)
{
	struct signalfd_siginfo info;

	while (read(w->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_code <= 0 && w->keeper > 0)
			kill(w->keeper, (int)info.ssi_signo);
}

/* Returns the keeper's wait status. */
static int watch_keeper(struct watch *w)
{
	struct pollfd fds[2] = {
		{.fd = w->fd, .events = POLLIN}, {.fd = w->signal_fd, .events = POLLIN}};
	int status = 0;
	pid_t pid;

	do {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		pass_signals(w);
	} while (take_packet(w));
	do
		pid = waitpid(w->keeper, &status, 0);
	while (pid < 0 && errno == EINTR);
	w->keeper = 0;
	clear_progress(w);
	pass_signals(w); /* taken, so that they do not act when they are let through again */
	sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
	return status;
}

/* --- the end ----------------------------------------------------------------------------- */

static void show_result(const struct watch *w)
{
	const struct step_result *r = &w->end.result;
	const char *path = w->options->output;
	bool is_default = !strcmp(path, "trace.weir");

	if (w->level == RECORD_QUIET)
		return;
	fprintf(stderr, "weir: '%s': %lu step%s in %.2f s (%lu process%s, %lu thread%s) by %s",
		path, r->n_steps, r->n_steps == 1 ? "" : "s", (double)r->wall_ns / 1e9,
		r->n_processes, r->n_processes == 1 ? "" : "es", r->n_threads,
		r->n_threads == 1 ? "" : "s", w->end.engine);
	fprintf(stderr, ", %lu bytes", r->trace_bytes);
	if (r->n_steps)
		fprintf(stderr, " (%.2f a step)", (double)r->trace_bytes / (double)r->n_steps);
	if (r->n_lost)
		fprintf(stderr, ", %lu steps lost (weir report loss says why)", r->n_lost);
	fprintf(stderr, "; 'weir report steps%s%s' lists them\n", is_default ? "" : " ",
		is_default ? "" : path);
}

static void show_engines(void)
{
	for (size_t i = 0; step_engines[i]; i++) {
		const char *hindrance = step_engines[i]->hindrance();

		fprintf(stderr, "weir: engine %s: %s\n", step_engines[i]->name,
			hindrance ? hindrance : "works here");
	}
}

/* The keeper has ended without a word. */
static int tell_keepers_death(const struct watch *w, int status)
{
	struct err err;

	if (!WIFSIGNALED(status))
		return STATUS_FAILED; /* it has said why, on stderr: no memory */
	err_set(&err, ERR_FAILED,
		"'%s': the recording was ended by signal %d (%s); the trace holds what was written "
		"before",
		w->options->output, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return command_fail(&err);
}

static int finish(const struct watch *w, int keeper_status)
{
	const struct step_result *r = &w->end.result;
	int status;

	if (!w->has_end)
		return tell_keepers_death(w, keeper_status);
	if (w->end.kind == PACKET_FAILED)
		return command_fail(&w->end.failed);
	if (r->write_error.code)
		command_fail(&r->write_error);
	else
		show_result(w);
	status = r->has_status ? record_pass_on(r->wait_status)
		 : r->n_lost   ? STATUS_LOSSES
			       : STATUS_DONE;
	if (r->write_error.code && status == STATUS_DONE)
		status = STATUS_FAILED;
	return status;
}

/* Blocked, not handled: what is handled or ignored would be so in the command. */
static int open_signals(struct watch *w, struct err *err)
{
	static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&mask, passed[i]);
	sigprocmask(SIG_BLOCK, &mask, &w->old_mask);
	w->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->signal_fd < 0 ? err_sys(err, errno, "cannot make a signalfd") : 0;
}

/* In the visible process only, which has no other children and waits for this one. */
static void settle_signals(void)
{
	signal(SIGINT, SIG_DFL); /* ignored in background jobs of a shell, also when sent to us */
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would take the keeper's status away */
	signal(SIGPIPE, SIG_IGN); /* whoever closes our stderr does not mean the recording */
}

static int start_keeper(struct watch *w, struct err *err)
{
	bool has_progress = w->level != RECORD_QUIET && isatty(STDERR_FILENO);
	int ends[2];
	int rc = open_signals(w, err);

	if (rc < 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(err, errno, "cannot make a pair of sockets");
	fflush(NULL); /* what is buffered is printed once */
	w->keeper = fork();
	if (w->keeper == 0) {
		close(ends[0]);
		close(w->signal_fd);
		sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
		keep(w->options, ends[1], has_progress);
	}
	w->fd = ends[0];
	close(ends[1]);
	if (w->keeper < 0)
		return err_sys(err, errno, "cannot fork");
	settle_signals();
	return 0;
}

int steps_run(const struct step_options *options, enum record_talk talk)
{
	struct watch w = {.options = options, .level = talk, .fd = -1, .signal_fd = -1};
	struct err err;
	int status;

	if (start_keeper(&w, &err) < 0) {
		status = command_fail(&err);
	} else {
		if (talk == RECORD_VERBOSE)
			show_engines();
		status = finish(&w, watch_keeper(&w));
	}
	fd_cleanup(&w.fd);
	fd_cleanup(&w.signal_fd);
	return status;
}
