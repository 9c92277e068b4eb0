/* SPDX-License-Identifier: MIT */
/*
 * Processes in which the kernel sets no breakpoints, and says nothing about it: those that have the
 * code of a point mapped writable, for example because `weir record --functions` has hooked
 * functions in it. Their hits would be missing without a word.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "probe/run/run.h"
#include "process/proc.h"

struct blind_search {
	struct probe_session *s;
	pid_t pid;
	const struct target *said; /* the last one that was said of this process */
};

static bool is_mapping_of(const struct proc_mapping *m, const struct target *t)
{
	/* Some file systems have another device number here than for stat(2). */
	return m->inode == t->inode &&
	       (makedev(m->major, m->minor) == t->device ||
		       !strcmp(path_base_name(m->path), path_base_name(t->path)));
}

static void look_at_mapping(void *ctx, const struct proc_mapping *m)
{
	struct blind_search *b = ctx;
	char name[64];

	if (!m->inode || !(m->prot & PROT_WRITE) || !(m->prot & PROT_EXEC))
		return;
	for (size_t i = 0; i < b->s->sites.n; i++) {
		const struct run_site *site = &b->s->sites.v[i];

		if (!site->target || site->target == b->said || !is_mapping_of(m, site->target) ||
			site->site->offset.v - m->offset >= m->end - m->start)
			continue;
		b->said = site->target;
		proc_name(b->pid, b->pid, name, sizeof(name));
		session_note(b->s,
			"process %d (%s): code of '%s' is writable there, and the kernel sets no breakpoints in it: hits in it are not counted",
			b->pid, name, path_base_name(m->path));
	}
}

static void look_at_process(void *ctx, pid_t pid)
{
	struct blind_search b = {.s = ctx, .pid = pid};

	if (pid != getpid())
		proc_each_mapping(pid, look_at_mapping, &b, NULL);
}

void blind_processes_note(struct probe_session *s)
{
	bool has_files = false;

	for (size_t i = 0; i < s->sites.n && !has_files; i++)
		has_files = s->sites.v[i].target;
	if (!has_files)
		return;
	if (!s->filters)
		proc_each_task(0, look_at_process, s);
	for (size_t i = 0; s->filters && i < s->options.n_pids; i++)
		look_at_process(s, s->options.pids[i]);
}
