/* SPDX-License-Identifier: MIT */
#include "remote/remote_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "remote/byte_queue.h"
#include "remote/parcel.h"

#define OUT_BYTES_MAX ((size_t)1 << 20) /* that wait for the connection */
#define WAIT_MS	      1000
#define LOOK_MS	      50	  /* where a child cannot be waited for with the rest */
#define HANGUP_NS     5000000000u /* from the first SIGHUP to the second one, after a lost connection */
#define KILL_NS	      10000000000u /* and to SIGKILL */
#define NS_PER_MS     1000000u

enum { STREAM_TRACE, STREAM_STDOUT, STREAM_STDERR, STREAM_SENTENCES, N_STREAMS };
static const enum parcel_kind stream_kinds[N_STREAMS] = {
	PARCEL_TRACE, PARCEL_STDOUT, PARCEL_STDERR, PARCEL_SENTENCES};

struct agent_life {
	const struct agent *options;
	struct parcels in;
	struct byte_queue out, input; /* for the connection, for the child */
	VEC(char *) argv;	      /* owned */
	struct temporary_folder files;
	size_t n_files;
	int streams[N_STREAMS], input_fd; /* ours; -1 = closed */
	pid_t pid;			  /* 0 = not started, or reaped */
	int pid_fd;
	bool has_begun, has_input, input_ends, is_lost, hung_up_twice;
	uint64_t heard_ns, spoke_ns, lost_ns;
	int wait_status;
};

/* --- the command line ------------------------------------------------------------------------- */

/* TEXT NUL NAME NUL CONTENT: the argument is TEXT and the path of a file with this content. */
static int take_file(struct agent_life *a, struct span content, struct err *err)
{
	const char *text = span_cstr(content, 0);
	const char *name = text ? span_cstr(content, strlen(text) + 1) : NULL;
	struct span bytes;
	char *folder, *path;
	int rc;

	if (!name || strchr(name, '/') || !*name || !strcmp(name, "..") || !strcmp(name, "."))
		return err_set(err, ERR_FORMAT, "a file without a name came");
	bytes = span_sub(content, strlen(text) + strlen(name) + 2,
		content.n - strlen(text) - strlen(name) - 2);
	rc = a->files.path ? 0 : temporary_folder_make(&a->files, temporary_place(), "weir-files-");
	if (rc < 0)
		return err_sys(err, -rc, "'%s': cannot make a folder", temporary_place());
	folder = mem_printf("%s/%zu", a->files.path, ++a->n_files);
	path = mem_printf("%s/%s", folder, name);
	rc = mkdir(folder, 0700) < 0 ? err_sys(err, errno, "'%s': cannot make the folder", folder)
				     : file_replace(path, bytes, 0600, err);
	if (rc == 0)
		vec_push(&a->argv, mem_printf("%s%s", text, path));
	free(folder);
	free(path);
	return rc;
}

static int open_pipe(int *ours, int *theirs, bool we_read, struct err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot make a pipe");
	*ours = fds[we_read ? 0 : 1];
	*theirs = fds[we_read ? 1 : 0];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
	return 0;
}

static int start(struct agent_life *a, struct err *err)
{
	struct agent_child c = {-1, -1, -1, -1, -1, {0}};
	int *const theirs[N_STREAMS] = {&c.trace, &c.output, &c.error, &c.sentences};
	int rc = open_pipe(&a->input_fd, &c.input, false, err);

	for (int i = 0; i < N_STREAMS && rc == 0; i++)
		rc = open_pipe(&a->streams[i], theirs[i], true, err);
	vec_push(&a->argv, NULL);
	memcpy(c.kept,
		(const int[AGENT_N_KEPT]){a->options->in_fd, a->options->out_fd, a->input_fd,
			a->streams[0], a->streams[1], a->streams[2], a->streams[3]},
		sizeof(c.kept));
	if (rc == 0)
		rc = a->options->start(
			a->options->ctx, (int)a->argv.n - 1, a->argv.v, &c, &a->pid, err);
	fd_cleanup(&c.input);
	for (int i = 0; i < N_STREAMS; i++)
		fd_cleanup(theirs[i]);
	a->has_begun = rc == 0;
	if (rc == 0)
		a->pid_fd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	if (!a->has_input)
		fd_cleanup(&a->input_fd);
	return rc;
}

/* --- what comes ------------------------------------------------------------------------------- */

static void pass_signal(struct agent_life *a, struct span content)
{
	if (a->pid > 0 && content.n == 1 && content.p[0] > 0 && content.p[0] < SIGRTMIN)
		kill(-a->pid, content.p[0]);
}

static void take_input(struct agent_life *a, struct span content)
{
	a->input_ends |= !content.n;
	if (a->input_fd >= 0)
		buf_put(&a->input.bytes, content.p, content.n);
}

static int take_parcel(struct agent_life *a, const struct parcel *p, struct err *err)
{
	bool is_early =
		p->kind == PARCEL_ARGUMENT || p->kind == PARCEL_FILE || p->kind == PARCEL_START;

	if (is_early == a->has_begun && p->kind != PARCEL_BEAT)
		return err_set(
			err, ERR_FORMAT, "a parcel of kind %d came at the wrong time", p->kind);
	switch (p->kind) {
	case PARCEL_ARGUMENT:
		vec_push(&a->argv, mem_strndup((const char *)p->content.p, p->content.n));
		return 0;
	case PARCEL_FILE:
		return take_file(a, p->content, err);
	case PARCEL_START:
		a->has_input = p->content.n && p->content.p[0];
		return start(a, err);
	case PARCEL_STDIN:
		if (byte_queue_left(&a->input) + p->content.n > PARCEL_STDIN_ROOM)
			return err_set(
				err, ERR_LIMIT, "more standard input came than was asked for");
		take_input(a, p->content);
		return 0;
	case PARCEL_SIGNAL:
		pass_signal(a, p->content);
		return 0;
	case PARCEL_BEAT:
		return 0;
	default:
		return err_set(err, ERR_FORMAT, "a parcel of kind %d came to the agent", p->kind);
	}
}

static void lose_connection(struct agent_life *a)
{
	if (a->is_lost)
		return;
	a->is_lost = true;
	a->lost_ns = clock_mono_ns();
	byte_queue_drop(&a->out);
	if (a->pid > 0)
		kill(-a->pid, SIGHUP);
}

static int read_connection(struct agent_life *a, struct err *err)
{
	uint8_t bytes[PARCEL_PIECE_MAX];
	ssize_t n = read(a->options->in_fd, bytes, sizeof(bytes));
	struct parcel p;
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		lose_connection(a);
		return 0;
	}
	a->heard_ns = clock_mono_ns();
	parcels_add(&a->in, (struct span){bytes, (size_t)n});
	while ((rc = parcels_next(&a->in, &p, err)) > 0)
		if ((rc = take_parcel(a, &p, err)) < 0)
			break;
	return rc;
}

/* --- what goes -------------------------------------------------------------------------------- */

static void feed_child(struct agent_life *a)
{
	ssize_t n = byte_queue_write(&a->input, a->input_fd, SIZE_MAX);

	if (n < 0) {
		fd_cleanup(&a->input_fd); /* it has closed its end: what comes is not wanted */
		byte_queue_drop(&a->input);
	} else if (n > 0) {
		parcel_put_number(&a->out.bytes, PARCEL_TAKEN, (uint32_t)n);
	}
}

/* True when something came. */
static bool read_stream(struct agent_life *a, int i)
{
	uint8_t bytes[PARCEL_PIECE_MAX];
	ssize_t n = a->streams[i] < 0 ? 0 : read(a->streams[i], bytes, sizeof(bytes));

	if (n > 0 && !a->is_lost)
		parcel_put(&a->out.bytes, stream_kinds[i], (struct span){bytes, (size_t)n});
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_cleanup(&a->streams[i]);
	return n > 0;
}

static bool has_room(const struct agent_life *a)
{
	return a->is_lost || byte_queue_left(&a->out) < OUT_BYTES_MAX;
}

static void wait_and_move(struct agent_life *a, struct err *err, int *rc)
{
	struct pollfd fds[4 + N_STREAMS] = {
		{a->is_lost ? -1 : a->options->in_fd, POLLIN, 0},
		{byte_queue_left(&a->out) ? a->options->out_fd : -1, POLLOUT, 0},
		{byte_queue_left(&a->input) ? a->input_fd : -1, POLLOUT, 0},
	};

	for (int i = 0; i < N_STREAMS; i++)
		fds[3 + i] = (struct pollfd){has_room(a) ? a->streams[i] : -1, POLLIN, 0};
	fds[3 + N_STREAMS] = (struct pollfd){a->pid > 0 ? a->pid_fd : -1, POLLIN, 0};
	poll(fds, 4 + N_STREAMS, a->pid > 0 && a->pid_fd < 0 ? LOOK_MS : WAIT_MS);
	if (fds[0].revents)
		*rc = read_connection(a, err);
	if (fds[1].revents && !a->is_lost &&
		byte_queue_write(&a->out, a->options->out_fd, SIZE_MAX) < 0)
		lose_connection(a);
	if (fds[2].revents && a->input_fd >= 0)
		feed_child(a);
	for (int i = 0; i < N_STREAMS; i++)
		if (fds[3 + i].revents)
			read_stream(a, i);
	if (a->input_ends && !byte_queue_left(&a->input))
		fd_cleanup(&a->input_fd);
}

/* --- life ------------------------------------------------------------------------------------- */

static void look_at_clock(struct agent_life *a)
{
	uint64_t now = clock_mono_ns();

	if (!a->is_lost && now - a->heard_ns > PARCEL_SILENCE_MS * (uint64_t)NS_PER_MS)
		lose_connection(a);
	if (!a->is_lost && now - a->spoke_ns > PARCEL_BEAT_MS * (uint64_t)NS_PER_MS) {
		if (!byte_queue_left(&a->out))
			parcel_put(&a->out.bytes, PARCEL_BEAT, (struct span){NULL, 0});
		a->spoke_ns = now;
	}
	if (!a->is_lost || a->pid <= 0)
		return;
	if (now - a->lost_ns > KILL_NS)
		kill(a->pid, SIGKILL);
	else if (now - a->lost_ns > HANGUP_NS && !a->hung_up_twice) {
		kill(a->pid, SIGHUP); /* it does not wait for a command that does not mind */
		a->hung_up_twice = true;
	}
}

/* True when the child has ended: what it wrote is read to the end then. Others may have its standard output open. */
static bool reap(struct agent_life *a)
{
	if (a->pid <= 0 || waitpid(a->pid, &a->wait_status, WNOHANG) != a->pid)
		return false;
	a->pid = 0;
	return true;
}

static bool send_rest(struct agent_life *a, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < N_STREAMS; i++)
		for (;;) {
			while (!has_room(a) && rc == 0) {
				wait_and_move(a, err, &rc);
				look_at_clock(a);
			}
			if (rc < 0 || !read_stream(a, i))
				break;
		}
	parcel_put_number(&a->out.bytes, PARCEL_END, (uint32_t)a->wait_status);
	for (int i = 0; i < N_STREAMS; i++)
		fd_cleanup(&a->streams[i]);
	while (byte_queue_left(&a->out) && !a->is_lost && rc == 0) {
		wait_and_move(a, err, &rc);
		look_at_clock(a);
	}
	return !a->is_lost && rc == 0;
}

static int live(struct agent_life *a, struct err *err)
{
	int rc = 0;

	while (!a->has_begun && !a->is_lost && rc == 0) {
		wait_and_move(a, err, &rc);
		look_at_clock(a);
	}
	while (a->pid > 0 && !reap(a)) {
		wait_and_move(a, err, &rc);
		if (rc < 0)
			lose_connection(a);
		look_at_clock(a);
	}
	if (rc < 0)
		return rc;
	if (!a->has_begun || !send_rest(a, err))
		return err_set(err, ERR_FAILED, "the connection was lost");
	return 0;
}

int agent_serve(const struct agent *options, struct err *err)
{
	struct agent_life a = {
		.options = options, .streams = {-1, -1, -1, -1}, .input_fd = -1, .pid_fd = -1};
	int rc;

	a.heard_ns = a.spoke_ns = clock_mono_ns();
	fcntl(options->in_fd, F_SETFL, O_NONBLOCK);
	fcntl(options->out_fd, F_SETFL, O_NONBLOCK);
	rc = live(&a, err);
	fd_cleanup(&a.input_fd);
	fd_cleanup(&a.pid_fd);
	for (int i = 0; i < N_STREAMS; i++)
		fd_cleanup(&a.streams[i]);
	temporary_folder_remove(&a.files);
	vec_release_all(&a.argv);
	parcels_release(&a.in);
	byte_queue_release(&a.out);
	byte_queue_release(&a.input);
	return rc;
}
