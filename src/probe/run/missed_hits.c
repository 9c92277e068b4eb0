/* SPDX-License-Identifier: MIT */
/*
 * Hits that a program did not see. While BPF is at work on a CPU (a program, or a system call that changes a map) the
 * kernel skips programs of tracepoints and kprobes there, and any program inside of itself, so that they cannot run
 * into each other: an interrupt that comes meanwhile is not traced. It counts what it has skipped for each program,
 * but not by process: with -c and -p, too, these are hits of all. What is skipped before begin{} and behind exit() is
 * no loss.
 */
#include "bpf/program.h"
#include "probe/run/run.h"

void missed_hits_begin(struct probe_session *s)
{
	for (size_t i = 0; i < s->programs.n; i++) {
		struct run_program *p = &s->programs.v[i];

		if (p->fd >= 0 && bpf_program_missed(p->fd, &p->missed_before) < 0)
			p->missed_before = UINT64_MAX; /* nothing is known */
	}
	s->counts_missed = true;
}

void missed_hits_end(struct probe_session *s)
{
	for (size_t i = 0; s->counts_missed && i < s->programs.n; i++)
		s->programs.v[i].n_missed = missed_hits(s, &s->programs.v[i]);
	s->counts_missed = false;
}

uint64_t missed_hits(const struct probe_session *s, const struct run_program *p)
{
	uint64_t n;

	if (!s->counts_missed)
		return p->n_missed;
	return p->fd >= 0 && bpf_program_missed(p->fd, &n) == 0 && n > p->missed_before
		       ? n - p->missed_before
		       : 0;
}
