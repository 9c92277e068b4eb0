/* SPDX-License-Identifier: MIT */
#include "process/processes.h"

#include <stdlib.h>

struct processes *processes_new(struct trace_writer *w, uint32_t life_stream)
{
	struct processes *t = mem_zalloc(sizeof(*t));

	t->w = w;
	t->stream = life_stream;
	return t;
}

void processes_free(struct processes *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->all.n; i++) {
		addrspace_free(t->all.v[i]->space);
		free(t->all.v[i]);
	}
	for (size_t i = 0; i < t->threads.n; i++) {
		vec_release(&t->threads.v[i]->memo.levels);
		free(t->threads.v[i]);
	}
	vec_release(&t->all);
	vec_release(&t->threads);
	map_release(&t->by_pid);
	map_release(&t->by_tid);
	free(t);
}

struct process *processes_find(const struct processes *t, uint32_t pid)
{
	const uint64_t *at = map_find(&t->by_pid, pid);

	return at && *at ? t->all.v[*at - 1] : NULL;
}

void processes_forget(struct processes *t, uint32_t pid)
{
	*map_ensure(&t->by_pid, pid, NULL) = 0;
}

/* Takes over `space`. */
static struct process *add_process(
	struct processes *t, uint32_t pid, uint64_t start_ns, struct addrspace *space)
{
	struct process *p = mem_zalloc(sizeof(*p));

	p->pid = pid;
	p->start_ns = start_ns;
	p->space = space;
	vec_push(&t->all, p);
	*map_ensure(&t->by_pid, pid, NULL) = t->all.n;
	return p;
}

struct process *processes_start(struct processes *t, uint32_t pid, uint32_t parent,
	uint64_t start_ns, uint64_t time, const char *command_line)
{
	struct process *p = add_process(t, pid, start_ns, addrspace_new());

	trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_PROCESS, RECORD_PROCESS_START,
		(uint64_t[]){pid, parent, start_ns, trace_writer_string(t->w, command_line)}, 4);
	return p;
}

struct process *processes_get(struct processes *t, uint32_t pid, uint64_t time)
{
	struct process *p = processes_find(t, pid);

	return p ? p : processes_start(t, pid, 0, 0, time, "");
}

struct thread *processes_find_thread(const struct processes *t, uint32_t pid, uint32_t tid)
{
	const uint64_t *at = map_find(&t->by_tid, tid);
	struct thread *thread = at && *at ? t->threads.v[*at - 1] : NULL;

	return thread && thread->process == processes_find(t, pid) && !thread->has_ended ? thread
											 : NULL;
}

struct thread *processes_thread(struct processes *t, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct process *p = processes_get(t, pid, time);
	uint64_t *at = map_ensure(&t->by_tid, tid, NULL);
	struct thread *thread = *at ? t->threads.v[*at - 1] : NULL;

	if (thread && thread->process == p)
		return thread;
	thread = mem_zalloc(sizeof(*thread));
	thread->process = p;
	thread->tid = tid;
	p->n_live++;
	thread->trace_id = trace_writer_thread(
		t->w, &(struct trace_thread){.pid = pid, .tid = tid, .start_ns = p->start_ns});
	vec_push(&t->threads, thread);
	*at = t->threads.n;
	trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_THREAD, RECORD_THREAD_CREATED,
		(uint64_t[]){thread->trace_id, 0, 0}, 3);
	return thread;
}

static void name_thread(struct processes *t, struct thread *thread, uint64_t time, uint32_t name)
{
	thread->name = name;
	trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED,
		(uint64_t[]){thread->trace_id, 0, thread->role, name}, 4);
}

void processes_name_runtime_thread(
	struct processes *t, struct thread *thread, uint64_t time, const char *name, uint32_t role)
{
	uint32_t id = trace_writer_string(t->w, name);

	thread->has_runtime_name = true;
	if (role == RECORD_THREAD_IS_COLLECTOR && role != thread->role)
		trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_THREAD, RECORD_THREAD_GC,
			(uint64_t[]){thread->trace_id}, 1);
	if (id == thread->name && role == thread->role)
		return;
	thread->role = role;
	name_thread(t, thread, time, id);
}

/* Another one has the number of one that ended, and nothing else of it. */
static void begin_again(struct thread *thread)
{
	thread->has_ended = thread->has_runtime_name = false;
	thread->is_met = thread->wants_name = false;
	thread->process->n_live++;
	thread->role = RECORD_THREAD_IS_PROGRAM;
	thread->stack_top = 0;
	thread->n_top_asked = 0;
}

void processes_fork(struct processes *t, const struct thread_id *made,
	const struct thread_id *maker, uint64_t time)
{
	uint32_t name = processes_thread(t, maker->pid, maker->tid, time)->name;
	struct thread *thread;

	if (made->pid != maker->pid) {
		/* Shared until one of them changes it: a thousand children cost nothing. */
		add_process(t, made->pid, time,
			addrspace_share(processes_get(t, maker->pid, time)->space))
			->forked_from = maker->pid;
		trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_PROCESS,
			RECORD_PROCESS_FORK, (uint64_t[]){made->pid, maker->pid}, 2);
	}
	thread = processes_thread(t, made->pid, made->tid, time);
	if (thread->has_ended)
		begin_again(thread);
	name_thread(t, thread, time, name);
}

void process_forget_mappings(struct process *p)
{
	addrspace_free(p->space);
	p->space = addrspace_new();
}

void processes_exec(struct processes *t, uint32_t pid, uint64_t time, const char *name)
{
	struct process *p = processes_get(t, pid, time);
	struct thread *thread = processes_thread(t, pid, pid, time);

	process_forget_mappings(p);
	p->exec_ns = time;
	p->forked_from = 0;
	p->in_exec = true;
	thread->has_runtime_name = false;
	thread->role = RECORD_THREAD_IS_PROGRAM;
	trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_PROCESS, RECORD_PROCESS_EXEC,
		(uint64_t[]){pid, trace_writer_string(t->w, name)}, 2);
}

void processes_name_thread(
	struct processes *t, uint32_t pid, uint32_t tid, uint64_t time, const char *name)
{
	struct thread *thread = processes_thread(t, pid, tid, time);

	/* What the system says is later here than what the runtime said after it. */
	if (!thread->has_runtime_name)
		name_thread(t, thread, time, trace_writer_string(t->w, name));
}

/* Timers of CPUs meet a task that goes on to its end after it has told of it: so the mappings stay for a while. Not for
 * long: a build has a hundred thousand processes. */
static void begin_leaving(struct processes *t, struct process *p)
{
	struct process **place = &t->leaving[t->n_left++ % PROCESSES_LEAVING];

	if (*place && !(*place)->n_live)
		process_forget_mappings(*place);
	*place = p;
}

void processes_exit(struct processes *t, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct thread *thread = processes_thread(t, pid, tid, time);

	thread->wait_stack = 0; /* it does not wait, it has ended */
	thread->has_ended = true;
	vec_release(&thread->memo.levels);
	if (thread->process->n_live && --thread->process->n_live == 0)
		begin_leaving(t, thread->process);
	trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_THREAD, RECORD_THREAD_ENDED,
		(uint64_t[]){thread->trace_id}, 1);
	if (tid != pid || thread->process->has_ended)
		return;
	thread->process->has_ended = true;
	trace_writer_numbers(t->w, t->stream, time, RECORD_MAJOR_PROCESS, RECORD_PROCESS_END,
		(uint64_t[]){pid, 0}, 2);
}
