/* SPDX-License-Identifier: MIT */
/* The engine `inside`: its row of the table, and the loop that takes what the program writes. */
#include "steps/engine/engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "steps/engine/inside_engine.h"

#define SLEEP_NS    2000000u	/* nothing to do: one program */
#define NAP_NS	    200000u	/* several, of which each could wake us */
#define EXEC_NAP_NS 30000u	/* a program waits for us */
#define END_NS	    1000000000u /* for threads to leave at the end; others leave later */
#define TAKE_OUT_NS 20000000u	/* between two attempts to give the memory back */
#define TRIAL_NOPS  10

/* --- does it work here ---------------------------------------------------------------------- */

static volatile sig_atomic_t n_trial_traps;

static void count_trap(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	n_trial_traps = n_trial_traps + 1;
}

/* In a child of ours: ten instructions with the trap flag set, and the popf that clears it. */
static void trial(void)
{
	struct sigaction a = {.sa_sigaction = count_trap, .sa_flags = SA_SIGINFO};

	sigaction(SIGTRAP, &a, NULL);
	__asm__ volatile("pushfq\n"
			 "orl $0x100, (%%rsp)\n"
			 "popfq\n"
			 ".rept 10\n"
			 "nop\n"
			 ".endr\n"
			 "pushfq\n"
			 "andl $~0x100, (%%rsp)\n"
			 "popfq\n"
			 :
			 :
			 : "memory", "cc");
	_exit(n_trial_traps == TRIAL_NOPS + 3 ? 0 : 1);
}

static const char *hindrance(void)
{
	static bool is_known;
	static const char *why;
	int status = 0;
	pid_t pid, got;

	if (is_known)
		return why;
	is_known = true;
	pid = fork();
	if (pid == 0)
		trial();
	do
		got = pid > 0 ? waitpid(pid, &status, 0) : -1;
	while (got < 0 && errno == EINTR);
	if (got != pid || status)
		why = "the trap flag does not give one SIGTRAP for each instruction";
	return why;
}

static int accepts(const struct step_session *s, struct err *err)
{
	const struct step_options *o = step_session_options(s);
	const char *what = o->data	      ? "--data"
			   : o->from || o->to ? "--from and --to"
			   : o->around	      ? "--around"
			   : o->burst	      ? "--every"
					      : NULL;

	if (what)
		return err_set(err, ERR_UNSUPPORTED,
			"engine 'inside' cannot do %s: take --engine ptrace", what);
	if (!o->command)
		return 0;
	if (inside_check_filter(getpid(), NULL) < 0)
		return err_set(err, ERR_UNSUPPORTED,
			"weir is under a seccomp filter, and so is '%s', which the engine 'inside' cannot trace then: take --engine ptrace",
			o->command[0]);
	return inside_check_command(o->command[0], err);
}

/* --- the loop ------------------------------------------------------------------------------- */

static size_t drain_all(struct inside_engine *e)
{
	size_t n = 0;

	inside_bind_slots(e);
	for (size_t i = 0; i < e->threads.n; i++)
		if (!e->threads.v[i]->has_ended)
			n += inside_drain_thread(e, e->threads.v[i]);
	return n;
}

static void beat(struct inside_engine *e)
{
	for (size_t i = 0; i < e->areas.n; i++)
		__atomic_fetch_add(&e->areas.v[i]->shared->heartbeat, 1, __ATOMIC_RELAXED);
}

/* Until there is something to do, or for a while. */
static void nap(struct inside_engine *e)
{
	uint32_t *asleep;
	struct timespec wait = {0, e->n_execs ? EXEC_NAP_NS : NAP_NS};

	if (e->n_execs || e->areas.n != 1) {
		nanosleep(&wait, NULL);
		return;
	}
	asleep = &e->areas.v[0]->shared->is_asleep;
	wait.tv_nsec = SLEEP_NS;
	__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
	if (!drain_all(e))
		syscall(SYS_futex, asleep, FUTEX_WAIT, 1, &wait, NULL, 0);
	__atomic_store_n(asleep, 0, __ATOMIC_SEQ_CST);
}

static bool is_anyone_left(const struct inside_engine *e)
{
	if (e->command)
		return true;
	for (size_t i = 0; i < e->processes.n; i++)
		if (!e->processes.v[i]->has_ended)
			return true;
	return false;
}

static void turn(struct inside_engine *e)
{
	beat(e);
	if (!drain_all(e))
		nap(e);
	inside_look_at_processes(e);
	inside_leave_go_on(e);
	step_session_progress(e->s);
}

static bool take_out_all(struct inside_engine *e)
{
	bool is_done = true;

	inside_bind_slots(e);
	for (size_t i = 0; i < e->processes.n; i++) {
		struct inside_process *p = e->processes.v[i];
		struct inside_area *area = p->area;

		if (p->has_ended || !area || p->is_left)
			continue;
		if (inside_take_out(&(struct inside_range){p->pid, p->memory_fd, area->base,
					    STEPS_AREA_AT + area->bytes},
			    NULL) == 0)
			inside_process_is_out(e, p);
		else
			is_done = false;
	}
	return is_done;
}

static void tell_areas(struct inside_engine *e, uint32_t is_off)
{
	for (size_t i = 0; i < e->areas.n; i++)
		__atomic_store_n(&e->areas.v[i]->shared->is_off, is_off, __ATOMIC_SEQ_CST);
}

/* Every thread leaves at its next trap, and what they wrote until then is taken; then the memory
 * goes back. */
static void let_go(struct inside_engine *e)
{
	uint64_t until = clock_mono_ns() + END_NS, next = clock_mono_ns() + TAKE_OUT_NS / 4;
	bool is_done = false;

	e->is_off = true;
	tell_areas(e, 1);
	while ((!is_done || e->n_execs) && clock_mono_ns() < until) {
		turn(e);
		if (clock_mono_ns() < next)
			continue;
		is_done = take_out_all(e);
		next = clock_mono_ns() + TAKE_OUT_NS;
	}
	tell_areas(e, 2);
}

static int start(struct inside_engine *e, struct err *err)
{
	struct launch *l = step_session_launch(e->s);
	int rc = 0;

	if (l)
		return inside_start_command(e, l, err);
	for (size_t i = 0; i < e->o->n_pids && rc == 0; i++)
		rc = inside_attach(e, e->o->pids[i], err);
	return rc;
}

static int run(struct step_session *s, struct err *err)
{
	struct inside_engine *e = mem_zalloc(sizeof(*e));
	int rc;

	e->s = s;
	e->o = step_session_options(s);
	rc = inside_library_read(&e->library, err);
	if (rc == 0)
		rc = start(e, err);
	if (rc == 0)
		while (is_anyone_left(e) && !step_session_is_over(s))
			turn(e);
	let_go(e);
	inside_engine_release(e);
	return rc;
}

const struct step_engine step_engine_inside = {
	.name = "inside",
	.summary = "the trap flag, handled in the program itself",
	.hindrance = hindrance,
	.accepts = accepts,
	.run = run,
};
