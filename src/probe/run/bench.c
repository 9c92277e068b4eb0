/* SPDX-License-Identifier: MIT */
/* bench:NAME clauses: run again and again here, and timed by the kernel, which keeps each program's run time while
 * somebody has asked for it. */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "bpf/program.h"
#include "probe/run/run.h"

#define BENCH_NS    300000000 /* of one clause */
#define RUNS_MIN    100
#define RUNS_A_TIME 64 /* between two looks at the rings */

static int bench_one(struct probe_session *s, const struct run_program *p, struct bench_result *out)
{
	struct bpf_run_time before = {0}, after = {0};
	uint64_t end_ns = clock_mono_ns() + BENCH_NS;
	uint64_t n = 0;
	int rc = bpf_program_run_time(p->fd, &before);

	while (rc >= 0 && !s->is_exiting && (n < RUNS_MIN || clock_mono_ns() < end_ns)) {
		for (int i = 0; i < RUNS_A_TIME && rc >= 0; i++, n++)
			rc = bpf_program_run(p->fd);
		run_rings_drain(s);
	}
	if (rc >= 0)
		rc = bpf_program_run_time(p->fd, &after);
	if (rc < 0)
		return rc;
	out->name = p->points.v[0]->spec.name;
	out->n_runs = after.n_runs - before.n_runs;
	out->average_ns = out->n_runs ? (after.ns - before.ns) / out->n_runs : 0;
	return 0;
}

int probe_session_bench(struct probe_session *s,
	void (*each)(void *ctx, const struct bench_result *r), void *ctx, struct err *err)
{
	FD_AUTO stats = bpf_run_time_enable();
	int rc = stats < 0 ? stats : 0;

	for (size_t i = 0; i < s->programs.n && rc >= 0 && !s->is_exiting; i++) {
		const struct run_program *p = &s->programs.v[i];
		struct bench_result result = {0};

		if (p->kind != POINT_BENCH || p->fd < 0)
			continue;
		rc = bench_one(s, p, &result);
		if (rc >= 0)
			each(ctx, &result);
	}
	return rc < 0 ? err_sys(err, -rc, "--bench: the run time of programs") : 0;
}
