/* SPDX-License-Identifier: MIT */
#include "cmd/keeper.h"

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

enum packet_kind { PACKET_NOTE, PACKET_COMPLAINT, PACKET_PROGRESS, PACKET_FAILED, PACKET_RESULT };

/* What the keeper says, one packet each. */
struct packet {
	enum packet_kind kind;
	union {
		char note[1024]; /* or complaint */
		struct {
			uint64_t n;
			double seconds;
		} progress;
		struct err failed;
		uint64_t result[KEEPER_RESULT_MAX / sizeof(uint64_t)];
	};
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

static void send_sentence(const struct keeper *k, enum packet_kind kind, const char *sentence)
{
	struct packet p = {.kind = kind};

	snprintf(p.note, sizeof(p.note), "%s", sentence);
	send_packet(k->fd, &p, 0);
}

void keeper_note(void *k, const char *sentence)
{
	send_sentence(k, PACKET_NOTE, sentence);
}

void keeper_complain(void *k, const char *sentence)
{
	send_sentence(k, PACKET_COMPLAINT, sentence);
}

/* Not worth waiting for. */
void keeper_progress(void *k, uint64_t n, double seconds)
{
	struct packet p = {.kind = PACKET_PROGRESS, .progress = {n, seconds}};

	send_packet(((struct keeper *)k)->fd, &p, MSG_DONTWAIT);
}

static void keep(struct keeper *k)
{
	struct packet end = {.kind = PACKET_RESULT};
	struct err err = {0};

	prctl(PR_SET_NAME, "weir-keeper");
	if (k->record(k, end.result, &err) < 0) {
		end.kind = PACKET_FAILED;
		end.failed = err;
	}
	send_packet(k->fd, &end, 0);
	_exit(STATUS_DONE);
}

/* --- the visible process ----------------------------------------------------------------- */

struct watch {
	struct keeper *k;
	bool has_progress; /* a progress line stands on the terminal */
	uint64_t last_n;
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

static void show_progress(struct watch *w, uint64_t n, double seconds)
{
	double passed = seconds - w->last_seconds;

	fprintf(stderr, "\r\033[Kweir: %.1f s, %lu %s", seconds, n, w->k->unit);
	if (passed > 0 && n >= w->last_n)
		fprintf(stderr, ", %.0f %s/s", (double)(n - w->last_n) / passed, w->k->unit);
	w->last_n = n;
	w->last_seconds = seconds;
	w->has_progress = true;
}

static void show_sentence(struct watch *w, bool is_note, const char *sentence)
{
	clear_progress(w);
	/* A status of our own is not without a word. */
	if (w->k->talk != RECORD_QUIET || (!is_note && !w->k->has_command))
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
		show_progress(w, p.progress.n, p.progress.seconds);
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

/* In front of everything else: the keeper has signals as we found them. */
static int start_keeper(void *ctx, char *const **environment, struct err *err)
{
	struct watch *w = ctx;
	int ends[2];

	(void)environment;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(err, errno, "cannot make a pair of sockets");
	fflush(NULL); /* what is buffered is printed once */
	w->k->has_progress = w->k->talk != RECORD_QUIET && isatty(STDERR_FILENO);
	w->k->fd = ends[1];
	w->keeper = fork();
	if (w->keeper == 0) {
		close(ends[0]);
		run_leave(&w->run);
		keep(w->k);
	}
	w->fd = ends[0];
	close(ends[1]);
	return w->keeper < 0 ? err_sys(err, errno, "cannot fork") : 0;
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
		w->k->output, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return command_fail(&err);
}

bool keeper_run(struct keeper *k, void *result, int *status)
{
	static const struct run_work watching = {.prepare = start_keeper,
		.wait = wait_for,
		.work = take_packet,
		.take_signal = pass_on,
		.finish = reap_keeper};
	struct watch w = {
		.k = k, .fd = -1, .run = {.parent_fd = -1, .work = &watching, .ctx = &w}};
	struct err err;
	bool is_done = false;

	if (run_live(&w.run, &err) < 0) {
		*status = command_fail(&err);
	} else if (!w.has_end) {
		*status = tell_keepers_death(&w);
	} else if (w.end.kind == PACKET_FAILED) {
		*status = command_fail(&w.end.failed);
	} else {
		memcpy(result, w.end.result, k->result_bytes);
		is_done = true;
	}
	fd_cleanup(&w.fd);
	return is_done;
}
