/* SPDX-License-Identifier: MIT */
/*
 * Running a stream, which is the work of a run (run/run.h): records are written as they come, until the
 * run is over or the script says exit(). At the end maps are printed and losses told.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/probe.h"
#include "cmd/probe_control.h"
#include "cmd/probe_output.h"
#include "probe/points/point_kind.h"
#include "process/proc.h"
#include "run/run.h"

#define STRICT_LOOK_NS 50000000 /* how often losses are looked at with --strict */
#define NS_PER_MS      1000000
#define PAGE_BYTES     4096u /* in which the size of the ring is set */

struct probing {
	const struct probe_setup *setup;
	const struct stream *stream;
	struct probe_session *session;
	struct probe_output output;
	struct probe_control control;
	struct run run;
	VEC(pid_t) pids;       /* traced: those of -p, their children, the command */
	bool has_worked;       /* once, at least */
	uint64_t next_look_ns; /* of --strict; 0 = none */
	bool is_strict_end;
};

/* ---- beginning ---- */

struct kinship {
	struct probing *r;
	bool has_grown;
};

static bool is_traced(const struct probing *r, pid_t pid)
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
static void take_children(struct probing *r)
{
	struct kinship k = {r, true};

	while (k.has_grown) {
		k.has_grown = false;
		proc_each_task(0, take_child, &k);
	}
}

static void take_targets(struct probing *r)
{
	for (size_t i = 0; i < r->run.n_pids; i++)
		vec_push(&r->pids, r->run.pids[i]);
	if (r->pids.n)
		take_children(r);
	if (r->run.command && !is_traced(r, r->run.child.pid))
		vec_push(&r->pids, r->run.child.pid);
}

static void print_refusal(void *ctx, const struct diags *diags)
{
	const struct probe_output *output = ctx;

	probe_print_messages(output->setup, diags);
}

static int open_session(struct probing *r, struct err *err)
{
	const struct probe_arguments *a = r->setup->a;
	struct probe_session_options options = {.pids = r->pids.v,
		.n_pids = r->pids.n,
		.command_pid = r->run.command ? r->run.child.pid : 0,
		.find = r->setup->find,
		.has_old_points = r->output.manner->has_old_points,
		.max_entries = (uint32_t)a->max_entries,
		.ring_bytes = (uint32_t)(a->ring_kb * 1024 > UINT32_MAX ? (uint64_t)1 << 31
									: a->ring_kb * 1024),
		.without = a->without};
	struct probe_session_output output = {.ctx = &r->output,
		.record = probe_output_record,
		.copy = probe_output_copy,
		.note = probe_output_note,
		.refused = print_refusal};
	int rc;

	if (!a->ring_kb)
		options.ring_bytes = r->stream->ring_pages * PAGE_BYTES;
	rc = probe_session_open(r->stream, &options, &output, &r->session, err);

	if (rc >= 0)
		r->output.session = r->output.names->session = r->session;
	return rc;
}

/* begin, end, error, signals and intervals count although they are attached to nothing. */
static uint32_t count_unattached(const struct stream *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->points.n; i++)
		n += point_has(s->points.v[i].spec.kind, POINT_IS_OURS | POINT_HAS_ERROR) &&
		     s->points.v[i].spec.kind != POINT_ITER;
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

static void say_maps(const struct probing *r)
{
	uint64_t at_once = 0, full = 0;
	size_t n = r->stream->maps.n;

	for (size_t i = 0; i < n; i++) {
		struct map_memory m =
			map_memory_of(&r->stream->maps.v[i], (uint32_t)r->setup->a->max_entries);

		at_once += m.at_once_bytes;
		full += m.full_bytes;
	}
	if (n)
		fprintf(stderr,
			"weir: %zu map%s of the script: %" PRIu64 " KiB, %" PRIu64
			" KiB when full\n",
			n, n == 1 ? "" : "s", (at_once + 1023) / 1024, (full + 1023) / 1024);
}

static void say_how_many(const struct probing *r, uint32_t n)
{
	const char *more = n == 1 ? "" : "s";
	bool is_old = r->output.manner->says_attaching;

	if (r->setup->is_json && is_old)
		fprintf(r->setup->out,
			"{\"type\": \"attached_probes\", \"data\": {\"probes\": %u}}\n", n);
	else if (r->setup->is_json)
		fprintf(r->setup->out,
			"{\"type\": \"attached_probes\", \"count\": %u, \"data\": {\"probes\": %u}}\n",
			n, n);
	else if (is_old)
		fprintf(r->setup->out, "Attaching %u probe%s...\n", n, more);
	if (!is_old)
		fprintf(stderr, "Attached %u probe%s\n", n, more);
}

static void say_attached(const struct probing *r)
{
	const struct probe_arguments *a = r->setup->a;
	struct probe_session_facts facts = {0};

	probe_session_facts(r->session, &facts);
	facts.n_sites += count_unattached(r->stream);
	if (a->quiet)
		return;
	say_how_many(r, facts.n_sites);
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
	say_maps(r);
}

static int open_control(void *ctx, char *const **environment, struct err *err)
{
	struct probing *r = ctx;

	(void)environment;
	return probe_control_open(&r->control, r->setup->a->control, err);
}

static void print_bench(void *ctx, const struct bench_result *b)
{
	struct probing *r = ctx;
	FILE *out = r->setup->out;

	probe_output_flush(&r->output);
	if (r->setup->is_json)
		fprintf(out,
			"{\"type\": \"benchmark_result\", \"data\": {\"%s\": {\"average\": %" PRIu64
			", \"iters\": %" PRIu64 "}}}\n",
			b->name, b->average_ns, b->n_runs);
	else
		fprintf(out, "%-40s %-14" PRIu64 " %" PRIu64 "\n", b->name, b->average_ns,
			b->n_runs);
}

/* --bench: a row for each, as it is done. */
static int run_benches(struct probing *r, struct err *err)
{
	bool has_some = false;

	for (size_t i = 0; i < r->stream->points.n; i++)
		has_some |= r->stream->points.v[i].spec.kind == POINT_BENCH;
	if (!has_some)
		return err_set(err, ERR_NOT_FOUND, "--bench: the script has no clause bench:NAME");
	probe_output_flush(&r->output);
	if (!r->setup->is_json)
		fprintf(r->setup->out, "%-40s %-14s %s\n%.66s\n", "Benchmark", "Time(ns)",
			"Iterations",
			"--------------------------------------------------------------------------------");
	return probe_session_bench(r->session, print_bench, r, err);
}

static int start(void *ctx, struct err *err)
{
	struct probing *r = ctx;
	int rc;

	take_targets(r);
	probe_output_init(&r->output, r->pids.v, r->pids.n);
	rc = open_session(r, err);
	if (rc < 0)
		return rc;
	if (r->setup->a->strict)
		r->next_look_ns = clock_mono_ns();
	/* Whoever waits for the line finds all clauses switched on; what begin{} says is behind it. */
	r->output.holds = true;
	rc = probe_session_begin(r->session, err);
	if (rc >= 0)
		say_attached(r);
	if (rc >= 0)
		probe_output_flush(&r->output);
	probe_output_let_go(&r->output);
	probe_output_flush(&r->output);
	session_names_make_room(r->output.names);
	return rc >= 0 && r->setup->a->bench ? run_benches(r, err) : rc;
}

/* ---- while it runs ---- */

/* Nothing can happen but what has happened in begin{} and behind it. */
static bool is_only_begin(const struct stream *s)
{
	for (size_t i = 0; i < s->points.n; i++)
		if (!point_has(s->points.v[i].spec.kind, POINT_IS_ONCE))
			return false;
	return s->like != STREAM_LIKE_0_17; /* there they wait for Ctrl-C */
}

/* --strict looks at the losses now and then. */
static bool is_strict_end(struct probing *r)
{
	uint64_t now = clock_mono_ns();

	if (!r->next_look_ns || now < r->next_look_ns)
		return false;
	r->next_look_ns = now + STRICT_LOOK_NS;
	r->is_strict_end =
		probe_has_losses(r->stream, r->session) || session_names_n_lost(r->output.names);
	return r->is_strict_end;
}

/* What begin{} has printed may be all that is to be seen for long: it is not waited for. */
static int wait_for(void *ctx, int *fds)
{
	struct probing *r = ctx;
	uint64_t now = clock_mono_ns();

	fds[0] = probe_session_fd(r->session);
	fds[1] = r->control.fd;
	fds[2] = session_names_fd(r->output.names);
	if (!r->has_worked)
		return 0;
	if (!r->next_look_ns)
		return -1;
	return r->next_look_ns <= now ? 0 : (int)((r->next_look_ns - now) / NS_PER_MS) + 1;
}

static bool work(void *ctx)
{
	struct probing *r = ctx;
	uint64_t began_ns = clock_mono_ns();
	bool goes_on = probe_control_work(&r->control, &r->output);

	r->has_worked = true;
	goes_on &= probe_session_work(r->session);
	session_names_work(r->output.names, began_ns); /* records of earlier have been written */
	probe_output_flush(&r->output);
	return goes_on && !is_strict_end(r) && !r->output.write_errno && !r->setup->a->bench &&
	       (r->run.command || !is_only_begin(r->stream));
}

/* SIGUSR1 and SIGUSR2 are for the clauses of self:signal:NAME. Without them the command gets them; where
 * there is none, SIGUSR1 prints the maps. */
static bool take_signal(void *ctx, const struct signalfd_siginfo *info)
{
	struct probing *r = ctx;
	int number = (int)info->ssi_signo;

	if ((number != SIGUSR1 && number != SIGUSR2) || !r->session)
		return false;
	if (probe_session_signal(r->session, number))
		return true;
	if (number != SIGUSR1 || r->run.command)
		return false;
	probe_session_work(r->session);
	probe_output_maps(&r->output, false);
	probe_output_flush(&r->output);
	return true;
}

/* ---- end ---- */

static void finish(void *ctx, int rc)
{
	struct probing *r = ctx;

	if (rc < 0)
		return;
	if (r->run.is_interrupted)
		r->output.over_ns = clock_mono_ns();
	probe_session_end(r->session);
	if (!r->output.write_errno && !r->stream->hides_maps)
		probe_output_maps(&r->output, true);
	probe_output_flush(&r->output);
}

static void goes_on_running(void *ctx)
{
	const struct probing *r = ctx;

	fprintf(stderr, "weir: '%s' (process %d) goes on running\n", r->run.command[0],
		r->run.child.pid);
}

static int tell_losses(const struct probing *r)
{
	int status = probe_session_exit_status(r->session);
	struct probe_run_loss of_run = {session_names_n_lost(r->output.names), r->output.n_not_run};
	bool has_losses = probe_print_losses(r->setup, r->stream, r->session, r->setup->out);

	has_losses |= probe_print_run_losses(r->setup, &of_run, r->setup->out);
	if (r->is_strict_end)
		fputs("weir: --strict: ended because of the losses above\n", stderr);
	return has_losses && status == STATUS_DONE ? STATUS_LOSSES : status;
}

static void release(struct probing *r)
{
	probe_output_release(&r->output);
	probe_session_close(r->session);
	probe_control_close(&r->control);
	vec_release(&r->pids);
}

/* Nobody reads any more: we end as programs that do not care about it. */
static int end_unwritten(const struct probing *r)
{
	if (r->output.write_errno == EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	fprintf(stderr, "weir: the output cannot be written: %s\n",
		strerror(r->output.write_errno));
	return STATUS_FAILED;
}

int probe_run(const struct probe_setup *setup, const struct stream *s)
{
	static const struct run_work probing = {.prepare = open_control,
		.start = start,
		.wait = wait_for,
		.work = work,
		.take_signal = take_signal,
		.finish = finish,
		.goes_on = goes_on_running};
	struct probing r = {.setup = setup,
		.stream = s,
		.control = {.fd = -1},
		.output = {.setup = setup, .stream = s, .run = &r.run},
		.run = {.command = setup->program ? (char *const *)setup->words.v : NULL,
			.pids = setup->pids.v,
			.n_pids = setup->pids.n,
			.duration_s = setup->a->duration_s,
			.end_signal = SIGTERM, /* as Ctrl-C on a terminal would end it */
			.dies_of_second = true,
			.parent_fd = -1,
			.work = &probing,
			.ctx = &r}};
	struct err err = {0};
	int status = run_live(&r.run, &err) < 0 ? command_fail(&err) : tell_losses(&r);

	release(&r);
	return r.output.write_errno ? end_unwritten(&r) : status;
}
