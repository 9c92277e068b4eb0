/* SPDX-License-Identifier: MIT */
/* Programs and threads of a recording: how they begin, become others and end, and what of that is in the trace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "process/proc.h"
#include "process/ptrace/inject_internal.h"
#include "translate/session_internal.h"

#define CS_32		0x23u
#define STOP_NS		2000000000u
#define STACK_BYTES_MAX (8u << 20)

/* --- programs ---------------------------------------------------------------------------------- */

static int open_memory(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", proc_number(pid), tid);
	return open(path, O_RDWR | O_CLOEXEC);
}

struct stack_search {
	uint64_t sp, guard_end, low, high;
};

/* One with a name of the kernel's, or memory behind a page that cannot be used, as threads get it. */
static void look_for_stack(void *ctx, const struct proc_mapping *m)
{
	struct stack_search *search = ctx;
	bool is_stack = !strcmp(m->path, "[stack]");

	if (search->sp >= m->start && search->sp < m->end && m->prot & PROT_WRITE &&
		(is_stack || (!m->path[0] && m->start == search->guard_end))) {
		search->high = m->end;
		/* It grows. */
		search->low = is_stack && m->end - m->start < STACK_BYTES_MAX
				      ? m->end - STACK_BYTES_MAX
				      : m->start;
	}
	search->guard_end = m->prot & (PROT_READ | PROT_WRITE | PROT_EXEC) ? 0 : m->end;
}

static bool find_stack(void *ctx, uint64_t sp, uint64_t *low, uint64_t *high)
{
	const struct traced_program *p = ctx;
	struct stack_search search = {.sp = sp};

	if (proc_each_mapping(p->pid, look_for_stack, &search, NULL) < 0 || !search.high)
		return false;
	*low = search.low;
	*high = search.high;
	return true;
}

static struct traced_program *add_program(
	struct translate_session *s, pid_t pid, struct process *process)
{
	struct traced_program *p = mem_zalloc(sizeof(*p));

	p->pid = pid;
	p->process = process;
	p->counts = counts_new(pid);
	p->memory_fd = open_memory(pid, pid);
	counts_set_space(p->counts, &process->space);
	counts_set_stacks(p->counts, find_stack, p);
	vec_push(&s->programs, p);
	return p;
}

/* Its figures go to the trace. */
static void end_program(struct translate_session *s, struct traced_program *p)
{
	size_t i = 0;

	translate_write_counts(s, p);
	while (s->programs.v[i] != p)
		i++;
	s->programs.v[i] = s->programs.v[--s->programs.n];
	counts_free(p->counts);
	fd_cleanup(&p->memory_fd);
	vec_release(&p->files);
	free(p);
}

/* --- threads ----------------------------------------------------------------------------------- */

struct traced_thread *traced_find(const struct translate_session *s, pid_t tid)
{
	const uint64_t *i = map_find(&s->by_tid, (uint64_t)tid);

	return i ? (struct traced_thread *)(uintptr_t)*i : NULL;
}

static void look_at_name(struct translate_session *s, const struct traced_thread *t)
{
	char name[64];

	proc_name(t->program->pid, t->tid, name, sizeof(name));
	if (name[0])
		processes_name_thread(s->processes, (uint32_t)t->program->pid, (uint32_t)t->tid,
			clock_mono_ns(), name);
}

struct traced_thread *traced_add_thread(
	struct translate_session *s, struct traced_program *p, pid_t tid)
{
	struct traced_thread *t = mem_zalloc(sizeof(*t));

	t->tid = t->own_tid = tid;
	proc_own_number(p->pid, tid, &t->own_tid);
	t->program = p;
	t->number = ++s->n_numbers;
	p->n_living++;
	vec_push(&s->threads, t);
	*map_ensure(&s->by_tid, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)t;
	s->result->n_threads++;
	processes_thread(s->processes, (uint32_t)p->pid, (uint32_t)tid, clock_mono_ns());
	look_at_name(s, t);
	return t;
}

struct traced_program *traced_add_process(struct translate_session *s, pid_t pid, bool was_running)
{
	char command_line[4096];
	uint64_t time = clock_mono_ns();
	struct process *process;

	proc_command_line(pid, command_line, sizeof(command_line));
	process = processes_start(s->processes, (uint32_t)pid, (uint32_t)proc_parent(pid),
		was_running ? proc_start_ns(pid) : time, time, was_running ? command_line : "");
	process->was_running = was_running;
	process->is_named = true;
	s->result->n_processes++;
	return add_program(s, pid, process);
}

/* A new process with its parent's memory, as a copy or the same. */
static struct traced_program *fork_program(
	struct translate_session *s, struct traced_thread *by, pid_t pid, bool shares_memory)
{
	struct traced_program *parent = by->program;
	struct traced_program *p =
		add_program(s, pid, processes_get(s->processes, (uint32_t)pid, clock_mono_ns()));

	s->result->n_processes++;
	if (!by->is_translated)
		return p;
	p->place = parent->place;
	p->shares_memory = shares_memory;
	p->is_inherited = !shares_memory;
	for (size_t i = 0; i < parent->files.n; i++)
		vec_push(&p->files, parent->files.v[i]);
	return p;
}

struct traced_thread *traced_forked(
	struct translate_session *s, struct traced_thread *by, pid_t tid, bool shares_memory)
{
	struct traced_program *p = by->program, *parent = p;
	pid_t pid = (pid_t)proc_status_number(tid, tid, "Tgid", 10);
	struct traced_thread *t;

	pid = pid ? pid : tid;
	processes_fork(s->processes, &(struct thread_id){(uint32_t)pid, (uint32_t)tid},
		&(struct thread_id){(uint32_t)p->pid, (uint32_t)by->tid}, clock_mono_ns());
	if (pid != p->pid)
		p = fork_program(s, by, pid, shares_memory);
	t = traced_add_thread(s, p, tid);
	t->is_translated = by->is_translated;
	if (p != parent && t->is_translated && program_share_blocks(s, parent, p)) {
		thread_read_events(s, by, 0);
		counts_fork(p->counts, t->number, tid, parent->counts, by->number);
	}
	return t;
}

static void remove_thread(struct translate_session *s, struct traced_thread *t)
{
	size_t i = 0;

	while (s->threads.v[i] != t)
		i++;
	s->threads.v[i] = s->threads.v[--s->threads.n];
	*map_ensure(&s->by_tid, (uint64_t)t->tid, NULL) = 0;
	free(t);
}

static bool has_threads(const struct translate_session *s, const struct traced_program *p)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->program == p)
			return true;
	return false;
}

void traced_gone(struct translate_session *s, struct traced_thread *t, bool has_ended)
{
	struct traced_program *p = t->program;
	struct process *process = p->process;
	uint32_t pid = (uint32_t)p->pid, tid = (uint32_t)t->tid;

	if (!t->is_ending) {
		p->n_living--;
		if (t->is_translated && !p->is_inherited)
			counts_tell(p->counts, true, 1,
				"threads that were gone before they could be asked");
	}
	remove_thread(s, t);
	if (!has_threads(s, p))
		end_program(s, p);
	if (!has_ended)
		return;
	if (process->n_live == 1)
		module_history_end(s->modules, process, clock_mono_ns(), MODULE_END_EXIT);
	processes_exit(s->processes, pid, tid, clock_mono_ns());
}

void traced_end_all(struct translate_session *s)
{
	while (s->threads.n)
		traced_gone(s, s->threads.v[s->threads.n - 1], false);
	while (s->programs.n)
		end_program(s, s->programs.v[s->programs.n - 1]);
}

/* --- exec -------------------------------------------------------------------------------------- */

struct traced_thread *traced_exec(struct translate_session *s, pid_t pid, pid_t former_tid)
{
	struct traced_thread *caller = traced_find(s, former_tid), *t = traced_find(s, pid);
	struct traced_program *old;
	struct process *process;
	char name[64];

	if (!t && !caller)
		return NULL;
	/* Where memory is shared (vfork) the area is free again; else nothing is there any more. */
	if (caller)
		thread_free_area(caller);
	if (!t) {
		*map_ensure(&s->by_tid, (uint64_t)former_tid, NULL) = 0;
		*map_ensure(&s->by_tid, (uint64_t)pid, NULL) = (uint64_t)(uintptr_t)caller;
		caller->tid = pid;
		t = caller;
	}
	old = t->program;
	process = old->process;
	for (size_t i = s->threads.n; i--;)
		if (s->threads.v[i]->program == old && s->threads.v[i] != t) {
			processes_exit(s->processes, (uint32_t)pid, (uint32_t)s->threads.v[i]->tid,
				clock_mono_ns());
			remove_thread(s, s->threads.v[i]);
		}
	end_program(s, old);
	module_history_exec(s->modules, process, clock_mono_ns());
	proc_name(pid, pid, name, sizeof(name));
	processes_exec(s->processes, (uint32_t)pid, clock_mono_ns(), name);
	processes_name_thread(s->processes, (uint32_t)pid, (uint32_t)pid, clock_mono_ns(), name);
	t->program = add_program(s, pid, process);
	t->program->n_living = 1;
	t->number = ++s->n_numbers;
	t->own_tid = pid;
	proc_own_number(pid, pid, &t->own_tid);
	t->area = t->n_lost_buffers = 0;
	t->is_translated = t->is_ending = false;
	t->leaves = LEAVE_NOT;
	return t;
}

static void not_counted(struct translate_session *s, struct traced_program *p, const char *why)
{
	char exe[4096], text[512];

	proc_exe(p->pid, exe, sizeof(exe));
	if (!exe[0])
		proc_name(p->pid, p->pid, exe, sizeof(exe));
	snprintf(text, sizeof(text), "'%s' (process %d) is not counted: %s", exe, p->pid, why);
	counts_tell(p->counts, true, 1, text);
	translate_note(s, "%s", text);
}

/* Filters that we have ourselves permit what we do. */
static bool is_filtered(pid_t pid)
{
	return inject_n_filters(pid) > inject_n_filters(getpid());
}

static const char *hindrance(const struct traced_program *p, const struct user_regs_struct *regs)
{
	if (regs->cs == CS_32)
		return "it is a 32-bit program";
	if (p->memory_fd < 0)
		return "its memory may not be read";
	if (is_filtered(p->pid))
		return "it runs under a filter of system calls (seccomp), by which one made for us could end it";
	return NULL;
}

/* From the stop within execve to one that is as if it had been interrupted. */
static int leave_exec(struct remote_thread *r, struct err *err)
{
	int rc;

	remote_thread_interrupt(r);
	r->is_stopped = false;
	ptrace(PTRACE_CONT, r->tid, NULL, NULL);
	rc = remote_thread_wait_event(r, clock_mono_ns() + STOP_NS, err);
	return rc < 0 ? rc : remote_thread_get_regs(r, err);
}

bool traced_begin(struct translate_session *s, struct traced_thread *t, int *status)
{
	struct traced_program *p = t->program;
	struct remote_thread r = {.pid = p->pid,
		.tid = t->tid,
		.memory_fd = p->memory_fd,
		.is_64 = true,
		.is_seized = true,
		.is_stopped = true};
	const char *why;
	struct err err;
	int rc;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &r.regs.r64) < 0)
		return true; /* its end comes */
	why = hindrance(p, &r.regs.r64);
	if (why) {
		not_counted(s, p, why);
		return true;
	}
	rc = leave_exec(&r, &err);
	if (rc == 0)
		rc = translator_inject(&s->image, &r, 1,
			TRANSLATE_OPTION_COUNT | TRANSLATE_OPTION_CALLS, &p->place, &err);
	if (rc == 0)
		rc = translator_start(&p->place, &r, 0, false, &err);
	t->is_translated = rc == 0;
	*status = r.end_status;
	if (rc < 0 && !r.is_gone)
		not_counted(s, p, err.text);
	return !r.is_gone;
}
