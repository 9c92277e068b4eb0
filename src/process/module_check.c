/* SPDX-License-Identifier: MIT */
#include "process/module_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/search.h"
#include "process/proc.h"

struct checked_process {
	struct process *process;
	struct proc_mappings mappings; /* executable ones, by address */
};

void module_check_release(struct module_check *c)
{
	for (size_t i = 0; i < c->processes.n; i++)
		proc_mappings_release(&c->processes.v[i].mappings);
	vec_release(&c->processes);
}

static void take_mapping(void *ctx, const struct proc_mapping *m)
{
	struct checked_process *c = ctx;

	if ((m->prot & PROT_EXEC) && strcmp(m->path, "[vsyscall]"))
		proc_mappings_add(&c->mappings, m);
}

void module_check_take(struct module_check *c, struct process *p)
{
	struct checked_process taken = {.process = p};
	pid_t pid = (pid_t)p->pid;

	/* A process that is gone, or about to be, has no mappings any more. */
	if (proc_each_mapping(pid, take_mapping, &taken, NULL) < 0 && proc_exists(pid)) {
		proc_mappings_release(&taken.mappings);
		return;
	}
	vec_push(&c->processes, taken);
}

static bool is_same(
	const struct images *images, const struct mapping *m, const struct proc_mapping *there)
{
	if (!images_has_path(images, m->image, there->path))
		return false;
	/* Anonymous memory has no offset of its own. */
	return !m->bias || m->start - m->offset.v == there->start - there->offset;
}

/* The parts of a mapping that are not there any more. */
static void end_missing(const struct checked_process *c, struct module_history *h,
	const struct mapping *m, uint64_t time)
{
	uint64_t at = m->start;

	for (size_t i = SEARCH(0, c->mappings.n, k, c->mappings.v[k].end <= at);
		i < c->mappings.n && c->mappings.v[i].start < m->end; i++) {
		const struct proc_mapping *there = &c->mappings.v[i];

		if (there->end <= at || !is_same(h->images, m, there))
			continue;
		if (there->start > at)
			module_history_unmap(
				h, c->process, at, there->start, time, MODULE_END_SNAPSHOT);
		at = there->end;
	}
	if (at < m->end)
		module_history_unmap(h, c->process, at, m->end, time, MODULE_END_SNAPSHOT);
}

/* The parts of what is there that were not known. */
static void add_unknown(const struct checked_process *c, struct module_history *h,
	const struct proc_mapping *there, uint64_t time)
{
	uint64_t at = there->start;

	while (at < there->end) {
		const struct addrspace *space = c->process->space;
		size_t i = addrspace_first_after(space, at);
		const struct mapping *m = i < addrspace_n(space) ? addrspace_get(space, i) : NULL;
		uint64_t end = m && m->start < there->end ? m->start : there->end;
		uint64_t next = m && m->start < there->end ? m->end : there->end;

		if (at < end) {
			struct image_query query = {.pid = c->process->pid,
				.mapping = *there,
				.process_start_ns = c->process->start_ns};

			query.mapping.start = at;
			query.mapping.end = end;
			query.mapping.offset += at - there->start;
			module_history_map(h, c->process, &query, time);
		}
		at = next;
	}
}

static void check_process(const struct checked_process *c, struct module_history *h, uint64_t time)
{
	VEC(struct mapping) known = {0};

	/* Not even its exit was seen to the end, or there was none. */
	if (!c->mappings.n) {
		module_history_end(h, c->process, time,
			c->process->has_ended ? MODULE_END_EXIT : MODULE_END_SNAPSHOT);
		return;
	}
	for (size_t i = 0; i < addrspace_n(c->process->space); i++)
		vec_push(&known, *addrspace_get(c->process->space, i));
	for (size_t i = 0; i < known.n; i++)
		end_missing(c, h, &known.v[i], time);
	for (size_t i = 0; i < c->mappings.n; i++)
		add_unknown(c, h, &c->mappings.v[i], time);
	vec_release(&known);
}

void module_check_apply(struct module_check *c, struct module_history *h, uint64_t time)
{
	for (size_t i = 0; i < c->processes.n; i++)
		if (c->processes.v[i].process->n_live)
			check_process(&c->processes.v[i], h, time);
}
