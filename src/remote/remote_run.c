/* SPDX-License-Identifier: MIT */
#include "remote/remote_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "remote/agent_files.h"
#include "remote/bootstrap.h"
#include "remote/byte_queue.h"
#include "remote/parcel.h"
#include "run/run.h"

#define NOISE_BYTES_MAX	  ((size_t)256 << 10) /* of login scripts */
#define LINE_BYTES_MAX	  4096
#define SENTENCES_MAX	  ((size_t)64 << 10) /* of one line that weir says there */
#define OUTPUT_BYTES_MAX  ((size_t)1 << 20)  /* that wait for our standard output or error */
#define PIECE_BYTES	  4096 /* no more than a pipe that can be written takes at once */
#define WAIT_MS		  1000
#define N_SIGNALS_PATIENT 2
#define NS_PER_MS	  1000000u
#define LEAVE_NS	  5000000000u /* for the shell there to remove the agent */

enum phase {
	PHASE_SHELL,  /* lines of bootstrap.sh */
	PHASE_AGENT,  /* parcels */
	PHASE_LEAVING /* all has come; the shell there removes the agent */
};

struct remote_life {
	const struct remote_options *options;
	struct remote_result *result;
	struct run run;
	struct agent_files files;
	char nonce[BOOTSTRAP_NONCE_CHARS + 1];
	enum phase phase;
	int theirs[2];	    /* standard input and output of ssh */
	int to_fd, from_fd; /* the other ends; -1 = closed */
	struct byte_queue to, output, error;
	struct buf lines; /* of the shell there */
	size_t n_noise;
	struct parcels in;
	struct buf sentences; /* the line that is not whole yet */
	size_t input_room;    /* bytes of standard input that may go */
	int input_fd;	      /* -1 = at its end */
	int n_signals;
	uint64_t heard_ns, spoke_ns, leaving_ns;
	bool has_ended; /* from the agent's side */
	struct err failure;
};

static bool fail(struct remote_life *r, int code, const char *sentence)
{
	if (!r->failure.code)
		err_set(&r->failure, code, "%s", sentence);
	return false;
}

/* --- the shell there -------------------------------------------------------------------------- */

static void send_agent(struct remote_life *r, bool is_packed)
{
	struct buf packed = {0};
	const struct buf *bytes = &r->files.bytes;

	if (is_packed) {
		agent_files_gzip(&r->files, &packed);
		bytes = &packed;
	}
	buf_printf(&r->to.bytes, "%zu\n", bytes->n);
	buf_put(&r->to.bytes, bytes->p, bytes->n);
	buf_release(&packed);
}

static bool is_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);

	return group < 0 || group == getpgrp(); /* else reading it would stop us */
}

static void send_command(struct remote_life *r)
{
	const struct remote_options *o = r->options;
	uint8_t has_input = o->input_fd >= 0;
	struct buf content = {0};

	for (size_t i = 0; i < o->n_arguments; i++) {
		const struct remote_argument *a = &o->arguments[i];

		buf_reset(&content);
		buf_put(&content, a->text, strlen(a->text) + (a->file_name != NULL));
		if (a->file_name) {
			buf_put_text(&content, path_base_name(a->file_name));
			buf_put(&content, a->file.p, a->file.n);
		}
		parcel_put(&r->to.bytes, a->file_name ? PARCEL_FILE : PARCEL_ARGUMENT,
			buf_span(&content));
	}
	parcel_put(&r->to.bytes, PARCEL_START, (struct span){&has_input, 1});
	buf_release(&content);
	r->input_fd = o->input_fd;
	r->input_room = PARCEL_STDIN_ROOM;
	r->phase = PHASE_AGENT;
	r->heard_ns = clock_mono_ns();
}

static bool take_word(struct remote_life *r, const char *word)
{
	if (!strncmp(word, "fail ", 5))
		return fail(r, ERR_FAILED, word + 5);
	if (!strcmp(word, "need gzip") || !strcmp(word, "need plain"))
		send_agent(r, word[5] == 'g');
	else if (!strcmp(word, "run"))
		send_command(r);
	return true;
}

/* Lines that are not ours are what login scripts print. */
static bool take_lines(struct remote_life *r)
{
	while (r->phase == PHASE_SHELL) {
		uint8_t *end = r->lines.n ? memchr(r->lines.p, '\n', r->lines.n) : NULL;
		size_t n_front = strlen("weir:") + BOOTSTRAP_NONCE_CHARS + 1,
		       n = end ? (size_t)(end - r->lines.p) : 0;
		char line[LINE_BYTES_MAX];
		bool is_ours;

		r->n_noise += end ? n + 1 : 0;
		if (r->n_noise > NOISE_BYTES_MAX || (!end && r->lines.n > NOISE_BYTES_MAX))
			return fail(r, ERR_FORMAT,
				"what comes is not from a shell that runs what it is told");
		if (!end)
			return true;
		is_ours = n >= n_front && n < sizeof(line) && !memcmp(r->lines.p, "weir:", 5) &&
			  !memcmp(r->lines.p + 5, r->nonce, BOOTSTRAP_NONCE_CHARS);
		if (is_ours)
			snprintf(line, sizeof(line), "%.*s", (int)(n - n_front),
				(char *)r->lines.p + n_front);
		memmove(r->lines.p, end + 1, r->lines.n - n - 1);
		r->lines.n -= n + 1;
		if (is_ours && !take_word(r, line))
			return false;
	}
	parcels_add(&r->in, buf_span(&r->lines));
	buf_reset(&r->lines);
	return true;
}

/* --- the agent -------------------------------------------------------------------------------- */

static void say_lines(struct remote_life *r, bool is_end)
{
	for (;;) {
		uint8_t *end = r->sentences.n ? memchr(r->sentences.p, '\n', r->sentences.n) : NULL;
		size_t n = end ? (size_t)(end - r->sentences.p) : r->sentences.n;
		char *line;

		if (!end && !(n && (is_end || n > SENTENCES_MAX)))
			return;
		line = mem_strndup((char *)r->sentences.p, n);
		r->options->say(r->options->ctx, line);
		free(line);
		n += end != NULL;
		memmove(r->sentences.p, r->sentences.p + n, r->sentences.n - n);
		r->sentences.n -= n;
	}
}

static bool take_end(struct remote_life *r, const struct parcel *p)
{
	r->result->wait_status = (int)parcel_number(p);
	r->has_ended = true;
	r->phase = PHASE_LEAVING;
	r->leaving_ns = clock_mono_ns();
	r->input_fd = -1;
	byte_queue_drop(&r->to);
	fd_cleanup(&r->to_fd);
	return true;
}

static bool take_parcel(struct remote_life *r, const struct parcel *p)
{
	switch (p->kind) {
	case PARCEL_TRACE:
		return r->options->trace(r->options->ctx, p->content, &r->failure) >= 0;
	case PARCEL_STDOUT:
		buf_put(&r->output.bytes, p->content.p, p->content.n);
		return true;
	case PARCEL_STDERR:
		buf_put(&r->error.bytes, p->content.p, p->content.n);
		return true;
	case PARCEL_SENTENCES:
		buf_put(&r->sentences, p->content.p, p->content.n);
		say_lines(r, false);
		return true;
	case PARCEL_TAKEN:
		r->input_room += parcel_number(p);
		return r->input_room <= PARCEL_STDIN_ROOM ||
		       fail(r, ERR_FORMAT, "more standard input was taken than was sent");
	case PARCEL_END:
		return take_end(r, p);
	case PARCEL_BEAT:
		return true;
	default:
		return fail(r, ERR_FORMAT, "a parcel for the agent came back");
	}
}

static bool take_parcels(struct remote_life *r)
{
	struct parcel p;
	int rc = 0;

	while (r->phase == PHASE_AGENT && (rc = parcels_next(&r->in, &p, &r->failure)) > 0)
		if (!take_parcel(r, &p))
			return false;
	return rc >= 0;
}

/* --- moving bytes ----------------------------------------------------------------------------- */

/* False at the end of the connection. */
static bool read_connection(struct remote_life *r)
{
	uint8_t bytes[PARCEL_PIECE_MAX];
	ssize_t n = read(r->from_fd, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		fd_cleanup(&r->from_fd);
		return r->has_ended || fail(r, ERR_FAILED, "the connection was lost");
	}
	r->heard_ns = clock_mono_ns();
	if (r->phase == PHASE_SHELL) {
		buf_put(&r->lines, bytes, (size_t)n);
		if (!take_lines(r))
			return false;
	} else if (r->phase == PHASE_AGENT) {
		parcels_add(&r->in, (struct span){bytes, (size_t)n});
	}
	return take_parcels(r);
}

static void read_input(struct remote_life *r)
{
	uint8_t bytes[PARCEL_PIECE_MAX];
	size_t max = r->input_room < sizeof(bytes) ? r->input_room : sizeof(bytes);
	ssize_t n = read(r->input_fd, bytes, max);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		n = 0;
	parcel_put(&r->to.bytes, PARCEL_STDIN, (struct span){bytes, (size_t)n});
	r->input_room -= (size_t)n;
	if (!n)
		r->input_fd = -1;
}

/* Who does not read what the command writes is no reason to end it: the rest is dropped, and it goes on. */
static void write_output(struct byte_queue *q, int fd)
{
	if (byte_queue_write(q, fd, PIECE_BYTES) < 0)
		byte_queue_drop(q);
}

static bool is_reading(const struct remote_life *r)
{
	return byte_queue_left(&r->output) < OUTPUT_BYTES_MAX &&
	       byte_queue_left(&r->error) < OUTPUT_BYTES_MAX;
}

static bool move_bytes(struct remote_life *r)
{
	const struct remote_options *o = r->options;
	bool takes_input = r->phase == PHASE_AGENT && r->input_room && r->input_fd >= 0 &&
			   byte_queue_left(&r->to) < OUTPUT_BYTES_MAX && is_foreground(r->input_fd);
	struct pollfd fds[] = {
		{is_reading(r) ? r->from_fd : -1, POLLIN, 0},
		{byte_queue_left(&r->to) ? r->to_fd : -1, POLLOUT, 0},
		{takes_input ? r->input_fd : -1, POLLIN, 0},
		{byte_queue_left(&r->output) ? o->output_fd : -1, POLLOUT, 0},
		{byte_queue_left(&r->error) ? o->error_fd : -1, POLLOUT, 0},
	};

	poll(fds, sizeof(fds) / sizeof(fds[0]), WAIT_MS);
	if (fds[3].revents)
		write_output(&r->output, o->output_fd);
	if (fds[4].revents)
		write_output(&r->error, o->error_fd);
	if (fds[2].revents)
		read_input(r);
	if (fds[1].revents && byte_queue_write(&r->to, r->to_fd, SIZE_MAX) < 0) {
		fd_cleanup(&r->to_fd); /* why, comes from the other side, or it has ended */
		byte_queue_drop(&r->to);
	}
	return !fds[0].revents || read_connection(r);
}

/* False when the other side has been silent for too long while we listened. */
static bool look_at_clock(struct remote_life *r)
{
	uint64_t now = clock_mono_ns();

	if (r->phase == PHASE_LEAVING && now - r->leaving_ns > LEAVE_NS)
		return fail(
			r, ERR_FAILED, "the agent there did not say that it has removed itself");
	if (r->phase != PHASE_AGENT)
		return true;
	if (!is_reading(r))
		r->heard_ns = now;
	if (now - r->heard_ns > PARCEL_SILENCE_MS * (uint64_t)NS_PER_MS)
		return fail(r, ERR_FAILED, "nothing was heard for 15 seconds");
	if (now - r->spoke_ns > PARCEL_BEAT_MS * (uint64_t)NS_PER_MS) {
		if (!byte_queue_left(&r->to))
			parcel_put(&r->to.bytes, PARCEL_BEAT, (struct span){NULL, 0});
		r->spoke_ns = now;
	}
	return true;
}

/* --- the run ---------------------------------------------------------------------------------- */

static bool take_signal(void *ctx, const struct signalfd_siginfo *info)
{
	struct remote_life *r = ctx;
	uint8_t number = (uint8_t)info->ssi_signo;

	if (r->phase == PHASE_LEAVING)
		return true;
	if (r->phase == PHASE_SHELL || ++r->n_signals > N_SIGNALS_PATIENT) {
		fail(r, ERR_FAILED,
			r->phase == PHASE_SHELL ? "interrupted before anything was run there"
						: "was told three times to end, and did not wait");
		r->run.is_over = true;
		return true;
	}
	parcel_put(&r->to.bytes, PARCEL_SIGNAL, (struct span){&number, 1});
	return true;
}

static int prepare(void *ctx, char *const **environment, struct err *err)
{
	struct remote_life *r = ctx;
	int to[2], from[2];

	(void)environment;
	if (pipe2(to, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot make a pipe");
	r->theirs[0] = to[0];
	r->to_fd = to[1];
	if (pipe2(from, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot make a pipe");
	r->theirs[1] = from[1];
	r->from_fd = from[0];
	fcntl(r->to_fd, F_SETFL, O_NONBLOCK);
	fcntl(r->from_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static int drive(void *ctx, struct err *err)
{
	struct remote_life *r = ctx;

	fd_cleanup(&r->theirs[0]);
	fd_cleanup(&r->theirs[1]);
	if (launch_go(&r->run.child, r->run.command, err) < 0)
		return err->code;
	while (!run_is_over(&r->run) && r->from_fd >= 0)
		if (!move_bytes(r) || !look_at_clock(r))
			break;
	say_lines(r, true);
	while ((byte_queue_left(&r->output) || byte_queue_left(&r->error)) && !run_is_over(&r->run))
		move_bytes(r);
	return 0;
}

/* ssh ends by itself after the shell there; where the connection is given up, it is told. */
static void finish(void *ctx, int rc)
{
	struct remote_life *r = ctx;

	fd_cleanup(&r->to_fd);
	fd_cleanup(&r->from_fd);
	if (rc == 0 && r->run.child.pid > 0 && (!r->has_ended || r->failure.code))
		r->run.end_signal = SIGTERM;
}

static const struct run_work work = {
	.prepare = prepare, .drive = drive, .finish = finish, .take_signal = take_signal};

static int make_nonce(char text[BOOTSTRAP_NONCE_CHARS + 1], struct err *err)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return err_sys(err, errno, "no random number is to be had");
	snprintf(text, BOOTSTRAP_NONCE_CHARS + 1, "%016lx", number);
	return 0;
}

static void release(struct remote_life *r)
{
	fd_cleanup(&r->theirs[0]);
	fd_cleanup(&r->theirs[1]);
	agent_files_release(&r->files);
	byte_queue_release(&r->to);
	byte_queue_release(&r->output);
	byte_queue_release(&r->error);
	buf_release(&r->lines);
	buf_release(&r->sentences);
	parcels_release(&r->in);
}

static int live(struct remote_life *r, struct err *err)
{
	const struct remote_options *o = r->options;
	struct remote_words command = {0};
	struct buf script = {0};
	int rc = make_nonce(r->nonce, err);

	if (rc == 0)
		rc = agent_files_read(&r->files, err);
	if (rc == 0) {
		bootstrap_write(&script, &r->files, r->nonce, o->keep);
		remote_host_command(&o->host, o->program, o->n_program, script.n, &command);
		buf_put(&r->to.bytes, script.p, script.n);
		r->run.command = command.v.v;
		/* ssh asks for passwords on the terminal, for which it has to stay in front. */
		r->run.setup = (struct launch_setup){.stdio = r->theirs,
			.ignores_typed = o->host.kind == REMOTE_KIND_SSH,
			.own_group = o->host.kind != REMOTE_KIND_SSH};
		rc = run_live(&r->run, err);
	}
	vec_release_all(&command.v);
	buf_release(&script);
	return rc;
}

int remote_run(const struct remote_options *options, struct remote_result *result, struct err *err)
{
	struct remote_life r = {.options = options,
		.result = result,
		.theirs = {-1, -1},
		.to_fd = -1,
		.from_fd = -1,
		.input_fd = -1,
		.run = {.work = &work, .parent_fd = -1}};
	int rc;

	*result = (struct remote_result){0};
	r.run.ctx = &r;
	rc = live(&r, err);
	if (rc == 0 && r.phase == PHASE_SHELL) {
		*err = r.failure;
		rc = err->code ? err->code : err_set(err, ERR_FAILED, "the connection was lost");
	}
	if (rc == 0)
		*(r.has_ended ? &result->left : &result->cut) = r.failure;
	release(&r);
	return rc;
}
