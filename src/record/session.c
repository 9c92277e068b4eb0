/* SPDX-License-Identifier: MIT */
#include "record/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "record/hooks/transcript.h"
#include "process/host_facts.h"
#include "process/images.h"
#include "record/java_processes.h"
#include "record/kernel_events.h"
#include "process/module_history.h"
#include "record/name_frames.h"
#include "process/proc.h"
#include "record/process_life.h"
#include "record/task_filter.h"
#include "record/user_stacks.h"
#include "symbols/image_identity.h"
#include "symbols/resolve/resolver.h"

struct session_metric {
	struct session_event event;
	uint32_t id; /* of the trace; 0 = not defined yet */
	bool is_cpu_clock;
};

struct session {
	struct trace_writer *w;
	struct perf_set *set;
	struct session_options options;
	struct images *images;
	struct process_life *life;
	struct processes *processes; /* the life's, as the next one */
	struct module_history *modules;
	struct java_processes *java;
	struct user_stacks *stacks;
	struct kernel_events *kernel;  /* NULL = none are recorded */
	struct transcript *transcript; /* of hooked functions; NULL = none are */

	uint32_t life_stream;
	struct map cpu_streams; /* CPU -> stream id */
	struct map
		leaving; /* CPU -> the thread, pid in the high half, whose end it reported last */
	VEC(struct session_metric) metrics; /* by event */
	bool has_waits;
	uint32_t kernel_image;		 /* trace id; 0 = not defined yet */
	VEC(struct collected *) waiting; /* not yet certainly in order */
	uint64_t n_arrived;
	uint64_t stopped_ns;
	uint64_t last_time;
	struct session_counts counts;
	uint64_t n_exec_stacks, n_gone_stacks, n_throttled;
	uint64_t n_nameless; /* events of the kernel */
};

static uint32_t stack_at_entry(void *ctx, struct thread *thread, const struct cpu_regs *regs,
	struct span bytes, uint64_t time);

static void add_event(struct session *s, const struct session_event *event)
{
	const struct session_past *past = s->options.past;
	struct session_metric m = {.event = *event, .is_cpu_clock = !strcmp(event->metric, "cpu")};

	/* Hundreds of tracepoints of which most have no sample are no metrics. The first is the main one; of
	 * so many it is the first that happened. */
	if (!past || (!s->metrics.n && past->n_events <= EVENT_SPECS_MAX))
		m.id = trace_writer_metric(s->w, event->metric, event->unit);
	vec_push(&s->metrics, m);
	s->has_waits |= event->is_wait;
}

static void add_events(struct session *s)
{
	const struct perf_options *perf = &s->options.perf;
	const struct session_past *past = s->options.past;

	for (size_t i = 0; past && i < past->n_events; i++)
		add_event(s, &past->events[i]);
	for (size_t i = 0; i < perf->n_events; i++)
		add_event(s, &(struct session_event){perf->events[i].metric, perf->events[i].unit,
				     perf->events[i].is_wait});
}

struct session *session_new(
	struct trace_writer *w, struct perf_set *set, const struct session_options *options)
{
	struct session *s = mem_zalloc(sizeof(*s));

	s->w = w;
	s->set = set;
	s->options = *options;
	s->images = images_new();
	if (options->past)
		images_set_place(s->images, options->past->files);
	s->life = process_life_new(w, set, s->images, &options->life);
	s->life_stream = s->life->stream;
	s->processes = s->life->processes;
	s->modules = s->life->modules;
	add_events(s);
	if (kernel_events_are_wanted(set))
		s->kernel = kernel_events_new(w, set, s->images, options->perf.n_events > 0);
	if (!options->past)
		s->java = java_processes_new(&(struct java_world){.w = w,
			.life_stream = s->life_stream,
			.images = s->images,
			.processes = s->processes});
	s->stacks = user_stacks_new(&(struct user_stacks_world){.w = w,
		.life_stream = s->life_stream,
		.images = s->images,
		.modules = s->modules,
		.set = set,
		.java = s->java});
	if (options->hooks) {
		s->transcript =
			transcript_new(options->hooks, &(struct transcript_world){.w = w,
							       .images = s->images,
							       .processes = s->processes,
							       .modules = s->modules,
							       .life_stream = s->life_stream,
							       .stack = stack_at_entry,
							       .ctx = s});
		user_stacks_set_transcript(s->stacks, s->transcript);
	}
	s->last_time = options->past ? 0 : clock_mono_ns();
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->waiting.n; i++)
		collected_free(s->waiting.v[i]);
	vec_release(&s->waiting);
	transcript_free(s->transcript);
	if (s->java)
		java_processes_free(s->java);
	vec_release(&s->metrics);
	process_life_free(s->life);
	images_free(s->images);
	user_stacks_free(s->stacks);
	kernel_events_free(s->kernel);
	map_release(&s->cpu_streams);
	map_release(&s->leaving);
	free(s);
}

struct session_counts session_counts(const struct session *s)
{
	struct session_counts c = s->counts;
	struct user_stacks_counts stacks = user_stacks_counts(s->stacks);

	c.n_stacks = stacks.n;
	c.n_stacks_complete = stacks.n_complete;
	c.lost_are_mixed = s->kernel != NULL;
	c.n_processes = s->processes->all.n;
	c.n_threads = s->processes->threads.n;
	if (s->transcript) {
		struct transcript_counts hooked = transcript_counts(s->transcript);

		c.n_events = hooked.n_events;
		c.n_events_lost = hooked.n_lost;
		c.n_jumped = hooked.n_jumped;
	}
	return c;
}

uint64_t session_cpu_ns(const struct session *s)
{
	return process_life_cpu_ns(s->life);
}

bool session_hurries(const struct session *s)
{
	return s->java && java_processes_hurry(s->java);
}

char *session_unread_java(const struct session *s)
{
	return s->java ? java_processes_unread(s->java) : NULL;
}

char *session_unhooked(const struct session *s)
{
	return s->transcript ? transcript_unhooked(s->transcript) : NULL;
}

static uint32_t cpu_stream(struct session *s, uint32_t cpu)
{
	uint64_t *id = map_ensure(&s->cpu_streams, cpu, NULL);

	if (!*id)
		*id = trace_writer_stream(s->w, STREAM_KIND_CPU, cpu);
	return (uint32_t)*id;
}

/* --- start-up --------------------------------------------------------------------------- */

void session_add_running(struct session *s, pid_t pid)
{
	process_life_add_running(s->life, pid, s->last_time);
}

void session_add_launched(struct session *s, pid_t pid, const char *program)
{
	s->last_time = clock_mono_ns();
	process_life_add_launched(s->life, pid, program, s->last_time);
}

void session_started(struct session *s)
{
	process_life_started(s->life, s->last_time);
}

void session_begin_past(struct session *s, uint64_t time)
{
	s->last_time = time;
	process_life_started(s->life, time);
}

/* --- samples ---------------------------------------------------------------------------- */

static uint32_t define_kernel(struct session *s)
{
	struct trace_image image = {.kind = IMAGE_KIND_KERNEL, .bits = 64};
	struct image_identity id;
	uint32_t number;

	if (s->options.past)
		image_identity_copy(&id, s->options.past->kernel);
	else
		kernel_identity(&id);
	image.path = trace_writer_string(s->w, id.path);
	image.build_id_n = id.build_id_n;
	memcpy(image.build_id, id.build_id, sizeof(image.build_id));
	number = trace_writer_image(s->w, &image);
	trace_writer_image_facts(s->w,
		&(struct trace_image_facts){
			.image = number, .machine = id.machine, .content_hash = id.content_hash});
	image_identity_release(&id);
	return number;
}

static uint32_t kernel_frame(struct session *s, uint64_t addr, bool is_caller)
{
	if (!s->kernel_image)
		s->kernel_image = define_kernel(s);
	return trace_writer_frame(s->w, &(struct trace_frame){.kind = FRAME_KIND_KERNEL,
						.is_caller = is_caller,
						.image = s->kernel_image,
						.addr = addr});
}

/*
 * Whether the sample has a user stack at all. Two moments in the kernel have none, although there
 * are registers: in exec, once the old memory is gone and before the new program has run, and in
 * exit, once the memory has been given back.
 */
static bool has_user_stack(struct session *s, struct process *p, const struct collected_sample *c)
{
	if (!c->has_regs || !c->regs.r[CPU_REG_RIP])
		return false;
	p->is_32_bit = !c->regs.is_64;
	if (!c->in_kernel) {
		p->in_exec = false;
		return true;
	}
	if (p->in_exec && !addrspace_find(p->space, (struct vaddr){c->regs.r[CPU_REG_RIP]})) {
		s->n_exec_stacks++;
		return false;
	}
	if (!c->stack.n) {
		s->n_gone_stacks += !c->n_user;
		return false;
	}
	return true;
}

static uint32_t stack_at_entry(void *ctx, struct thread *thread, const struct cpu_regs *regs,
	struct span bytes, uint64_t time)
{
	struct collected r = {.time = time,
		.kind = COLLECTED_SAMPLE,
		.pid = thread->process->pid,
		.tid = thread->tid,
		.sample = {.has_regs = true, .regs = *regs, .stack = bytes}};

	return user_stacks_intern(((struct session *)ctx)->stacks, &r, thread, 0);
}

static uint64_t event_of(const struct session *s, uint64_t id)
{
	const uint64_t *event_i = map_find(&s->set->event_of_id, id);

	return event_i ? *event_i : 0;
}

static uint32_t metric_of(struct session *s, uint64_t id)
{
	struct session_metric *m = &s->metrics.v[event_of(s, id)];

	if (!m->id)
		m->id = trace_writer_metric(s->w, m->event.metric, m->event.unit);
	return m->id;
}

static bool is_wait(const struct session *s, uint64_t id)
{
	return s->has_waits && s->metrics.v[event_of(s, id)].event.is_wait;
}

/* The thread runs again, or the recording is over. */
static void end_wait(struct session *s, struct thread *thread, uint32_t stream, uint64_t time)
{
	if (thread->wait_stack && time > thread->wait_since)
		trace_writer_sample(s->w, stream, time,
			&(struct trace_sample){.thread = thread->trace_id,
				.stack = thread->wait_stack,
				.metric = thread->wait_metric,
				.weight = time - thread->wait_since});
	thread->wait_stack = 0;
}

static void process_tick(struct session *s, const struct collected *r, struct thread *thread)
{
	uint32_t frame = r->sample.in_kernel
				 ? kernel_frame(s, r->sample.ip, false)
				 : user_stacks_tick(s->stacks, thread, r->sample.ip, r->time);

	trace_writer_numbers(s->w, cpu_stream(s, r->cpu), r->time, RECORD_MAJOR_THREAD,
		RECORD_THREAD_TICK,
		(uint64_t[]){thread->trace_id, frame, metric_of(s, r->sample.id), r->sample.period},
		4);
}

static void process_sample(struct session *s, struct collected *r)
{
	const struct collected_sample *c = &r->sample;
	struct thread *thread = processes_thread(s->processes, r->pid, r->tid, r->time);
	uint32_t stack = 0;

	if (!s->counts.n_samples++)
		s->counts.first_sample_ns = r->time;
	s->counts.last_sample_ns = r->time;
	r->sample.period = perf_set_weight(s->set, c->period, r->time);
	if (s->metrics.v[event_of(s, c->id)].is_cpu_clock)
		s->counts.sampled_ns += c->period;
	if (s->options.perf.pc_only || (s->options.past && c->is_bare)) {
		process_tick(s, r, thread);
		return;
	}
	if (has_user_stack(s, thread->process, c) && (c->stack.n || !s->options.past))
		stack = user_stacks_intern(s->stacks, r, thread, stack);
	else if (c->n_user || (s->options.past && c->cpu_mode == PERF_RECORD_MISC_USER))
		stack = user_stacks_intern_chain(s->stacks, r, thread);
	for (uint32_t i = c->n_kernel; i--;)
		stack = trace_writer_stack(s->w, stack, kernel_frame(s, c->kernel[i], i > 0));
	if (!stack) /* not even a call chain: the program counter alone */
		stack = trace_writer_stack(s->w, 0, kernel_frame(s, c->ip, false));
	if (is_wait(s, c->id)) {
		/* With -a the last time that a thread leaves the CPU is seen, too; it may have no
		 * number any more then. */
		thread->wait_stack = thread->has_ended || r->tid == UINT32_MAX ? 0 : stack;
		thread->wait_metric = metric_of(s, c->id);
		thread->wait_since = r->time;
		return;
	}
	trace_writer_sample(s->w, cpu_stream(s, r->cpu), r->time,
		&(struct trace_sample){.thread = thread->trace_id,
			.stack = stack,
			.metric = metric_of(s, c->id),
			.weight = c->period});
}

/* --- records in order ------------------------------------------------------------------- */

static void process_switch(struct session *s, const struct collected *r)
{
	struct thread *thread = processes_thread(s->processes, r->pid, r->tid, r->time);

	trace_writer_numbers(s->w, cpu_stream(s, r->cpu), r->time, RECORD_MAJOR_SWITCH,
		r->sw.is_out ? RECORD_SWITCH_OUT : RECORD_SWITCH_IN,
		(uint64_t[]){thread->trace_id, r->sw.is_preempted}, r->sw.is_out ? 2 : 1);
	if (!r->sw.is_out)
		end_wait(s, thread, cpu_stream(s, r->cpu), r->time);
}

static void process_kernel_event(struct session *s, const struct collected *r)
{
	if (!kernel_event_is_of_thread(r->kernel.event))
		kernel_events_of_cpu(s->kernel, cpu_stream(s, r->cpu), r);
	else
		kernel_events_of_thread(
			s->kernel, processes_thread(s->processes, r->pid, r->tid, r->time), r);
}

/* The call that a thread ends in ends with it. An exec ends the functions that are open around it,
 * so it must not be open any longer itself. */
static void end_system_call(struct session *s, const struct collected *r)
{
	bool is_exec = s->transcript && r->kind == COLLECTED_COMM && r->comm.is_exec;

	if (r->kind == COLLECTED_EXIT || is_exec)
		kernel_events_thread_ended(s->kernel,
			processes_thread(s->processes, r->pid, r->tid, r->time), r->time);
}

/* All that is recorded of a CPU goes through one ring, and the kernel does not say what it lost: it is
 * booked as what it certainly is. */
static void process_lost(struct session *s, const struct collected *r)
{
	bool has_samples = s->options.perf.n_events > 0;

	s->counts.n_lost += r->lost.n;
	if (s->kernel && has_samples)
		trace_writer_loss(s->w, s->life_stream, r->time, RECORD_LOSS_RECORDS, r->lost.n,
			"the kernel's ring was full: samples or kernel events, it does not say which");
	else
		trace_writer_loss(s->w, s->life_stream, r->time,
			s->kernel ? RECORD_LOSS_EVENTS : RECORD_LOSS_SAMPLES, r->lost.n,
			"the kernel's ring was full");
}

/* Before a record is processed: the function events of its thread that came before it. */
static void advance_events(struct session *s, const struct collected *r)
{
	transcript_advance(s->transcript, r->pid, r->tid, r->time);
	if (r->kind == COLLECTED_COMM && r->comm.is_exec) {
		transcript_exec_trees(s->transcript, r->pid, r->time);
		transcript_exec(s->transcript, r->pid, r->time);
		transcript_program(s->transcript, r->pid, r->comm.name, r->time);
	} else if (r->kind == COLLECTED_MMAP && (r->mmap.mapping.prot & PROT_EXEC)) {
		transcript_mapped(s->transcript, r->pid, r->mmap.mapping.path);
	} else if (r->kind == COLLECTED_FORK) {
		transcript_advance(s->transcript, r->fork.parent_pid, r->fork.parent_tid, r->time);
		transcript_fork(s->transcript, &(struct thread_id){r->pid, r->tid},
			&(struct thread_id){r->fork.parent_pid, r->fork.parent_tid}, r->time);
	} else if (r->kind == COLLECTED_EXIT) {
		const struct process *p = processes_find(s->processes, r->pid);

		transcript_end_tree(s->transcript, r->pid, r->tid, r->time);
		transcript_exit(s->transcript, r->pid, r->tid, r->time, p && p->n_live <= 1);
		if (p && p->n_live <= 1)
			transcript_program_ends(s->transcript, r->pid, r->time);
	}
}

/* Losses have no process. The kernel's events are of the tasks that are recorded, but under the ids of
 * whatever namespace made the task. */
static bool is_foreign(struct session *s, const struct collected *r)
{
	if (perf_set_is_of_cpus(s->set) && process_life_goes_on(s->life, r))
		return true;
	if (!s->set->filter || r->kind == COLLECTED_LOST || r->kind == COLLECTED_THROTTLE ||
		process_life_concerns(s->life, r))
		return false;
	s->n_nameless += r->kind == COLLECTED_KERNEL;
	return true;
}

/* A thread loses its number a little before it leaves its CPU for good: it is the one whose end was
 * reported there last. */
static void name_leaving(struct session *s, struct collected *r)
{
	uint64_t *leaving = map_ensure(&s->leaving, r->cpu, NULL);

	if (r->kind == COLLECTED_EXIT)
		*leaving = (uint64_t)r->pid << 32 | r->tid;
	if (r->tid != UINT32_MAX || !*leaving || r->kind == COLLECTED_MMAP)
		return;
	r->pid = (uint32_t)(*leaving >> 32);
	r->tid = (uint32_t)*leaving;
}

/* A program that the record ends may be a JVM, a thread that it names may be one of a JVM. */
static void tell_java(struct session *s, const struct collected *r)
{
	bool is_exec = r->kind == COLLECTED_COMM && r->comm.is_exec;
	bool is_process = r->kind == COLLECTED_FORK && r->pid != r->fork.parent_pid;
	struct process *p = is_process || r->kind == COLLECTED_EXIT || r->kind == COLLECTED_COMM
				    ? processes_find(s->processes, r->pid)
				    : NULL;

	if (!p || r->time < p->read_ns)
		return;
	if (is_exec)
		java_processes_exec(s->java, p);
	else if (r->kind == COLLECTED_COMM)
		java_processes_guess_role(s->java, p, r->tid, r->comm.name);
	else if (is_process || p->n_live <= 1)
		java_processes_exit(s->java, p);
}

static void process_record(struct session *s, struct collected *r)
{
	name_leaving(s, r);
	if (is_foreign(s, r))
		return;
	if (r->time > s->last_time)
		s->last_time = r->time;
	if (s->kernel)
		end_system_call(s, r);
	if (s->transcript)
		advance_events(s, r);
	if (s->java)
		tell_java(s, r);
	switch (r->kind) {
	case COLLECTED_SAMPLE:
		process_sample(s, r);
		break;
	case COLLECTED_KERNEL:
		process_kernel_event(s, r);
		break;
	case COLLECTED_SWITCH:
		process_switch(s, r);
		break;
	case COLLECTED_LOST:
		process_lost(s, r);
		break;
	case COLLECTED_THROTTLE:
		s->n_throttled++;
		break;
	default:
		process_life_apply(s->life, r);
		break;
	}
}

/* In the order of arrival within a time: a ring has its records in the order in which they happened. */
static int by_time(const void *a, const void *b)
{
	const struct collected *x = *(struct collected *const *)a;
	const struct collected *y = *(struct collected *const *)b;

	return ORDER(x->time, y->time) ?: ORDER(x->order, y->order); /* qsort need not keep it */
}

static void process_until(struct session *s, uint64_t time)
{
	size_t n = 0;

	qsort(s->waiting.v, s->waiting.n, sizeof(*s->waiting.v), by_time);
	while (n < s->waiting.n && s->waiting.v[n]->time <= time) {
		process_record(s, s->waiting.v[n]);
		collected_free(s->waiting.v[n++]);
	}
	memmove(s->waiting.v, s->waiting.v + n, (s->waiting.n - n) * sizeof(*s->waiting.v));
	s->waiting.n -= n;
}

void session_add(struct session *s, struct collected_list *list)
{
	uint64_t until = list->complete_until;

	for (size_t i = 0; i < list->items.n; i++) {
		list->items.v[i]->order = s->n_arrived++;
		vec_push(&s->waiting, list->items.v[i]);
	}
	list->items.n = 0;
	if (s->transcript) {
		uint64_t taken = transcript_take(s->transcript);

		until = taken < until ? taken : until;
	}
	if (s->waiting.n) {
		if (s->java)
			java_processes_begin_batch(s->java, s->last_time);
		process_until(s, until);
	}
	if (s->transcript)
		transcript_advance_all(s->transcript, until);
}

size_t session_waiting_bytes(const struct session *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->waiting.n; i++)
		n += s->waiting.v[i]->bytes;
	return n;
}

/* --- the end ---------------------------------------------------------------------------- */

static void write_notes(struct session *s)
{
	const struct {
		uint64_t n;
		const char *text;
	} notes[] = {
		{s->n_exec_stacks, "sample inside exec: no user stack at that moment"},
		{s->n_gone_stacks, "sample inside exit: user memory already given back"},
		{s->n_throttled, "the kernel throttled sampling"},
		{user_stacks_counts(s->stacks).n_in_hooks,
			"sample inside a hook: charged to no function"},
		{s->n_nameless, "event of the kernel in a pid namespace, not counted: its ids mean "
				"nothing outside"},
		{task_filter_n_left_out(s->set->filter),
			"thread without samples: too many at a time"},
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (notes[i].n)
			trace_writer_loss(s->w, s->life_stream, s->last_time, RECORD_LOSS_NOTE,
				notes[i].n, notes[i].text);
	if (s->java)
		java_processes_write_notes(s->java, s->last_time);
	if (s->kernel)
		kernel_events_write_notes(s->kernel, s->life_stream, s->last_time);
}

void session_write_trees(struct session *s)
{
	if (s->transcript)
		transcript_write_trees(s->transcript, s->last_time);
}

void session_stopped(struct session *s)
{
	s->stopped_ns = clock_mono_ns();
	process_life_stopped(s->life);
	java_processes_stopped(s->java, s->last_time);
}

void session_finish(struct session *s, uint64_t n_completed)
{
	if (s->waiting.n)
		process_until(s, UINT64_MAX);
	if (s->stopped_ns > s->last_time)
		s->last_time = s->stopped_ns;
	for (size_t i = 0; s->has_waits && i < s->processes->threads.n; i++)
		end_wait(s, s->processes->threads.v[i], cpu_stream(s, 0), s->last_time);
	trace_writer_numbers(s->w, s->life_stream, s->last_time, RECORD_MAJOR_PHASE,
		RECORD_PHASE_ENDED, NULL, 0);
	if (s->transcript) {
		transcript_finish_trees(s->transcript, s->last_time);
		transcript_finish(s->transcript, s->last_time);
	}
	process_life_finish(s->life, s->last_time);
	write_notes(s);
	if (n_completed)
		host_fact_number(s->w, "n_deep_stacks", n_completed);
	images_drop_changed(s->images);
	images_write_facts(s->images, s->w);
	name_frames(s->w, s->images, s->kernel_image,
		s->options.past ? s->options.past->names : NULL, NULL);
}
