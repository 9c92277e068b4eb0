/* SPDX-License-Identifier: MIT */
/* A run's life with work that only takes notes: how it ends, what signals mean, what is waited for. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "run/run.h"

#define NS_PER_MS 1000000u

struct notes {
	struct run run;
	char order[64]; /* a letter for each call, but those for work */
	int fails_at;	/* the letter of the call that fails */
	int send;	/* a signal that we get from ourselves with the first work */
	unsigned n_sent, n_to_send;
	unsigned n_work, n_max; /* rounds; 0 = no limit */
	int finish_rc;
	bool takes_signals;
	unsigned n_taken;
};

static int note(struct notes *n, char letter, struct err *err)
{
	size_t at = strlen(n->order);

	if (at + 1 < sizeof(n->order))
		n->order[at] = letter;
	return n->fails_at == letter ? err_set(err, ERR_FAILED, "refused at %c", letter) : 0;
}

static int prepare(void *ctx, char *const **environment, struct err *err)
{
	static char text[] = "WEIR_RUN_TEST=yes";
	static char *const extra[] = {text, NULL};

	*environment = extra;
	return note(ctx, 'p', err);
}

static int start(void *ctx, struct err *err)
{
	return note(ctx, 's', err);
}

static void started(void *ctx)
{
	note(ctx, 'S', NULL);
}

static int wait_for(void *ctx, int *fds)
{
	(void)ctx;
	(void)fds;
	return 5;
}

static bool work(void *ctx)
{
	struct notes *n = ctx;

	n->n_work++;
	if (n->send && n->n_sent < n->n_to_send) {
		n->n_sent++;
		kill(getpid(), n->send);
	}
	return !n->n_max || n->n_work < n->n_max;
}

static bool take_signal(void *ctx, const struct signalfd_siginfo *info)
{
	struct notes *n = ctx;

	(void)info;
	n->n_taken++;
	return n->takes_signals;
}

static void finish(void *ctx, int rc)
{
	((struct notes *)ctx)->finish_rc = rc;
	note(ctx, 'f', NULL);
}

static void goes_on(void *ctx)
{
	note(ctx, 'g', NULL);
}

static const struct run_work all = {prepare, start, started, wait_for, work, NULL, take_signal, finish, goes_on};

/* A command line for the shell. */
struct words {
	char sh[3], c[3], text[80];
	char *v[4];
};

static void shell(struct words *w, const char *text)
{
	*w = (struct words){.sh = "sh", .c = "-c", .v = {w->sh, w->c, w->text, NULL}};
	snprintf(w->text, sizeof(w->text), "%s", text);
}

static int live(struct notes *n, struct err *err)
{
	n->run.work = n->run.work ? n->run.work : &all;
	n->run.ctx = n;
	n->run.parent_fd = -1;
	return run_live(&n->run, err);
}

static void test_command(void)
{
	struct words words;
	struct notes n = {.run = {.command = words.v}};
	struct err err = {0};

	shell(&words, "test $WEIR_RUN_TEST = yes && exit 7");
	CHECK_EQ(live(&n, &err), 0);
	CHECK_STR(n.order, "psSf");
	CHECK_EQ(n.finish_rc, 0);
	CHECK(n.run.has_status && WIFEXITED(n.run.wait_status));
	CHECK_EQ(WEXITSTATUS(n.run.wait_status), 7);
	CHECK(n.n_work > 0);
}

/* Whatever fails before it, the command has not run, and the work was told to end. */
static void test_failed_start(void)
{
	struct words words;
	static const char *const orders[] = {"pf", "psf"};
	struct err err = {0};

	shell(&words, "kill -KILL $PPID");
	for (size_t i = 0; i < 2; i++) {
		struct notes n = {.run = {.command = words.v}, .fails_at = "ps"[i]};

		CHECK_EQ(live(&n, &err), ERR_FAILED);
		CHECK_STR(n.order, orders[i]);
		CHECK_EQ(n.finish_rc, ERR_FAILED);
		CHECK(!n.run.has_status);
		CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
	}
}

static void test_no_such_command(void)
{
	char path[] = "/nowhere/at/all";
	char *const command[] = {path, NULL};
	struct notes n = {.run = {.command = command}};
	struct err err = {0};

	CHECK(live(&n, &err) < 0);
	CHECK(strstr(err.text, "/nowhere/at/all"));
	CHECK_STR(n.order, "pf");
}

static pid_t make_child(unsigned ms)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(ms * 1000);
		_exit(3);
	}
	return pid;
}

/* The run ends with the last of its processes. */
static void test_pids(void)
{
	pid_t pids[] = {make_child(20), make_child(150)};
	struct notes n = {.run = {.pids = pids, .n_pids = 2}};
	uint64_t began = clock_mono_ns();
	struct err err = {0};

	CHECK_EQ(live(&n, &err), 0);
	CHECK(clock_mono_ns() - began >= 100u * NS_PER_MS);
	CHECK_STR(n.order, "psSf");
	for (size_t i = 0; i < 2; i++)
		CHECK_EQ(waitpid(pids[i], NULL, 0), pids[i]);
	n = (struct notes){.run = {.pids = pids, .n_pids = 2}};
	CHECK_EQ(live(&n, &err), ERR_NOT_FOUND);
	CHECK(strstr(err.text, "there is no such process"));
}

static void test_duration(void)
{
	struct notes n = {.run = {.duration_s = 0.1}};
	uint64_t began = clock_mono_ns();
	struct err err = {0};

	CHECK_EQ(live(&n, &err), 0);
	CHECK(clock_mono_ns() - began >= 100u * NS_PER_MS);
}

static void test_work_has_enough(void)
{
	struct notes n = {.n_max = 3};
	struct err err = {0};

	CHECK_EQ(live(&n, &err), 0);
	CHECK_EQ(n.n_work, 3);
}

/* Passed on to the command, which ends by it; and the status is the command's. */
static void test_signal_is_passed_on(void)
{
	struct words words;
	struct notes n = {.run = {.command = words.v}, .send = SIGTERM, .n_to_send = 1};
	struct err err = {0};

	shell(&words, "exec sleep 100");
	CHECK_EQ(live(&n, &err), 0);
	CHECK_STR(n.order, "psSf");
	CHECK(n.run.has_status && WIFSIGNALED(n.run.wait_status));
	CHECK_EQ(WTERMSIG(n.run.wait_status), SIGTERM);
}

/* SIGUSR1 ends the command, not the run before it. */
static void test_usr_signal(void)
{
	struct words words;
	struct notes n = {.run = {.command = words.v}, .send = SIGUSR1, .n_to_send = 1};
	struct err err = {0};
	sigset_t blocked;

	signal(SIGUSR1, SIG_DFL); /* the runs before leave it ignored */
	shell(&words, "trap 'exit 9' USR1; while :; do sleep 0.01; done");
	CHECK_EQ(live(&n, &err), 0);
	CHECK(n.run.has_status);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	CHECK(!sigismember(&blocked, SIGUSR1));
}

static void test_signal_is_taken(void)
{
	struct notes n = {.send = SIGTERM, .n_to_send = 1, .takes_signals = true, .n_max = 5};
	struct err err = {0};

	CHECK_EQ(live(&n, &err), 0);
	CHECK_EQ(n.n_taken, 1);
	CHECK_EQ(n.n_work, 5);
}

/* A command that ignores what we pass on is waited for, but not for ever, and that is said. */
static void test_stubborn_command(void)
{
	struct words words;
	struct notes n = {.run = {.command = words.v}, .send = SIGTERM, .n_to_send = 1};
	uint64_t began;
	struct err err = {0};

	shell(&words, "trap '' TERM; exec sleep 100");
	signal(SIGTERM, SIG_IGN); /* so that the command has it from its first instruction on */
	began = clock_mono_ns();
	CHECK_EQ(live(&n, &err), 0);
	CHECK_STR(n.order, "psSfg");
	CHECK(clock_mono_ns() - began >= 2000u * NS_PER_MS);
	CHECK(!n.run.has_status);
	CHECK(n.run.child.pid > 0);
	kill(n.run.child.pid, SIGKILL);
	CHECK_EQ(waitpid(n.run.child.pid, NULL, 0), n.run.child.pid);
	signal(SIGTERM, SIG_DFL);
}

/* A run that ends its command does so by its own signal. */
static void test_end_signal(void)
{
	struct words words;
	struct notes n = {.run = {.command = words.v, .end_signal = SIGHUP}, .n_max = 2};
	struct err err = {0};

	shell(&words, "exec sleep 100");
	CHECK_EQ(live(&n, &err), 0);
	CHECK_STR(n.order, "psSf");
	CHECK(n.run.has_status && WIFSIGNALED(n.run.wait_status));
	CHECK_EQ(WTERMSIG(n.run.wait_status), SIGHUP);
}

/* But what ends nothing is passed on there, too. */
static void test_usr_beside_end_signal(void)
{
	struct words words;
	struct notes n = {
		.run = {.command = words.v, .end_signal = SIGHUP, .duration_s = 5}, .send = SIGUSR2, .n_to_send = 1};
	struct err err = {0};

	shell(&words, "exec sleep 100");
	signal(SIGUSR2, SIG_DFL); /* the runs before leave it ignored */
	CHECK_EQ(live(&n, &err), 0);
	CHECK(n.run.has_status && WIFSIGNALED(n.run.wait_status));
	CHECK_EQ(WTERMSIG(n.run.wait_status), SIGUSR2);
}

/* --- work that drives itself --- */

static int drive(void *ctx, struct err *err)
{
	struct notes *n = ctx;

	note(n, 'd', err);
	if (n->run.command && launch_go(&n->run.child, n->run.command, err) < 0)
		return err->code;
	while (!run_is_over(&n->run))
		pause();
	return 0;
}

static void test_drive(void)
{
	static const struct run_work driven = {
		.prepare = prepare, .start = start, .work = work, .drive = drive, .finish = finish, .goes_on = goes_on};
	struct words words;
	struct notes n = {.run = {.work = &driven, .duration_s = 0.2}};
	struct err err = {0};

	shell(&words, "exec sleep 0.4");
	CHECK_EQ(live(&n, &err), 0);
	CHECK_STR(n.order, "psdf");
	CHECK(n.n_work > 0);
	/* The command outlives the run, and is waited for. */
	n = (struct notes){.run = {.work = &driven, .command = words.v, .duration_s = 0.05}};
	CHECK_EQ(live(&n, &err), 0);
	CHECK(n.run.has_status && WIFEXITED(n.run.wait_status));
}

/* An orphan waits for nobody. */
static void test_parent(void)
{
	struct words words;
	struct notes n = {.run = {.command = words.v, .work = &all}};
	struct err err = {0};
	int ends[2];

	shell(&words, "exec sleep 100");
	CHECK_EQ(pipe(ends), 0);
	close(ends[1]);
	n.run.ctx = &n;
	n.run.parent_fd = ends[0];
	CHECK_EQ(run_live(&n.run, &err), 0);
	CHECK(!n.run.has_status);
	kill(n.run.child.pid, SIGKILL);
	CHECK_EQ(waitpid(n.run.child.pid, NULL, 0), n.run.child.pid);
	close(ends[0]);
}

int main(void)
{
	static const struct test tests[] = {
		{"a run ends with its command, and has its status", test_command},
		{"a start that fails runs nothing", test_failed_start},
		{"a command that is not there is named", test_no_such_command},
		{"a run ends with the last of its processes", test_pids},
		{"a run ends when its time is up", test_duration},
		{"a run ends when the work has enough", test_work_has_enough},
		{"a signal that is sent to us reaches the command", test_signal_is_passed_on},
		{"SIGUSR1 is passed on and ends nothing", test_usr_signal},
		{"a signal that the work takes means nothing to the run", test_signal_is_taken},
		{"a command that ignores its end is not waited for ever", test_stubborn_command},
		{"a run that ends its command tells it so", test_end_signal},
		{"SIGUSR2 reaches a command that is told to end otherwise", test_usr_beside_end_signal},
		{"work may wait in its own way", test_drive},
		{"when nobody waits for us, we wait for nobody", test_parent},
	};

	return RUN_TESTS(tests);
}
