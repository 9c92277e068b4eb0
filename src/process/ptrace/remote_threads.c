/* SPDX-License-Identifier: MIT */
/* All threads of a process held still together. New ones appear until those that could make them
 * stand, so the list is read again until nothing new is in it. */
#include "process/ptrace/inject_internal.h"

#include <stdlib.h>

#include "process/proc.h"

#define THREADS_MAX 65536

struct remote_thread *remote_threads_add(struct remote_threads *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->all.n; i++)
		if (threads->all.v[i].tid == tid && !threads->all.v[i].is_gone)
			return &threads->all.v[i];
	vec_push(&threads->all, ((struct remote_thread){.pid = threads->pid,
					.tid = tid,
					.memory_fd = threads->memory_fd,
					.is_64 = threads->is_64}));
	return &threads->all.v[threads->all.n - 1];
}

static void add_each(void *ctx, pid_t tid)
{
	struct remote_threads *threads = ctx;

	if (inject_thread_lives(threads->pid, tid) && threads->all.n < THREADS_MAX)
		remote_threads_add(threads, tid);
}

/* ERR_NOT_FOUND is no failure: the thread has ended. */
static bool is_failure(int rc)
{
	return rc < 0 && rc != ERR_NOT_FOUND;
}

static int seize_new(struct remote_threads *threads, bool *has_new, struct err *err)
{
	for (size_t i = 0; i < threads->all.n; i++) {
		struct remote_thread *t = &threads->all.v[i];
		int rc;

		if (t->is_seized || t->is_gone)
			continue;
		rc = remote_thread_seize(t, err);
		*has_new |= rc == 0 || !inject_is_traced_here(t->pid, t->tid);
		if (is_failure(rc))
			return rc;
		if (rc < 0)
			t->is_gone = true;
		else
			remote_thread_interrupt(t);
	}
	return 0;
}

int remote_threads_stop(struct remote_threads *threads, uint64_t deadline_ns, struct err *err)
{
	bool has_new;

	do {
		int rc;

		has_new = false;
		if (!proc_each_task(threads->pid, add_each, threads))
			return err_set(err, ERR_NOT_FOUND, "process %d has ended", threads->pid);
		rc = seize_new(threads, &has_new, err);
		for (size_t i = 0; rc == 0 && i < threads->all.n; i++) {
			struct remote_thread *t = &threads->all.v[i];

			if (t->is_seized && !t->is_stopped)
				rc = remote_thread_stop(t, deadline_ns, err);
			rc = is_failure(rc) ? rc : 0;
		}
		if (rc < 0)
			return rc;
	} while (has_new);
	return 0;
}

void remote_threads_let_go(struct remote_threads *threads)
{
	for (size_t i = 0; i < threads->all.n; i++)
		remote_thread_let_go(&threads->all.v[i]);
	vec_release(&threads->all);
}
