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
 *    and the command. Signals that are sent to the visible process alone are passed on to the keeper.
 * 2. The keeper has the signal mask and the dispositions that the visible process began with, since
 *    the command gets them from it; it is the command's parent.
 * 3. Only the visible process prints.
 * 4. Each is a run (run/run.h): the keeper's is that of the command, the visible one's ends with the
 *    keeper.
 */
#include "cmd/steps_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/options.h"
#include "run/run.h"
#include "steps/record/step_engine.h"

enum packet_kind { PACKET_NOTE, PACKET_COMPLAINT, PACKET_PROGRESS, PACKET_FAILED, PACKET_RESULT };

/* What the keeper says, one packet each. */
struct packet {
	enum packet_kind kind;
	union {
		char note[1024]; /* or complaint */
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

static void send_sentence(void *ctx, enum packet_kind kind, const char *sentence)
{
	struct packet p = {.kind = kind};

	snprintf(p.note, sizeof(p.note), "%s", sentence);
	send_packet(*(int *)ctx, &p, 0);
}

static void send_note(void *ctx, const char *sentence)
{
	send_sentence(ctx, PACKET_NOTE, sentence);
}

static void send_complaint(void *ctx, const char *sentence)
{
	send_sentence(ctx, PACKET_COMPLAINT, sentence);
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
	o.complain = send_complaint;
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
	struct run run;
	pid_t keeper;
	int keeper_status; /* as from waitpid */
	int fd;
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

static void show_sentence(struct watch *w, bool is_note, const char *sentence)
{
	clear_progress(w);
	/* A status of our own is not without a word. */
	if (w->level != RECORD_QUIET || (!is_note && !w->options->command))
		fprintf(stderr, "weir: %s%s\n", is_note ? "note: " : "", sentence);
}

/* False at the end of the keeper. */
static bool take_packet(void *ctx)
{
	struct watch *w = ctx;
	struct packet p;
	ssize_t n = recv(w->fd, &p, sizeof(p), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n != (ssize_t)sizeof(p))
		return false;
	if (p.kind == PACKET_NOTE || p.kind == PACKET_COMPLAINT)
		show_sentence(w, p.kind == PACKET_NOTE, p.note);
	else if (p.kind == PACKET_PROGRESS)
		show_progress(w, p.progress.steps, p.progress.seconds);
	else
		w->end = p;
	w->has_end |= p.kind == PACKET_FAILED || p.kind == PACKET_RESULT;
	return true;
}

static int wait_for(void *ctx, int *fds)
{
	fds[0] = ((struct watch *)ctx)->fd;
	return -1;
}

/* What comes from the terminal has reached the keeper, too; what is sent to us alone has not. */
static bool pass_on(void *ctx, const struct signalfd_siginfo *info)
{
	const struct watch *w = ctx;

	if (info->ssi_code <= 0 && w->keeper > 0)
		kill(w->keeper, (int)info->ssi_signo);
	return true;
}

static void reap_keeper(void *ctx, int rc)
{
	struct watch *w = ctx;

	while (rc == 0 && waitpid(w->keeper, &w->keeper_status, 0) < 0 && errno == EINTR)
		;
	w->keeper = 0;
	clear_progress(w);
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
static int tell_keepers_death(const struct watch *w)
{
	int status = w->keeper_status;
	struct err err;

	if (!WIFSIGNALED(status))
		return STATUS_FAILED; /* it has said why, on stderr: no memory */
	err_set(&err, ERR_FAILED,
		"'%s': the recording was ended by signal %d (%s); the trace holds what was written "
		"before",
		w->options->output, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return command_fail(&err);
}

static int finish(const struct watch *w)
{
	const struct step_result *r = &w->end.result;

	if (!w->has_end)
		return tell_keepers_death(w);
	if (w->end.kind == PACKET_FAILED)
		return command_fail(&w->end.failed);
	if (r->write_error.code)
		command_fail(&r->write_error);
	else
		show_result(w);
	return record_status(r->has_status ? &r->wait_status : NULL, r->n_unmatched, r->n_lost,
		r->write_error.code);
}

/* In front of everything else: the keeper has signals as we found them. */
static int start_keeper(void *ctx, char *const **environment, struct err *err)
{
	struct watch *w = ctx;
	bool has_progress = w->level != RECORD_QUIET && isatty(STDERR_FILENO);
	int ends[2];

	(void)environment;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(err, errno, "cannot make a pair of sockets");
	fflush(NULL); /* what is buffered is printed once */
	w->keeper = fork();
	if (w->keeper == 0) {
		close(ends[0]);
		run_leave(&w->run);
		keep(w->options, ends[1], has_progress);
	}
	w->fd = ends[0];
	close(ends[1]);
	if (w->keeper < 0)
		return err_sys(err, errno, "cannot fork");
	if (w->level == RECORD_VERBOSE)
		show_engines();
	return 0;
}

int steps_run(const struct step_options *options, enum record_talk talk)
{
	static const struct run_work watching = {.prepare = start_keeper,
		.wait = wait_for,
		.work = take_packet,
		.take_signal = pass_on,
		.finish = reap_keeper};
	struct watch w = {.options = options,
		.level = talk,
		.fd = -1,
		.run = {.parent_fd = -1, .work = &watching, .ctx = &w}};
	struct err err;
	int status = run_live(&w.run, &err) < 0 ? command_fail(&err) : finish(&w);

	fd_cleanup(&w.fd);
	return status;
}
