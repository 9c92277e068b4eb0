/* SPDX-License-Identifier: MIT */
/*
 * How calls end:
 * - exec: the kernel reports its end under the number that the new program's kind has for it, so
 * the end of an exec is recognised by its beginning.
 * - rt_sigreturn and sigreturn: their end has the number -1.
 * - exit and exit_group do not end; the thread does.
 * - clone and fork end twice, once in the child, where nothing was entered.
 * - A call that seccomp or a tracer stops has an end only.
 */
#include "record/kernel_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "process/syscall_names.h"

#define CPUS_MAX	    4096
#define INTERRUPT_DEPTH_MAX 8
#define X32_BIT		    0x40000000

/* Levels of interrupt records; docs/format/records.md. */
#define LEVEL_VECTOR 0x100
#define LEVEL_IRQ    0x1000

/* A thread as it goes in and out of system calls. */
struct thread_calls {
	uint32_t stream;     /* 0 = none yet */
	uint32_t open_frame; /* of the call it is in; 0 = it is in none */
	int64_t open_number;
	bool open_is_exec;
	bool is_32_bit;
	uint64_t generation; /* of the mappings by which is_32_bit was set */
};

struct cpu_interrupts {
	uint32_t levels[INTERRUPT_DEPTH_MAX]; /* that it is in, outermost first */
	size_t n;
};

struct kernel_events {
	struct trace_writer *w;
	struct images *images;
	VEC(struct thread_calls) threads;	     /* by the thread's id in the trace */
	VEC(struct cpu_interrupts) cpus;	     /* by number */
	uint32_t image;				     /* "[system calls]" */
	uint32_t frames[2][SYSCALL_NUMBERS_MAX + 1]; /* by 32-bit?, number; the last: any other */
	uint32_t faults;			     /* metric */
	uint64_t n_calls_cut, n_interrupts_cut;
};

bool kernel_events_are_wanted(const struct perf_set *set)
{
	for (int i = 0; i < KERNEL_N_EVENTS; i++)
		if (set->kernel[i].is_on && i != KERNEL_EVENT_MUNMAP)
			return true;
	return false;
}

bool kernel_event_is_of_thread(enum kernel_event event)
{
	return event == KERNEL_EVENT_SYS_ENTER || event == KERNEL_EVENT_SYS_EXIT ||
	       event == KERNEL_EVENT_FAULT;
}

struct kernel_events *kernel_events_new(
	struct trace_writer *w, const struct perf_set *set, struct images *images, bool has_samples)
{
	struct kernel_events *k = mem_zalloc(sizeof(*k));

	k->w = w;
	k->images = images;
	/* What passes between the events. It stands still while a thread is switched out, if that
	 * is recorded. */
	if (set->kernel[KERNEL_EVENT_SYS_ENTER].is_on && !has_samples)
		trace_writer_metric(w, set->has_switch ? "cpu" : "wall", "ns");
	if (set->kernel[KERNEL_EVENT_FAULT].is_on)
		k->faults = trace_writer_metric(w, "faults", "1");
	return k;
}

void kernel_events_free(struct kernel_events *k)
{
	if (!k)
		return;
	vec_release(&k->threads);
	vec_release(&k->cpus);
	free(k);
}

/* --- system calls and faults ------------------------------------------------------------ */

static struct thread_calls *calls_of(struct kernel_events *k, const struct thread *thread)
{
	struct thread_calls *calls;

	vec_ensure_zero(&k->threads, (size_t)thread->trace_id + 1);
	calls = &k->threads.v[thread->trace_id];
	if (!calls->stream)
		calls->stream = trace_writer_stream(k->w, STREAM_KIND_THREAD, thread->trace_id);
	return calls;
}

/* By the programs and libraries that the process has mapped, which are all of one kind; it is known
 * before any sample is. */
static bool is_32_bit(struct kernel_events *k, struct thread_calls *calls, const struct process *p)
{
	uint64_t generation = addrspace_generation(p->space);

	if (calls->generation == generation)
		return calls->is_32_bit;
	for (size_t i = 0; i < addrspace_n(p->space); i++) {
		const struct image *image =
			images_get(k->images, addrspace_get(p->space, i)->image);

		if (image->kind != IMAGE_KIND_ELF || !image->has_elf)
			continue;
		calls->generation = generation;
		calls->is_32_bit = !image->elf.is_64;
		return calls->is_32_bit;
	}
	return p->is_32_bit;
}

static uint32_t call_frame(struct kernel_events *k, bool is_32, int64_t number)
{
	bool is_known = number >= 0 && number < SYSCALL_NUMBERS_MAX;
	uint32_t *frame = &k->frames[is_32][is_known ? number : SYSCALL_NUMBERS_MAX];
	const char *name = syscall_name(is_32, number);
	char made_up[32] = "syscall_unknown";

	if (*frame)
		return *frame;
	if (!k->image)
		k->image = trace_writer_image(
			k->w, &(struct trace_image){.kind = IMAGE_KIND_OTHER,
				      .path = trace_writer_string(k->w, "[system calls]")});
	if (is_known)
		snprintf(made_up, sizeof(made_up), "syscall_%d", (int)number);
	*frame = trace_writer_frame(
		k->w, &(struct trace_frame){.kind = FRAME_KIND_KERNEL,
			      .image = k->image,
			      .name = trace_writer_string(k->w, name ? name : made_up)});
	return *frame;
}

static void put_routine(
	struct kernel_events *k, const struct thread_calls *calls, uint64_t time, bool is_exit)
{
	trace_writer_numbers(k->w, calls->stream, time, RECORD_MAJOR_ROUTINE,
		is_exit ? RECORD_ROUTINE_ENTER + RECORD_MINOR_EXIT : RECORD_ROUTINE_ENTER,
		(uint64_t[]){calls->open_frame}, 1);
}

static void leave(struct kernel_events *k, struct thread_calls *calls, uint64_t time)
{
	put_routine(k, calls, time, true);
	calls->open_frame = 0;
}

static bool is_exec(bool is_32, int64_t number)
{
	const char *name = syscall_name(is_32, number);

	return name && !strncmp(name, "execve", 6);
}

static void enter_call(
	struct kernel_events *k, const struct thread *thread, const struct collected *r)
{
	struct thread_calls *calls = calls_of(k, thread);
	bool is_32 = is_32_bit(k, calls, thread->process);
	int64_t number = is_32 ? r->kernel.number : r->kernel.number & ~(int64_t)X32_BIT;

	if (calls->open_frame) { /* its end is lost */
		k->n_calls_cut++;
		leave(k, calls, r->time);
	}
	calls->open_frame = call_frame(k, is_32, number);
	calls->open_number = r->kernel.number;
	calls->open_is_exec = is_exec(is_32, number);
	put_routine(k, calls, r->time, false);
}

static void leave_call(
	struct kernel_events *k, const struct thread *thread, const struct collected *r)
{
	struct thread_calls *calls = calls_of(k, thread);

	if (calls->open_frame && (calls->open_number == r->kernel.number || calls->open_is_exec ||
					 r->kernel.number == -1))
		leave(k, calls, r->time);
}

void kernel_events_of_thread(
	struct kernel_events *k, const struct thread *thread, const struct collected *r)
{
	if (r->kernel.event == KERNEL_EVENT_SYS_ENTER)
		enter_call(k, thread, r);
	else if (r->kernel.event == KERNEL_EVENT_SYS_EXIT)
		leave_call(k, thread, r);
	else
		trace_writer_numbers(k->w, calls_of(k, thread)->stream, r->time,
			RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD, (uint64_t[]){k->faults, 1}, 2);
}

void kernel_events_thread_ended(struct kernel_events *k, const struct thread *thread, uint64_t time)
{
	if (thread->trace_id < k->threads.n && k->threads.v[thread->trace_id].open_frame)
		leave(k, &k->threads.v[thread->trace_id], time);
}

/* --- interrupts ------------------------------------------------------------------------- */

/* The payload is the depth, 1 for what interrupts a thread. */
static void put_interrupt(struct kernel_events *k, uint32_t stream, uint64_t time, uint32_t minor,
	const struct cpu_interrupts *cpu)
{
	trace_writer_numbers(
		k->w, stream, time, RECORD_MAJOR_INTERRUPT, minor, (uint64_t[]){cpu->n}, 1);
}

static void end_interrupt(
	struct kernel_events *k, uint32_t stream, uint64_t time, struct cpu_interrupts *cpu)
{
	put_interrupt(k, stream, time, cpu->levels[cpu->n - 1] + 1 + RECORD_MINOR_EXIT, cpu);
	cpu->n--;
}

static uint32_t level_of(const struct collected *r)
{
	uint32_t number = (uint32_t)r->kernel.number & 0xffffff;

	switch (r->kernel.event) {
	case KERNEL_EVENT_SOFTIRQ_ENTRY:
	case KERNEL_EVENT_SOFTIRQ_EXIT:
		return number & 0xff;
	case KERNEL_EVENT_TIMER_ENTRY:
	case KERNEL_EVENT_TIMER_EXIT:
		return LEVEL_VECTOR + (number & 0xff);
	default:
		return LEVEL_IRQ + number;
	}
}

static bool is_entry(enum kernel_event event)
{
	return event == KERNEL_EVENT_IRQ_ENTRY || event == KERNEL_EVENT_SOFTIRQ_ENTRY ||
	       event == KERNEL_EVENT_TIMER_ENTRY;
}

/*
 * An interrupt of one level never interrupts itself: when it seems to, ends are missing, and those
 * levels end here.
 */
void kernel_events_of_cpu(struct kernel_events *k, uint32_t stream, const struct collected *r)
{
	struct cpu_interrupts *cpu;
	uint32_t level = level_of(r);
	size_t i;

	if (r->cpu >= CPUS_MAX)
		return;
	vec_ensure_zero(&k->cpus, (size_t)r->cpu + 1);
	cpu = &k->cpus.v[r->cpu];
	for (i = 0; i < cpu->n && cpu->levels[i] != level;)
		i++;
	if (is_entry(r->kernel.event)) {
		for (; cpu->n > i || cpu->n == INTERRUPT_DEPTH_MAX; k->n_interrupts_cut++)
			end_interrupt(k, stream, r->time, cpu);
		cpu->levels[cpu->n++] = level;
		put_interrupt(k, stream, r->time, level + 1, cpu);
	} else if (i < cpu->n) {
		for (; cpu->n > i + 1; k->n_interrupts_cut++)
			end_interrupt(k, stream, r->time, cpu);
		end_interrupt(k, stream, r->time, cpu);
	}
}

void kernel_events_write_notes(struct kernel_events *k, uint32_t life_stream, uint64_t time)
{
	if (k->n_calls_cut)
		trace_writer_loss(k->w, life_stream, time, RECORD_LOSS_NOTE, k->n_calls_cut,
			"the end of a system call is not known: it ends where the next begins");
	if (k->n_interrupts_cut)
		trace_writer_loss(k->w, life_stream, time, RECORD_LOSS_NOTE, k->n_interrupts_cut,
			"the end of an interrupt is not known: it ends with the next record of its CPU");
}
