/* SPDX-License-Identifier: MIT */
/*
 * What the translator keeps in the memory of its program, read from outside. Whatever is in there may be
 * wrong: the program can write where it likes. So every number is bounded, and what does not fit together
 * is as if it were not there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/proc.h"
#include "translate/tracer.h"

#define BLOCKS_MAX	 (1u << 24)
#define EVENTS_BYTES_MAX (64u << 20)
#define ROWS_AT_ONCE	 4096u
#define LARGE_BYTES	 (16u << 10)

/* Large parts take half the time by process_vm_readv(2), which reads nothing of a process whose first thread has
 * ended. */
bool program_read(const struct traced_program *p, uint64_t addr, void *to, size_t n)
{
	if (n >= LARGE_BYTES && proc_read_memory(p->pid, addr, to, n))
		return true;
	return p->memory_fd >= 0 && pread(p->memory_fd, to, n, (off_t)addr) == (ssize_t)n;
}

bool program_write(const struct traced_program *p, uint64_t addr, const void *from, size_t n)
{
	return p->memory_fd >= 0 && pwrite(p->memory_fd, from, n, (off_t)addr) == (ssize_t)n;
}

bool program_header(const struct traced_program *p, struct translate_header *header)
{
	return p->place.base && program_read(p, p->place.header, header, sizeof(*header)) &&
	       header->magic == TRANSLATE_MAGIC;
}

/* --- areas ------------------------------------------------------------------------------------- */

static bool read_area(const struct traced_thread *t, uint64_t addr, struct translate_thread *area)
{
	return addr && program_read(t->program, addr, area, sizeof(*area)) && area->self == addr &&
	       area->tid == (uint32_t)t->own_tid && area->state != TRANSLATE_THREAD_FREE;
}

static bool search_area(struct traced_thread *t, struct translate_thread *area)
{
	struct translate_header header;
	uint64_t *rows;
	bool is_found = false;

	if (!program_header(t->program, &header) || !header.n_threads ||
		header.n_threads > TRANSLATE_THREADS_MAX)
		return false;
	rows = mem_calloc(header.n_threads, sizeof(*rows));
	if (program_read(t->program, header.threads, rows, header.n_threads * sizeof(*rows)))
		for (uint32_t i = 0; !is_found && i < header.n_threads; i++) {
			is_found = read_area(t, rows[i], area);
			t->area = is_found ? rows[i] : 0;
		}
	free(rows);
	return is_found;
}

bool thread_area(struct traced_thread *t, uint64_t gs_base, struct translate_thread *area)
{
	if (!t->is_translated)
		return false;
	if (read_area(t, gs_base, area)) {
		t->area = gs_base;
		return true;
	}
	return read_area(t, t->area, area) || search_area(t, area);
}

void thread_free_area(struct traced_thread *t)
{
	uint32_t state = TRANSLATE_THREAD_FREE;

	if (t->area)
		program_write(t->program, t->area + offsetof(struct translate_thread, state),
			&state, sizeof(state));
	t->area = 0;
}

/* --- blocks ------------------------------------------------------------------------------------ */

/* Up to number `end` of a table of so many. */
static void read_blocks(struct translate_tracer *s, struct traced_program *p,
	const struct translate_header *header, uint32_t first, uint32_t end)
{
	struct translate_block *rows = mem_calloc(ROWS_AT_ONCE, sizeof(*rows));

	while (first < end) {
		uint32_t n = end - first < ROWS_AT_ONCE ? end - first : ROWS_AT_ONCE;

		if (!program_read(
			    p, header->blocks + first * sizeof(*rows), rows, n * sizeof(*rows)))
			break;
		s->work->blocks(s->ctx, p, first, rows, n);
		if (p->n_rows < first + n)
			p->n_rows = first + n;
		first += n;
	}
	free(rows);
}

void program_blocks(struct translate_tracer *s, struct traced_program *p, bool all)
{
	struct translate_header header;

	if (program_header(p, &header) && header.n_blocks <= BLOCKS_MAX)
		read_blocks(s, p, &header, all ? 0 : p->n_rows, header.n_blocks);
}

bool program_share_blocks(
	struct translate_tracer *s, struct traced_program *parent, struct traced_program *child)
{
	struct translate_header header;

	if (!program_header(child, &header) || header.n_blocks > BLOCKS_MAX ||
		header.n_blocks < parent->n_rows)
		return false;
	read_blocks(s, parent, &header, parent->n_rows, header.n_blocks);
	child->n_rows = parent->n_rows;
	return true;
}

/* --- threads ----------------------------------------------------------------------------------- */

bool thread_exchange_buffers(struct traced_thread *t, const struct translate_thread *area)
{
	const uint64_t next[] = {area->spare, area->spare + (area->events_end - area->events),
		area->spare, area->events};

	return program_write(t->program, t->area + offsetof(struct translate_thread, events), next,
		sizeof(next));
}

size_t thread_copy_events(
	struct translate_tracer *s, struct traced_thread *t, const struct translate_thread *area)
{
	uint64_t bytes = area->events_at - area->events;

	if (area->events_at < area->events || area->events_at > area->events_end ||
		bytes > EVENTS_BYTES_MAX || bytes % s->work->unit || bytes <= t->n_taken)
		return 0;
	bytes -= t->n_taken;
	vec_reserve(&s->events, bytes);
	if (program_read(t->program, area->events + t->n_taken, s->events.v, bytes))
		return bytes;
	s->work->tell(s->ctx, t->program, true, 1, "a buffer of a thread could not be read");
	return 0;
}

void thread_take_events(struct translate_tracer *s, struct traced_thread *t, size_t n)
{
	if (n)
		s->work->take(s->ctx, t, s->events.v, n);
}

static void tell_lost_buffers(
	struct translate_tracer *s, struct traced_thread *t, const struct translate_thread *area)
{
	char text[128];

	snprintf(text, sizeof(text), "buffers of %s that nobody has read", s->work->unread);
	if (area->n_lost_buffers > t->n_lost_buffers)
		s->work->tell(
			s->ctx, t->program, true, area->n_lost_buffers - t->n_lost_buffers, text);
	t->n_lost_buffers = area->n_lost_buffers;
}

/* Its area is then as it was read. */
static bool read_events(struct translate_tracer *s, struct traced_thread *t, uint64_t gs_base,
	struct translate_thread *area, size_t *n)
{
	if (t->program->is_inherited || !thread_area(t, gs_base, area))
		return false;
	*n = thread_copy_events(s, t, area);
	if (*n || t->n_taken)
		program_write(t->program, t->area + offsetof(struct translate_thread, events_at),
			&area->events, sizeof(area->events));
	t->n_taken = 0;
	return true;
}

void thread_read_events(struct translate_tracer *s, struct traced_thread *t, uint64_t gs_base)
{
	struct translate_thread area;
	size_t n;

	if (read_events(s, t, gs_base, &area, &n))
		thread_take_events(s, t, n);
}

void thread_peek_events(struct translate_tracer *s, struct traced_thread *t)
{
	struct translate_thread area;
	size_t n;

	if (t->program->is_inherited || !thread_area(t, 0, &area))
		return;
	n = thread_copy_events(s, t, &area);
	t->n_taken += n;
	program_blocks(s, t->program, false);
	thread_take_events(s, t, n);
}

bool thread_read(struct translate_tracer *s, struct traced_thread *t, uint64_t gs_base)
{
	struct translate_thread area;
	size_t n;

	if (!read_events(s, t, gs_base, &area, &n))
		return false;
	program_blocks(s, t->program, false);
	thread_take_events(s, t, n);
	tell_lost_buffers(s, t, &area);
	s->work->look(s->ctx, t, &area);
	return true;
}
