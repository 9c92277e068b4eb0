/* SPDX-License-Identifier: MIT */
/*
 * The threads and classes of a JVM over time: lists that are read now and then and compared with what
 * was known. What came and went between two lists is not seen; the kernel's names remain of such
 * threads, and the methods of such classes are in the samples all the same.
 */
#include "record/java_process.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "process/proc.h"

#define THREADS_MAX		65536
#define CLASSES_MAX		1000000
#define THREADS_INTERVAL_NS_MIN 20000000u
#define CLASSES_INTERVAL_NS_MIN 1000000000u
/* A look takes at most such a part of the time. */
#define LOOK_SHARE 200
/* And for one that is asked for: */
#define ASKED_SHARE 20

static bool is_due(const struct java_look *look, uint64_t now, bool is_last)
{
	return is_last || now >= look->next_ns;
}

static void look_is_over(struct java_look *look, uint64_t began, uint64_t interval_min)
{
	uint64_t now = clock_mono_ns(), interval = (now - began) * LOOK_SHARE;

	look->earliest_ns = now + (now - began) * ASKED_SHARE;
	look->next_ns = now + (interval > interval_min ? interval : interval_min);
}

/* --- threads ---------------------------------------------------------------------------- */

struct tid_search {
	struct java_process *p;
	bool has_namespace;
};

static void note_own_number(void *ctx, pid_t tid)
{
	struct tid_search *search = ctx;
	pid_t own;
	unsigned n = proc_own_number((pid_t)search->p->pid, tid, &own);

	search->has_namespace |= n > 1;
	if (n > 1)
		*map_ensure(&search->p->tids, (uint64_t)own, NULL) = (uint64_t)tid;
}

/* In a pid namespace of its own the JVM has other numbers than we see. */
static void read_tids(struct java_process *p)
{
	struct tid_search search = {.p = p};
	pid_t own;

	map_reset(&p->tids);
	if (proc_own_number((pid_t)p->pid, (pid_t)p->pid, &own) > 1)
		proc_each_task((pid_t)p->pid, note_own_number, &search);
}

static struct thread *find_thread(const struct java_process *p, uint32_t tid)
{
	const uint64_t *ours = map_find(&p->tids, tid);

	if (p->tids.n && !ours)
		return NULL;
	return processes_find_thread(p->world->processes, p->pid, ours ? (uint32_t)*ours : tid);
}

static uint32_t role_of(enum jvm_thread_kind kind)
{
	switch (kind) {
	case JVM_THREAD_COLLECTOR:
		return RECORD_THREAD_IS_COLLECTOR;
	case JVM_THREAD_COMPILER:
		return RECORD_THREAD_IS_COMPILER;
	case JVM_THREAD_VM:
		return RECORD_THREAD_IS_RUNTIME;
	default:
		return RECORD_THREAD_IS_PROGRAM;
	}
}

/*
 * Not the system's name, which is cut, where the JVM's may be known; that one may not be readable just now. And the thread of
 * main() stays that when main() is over.
 */
static bool is_better_name(const struct thread *thread, const struct jvm_thread *now)
{
	if (now->is_systems)
		return thread->role != role_of(now->kind);
	return now->name[0] &&
	       (!thread->has_runtime_name || strcmp(now->name, "DestroyJavaVM") != 0);
}

static void look_at_threads(struct java_process *p, uint64_t time)
{
	size_t n, max = 256;
	struct jvm_thread *threads = NULL;

	do {
		max *= 2;
		threads = mem_realloc(threads, max * sizeof(*threads));
		n = jvm_threads(p->jvm, threads, max);
	} while (n == max && max < THREADS_MAX);
	read_tids(p);
	for (size_t i = 0; i < n; i++) {
		struct thread *thread = find_thread(p, threads[i].tid);

		if (thread && is_better_name(thread, &threads[i]))
			processes_name_runtime_thread(p->world->processes, thread, time,
				threads[i].name, role_of(threads[i].kind));
	}
	free(threads);
}

/* --- classes ---------------------------------------------------------------------------- */

struct class_list {
	struct java_process *p;
	uint64_t time;
	bool at_start;
};

static void put_class(const struct class_list *list, const char *name, uint64_t loader, bool loaded)
{
	const struct java_process *p = list->p;
	struct trace_writer *w = p->world->w;
	uint64_t numbers[] = {
		p->pid, p->start_ns, loader, trace_writer_string(w, name), list->at_start};

	trace_writer_numbers(w, p->world->life_stream, list->time, RECORD_MAJOR_MODULE,
		loaded ? RECORD_MODULE_CLASS_LOAD : RECORD_MODULE_CLASS_UNLOAD, numbers,
		loaded ? 5 : 4);
}

/* The key of a class is its loader's eight bytes and its name. */
static void note_class(void *ctx, const char *name, uint64_t loader)
{
	struct class_list *list = ctx;
	struct java_process *p = list->p;
	struct buf key = {0};
	uint32_t id;

	if (p->classes.n_items >= CLASSES_MAX)
		return;
	buf_put(&key, &loader, sizeof(loader));
	buf_put_cstr(&key, name);
	id = intern_bytes(&p->classes, key.p, key.n);
	buf_release(&key);
	vec_ensure_zero(&p->class_seen, (size_t)id + 1);
	if (!p->class_seen.v[id])
		put_class(list, name, loader, true);
	p->class_seen.v[id] = p->n_class_lists;
}

static void look_at_classes(struct java_process *p, uint64_t time)
{
	struct class_list list = {p, time, !p->n_class_lists && p->was_running};
	bool is_whole;

	p->n_class_lists++;
	is_whole = jvm_classes(p->jvm, note_class, &list);
	p->n_cut_lists = is_whole ? 0 : p->n_cut_lists + 1;
	p->classes_are_cut |= p->n_cut_lists > 1;
	for (size_t i = 0; is_whole && i < p->class_seen.n; i++) {
		const char *key = intern_get(&p->classes, (uint32_t)i);
		uint64_t loader;

		if (!p->class_seen.v[i] || p->class_seen.v[i] == p->n_class_lists)
			continue;
		memcpy(&loader, key, sizeof(loader));
		put_class(&list, key + sizeof(loader), loader, false);
		p->class_seen.v[i] = 0;
	}
}

void java_process_meet(struct java_process *p, struct thread *thread, uint64_t time)
{
	char name[64];
	uint64_t now;

	if (thread->is_met)
		return;
	/* The first thread has the program's name, and that of Java when it is a thread of Java. */
	thread->wants_name = thread->tid != p->pid;
	if (p->has_ended)
		return;
	now = clock_mono_ns();
	if (now < p->threads_look.earliest_ns)
		return; /* with its next sample */
	thread->is_met = true;
	look_at_threads(p, time);
	/* A thread that still was there and is not the JVM's has no other name. */
	proc_name((pid_t)p->pid, (pid_t)thread->tid, name, sizeof(name));
	thread->wants_name &= !name[0];
	look_is_over(&p->threads_look, now, THREADS_INTERVAL_NS_MIN);
}

void java_process_look(struct java_process *p, uint64_t time, bool is_last)
{
	uint64_t now = clock_mono_ns();

	if (is_due(&p->threads_look, now, is_last)) {
		look_at_threads(p, time);
		look_is_over(&p->threads_look, now, THREADS_INTERVAL_NS_MIN);
	}
	now = clock_mono_ns();
	if (is_due(&p->classes_look, now, is_last)) {
		look_at_classes(p, time);
		look_is_over(&p->classes_look, now, CLASSES_INTERVAL_NS_MIN);
	}
}
