/* SPDX-License-Identifier: MIT */
/* The processes and threads that events come from, and what becomes of them. */
#include <stdlib.h>

#include "base/clock.h"
#include "record/hooks/transcript_internal.h"

struct transcript *transcript_new(struct hooks *h, const struct transcript_world *world)
{
	struct transcript *t = mem_zalloc(sizeof(*t));

	t->h = h;
	t->world = *world;
	t->began_ns = t->budget_ns = clock_mono_ns();
	tick_clock_init(&t->clock);
	return t;
}

/* --- processes -------------------------------------------------------------------------- */

static void drop_view(struct transcript *t, struct process_view *v)
{
	if (!v->layout || v->n_sources || !v->is_gone)
		return;
	pthread_mutex_lock(&t->h->lock);
	hooks_unref_layout(v->layout);
	hooks_unref_process(v->process);
	pthread_mutex_unlock(&t->h->lock);
	v->layout = NULL;
	v->process = NULL;
	vec_release(&v->seen);
}

static void add_view(struct transcript *t, struct hook_process *p)
{
	struct process_view *v = mem_zalloc(sizeof(*v));
	uint64_t *at = map_ensure(&t->by_pid, p->pid, NULL);

	v->process = p;
	v->layout = hooks_ref_layout(p->layout);
	p->n_refs++;
	v->since_ns = tick_clock_ns(&t->clock, p->since_ticks);
	if (*at)
		v->older = t->views.v[*at - 1];
	vec_push(&t->views, v);
	*at = t->views.n;
}

void transcript_take_processes(struct transcript *t)
{
	struct hooks *h = t->h;
	size_t first = 0;

	HOLD(&h->lock);
	for (size_t i = 0; i < t->views.n; i++) {
		struct process_view *v = t->views.v[i];

		if (v->layout && v->layout != v->process->layout) {
			hooks_unref_layout(v->layout);
			v->layout = hooks_ref_layout(v->process->layout);
		}
	}
	first = h->processes.n;
	while (first && h->processes.v[first - 1]->serial > t->last_serial)
		first--;
	for (; first < h->processes.n; first++)
		add_view(t, h->processes.v[first]);
	t->last_serial = h->n_processes;
}

struct process_view *transcript_find_view(const struct transcript *t, uint32_t pid, uint64_t time)
{
	const uint64_t *at = map_find(&t->by_pid, pid);
	struct process_view *v = at ? t->views.v[*at - 1] : NULL;

	while (v && v->since_ns > time)
		v = v->older;
	return v && v->layout && !v->is_gone ? v : NULL;
}

/* The newest ones are at the end; asked for once for each source. */
static struct process_view *find_view_of(const struct transcript *t, const struct hook_process *p)
{
	for (size_t i = t->views.n; i--;)
		if (t->views.v[i]->process == p)
			return t->views.v[i];
	return NULL;
}

static struct process_view *view_of(struct transcript *t, struct hook_process *p)
{
	struct process_view *v = find_view_of(t, p);

	if (!v) { /* it came after the list was looked at */
		transcript_take_processes(t);
		v = find_view_of(t, p);
	}
	if (!v) { /* and went */
		pthread_mutex_lock(&t->h->lock);
		add_view(t, p);
		pthread_mutex_unlock(&t->h->lock);
		v = find_view_of(t, p);
	}
	return v;
}

/* --- threads ---------------------------------------------------------------------------- */

struct hooked_thread *transcript_find_thread(const struct transcript *t, uint32_t pid, uint32_t tid)
{
	const uint64_t *at = map_find(&t->by_tid, tid);
	struct hooked_thread *thread = at ? (struct hooked_thread *)(uintptr_t)*at : NULL;

	return thread && thread->pid == pid ? thread : NULL;
}

static struct hooked_thread *ensure_thread(struct transcript *t, uint32_t pid, uint32_t tid)
{
	struct hooked_thread *thread = transcript_find_thread(t, pid, tid);

	if (thread && !thread->has_exited)
		return thread;
	thread = mem_zalloc(sizeof(*thread));
	thread->pid = pid;
	thread->tid = tid;
	vec_push(&t->threads, thread);
	*map_ensure(&t->by_tid, tid, NULL) = (uintptr_t)thread;
	return thread;
}

void transcript_miss_bytecodes(
	struct transcript *t, const struct replay_chain *c, size_t first, size_t end)
{
	if (!t->h->options.bytecodes)
		return;
	for (size_t i = first; i < end; i++) {
		uint32_t id = c->calls.v[i].id;

		t->n_open_counted += id < t->functions.n && t->functions.v[id].is_method;
	}
}

void transcript_miss_open(struct transcript *t, struct hooked_thread *thread)
{
	for (size_t i = 0; i < thread->replay.chains.n && !thread->has_inherited; i++) {
		const struct replay_chain *c = &thread->replay.chains.v[i];

		transcript_miss_bytecodes(t, c, 0, c->calls.n);
	}
}

void transcript_free_thread(struct transcript *t, struct hooked_thread *thread)
{
	uint64_t *at = map_find(&t->by_tid, thread->tid);

	if (at && *at == (uintptr_t)thread)
		*at = 0;
	for (size_t i = thread->source_i; i < thread->sources.n; i++)
		hook_source_free(t->h, thread->sources.v[i]);
	t->n_unmatched_leaves += thread->replay.n_unmatched_leaves;
	transcript_miss_open(t, thread);
	vec_release(&thread->sources);
	replay_release(&thread->replay);
	free(thread);
}

void transcript_free(struct transcript *t)
{
	if (!t)
		return;
	hooks_halt(t->h);
	for (size_t i = 0; i < t->threads.n; i++)
		transcript_free_thread(t, t->threads.v[i]);
	for (size_t i = 0; i < t->views.n; i++) {
		t->views.v[i]->is_gone = true;
		t->views.v[i]->n_sources = 0;
		drop_view(t, t->views.v[i]);
		free(t->views.v[i]);
	}
	hook_chunks_free(t->used);
	vec_release(&t->threads);
	vec_release(&t->views);
	vec_release(&t->functions);
	vec_release(&t->library_images);
	transcript_free_programs(t);
	hook_costs_release(&t->costs);
	map_release(&t->by_tid);
	map_release(&t->by_pid);
	free(t);
}

void transcript_add_source(void *ctx, struct hook_source *s)
{
	struct transcript *t = ctx;
	struct hooked_thread *thread = ensure_thread(t, s->process->pid, s->tid);

	s->view = view_of(t, s->process);
	s->view->n_sources++;
	vec_push(&thread->sources, s);
}

void transcript_finish_source(struct transcript *t, struct hooked_thread *thread)
{
	struct hook_source *s = thread->sources.v[thread->source_i++];
	struct process_view *v = s->view;

	t->totals.n_dropped += s->counts.n_dropped;
	t->totals.n_stalls += s->counts.n_stalls;
	t->totals.n_unhooked += s->counts.n_unhooked;
	t->totals.n_jumped += s->counts.n_jumped;
	t->n_unread += s->n_unread;
	thread->view = NULL;
	thread->at = 0;
	hook_source_free(t->h, s);
	v->n_sources--;
	drop_view(t, v);
}

/* --- the life of processes -------------------------------------------------------------- */

void transcript_fork(struct transcript *t, const struct thread_id *made,
	const struct thread_id *maker, uint64_t time)
{
	struct hooked_thread *parent = transcript_find_thread(t, maker->pid, maker->tid), *child;

	if (made->pid == maker->pid || !parent || !replay_depth(&parent->replay))
		return;
	child = ensure_thread(t, made->pid, made->tid);
	replay_copy(&child->replay, &parent->replay);
	child->has_inherited = true;
	child->inherited_ns = time;
}

static void end_calls(struct transcript *t, struct hooked_thread *thread, uint64_t time)
{
	for (size_t n = replay_depth(&thread->replay); n-- && !thread->has_inherited;)
		trace_writer_routine(t->world.w, thread->stream, time, 0, true);
	replay_reset(&thread->replay);
	thread->has_inherited = false;
}

/* Its process is over, or has become another program. */
static void retire_view(struct transcript *t, struct process_view *v)
{
	v->is_gone = true;
	drop_view(t, v);
}

void transcript_exec(struct transcript *t, uint32_t pid, uint64_t time)
{
	struct process_view *v = transcript_find_view(t, pid, time);

	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.v[i]->pid == pid)
			end_calls(t, t->threads.v[i], time);
	if (v)
		retire_view(t, v);
}

void transcript_exit(struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time, bool is_last)
{
	struct hooked_thread *thread = transcript_find_thread(t, pid, tid);
	struct process_view *v = transcript_find_view(t, pid, time);

	if (thread)
		thread->has_exited = true;
	if (v && is_last)
		retire_view(t, v);
}
