/* SPDX-License-Identifier: MIT */
#include "record/java_processes.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/java_process.h"

/* JVMs that have ended and are remembered: a timer meets a task that goes on to its end after it has told
 * of it. */
#define ENDED_MAX 16

struct java_processes {
	struct java_world world;
	VEC(struct java_process *) all; /* in order of their finding */
	size_t n_live, n_ended;
	uint64_t batch;
	uint64_t n_found, n_unread, n_unnamed, n_cut_lists;
	char *problem; /* of the first that could not be read */
	struct intern problems;
	VEC(uint64_t) problem_n;
};

struct java_processes *java_processes_new(const struct java_world *world)
{
	struct java_processes *j = mem_zalloc(sizeof(*j));

	j->world = *world;
	return j;
}

static void free_process(struct java_processes *j, struct java_process *p)
{
	j->n_unnamed += p->n_unnamed;
	j->n_cut_lists += p->classes_are_cut;
	for (size_t i = 0; i < p->users.n; i++)
		p->users.v[i]->java = NULL;
	vec_release(&p->users);
	jvm_free(p->jvm);
	free(p->problem);
	map_release(&p->frames[0]);
	map_release(&p->frames[1]);
	map_release(&p->tids);
	intern_release(&p->classes);
	vec_release(&p->class_seen);
	free(p);
}

void java_processes_free(struct java_processes *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->all.n; i++)
		free_process(j, j->all.v[i]);
	vec_release(&j->all);
	intern_release(&j->problems);
	vec_release(&j->problem_n);
	free(j->problem);
	free(j);
}

/* --- finding ---------------------------------------------------------------------------- */

static const struct mapping *find_libjvm(const struct java_processes *j, const struct process *p)
{
	for (size_t i = 0; i < addrspace_n(p->space); i++) {
		const struct mapping *m = addrspace_get(p->space, i);

		if (images_get(j->world.images, m->image)->is_jvm)
			return m;
	}
	return NULL;
}

/* A file that has the mapping, by a path that leads to it from here. Owned. */
static char *libjvm_path(struct java_processes *j, const struct process *p, const struct mapping *m)
{
	const char *opened = images_opened(j->world.images, m->image);
	const char *path = images_get(j->world.images, m->image)->path;
	char *own;

	if (opened && access(opened, R_OK) == 0)
		return mem_strdup(opened);
	own = mem_printf("/proc/%d/root%s", proc_number((pid_t)p->pid), path);
	if (access(own, R_OK) == 0)
		return own;
	free(own);
	return mem_printf(
		"/proc/%d/map_files/%lx-%lx", proc_number((pid_t)p->pid), m->start, m->end);
}

static void note_problem(struct java_processes *j, struct java_process *p, const struct err *err)
{
	uint32_t id = intern_text(&j->problems, err->text);

	p->problem = mem_strdup(err->text);
	vec_ensure_zero(&j->problem_n, (size_t)id + 1);
	j->problem_n.v[id]++;
	if (!j->n_unread++)
		j->problem = mem_printf("process %u: %s", p->pid, err->text);
}

static struct java_process *open_process(
	struct java_processes *j, struct process *of, const struct mapping *libjvm)
{
	struct java_process *p = mem_zalloc(sizeof(*p));
	char *path = libjvm_path(j, of, libjvm);
	struct err err;

	p->world = &j->world;
	p->pid = of->pid;
	p->start_ns = of->start_ns;
	p->began_ns = of->exec_ns ? of->exec_ns : of->start_ns;
	p->since_1970_ns = clock_read_ns(CLOCK_REALTIME) - clock_mono_ns();
	p->was_running = of->was_running && !of->exec_ns;
	p->libjvm_start = libjvm->start;
	if (jvm_open(&p->jvm, (pid_t)of->pid, path, libjvm->bias, &err) < 0)
		note_problem(j, p, &err);
	free(path);
	vec_push(&j->all, p);
	j->n_found++;
	j->n_live += p->jvm != NULL;
	return p;
}

/* The JVM that a child was forked of, while the child has its memory. */
static struct java_process *find_parent(
	struct java_processes *j, const struct process *p, const struct mapping *libjvm)
{
	const struct process *parent =
		p->forked_from ? processes_find(j->world.processes, p->forked_from) : NULL;

	return parent && parent->java && parent->java->libjvm_start == libjvm->start ? parent->java
										     : NULL;
}

static void look_for_jvm(struct java_processes *j, struct process *p)
{
	const struct mapping *libjvm = find_libjvm(j, p);

	p->java_looked = addrspace_generation(p->space);
	if (!libjvm)
		return;
	p->java = find_parent(j, p, libjvm);
	if (!p->java && p->n_live)
		p->java = open_process(j, p, libjvm);
	if (p->java)
		vec_push(&p->java->users, p);
}

struct java_process *java_process_of(struct java_processes *j, struct process *p)
{
	if (!p->java && p->java_looked != addrspace_generation(p->space))
		look_for_jvm(j, p);
	if (!p->java || !p->java->jvm)
		return NULL;
	/* One that no sample is of costs nothing. */
	if (p->java->batch != j->batch)
		jvm_begin_batch(p->java->jvm);
	p->java->batch = j->batch;
	return jvm_is_ready(p->java->jvm) ? p->java : NULL;
}

/* --- over time -------------------------------------------------------------------------- */

bool java_processes_hurry(const struct java_processes *j)
{
	return j->n_live;
}

void java_processes_begin_batch(struct java_processes *j, uint64_t time)
{
	j->batch++;
	for (size_t i = 0; j->n_live && i < j->all.n; i++) {
		struct java_process *p = j->all.v[i];

		if (p->jvm && !p->has_ended && jvm_is_ready(p->jvm))
			java_process_look(p, time, false);
	}
}

static void forget_oldest(struct java_processes *j)
{
	size_t i = 0;

	while (!j->all.v[i]->has_ended)
		i++;
	free_process(j, j->all.v[i]);
	memmove(&j->all.v[i], &j->all.v[i + 1], (--j->all.n - i) * sizeof(j->all.v[0]));
	j->n_ended--;
}

/* Its own program is over; of a child it was the parent's. */
static void end_own(struct java_processes *j, const struct process *p)
{
	struct java_process *java = p->java;

	if (java->pid != p->pid || java->start_ns != p->start_ns || java->has_ended)
		return;
	java->has_ended = true;
	j->n_live -= java->jvm != NULL;
	j->n_ended++;
}

void java_processes_exec(struct java_processes *j, struct process *p)
{
	struct java_process *java = p->java;

	p->java_looked = 0;
	if (!java)
		return;
	end_own(j, p);
	for (size_t i = 0; i < java->users.n; i++)
		if (java->users.v[i] == p)
			java->users.v[i--] = java->users.v[--java->users.n];
	p->java = NULL;
	if (j->n_ended > ENDED_MAX)
		forget_oldest(j);
}

void java_processes_exit(struct java_processes *j, struct process *p)
{
	if (!p->java)
		return;
	end_own(j, p);
	if (j->n_ended > ENDED_MAX)
		forget_oldest(j);
}

void java_processes_stopped(struct java_processes *j, uint64_t time)
{
	for (size_t i = 0; i < j->all.n; i++) {
		struct java_process *p = j->all.v[i];

		if (p->jvm && !p->has_ended && jvm_is_ready(p->jvm) && proc_exists((pid_t)p->pid))
			java_process_look(p, time, true);
	}
}

/* As HotSpot calls its own. */
static uint32_t role_of_name(const char *name)
{
	static const struct {
		const char *begin;
		uint32_t role;
	} known[] = {
		{"C1 Compiler", RECORD_THREAD_IS_COMPILER},
		{"C2 Compiler", RECORD_THREAD_IS_COMPILER},
		{"JVMCI", RECORD_THREAD_IS_COMPILER},
		{"GC Thread#", RECORD_THREAD_IS_COLLECTOR},
		{"G1 ", RECORD_THREAD_IS_COLLECTOR},
		{"ZDirector", RECORD_THREAD_IS_COLLECTOR},
		{"ZDriver", RECORD_THREAD_IS_COLLECTOR},
		{"ZWorker", RECORD_THREAD_IS_COLLECTOR},
		{"Shenandoah", RECORD_THREAD_IS_COLLECTOR},
		{"VM Thread", RECORD_THREAD_IS_RUNTIME},
		{"VM Periodic", RECORD_THREAD_IS_RUNTIME},
		{"Signal Dispatch", RECORD_THREAD_IS_RUNTIME},
		{"Service Thread", RECORD_THREAD_IS_RUNTIME},
		{"Monitor Deflati", RECORD_THREAD_IS_RUNTIME},
		{"Sweeper thread", RECORD_THREAD_IS_RUNTIME},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(name, known[i].begin, strlen(known[i].begin)) == 0)
			return known[i].role;
	return RECORD_THREAD_IS_PROGRAM;
}

void java_processes_guess_role(
	struct java_processes *j, struct process *p, uint32_t tid, const char *name)
{
	uint32_t role = role_of_name(name);
	struct thread *thread;

	if (role == RECORD_THREAD_IS_PROGRAM)
		return;
	java_process_of(j, p);
	thread = p->java ? processes_find_thread(j->world.processes, p->pid, tid) : NULL;
	if (thread && thread->role == RECORD_THREAD_IS_PROGRAM)
		thread->role = role;
}

/* --- the end ---------------------------------------------------------------------------- */

/* Threads with samples that had ended before the JVM was asked, because they were short or the recorder was late. */
static uint64_t count_nameless(const struct processes *all)
{
	uint64_t n = 0;

	for (size_t i = 0; i < all->threads.n; i++) {
		const struct thread *t = all->threads.v[i];

		n += t->wants_name && !t->has_runtime_name && t->role == RECORD_THREAD_IS_PROGRAM;
	}
	return n;
}

void java_processes_write_notes(struct java_processes *j, uint64_t time)
{
	const struct java_world *world = &j->world;
	uint64_t n_cut = j->n_cut_lists, n_nameless = count_nameless(world->processes);

	for (size_t i = 0; i < j->problem_n.n; i++) {
		char *text = mem_printf("Java frames of a process are addresses: %s",
			intern_get(&j->problems, (uint32_t)i));

		trace_writer_loss(world->w, world->life_stream, time, RECORD_LOSS_NOTE,
			j->problem_n.v[i], text);
		free(text);
	}
	for (size_t i = 0; i < j->all.n; i++)
		n_cut += j->all.v[i]->classes_are_cut;
	if (n_cut)
		trace_writer_loss(world->w, world->life_stream, time, RECORD_LOSS_NOTE, n_cut,
			"JVM whose list of classes could not be read to its end");
	if (n_nameless)
		trace_writer_loss(world->w, world->life_stream, time, RECORD_LOSS_NOTE, n_nameless,
			"a thread of a JVM ended before its name was read: it has the kernel's, cut");
}

char *java_processes_unread(const struct java_processes *j)
{
	if (!j->n_unread)
		return NULL;
	return j->n_unread == 1 ? mem_printf("Java frames are addresses: %s", j->problem)
				: mem_printf("Java frames of %lu processes are addresses: %s",
					  j->n_unread, j->problem);
}
