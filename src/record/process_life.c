/* SPDX-License-Identifier: MIT */
#include "record/process_life.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "process/proc.h"

/* One costs the program 0.75 microseconds: 1.5 % of its time. */
#define MUNMAPS_A_SECOND_MAX 20000
#define PAGE_BYTES	     4096u
/* What a program needs from the beginning is mapped by then; what comes later may go, too. */
#define LOADING_NS 100000000u

struct process_life *process_life_new(struct trace_writer *w, struct perf_set *set,
	struct images *images, const struct life_options *options)
{
	struct process_life *l = mem_zalloc(sizeof(*l));

	l->w = w;
	l->stream = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	l->set = set;
	l->images = images;
	l->options = *options;
	l->processes = processes_new(w, l->stream);
	l->modules = module_history_new(w, l->stream, images, &options->modules);
	l->began_ns = clock_mono_ns();
	return l;
}

void process_life_free(struct process_life *l)
{
	if (!l)
		return;
	module_check_release(&l->check);
	module_history_free(l->modules);
	processes_free(l->processes);
	free(l);
}

/* --- start-up --------------------------------------------------------------------------- */

struct startup {
	struct process_life *l;
	struct process *process;
	uint64_t time;
};

static void startup_mapping(void *ctx, const struct proc_mapping *m)
{
	struct startup *u = ctx;

	if (!(m->prot & PROT_EXEC) || !strcmp(m->path, "[vsyscall]"))
		return;
	module_history_map(u->l->modules, u->process,
		&(struct image_query){.pid = u->process->pid,
			.mapping = *m,
			.process_start_ns = u->process->start_ns},
		u->time);
}

static void startup_thread(void *ctx, pid_t tid)
{
	struct startup *u = ctx;
	char name[64];

	proc_name((pid_t)u->process->pid, tid, name, sizeof(name));
	processes_name_thread(u->l->processes, u->process->pid, (uint32_t)tid, u->time, name);
}

void process_life_add_running(struct process_life *l, pid_t pid, uint64_t time)
{
	char command_line[4096];
	struct startup u = {l, NULL, time};

	perf_set_watch_unmaps(l->set);
	proc_command_line(pid, command_line, sizeof(command_line));
	u.process = processes_start(l->processes, (uint32_t)pid, (uint32_t)proc_parent(pid),
		proc_start_ns(pid), time, command_line);
	u.process->was_running = true;
	u.process->is_named = !l->options.system_wide;
	u.process->read_ns = clock_mono_ns();
	proc_each_task(pid, startup_thread, &u);
	proc_each_mapping(pid, startup_mapping, &u, NULL);
}

static bool is_to_unload(const char *program)
{
	struct file_map map;
	struct elf_file elf;
	bool unloads = false;

	if (file_map_open(&map, program, NULL) < 0)
		return false;
	if (elf_file_init(&elf, map.bytes, NULL) == 0) {
		unloads = image_unloads_code(&elf);
		elf_file_release(&elf);
	}
	file_map_release(&map);
	return unloads;
}

void process_life_add_launched(
	struct process_life *l, pid_t pid, const char *program, uint64_t time)
{
	if (l->set->unmaps_wait && is_to_unload(program))
		perf_set_watch_unmaps(l->set);
	processes_start(l->processes, (uint32_t)pid, 0, time, time, "");
	processes_thread(l->processes, (uint32_t)pid, (uint32_t)pid, time);
}

void process_life_started(struct process_life *l, uint64_t time)
{
	for (size_t i = 0; i < l->processes->all.n; i++)
		if (l->processes->all.v[i]->was_running)
			module_history_start_snapshot(l->modules, l->processes->all.v[i], time);
	l->modules->has_started = true;
	trace_writer_numbers(
		l->w, l->stream, time, RECORD_MAJOR_PHASE, RECORD_PHASE_STARTED, NULL, 0);
}

/* --- records ---------------------------------------------------------------------------- */

/* A program that unmaps all the time would pay more for it than it is worth. */
static void limit_munmaps(struct process_life *l, uint64_t time)
{
	char *text;

	if (time - l->munmap_second >= 1000000000u) {
		l->munmap_second = time;
		l->n_munmaps = 0;
	}
	if (++l->n_munmaps <= MUNMAPS_A_SECOND_MAX || !l->set->kernel[KERNEL_EVENT_MUNMAP].is_on)
		return;
	perf_set_stop(l->set, KERNEL_GROUP_MUNMAP);
	text = mem_printf(
		"more than %d munmap calls in a second: not recorded from %.3f s on, the end of a "
		"mapping is known only by what takes its place",
		MUNMAPS_A_SECOND_MAX, (double)(time - l->began_ns) / 1e9);
	trace_writer_loss(l->w, l->stream, time, RECORD_LOSS_NOTE, 1, text);
	free(text);
}

/* By a program that unloads code, or that goes on loading some. */
static void expect_unmaps(
	struct process_life *l, const struct process *p, const struct collected *r)
{
	const struct mapping *m = addrspace_find(p->space, (struct vaddr){r->mmap.mapping.start});
	uint64_t began = p->exec_ns ? p->exec_ns : p->start_ns;

	if ((m && images_get(l->images, m->image)->unloads) || r->time > began + LOADING_NS)
		perf_set_watch_unmaps(l->set);
}

static void process_mmap(struct process_life *l, const struct collected *r)
{
	const struct collected_mmap *m = &r->mmap;
	struct process *p;

	/* The kernel's own have pid -1. */
	if (!(m->mapping.prot & PROT_EXEC) || r->pid == UINT32_MAX)
		return;
	p = processes_get(l->processes, r->pid, r->time);
	if (r->time < p->read_ns)
		return;
	module_history_map(l->modules, p,
		&(struct image_query){.pid = r->pid,
			.mapping = m->mapping,
			.build_id = {m->build_id, m->build_id_n},
			.process_start_ns = p->start_ns},
		r->time);
	if (l->set->unmaps_wait)
		expect_unmaps(l, p, r);
}

/* The kernel refuses what is not aligned, and says so to the program only. */
static void process_munmap(struct process_life *l, const struct collected *r)
{
	uint64_t start = r->munmap.start, bytes = r->munmap.bytes;
	struct process *p = processes_find(l->processes, r->pid);

	limit_munmaps(l, r->time);
	if (!p || r->time < p->read_ns || !bytes || (start & (PAGE_BYTES - 1)) ||
		bytes > UINT64_MAX - start - PAGE_BYTES)
		return;
	bytes = (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	module_history_unmap(l->modules, p, start, start + bytes, r->time, MODULE_END_MUNMAP);
}

static void process_comm(struct process_life *l, const struct collected *r)
{
	struct process *p = processes_get(l->processes, r->pid, r->time);

	if (r->comm.is_exec && r->time >= p->read_ns) {
		module_history_exec(l->modules, p, r->time);
		processes_exec(l->processes, r->pid, r->time, r->comm.name);
	}
	processes_name_thread(l->processes, r->pid, r->tid, r->time, r->comm.name);
}

static void end_reused(struct process_life *l, struct process *old, uint64_t time)
{
	module_history_end(l->modules, old, time, MODULE_END_REUSED);
	old->n_live = 0;
}

static void process_fork(struct process_life *l, const struct collected *r)
{
	struct process *old = processes_find(l->processes, r->pid);

	if (old && r->pid != r->fork.parent_pid) {
		if (r->time < old->read_ns) /* it is the one that was found in /proc */
			return;
		end_reused(l, old, r->time);
	}
	processes_fork(l->processes, &(struct thread_id){r->pid, r->tid},
		&(struct thread_id){r->fork.parent_pid, r->fork.parent_tid}, r->time);
}

static void process_exit(struct process_life *l, const struct collected *r)
{
	struct process *p = processes_thread(l->processes, r->pid, r->tid, r->time)->process;

	if (p->n_live == 1)
		module_history_end(l->modules, p, r->time, MODULE_END_EXIT);
	processes_exit(l->processes, r->pid, r->tid, r->time);
}

bool process_life_concerns(struct process_life *l, const struct collected *r)
{
	struct process *p = processes_find(l->processes, r->pid);

	if (r->kind != COLLECTED_FORK || r->pid == r->fork.parent_pid)
		return p;
	if (processes_find(l->processes, r->fork.parent_pid))
		return true;
	if (p && r->time >= p->read_ns) {
		end_reused(l, p, r->time);
		processes_forget(l->processes, r->pid);
	}
	return false;
}

bool process_life_goes_on(const struct process_life *l, const struct collected *r)
{
	const struct process *p = r->kind == COLLECTED_EXIT && r->pid == r->tid
					  ? processes_find(l->processes, r->pid)
					  : NULL;

	return p && p->in_exec && !addrspace_n(p->space);
}

void process_life_apply(struct process_life *l, const struct collected *r)
{
	switch (r->kind) {
	case COLLECTED_MMAP:
		process_mmap(l, r);
		break;
	case COLLECTED_MUNMAP:
		process_munmap(l, r);
		break;
	case COLLECTED_COMM:
		process_comm(l, r);
		break;
	case COLLECTED_FORK:
		process_fork(l, r);
		break;
	case COLLECTED_EXIT:
		process_exit(l, r);
		break;
	default:
		break;
	}
}

/* --- the end ---------------------------------------------------------------------------- */

void process_life_stopped(struct process_life *l)
{
	for (size_t i = 0; i < l->processes->all.n; i++) {
		struct process *p = l->processes->all.v[i];

		if (p->n_live && module_history_wants(l->modules, p))
			module_check_take(&l->check, p);
	}
}

uint64_t process_life_cpu_ns(const struct process_life *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->processes->all.n; i++) {
		const struct process *p = l->processes->all.v[i];

		if (p->n_live && !p->was_running)
			sum += proc_cpu_ns((pid_t)p->pid);
	}
	return sum;
}

void process_life_finish(struct process_life *l, uint64_t time)
{
	uint64_t n = 0;

	module_check_apply(&l->check, l->modules, time);
	for (size_t i = 0; i < l->processes->all.n; i++)
		if (l->processes->all.v[i]->n_live)
			module_history_end_snapshot(l->modules, l->processes->all.v[i], time);
	module_history_write_index(l->modules, time);
	if (l->set->kernel[KERNEL_EVENT_MUNMAP].is_on)
		n = l->modules->n_guessed_32_bit;
	if (n)
		trace_writer_loss(l->w, l->stream, time, RECORD_LOSS_NOTE, n,
			"end of a mapping known late: munmap of 32-bit programs is not reported");
}
