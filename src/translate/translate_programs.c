/* SPDX-License-Identifier: MIT */
/* Programs and threads of a recording: how they begin, become others and end. */
#include <elf.h>
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
#include "translate/tracer.h"

#define CS_32	0x23u
#define STOP_NS 2000000000u

/* --- programs ---------------------------------------------------------------------------------- */

static int open_memory(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", proc_number(pid), tid);
	return open(path, O_RDWR | O_CLOEXEC);
}

static struct traced_program *add_program(struct translate_tracer *s, pid_t pid)
{
	struct traced_program *p = mem_zalloc(sizeof(*p));

	p->pid = pid;
	p->memory_fd = open_memory(pid, pid);
	vec_push(&s->programs, p);
	return p;
}

static void free_program(struct translate_tracer *s, struct traced_program *p)
{
	size_t i = 0;

	while (s->programs.v[i] != p)
		i++;
	s->programs.v[i] = s->programs.v[--s->programs.n];
	fd_cleanup(&p->memory_fd);
	free(p);
}

/* --- threads ----------------------------------------------------------------------------------- */

struct traced_thread *traced_find(const struct translate_tracer *s, pid_t tid)
{
	const uint64_t *i = map_find(&s->by_tid, (uint64_t)tid);

	return i ? (struct traced_thread *)(uintptr_t)*i : NULL;
}

struct remote_thread traced_remote(const struct traced_thread *t)
{
	return (struct remote_thread){.pid = t->program->pid,
		.tid = t->tid,
		.memory_fd = t->program->memory_fd,
		.is_64 = true,
		.is_seized = true,
		.is_stopped = true};
}

static struct traced_thread *add_thread(
	struct translate_tracer *s, struct traced_program *p, pid_t tid)
{
	struct traced_thread *t = mem_zalloc(sizeof(*t));

	t->tid = t->own_tid = tid;
	proc_own_number(p->pid, tid, &t->own_tid);
	t->program = p;
	t->number = ++s->n_numbers;
	p->n_living++;
	vec_push(&s->threads, t);
	*map_ensure(&s->by_tid, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)t;
	return t;
}

struct traced_thread *traced_add_thread(
	struct translate_tracer *s, struct traced_program *p, pid_t tid)
{
	struct traced_thread *t = add_thread(s, p, tid);

	s->work->thread_new(s->ctx, t);
	return t;
}

struct traced_program *traced_add_process(struct translate_tracer *s, pid_t pid, bool was_running)
{
	struct traced_program *p = add_program(s, pid);

	s->work->process_new(s->ctx, p, was_running);
	return p;
}

/* A new process with its parent's memory, as a copy or the same. */
static struct traced_program *fork_program(
	struct translate_tracer *s, struct traced_thread *by, pid_t pid, bool shares_memory)
{
	struct traced_program *p = add_program(s, pid);

	if (!by->is_translated)
		return p;
	p->place = by->program->place;
	p->shares_memory = shares_memory;
	p->is_inherited = !shares_memory;
	return p;
}

struct traced_thread *traced_forked(
	struct translate_tracer *s, struct traced_thread *by, pid_t tid, bool shares_memory)
{
	struct traced_program *p = by->program;
	pid_t pid = (pid_t)proc_status_number(tid, tid, "Tgid", 10);
	struct traced_thread *t;

	pid = pid ? pid : tid;
	if (pid != p->pid)
		p = fork_program(s, by, pid, shares_memory);
	t = add_thread(s, p, tid);
	t->is_translated = by->is_translated;
	s->work->forked(s->ctx, by, t);
	return t;
}

static void remove_thread(struct translate_tracer *s, struct traced_thread *t)
{
	size_t i = 0;

	while (s->threads.v[i] != t)
		i++;
	s->threads.v[i] = s->threads.v[--s->threads.n];
	*map_ensure(&s->by_tid, (uint64_t)t->tid, NULL) = 0;
	free(t);
}

static bool has_threads(const struct translate_tracer *s, const struct traced_program *p)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->program == p)
			return true;
	return false;
}

void traced_gone(struct translate_tracer *s, struct traced_thread *t, bool has_ended, int status)
{
	struct traced_program *p = t->program;

	if (!t->is_ending) {
		p->n_living--;
		if (t->is_translated && !p->is_inherited)
			s->work->tell(s->ctx, p, true, 1,
				"threads that were gone before they could be asked");
	}
	s->work->thread_gone(s->ctx, t, has_ended, status);
	remove_thread(s, t);
	if (has_threads(s, p))
		return;
	s->work->program_gone(s->ctx, p);
	free_program(s, p);
}

void traced_hand_over(struct translate_tracer *s, struct traced_thread *t)
{
	struct traced_program *p = t->program;

	remove_thread(s, t);
	s->work->program_gone(s->ctx, p); /* which has not begun */
	free_program(s, p);
}

struct traced_thread *traced_adopt(struct translate_tracer *s, pid_t pid)
{
	struct traced_thread *t = add_thread(s, add_program(s, pid), pid);

	s->work->adopted(s->ctx, t);
	return t;
}

void traced_end_all(struct translate_tracer *s)
{
	while (s->threads.n)
		traced_gone(s, s->threads.v[s->threads.n - 1], false, 0);
	while (s->programs.n) {
		s->work->program_gone(s->ctx, s->programs.v[s->programs.n - 1]);
		free_program(s, s->programs.v[s->programs.n - 1]);
	}
}

/* --- exec -------------------------------------------------------------------------------------- */

struct traced_thread *traced_exec(struct translate_tracer *s, pid_t pid, pid_t former_tid)
{
	struct traced_thread *caller = traced_find(s, former_tid), *t = traced_find(s, pid);
	struct traced_program *old;

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
	for (size_t i = s->threads.n; i--;)
		if (s->threads.v[i]->program == old && s->threads.v[i] != t) {
			s->work->thread_replaced(s->ctx, s->threads.v[i]);
			remove_thread(s, s->threads.v[i]);
		}
	t->program = add_program(s, pid);
	t->program->n_living = 1;
	t->number = ++s->n_numbers;
	t->own_tid = pid;
	proc_own_number(pid, pid, &t->own_tid);
	t->area = t->n_lost_buffers = t->n_taken = 0;
	t->is_translated = t->is_ending = false;
	t->leaves = LEAVE_NOT;
	s->work->exec(s->ctx, t, old);
	free_program(s, old);
	return t;
}

bool program_is_32bit(const char *path)
{
	uint8_t head[EI_NIDENT] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is_32 = fd >= 0 && read(fd, head, sizeof(head)) == sizeof(head) &&
		     !memcmp(head, ELFMAG, SELFMAG) && head[EI_CLASS] == ELFCLASS32;

	fd_cleanup(&fd);
	return is_32;
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

bool traced_begin(struct translate_tracer *s, struct traced_thread *t, int *status)
{
	struct traced_program *p = t->program;
	struct remote_thread r = traced_remote(t);
	const char *why;
	struct err err;
	int rc;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &r.regs.r64) < 0)
		return true; /* its end comes */
	if (s->stepper && s->stepper->wants(s->stepper_ctx, r.regs.r64.cs == CS_32)) {
		traced_hand_over(s, t);
		s->stepper->take(s->stepper_ctx, r.pid);
		return true;
	}
	why = hindrance(p, &r.regs.r64);
	if (why) {
		s->work->not_translated(s->ctx, t, why);
		return true;
	}
	rc = leave_exec(&r, &err);
	if (rc == 0)
		rc = translator_inject(&s->image, &r, 1, s->work->options, &p->place, &err);
	if (rc == 0)
		s->work->begins(s->ctx, t);
	if (rc == 0)
		rc = translator_start(&p->place, &r, 0, false, &err);
	t->is_translated = rc == 0;
	*status = r.end_status;
	if (rc < 0 && !r.is_gone)
		s->work->not_translated(s->ctx, t, err.text);
	return !r.is_gone;
}
