/* SPDX-License-Identifier: MIT */
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define WAIT_MS	       100
#define TICK_US	       50000
#define SIGNAL_ECHO_MS 20		/* a signal to a group comes within ... */
#define SIGNAL_ECHO_NS 100000000u	/* ... and one that was passed on to us, too */
#define PATIENCE_NS    2000000000u	/* with a command that was told to end */
#define SOON_NS	       300000000u	/* a command that was interrupted is about to end */
#define NS_PER_S       1000000000u

static uint64_t add_seconds(uint64_t ns, double seconds)
{
	double sum = (double)ns + seconds * NS_PER_S;

	return sum < (double)INT64_MAX ? (uint64_t)sum : INT64_MAX;
}

/* --- signals ------------------------------------------------------------------------------ */

static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};

/* A shell starts background jobs with SIGINT ignored; whoever sends it to us means it all the same.
 * Whoever closes our stderr does not mean the run, and what may not grow is a failed write. SIGCHLD
 * ignored would take the command's status away. */
static const struct {
	int number;
	void (*to)(int);
} settled[] = {{SIGINT, SIG_DFL}, {SIGTERM, SIG_DFL}, {SIGCHLD, SIG_DFL}, {SIGPIPE, SIG_IGN}, {SIGXFSZ, SIG_IGN}};

_Static_assert(sizeof(settled) / sizeof(settled[0]) == RUN_SETTLED_MAX, "each has its place in struct run");

static int open_signals(struct run *r, struct err *err)
{
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&mask, taken[i]);
	sigprocmask(SIG_BLOCK, &mask, &r->old_mask);
	r->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? err_sys(err, errno, "cannot make a signalfd") : 0;
}

/* After the fork: the command keeps its own. */
static void settle_signals(struct run *r)
{
	for (size_t i = 0; i < RUN_SETTLED_MAX; i++) {
		struct sigaction a = {.sa_handler = settled[i].to};

		sigaction(settled[i].number, &a, &r->found[i]);
	}
	r->is_settled = true;
}

void run_leave(const struct run *r)
{
	for (size_t i = 0; r->is_settled && i < RUN_SETTLED_MAX; i++)
		sigaction(settled[i].number, &r->found[i], NULL);
	close(r->signal_fd);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

/* Signals that only pass through are one each, unless somebody before us passes them on as well. */
static bool is_echo(struct run *r, int number)
{
	uint64_t now = clock_mono_ns();
	bool ends = number != SIGUSR1 && number != SIGUSR2;
	bool is_again = number == r->last_signal && now - r->last_signal_ns < SIGNAL_ECHO_NS;

	r->last_signal = number;
	r->last_signal_ns = now;
	return is_again && (ends || r->parent_fd >= 0);
}

static bool parent_signals_group; /* set before a run begins */

void run_expect_group_signals(void)
{
	parent_signals_group = true;
}

static bool has_reached_command(const struct signalfd_siginfo *info)
{
	return info->ssi_code > 0 || (parent_signals_group && info->ssi_pid == (uint32_t)getppid());
}

/* From now on, as it would have without us; but not the echo of the first. */
static void let_next_end_us(struct run *r)
{
	struct pollfd fd = {.fd = r->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;
	sigset_t set;

	if (poll(&fd, 1, SIGNAL_ECHO_MS) > 0 && read(r->signal_fd, &info, sizeof(info)) < 0)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void take_signals(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;
		bool was_sent = !has_reached_command(&info), ends = number != SIGUSR1 && number != SIGUSR2;

		if (number == SIGCHLD || (r->work->take_signal && r->work->take_signal(r->ctx, &info)) ||
			is_echo(r, number))
			continue;
		if (was_sent && r->child.pid > 0 && !(ends && r->end_signal))
			kill(r->child.pid, number);
		if (!ends)
			continue;
		r->is_impatient = r->is_interrupted;
		r->is_interrupted = true;
		r->was_killed = was_sent;
		r->is_over = true;
		if (r->dies_of_second && !r->is_impatient)
			let_next_end_us(r);
	}
}

/* What comes too late ends nobody. */
static void close_signals(struct run *r)
{
	if (r->signal_fd < 0)
		return;
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	take_signals(r);
	fd_cleanup(&r->signal_fd);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

/* --- what is watched ---------------------------------------------------------------------- */

enum { FD_SIGNALS = RUN_FDS_MAX, FD_PARENT, FD_FIRST_PID };

static void watch(struct run *r, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	vec_push(&r->fds, p);
}

static int watch_pids(struct run *r, struct err *err)
{
	for (size_t i = 0; i < RUN_FDS_MAX; i++)
		watch(r, -1);
	watch(r, r->signal_fd);
	watch(r, r->parent_fd);
	for (size_t i = 0; i < r->n_pids; i++) {
		int fd = (int)syscall(SYS_pidfd_open, r->pids[i], 0);

		if (fd < 0 && errno == ESRCH)
			return err_set(err, ERR_NOT_FOUND, "process %d: there is no such process", r->pids[i]);
		if (fd < 0)
			return err_sys(err, errno, "process %d: cannot be watched", r->pids[i]);
		watch(r, fd);
	}
	return 0;
}

void run_command_ended(struct run *r, int wait_status)
{
	r->has_status = true;
	r->wait_status = wait_status;
	r->child.pid = 0;
}

/* True when the command has ended. */
static bool reap_command(struct run *r)
{
	int status;
	pid_t pid;

	if (r->child.pid <= 0)
		return r->has_status;
	do
		pid = wait4(r->child.pid, &status, WNOHANG, &r->usage);
	while (pid < 0 && errno == EINTR);
	if (pid != r->child.pid)
		return false;
	run_command_ended(r, status);
	return true;
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static bool targets_are_gone(struct run *r)
{
	size_t n_left = 0;

	if (r->command)
		return reap_command(r);
	for (size_t i = FD_FIRST_PID; i < r->fds.n; i++) {
		if (is_readable(r->fds.v[i].fd))
			fd_cleanup(&r->fds.v[i].fd);
		n_left += r->fds.v[i].fd >= 0;
	}
	return r->n_pids && !n_left;
}

static void look_around(struct run *r)
{
	take_signals(r);
	if (is_readable(r->parent_fd))
		r->is_orphan = r->is_over = true;
	if (r->duration_s > 0 && clock_mono_ns() >= add_seconds(r->began_ns, r->duration_s))
		r->is_over = true;
}

/* --- the loop ----------------------------------------------------------------------------- */

/* `ms` as poll takes it, but not beyond the duration. */
static int shorten(const struct run *r, int ms)
{
	uint64_t now = clock_mono_ns(), end, left_ms;

	if (r->duration_s <= 0)
		return ms;
	end = add_seconds(r->began_ns, r->duration_s);
	left_ms = end > now ? (end - now) / 1000000u + 1 : 0;
	if (left_ms > INT32_MAX)
		left_ms = INT32_MAX;
	return ms < 0 || left_ms < (uint64_t)ms ? (int)left_ms : ms;
}

static void wait_for_work(struct run *r)
{
	int of_work[RUN_FDS_MAX] = {-1, -1, -1, -1};
	int ms = r->work->wait(r->ctx, of_work);

	for (size_t i = 0; i < RUN_FDS_MAX; i++)
		r->fds.v[i].fd = of_work[i];
	poll(r->fds.v, r->fds.n, shorten(r, ms));
}

static void loop(struct run *r)
{
	while (!r->is_over) {
		wait_for_work(r);
		look_around(r);
		if (r->work->work && !r->work->work(r->ctx))
			r->is_over = true;
		if (targets_are_gone(r))
			r->is_over = true;
	}
}

/* --- work that drives itself ---------------------------------------------------------------- */

static volatile sig_atomic_t has_ticked;

static void tick(int number)
{
	(void)number;
	has_ticked = 1;
}

/* Ticks interrupt whatever blocks. */
static void set_ticks(long us)
{
	struct sigaction a = {.sa_handler = tick};
	struct itimerval every = {{0, us}, {0, us}};
	sigset_t mask;

	sigaction(SIGALRM, &a, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

bool run_is_over(struct run *r)
{
	if (has_ticked) {
		has_ticked = 0;
		look_around(r);
		if (r->work->work && !r->work->work(r->ctx))
			r->is_over = true;
	}
	return r->is_over;
}

/* --- all ---------------------------------------------------------------------------------- */

/* Nothing of ours is on the command any more. */
static void wait_for_command(struct run *r)
{
	uint64_t began = clock_mono_ns(), said_after = r->end_signal ? PATIENCE_NS : SOON_NS;
	bool has_said = false;

	if (r->child.pid > 0 && r->end_signal)
		kill(r->child.pid, r->end_signal);
	while (r->child.pid > 0 && !reap_command(r) && !r->is_impatient && !r->is_orphan) {
		uint64_t now = clock_mono_ns();
		uint64_t told = r->was_killed && r->last_signal_ns > began ? r->last_signal_ns : began;

		if (!has_said && now - began > said_after && r->work->goes_on) {
			r->work->goes_on(r->ctx);
			has_said = true;
		}
		if ((r->was_killed || r->end_signal) && now - told > PATIENCE_NS)
			return;
		poll(r->fds.v + FD_SIGNALS, 2, WAIT_MS);
		take_signals(r);
		r->is_orphan |= is_readable(r->parent_fd);
	}
}

static int begin(struct run *r, struct err *err)
{
	char *const *environment = NULL;
	int rc = open_signals(r, err);

	r->setup.mask = &r->old_mask;
	if (rc == 0 && r->work->prepare)
		rc = r->work->prepare(r->ctx, &environment, err);
	if (rc == 0)
		rc = watch_pids(r, err);
	r->setup.extra = environment;
	if (rc == 0 && r->command)
		rc = launch_prepare(&r->child, r->command, &r->setup, err);
	settle_signals(r);
	if (rc == 0 && r->work->start)
		rc = r->work->start(r->ctx, err);
	r->began_ns = clock_mono_ns();
	return rc;
}

static int go(struct run *r, struct err *err)
{
	int rc;

	if (r->work->drive) {
		set_ticks(TICK_US);
		rc = r->work->drive(r->ctx, err);
		set_ticks(0);
		return rc;
	}
	rc = r->command ? launch_go(&r->child, r->command, err) : 0;
	if (rc < 0)
		return rc;
	if (r->work->started)
		r->work->started(r->ctx);
	loop(r);
	return 0;
}

int run_live(struct run *r, struct err *err)
{
	int rc;

	r->signal_fd = r->child.go_fd = r->child.error_fd = -1;
	rc = begin(r, err);
	if (rc == 0)
		rc = go(r, err);
	r->work->finish(r->ctx, rc);
	if (r->child.path) /* it is still held */
		launch_abandon(&r->child);
	if (rc == 0)
		wait_for_command(r);
	close_signals(r);
	for (size_t i = FD_FIRST_PID; i < r->fds.n; i++)
		fd_cleanup(&r->fds.v[i].fd);
	vec_release(&r->fds);
	return rc;
}
