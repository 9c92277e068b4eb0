/* SPDX-License-Identifier: MIT */
#include "record/recorder.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"
#include "calltree/loss.h"
#include "record/collector.h"
#include "record/hooks/targets.h"
#include "process/host_facts.h"
#include "process/proc.h"
#include "record/snapshot_request.h"
#include "run/run.h"

#define FLUSH_INTERVAL_NS     1000000000u
#define PROGRESS_INTERVAL_NS  200000000u
#define TREES_INTERVAL_NS_MIN 1000000000u
#define TREES_INTERVAL_NS_MAX (600 * (uint64_t)1000000000u)
#define WAIT_MS		      100
#define HURRY_MS	      10
#define ATTACHED_INTERVAL_NS  100000000u
/* So many threads in a while, of so few periods of CPU time each, without samples for this share of it, are
 * too short for their timers. */
#define BIRTHS_NS	  100000000u
#define BIRTHS_MIN	  5
#define BIRTH_PERIODS	  5
#define COVERED_PERCENT	  70
#define VARY_MS		  5
#define ATTACH_ROUNDS_MAX 10

struct attached {
	pid_t pid;
	uint64_t began_ns, ns; /* CPU time at the start, and when it was looked at last */
	bool is_gone;
};

struct recorder {
	const struct recorder_options *options;
	struct recorder_result *result;
	struct trace_writer *writer;
	struct perf_set set;
	struct collector *collector;
	struct session *session;
	struct hooks *hooks; /* NULL = no function is hooked */
	struct run run;
	struct snapshot_desk desk;
	bool is_complete; /* the trace is */
	uint64_t last_flush_ns, last_progress_ns;
	uint64_t last_trees_ns, trees_interval_ns;
	bool varies; /* the periods of timers */
	/* When threads were counted last, how many there were, and their CPU time. */
	uint64_t births_ns, n_births, births_cpu_ns;
	uint64_t cpu_ns;	       /* of all that was recorded; 0 = not known */
	VEC(struct attached) attached; /* processes that ran before */
	uint64_t last_attached_ns;
};

/* --- starting --------------------------------------------------------------------------- */

/* Stack copies are allocated by one thread and freed by the other, large and often: given back to
 * the kernel in between, each would cost its page faults again. */
static void settle_allocator(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

struct attach {
	struct recorder *r;
	struct map seen; /* tids */
	size_t n_new, n_attached;
	int rc;
	struct err *err;
};

static void attach_task(void *ctx, pid_t tid)
{
	struct attach *a = ctx;
	bool created;
	int rc;

	map_ensure(&a->seen, (uint64_t)tid, &created);
	if (!created || a->rc < 0)
		return;
	a->n_new++;
	rc = perf_set_add(&a->r->set, tid, a->err);
	if (rc == 0)
		a->n_attached++;
	else if (rc != ERR_NOT_FOUND) /* a thread may end at any time */
		a->rc = rc;
}

/* Threads are looked for until a round finds no new one: those that are made by a thread that is
 * attached already are inherited, those made by another in the meantime are not. */
static int attach_process(struct recorder *r, pid_t pid, struct err *err)
{
	struct attach a = {.r = r, .err = err};

	for (int round = 0; round < ATTACH_ROUNDS_MAX; round++) {
		a.n_new = 0;
		proc_each_task(pid, attach_task, &a);
		if (!a.n_new || a.rc < 0)
			break;
	}
	map_release(&a.seen);
	if (a.rc == 0 && !a.n_attached)
		a.rc = err_set(err, ERR_NOT_FOUND, "process %d: ended while attaching", pid);
	return a.rc;
}

static void add_running(void *ctx, pid_t pid)
{
	session_add_running(ctx, pid);
}

static int start_events(struct recorder *r, struct err *err)
{
	const struct recorder_options *o = r->options;
	int rc = 0;

	if (o->system_wide || o->command)
		rc = perf_set_add(&r->set, o->system_wide ? -1 : r->run.child.pid, err);
	if (rc == 0 && o->command && !o->system_wide)
		session_add_launched(r->session, r->run.child.pid, r->run.child.path);
	for (size_t i = 0; i < o->n_pids && rc == 0; i++)
		rc = attach_process(r, o->pids[i], err);
	return rc;
}

/* Events are on before /proc is read, so that no mapping falls between; the rings are being
 * emptied already, since reading may take a while. */
static void snapshot_running(struct recorder *r)
{
	const struct recorder_options *o = r->options;

	perf_set_enable(&r->set);
	if (o->system_wide)
		proc_each_task(0, add_running, r->session);
	for (size_t i = 0; i < o->n_pids; i++) {
		uint64_t ns = proc_cpu_ns(o->pids[i]);

		vec_push(&r->attached, ((struct attached){o->pids[i], ns, ns, false}));
		session_add_running(r->session, o->pids[i]);
	}
}

/* Before the fork: the command's environment names the socket. */
static int open_hooks(void *ctx, char *const **environment, struct err *err)
{
	struct recorder *r = ctx;
	struct hooks_options functions = r->options->functions;
	char *doubt;
	int rc;

	functions.allocations |= r->options->allocations;
	functions.is_attach = !r->options->command;
	if (!hooks_options_are_used(&functions))
		return 0;
	doubt = r->options->command ? hook_targets_doubt(r->options->command[0]) : NULL;
	if (doubt && r->options->note)
		r->options->note(r->options->ctx, doubt);
	free(doubt);
	rc = hooks_open(&r->hooks, &functions, err);
	if (rc == 0)
		*environment = hooks_environment(r->hooks);
	return rc;
}

static struct session_options session_options_of(const struct recorder *r)
{
	const struct recorder_options *o = r->options;
	struct session_options s = {.perf = o->perf,
		.life = {.system_wide = o->system_wide, .modules = o->modules},
		.hooks = r->hooks};

	s.life.modules.none = !(o->hooks & HOOK_MODULE);
	s.perf.scope = o->system_wide ? PERF_SCOPE_MACHINE
		       : o->command   ? PERF_SCOPE_COMMAND
				      : PERF_SCOPE_TASKS;
	s.perf.no_switches = !(o->hooks & HOOK_SWITCH);
	s.perf.kernel[KERNEL_GROUP_SYSCALLS] = o->hooks & HOOK_SYSCALL;
	s.perf.kernel[KERNEL_GROUP_FAULTS] = o->hooks & HOOK_FAULT;
	s.perf.kernel[KERNEL_GROUP_INTERRUPTS] = o->hooks & HOOK_INTERRUPT;
	return s;
}

/* Events, frequency, clock, sizes, notes. */
static void write_facts(
	struct trace_writer *w, const struct recorder_options *o, const struct perf_set *set)
{
	struct buf b = {0};

	host_facts_targets(
		w, &(struct host_targets){o->command, o->pids, o->n_pids, o->system_wide});
	for (size_t i = 0; i < o->perf.n_events; i++)
		buf_printf(&b, "%s%s", i ? "," : "", o->perf.events[i].name);
	trace_writer_meta(w, "event", buf_text(&b));
	host_fact_number(w, "frequency", o->perf.hz);
	trace_writer_meta(w, "clock", "CLOCK_MONOTONIC");
	host_fact_number(w, "stack_bytes", o->perf.pc_only ? 0 : set->stack_bytes);
	host_fact_number(w, "ring_bytes", set->ring_bytes);
	buf_reset(&b);
	for (size_t i = 0; i < set->notes.n; i++)
		buf_printf(&b, "%s%s", i ? "\n" : "", set->notes.v[i]);
	if (set->notes.n)
		trace_writer_meta(w, "notes", buf_text(&b));
	buf_release(&b);
}

static int start(void *ctx, struct err *err)
{
	struct recorder *r = ctx;
	const struct recorder_options *o = r->options;
	struct session_options session = session_options_of(r);
	int rc;

	settle_allocator();
	/* Among many busy threads the records must not wait too long to be processed. Where this
	 * is not permitted, the recorder takes its turn like everybody. */
	setpriority(PRIO_PROCESS, 0, -15);
	raise_file_limit(); /* after the fork: the command keeps its own limit */
	rc = perf_set_init(&r->set, &session.perf, err);
	if (rc < 0)
		return rc;
	rc = o->output_fd ? trace_writer_open_stream(&r->writer, o->output_fd, o->output, err)
			  : trace_writer_open(&r->writer, o->output, err);
	if (rc < 0)
		return rc;
	r->session = session_new(r->writer, &r->set, &session);
	host_facts_write(r->writer);
	write_facts(r->writer, o, &r->set);
	rc = start_events(r, err);
	if (rc == 0)
		rc = collector_start(&r->collector, &r->set, err);
	if (rc < 0)
		return rc;
	if (!o->command || o->system_wide)
		snapshot_running(r);
	session_started(r->session);
	if (r->hooks && o->n_pids)
		rc = hook_targets_attach(r->hooks, o->pids, o->n_pids, err);
	if (rc < 0)
		return rc;
	if (o->companion)
		rc = o->companion->start(o->companion->ctx, o->command ? r->run.child.pid : 0, err);
	if (rc < 0)
		return rc;
	/* What is known so far is on disk before anything runs. */
	return trace_writer_flush(r->writer, err);
}

/* A request that fails is one sentence: notes are for those that work. */
static void started(void *ctx)
{
	struct recorder *r = ctx;

	for (size_t i = 0; i < r->set.notes.n && r->options->note; i++)
		r->options->note(r->options->ctx, r->set.notes.v[i]);
}

/* --- running ---------------------------------------------------------------------------- */

/* Trees that programs keep are lost with the recorder: so they are written now and then, ever more
 * seldom, since each time takes the place of the one before. */
static void keep_trees(struct recorder *r, uint64_t now)
{
	if (r->trees_interval_ns)
		session_write_trees(r->session);
	r->last_trees_ns = now;
	r->trees_interval_ns *= 2;
	if (r->trees_interval_ns < TREES_INTERVAL_NS_MIN)
		r->trees_interval_ns = TREES_INTERVAL_NS_MIN;
	if (r->trees_interval_ns > TREES_INTERVAL_NS_MAX)
		r->trees_interval_ns = TREES_INTERVAL_NS_MAX;
}

static void look_at_attached(struct recorder *r, uint64_t now)
{
	r->last_attached_ns = now;
	for (size_t i = 0; i < r->attached.n; i++) {
		struct attached *a = &r->attached.v[i];
		uint64_t ns = a->is_gone ? 0 : proc_cpu_ns(a->pid);

		a->is_gone = !ns;
		a->ns = ns ? ns : a->ns;
	}
}

/* Where timers belong to tasks. */
static void watch_births(struct recorder *r, uint64_t now)
{
	struct session_counts counts;
	uint64_t cpu_ns, n;

	if (!r->set.period_ns)
		return;
	if (now - r->births_ns >= BIRTHS_NS) {
		counts = session_counts(r->session);
		cpu_ns = perf_set_cpu_ns(&r->set);
		n = counts.n_threads - r->n_births;
		if (n < BIRTHS_MIN ||
			cpu_ns - r->births_cpu_ns > n * BIRTH_PERIODS * r->set.period_ns)
			n = 0; /* few, or long */
		if (!n && r->varies)
			perf_set_vary(&r->set, false, now);
		r->varies = n && (r->varies || counts.sampled_ns * 100 < cpu_ns * COVERED_PERCENT);
		r->births_ns = now;
		r->births_cpu_ns = cpu_ns;
		r->n_births = counts.n_threads;
	}
	if (r->varies)
		perf_set_vary(&r->set, true, now);
}

/* False when the trace cannot be written. */
static bool take_records(struct recorder *r)
{
	struct collected_list list;
	uint64_t now;

	collector_take(r->collector, &list);
	session_add(r->session, &list);
	vec_release(&list.items);
	now = clock_mono_ns();
	if (r->options->functions.tree && now - r->last_trees_ns >= r->trees_interval_ns)
		keep_trees(r, now);
	watch_births(r, now);
	if (now - r->last_attached_ns >= ATTACHED_INTERVAL_NS)
		look_at_attached(r, now);
	if (now - r->last_flush_ns >= FLUSH_INTERVAL_NS) {
		r->last_flush_ns = now;
		if (trace_writer_flush(r->writer, &r->result->write_error) < 0)
			return false;
	}
	if (r->options->progress && now - r->last_progress_ns >= PROGRESS_INTERVAL_NS) {
		struct session_counts counts = session_counts(r->session);

		r->last_progress_ns = now;
		r->options->progress(
			r->options->ctx, &counts, (double)(now - r->run.began_ns) / 1e9);
	}
	return true;
}

static void write_trees(void *session)
{
	session_write_trees(session);
}

/* What is there can be read at `output`; or err says why not. */
static void answer_desk(struct recorder *r, const struct err *err)
{
	struct err stream;

	if (!err && r->options->output_fd) {
		err_set(&stream, ERR_UNSUPPORTED, "'%s': the trace has no file that could be read",
			r->options->output);
		err = &stream;
	}
	snapshot_desk_answer(&r->desk, r->options->output, err);
}

/* Where programs keep trees, everything so far as a trace of its own; else what was recorded is on
 * disk, and the trace itself can be read. */
static void make_snapshot(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	char *path, *note;
	struct err err;
	int rc;

	if (!o->functions.tree) {
		rc = trace_writer_flush(r->writer, &err);
		answer_desk(r, rc < 0 ? &err : NULL);
		return;
	}
	path = snapshot_desk_path(&r->desk, o->output);
	rc = trace_writer_copy(r->writer, path, write_trees, r->session, &err);
	snapshot_desk_answer(&r->desk, path, rc < 0 ? &err : NULL);
	note = rc < 0 ? mem_printf("no snapshot: %s", err.text)
		      : mem_printf("'%s' has everything so far", path);
	if (o->note)
		o->note(o->ctx, note);
	free(note);
	free(path);
}

static bool take_signal(void *ctx, const struct signalfd_siginfo *info)
{
	struct recorder *r = ctx;

	if (!snapshot_desk_take(&r->desk, info, r->options->functions.tree))
		return false;
	if (r->is_complete)
		answer_desk(r, NULL);
	return true;
}

static int wait_for(void *ctx, int *fds)
{
	struct recorder *r = ctx;
	const struct recorder_companion *companion = r->options->companion;

	fds[0] = collector_fd(r->collector);
	if (r->hooks)
		fds[1] = hooks_fd(r->hooks);
	if (companion)
		fds[2] = companion->fd(companion->ctx);
	return r->varies ? VARY_MS : session_hurries(r->session) ? HURRY_MS : WAIT_MS;
}

static bool work(void *ctx)
{
	struct recorder *r = ctx;
	const struct recorder_companion *companion = r->options->companion;
	bool goes_on = take_records(r);

	if (companion)
		companion->work(companion->ctx);
	if (r->desk.waiting.n)
		make_snapshot(r);
	return goes_on;
}

/* --- ending ----------------------------------------------------------------------------- */

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

/* CPU time of what was recorded; 0 = not known. Events of tasks count it themselves, but not what is left
 * to do at a task's end; the kernel's accounts have that, but no child that nobody waited for. */
static uint64_t used_cpu_ns(struct recorder *r)
{
	uint64_t counted = perf_set_cpu_ns(&r->set), sum = session_cpu_ns(r->session);

	if (r->options->system_wide)
		return counted;
	if (r->run.has_status)
		sum += timeval_ns(r->run.usage.ru_utime) + timeval_ns(r->run.usage.ru_stime);
	look_at_attached(r, clock_mono_ns());
	for (size_t i = 0; i < r->attached.n; i++) {
		if (r->attached.v[i].is_gone) /* when it had used how much is not known */
			return counted;
		sum += r->attached.v[i].ns - r->attached.v[i].began_ns;
	}
	return sum > counted ? sum : counted;
}

/* A process that ends without anybody waiting for it takes its account along. Then the samples, which were taken
 * of it too, stand for more than the accounts tell, and these are not the CPU time that there was. */
static bool has_lost_accounts(const struct recorder *r)
{
	const struct loss judged = {.cpu_ns = r->cpu_ns,
		.sampled_ns = r->result->counts.sampled_ns,
		.period_ns = r->set.period_ns};

	return !r->options->system_wide && r->result->counts.n_processes > 1 &&
	       judged.sampled_ns > judged.cpu_ns && !loss_is_covered(&judged);
}

/* How much CPU time the samples stand for, and of how much. Where the kernel's side is not sampled, only
 * the user's is to be had. */
static void write_coverage(struct recorder *r)
{
	const struct run *run = &r->run;
	uint64_t cpu_ns = r->cpu_ns;
	bool has_cpu = false;

	for (size_t i = 0; i < r->options->perf.n_events; i++)
		has_cpu |= !strcmp(r->options->perf.events[i].metric, "cpu");
	if (!has_cpu)
		return;
	host_fact_number(r->writer, "sampled_ns", r->result->counts.sampled_ns);
	trace_writer_meta(r->writer, "sampled_by", perf_set_is_of_cpus(&r->set) ? "cpu" : "task");
	if (!r->set.has_kernel)
		cpu_ns = cpu_ns && run->has_status ? timeval_ns(run->usage.ru_utime) : 0;
	if (cpu_ns)
		host_fact_number(r->writer, "sampleable_ns", cpu_ns);
}

static void write_end_facts(struct recorder *r)
{
	const struct recorder_result *result = r->result;
	const struct run *run = &r->run;

	host_fact_number(r->writer, "wall_ns", result->wall_ns);
	host_fact_number(r->writer, "n_processes", result->counts.n_processes);
	host_fact_number(r->writer, "n_threads", result->counts.n_threads);
	if (has_lost_accounts(r))
		r->cpu_ns = 0;
	if (r->cpu_ns)
		host_fact_number(r->writer, "cpu_ns", r->cpu_ns);
	write_coverage(r);
	if (!run->has_status || r->options->system_wide)
		return;
	host_fact_number(r->writer, "user_ns", timeval_ns(run->usage.ru_utime));
	host_fact_number(r->writer, "sys_ns", timeval_ns(run->usage.ru_stime));
	host_fact_number(r->writer, "max_rss_bytes", (uint64_t)run->usage.ru_maxrss * 1024u);
	if (WIFEXITED(run->wait_status))
		host_fact_number(r->writer, "exit_status", (uint64_t)WEXITSTATUS(run->wait_status));
	else if (WIFSIGNALED(run->wait_status))
		host_fact_number(r->writer, "exit_signal", (uint64_t)WTERMSIG(run->wait_status));
}

/* Programs that go on get their code back before anything else takes time. */
static void stop_hooks(struct recorder *r)
{
	if (!r->hooks)
		return;
	hooks_stop(r->hooks);
	hook_targets_detach(r->hooks, r->options->note, r->options->ctx);
	hooks_drain_rest(r->hooks);
}

/* The sentence is given away; NULL: there is none. */
static void say(struct recorder *r, char *sentence)
{
	if (sentence)
		r->options->note(r->options->ctx, sentence);
	free(sentence);
}

static void complain_of_unmatched(void *ctx, const char *wish, const char *near)
{
	struct recorder *r = ctx;
	const char *unread = hooks_unread_program(r->hooks);
	char *sentence =
		unread ? mem_printf("no function is known that matches '%s': '%s' was not hooked, "
				    "and its file cannot be read from here",
				 wish, unread)
		       : mem_printf("no function matches '%s'%s%s%s", wish, near ? "; is it " : "",
				 near ? near : "", near ? "?" : "");

	if (r->options->complain)
		r->options->complain(r->options->ctx, sentence);
	free(sentence);
	r->result->n_unmatched++;
}

static void say_missing(struct recorder *r)
{
	uint64_t n_filtered = hooks_n_filtered(r->hooks);
	uint64_t n_jumped = session_counts(r->session).n_jumped;

	say(r, session_unhooked(r->session));
	say(r, hooks_unrecorded(r->hooks));
	if (hooks_doubt(r->hooks))
		say(r, mem_strdup(hooks_doubt(r->hooks)));
	if (n_filtered)
		say(r, mem_printf(
			       "%lu process%s installed a system call filter: not hooked from then on",
			       n_filtered, n_filtered == 1 ? "" : "es"));
	if (n_jumped)
		say(r, mem_printf(
			       "%lu call%s left by a jump or an exception; or went on, unseen, on a stack "
			       "made by hand: then times and callers around that are not right",
			       n_jumped, n_jumped == 1 ? " was" : "s were"));
}

static void finish_trace(struct recorder *r)
{
	struct collected_list rest;
	const struct recorder_companion *companion = r->options->companion;
	struct err err;

	perf_set_disable(&r->set);
	r->cpu_ns = used_cpu_ns(r); /* before anything else takes time */
	stop_hooks(r);
	if (companion)
		companion->stop(companion->ctx);
	session_stopped(r->session);
	r->result->wall_ns = clock_mono_ns() - r->run.began_ns;
	collector_stop(r->collector);
	collector_take(r->collector, &rest);
	session_add(r->session, &rest);
	vec_release(&rest.items);
	session_finish(r->session, collector_n_completed(r->collector));
	if (companion)
		companion->write(companion->ctx, r->writer);
	if (r->hooks)
		hooks_each_unmatched(r->hooks, complain_of_unmatched, r);
	if (r->options->note)
		say(r, session_unread_java(r->session));
	if (r->hooks && r->options->note)
		say_missing(r);
	r->result->counts = session_counts(r->session);
	write_end_facts(r);
	if (trace_writer_flush(r->writer, &err) < 0 && !r->result->write_error.code)
		r->result->write_error = err;
	r->result->trace_bytes = trace_writer_bytes(r->writer); /* all but the index */
	if (trace_writer_close(r->writer, &err) < 0 && !r->result->write_error.code)
		r->result->write_error = err;
	r->writer = NULL;
}

static void finish(void *ctx, int rc)
{
	struct recorder *r = ctx;

	if (rc == 0)
		finish_trace(r);
	r->is_complete = rc == 0;
	collector_free(r->collector);
	session_free(r->session);
	hooks_close(r->hooks);
	perf_set_release(&r->set);
	trace_writer_discard(r->writer); /* stillborn: no file stays, the older one is back */
}

static void goes_on(void *ctx)
{
	const struct recorder *r = ctx;
	const struct recorder_options *o = r->options;

	if (o->finished_early && !r->result->write_error.code)
		o->finished_early(o->ctx);
}

int recorder_run(
	const struct recorder_options *options, struct recorder_result *result, struct err *err)
{
	static const struct run_work sampling = {.prepare = open_hooks,
		.start = start,
		.started = started,
		.wait = wait_for,
		.work = work,
		.take_signal = take_signal,
		.finish = finish,
		.goes_on = goes_on};
	struct recorder r = {.options = options,
		.result = result,
		.run = {.command = options->command,
			.pids = options->pids,
			.n_pids = options->n_pids,
			.duration_s = options->duration_s,
			.parent_fd = -1,
			.work = &sampling,
			.ctx = &r}};
	int rc;

	memset(result, 0, sizeof(*result));
	rc = run_live(&r.run, err);
	result->has_status = r.run.has_status;
	result->wait_status = r.run.wait_status;
	answer_desk(&r, rc < 0 ? err : NULL);
	vec_release(&r.desk.waiting);
	vec_release(&r.attached);
	return rc;
}
