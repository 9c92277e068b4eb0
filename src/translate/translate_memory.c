/* SPDX-License-Identifier: MIT */
/*
 * What the translator keeps in the memory of its program, read from outside. Whatever is in there may be
 * wrong: the program can write where it likes. So every number is bounded, and what does not fit together
 * is as if it were not there.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/proc.h"
#include "translate/session_internal.h"

#define BLOCKS_MAX	 (1u << 24)
#define EVENTS_BYTES_MAX (64u << 20)
#define ROWS_AT_ONCE	 4096u
#define CODE_BYTES_MAX	 (64u << 10)
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

static bool read_header(const struct traced_program *p, struct translate_header *header)
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

	if (!read_header(t->program, &header) || !header.n_threads ||
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

static bool is_in_file(const struct traced_program *p, uint64_t pc)
{
	for (size_t i = p->files.n; i--;)
		if (pc >= p->files.v[i].start && pc < p->files.v[i].end)
			return true;
	return false;
}

/* Code that is in no file is kept, since it may be gone when somebody asks. */
static void keep_code(struct translate_session *s, struct traced_program *p, uint32_t first,
	const struct translate_block *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t bytes = rows[i].bytes;

		if (is_in_file(p, rows[i].pc) || !bytes || bytes > CODE_BYTES_MAX)
			continue;
		buf_reset(&s->copied);
		if (program_read(p, rows[i].code, buf_put_zeros(&s->copied, bytes), bytes))
			counts_code(p->counts, first + (uint32_t)i, s->copied.p, bytes);
	}
}

/* Up to number `end` of a table of so many. */
static void read_blocks(struct translate_session *s, struct traced_program *p,
	const struct translate_header *header, uint32_t first, uint32_t end)
{
	struct translate_block *rows = mem_calloc(ROWS_AT_ONCE, sizeof(*rows));

	while (first < end) {
		uint32_t n = end - first < ROWS_AT_ONCE ? end - first : ROWS_AT_ONCE;
		uint32_t n_known = p->n_rows > first ? p->n_rows - first : 0;

		if (!program_read(
			    p, header->blocks + first * sizeof(*rows), rows, n * sizeof(*rows)))
			break;
		counts_blocks(p->counts, first, rows, n);
		if (n_known < n) {
			keep_code(s, p, first + n_known, rows + n_known, n - n_known);
			p->n_rows = first + n;
		}
		first += n;
	}
	free(rows);
}

void program_blocks(struct translate_session *s, struct traced_program *p, bool all)
{
	struct translate_header header;

	if (read_header(p, &header) && header.n_blocks <= BLOCKS_MAX)
		read_blocks(s, p, &header, all ? 0 : p->n_rows, header.n_blocks);
}

bool program_share_blocks(
	struct translate_session *s, struct traced_program *parent, struct traced_program *child)
{
	struct translate_header header;

	if (!read_header(child, &header) || header.n_blocks > BLOCKS_MAX ||
		header.n_blocks < parent->n_rows)
		return false;
	read_blocks(s, parent, &header, parent->n_rows, header.n_blocks);
	child->n_rows = parent->n_rows;
	return true;
}

/* --- threads ----------------------------------------------------------------------------------- */

size_t thread_copy_events(struct translate_session *s, const struct traced_thread *t,
	const struct translate_thread *area)
{
	uint64_t bytes = area->events_at - area->events;

	buf_reset(&s->events);
	if (area->events_at < area->events || area->events_at > area->events_end ||
		bytes > EVENTS_BYTES_MAX || bytes % TRANSLATE_EVENT_BYTES)
		return 0;
	if (bytes &&
		!program_read(t->program, area->events, buf_put_zeros(&s->events, bytes), bytes))
		return 0;
	return bytes / TRANSLATE_EVENT_BYTES;
}

void thread_take_events(struct translate_session *s, const struct traced_thread *t, size_t n)
{
	if (n)
		counts_events(t->program->counts, t->number, t->tid,
			(const struct translate_event *)s->events.p, n);
}

static void take_counters(
	struct translate_session *s, struct traced_thread *t, const struct translate_thread *area)
{
	struct traced_program *p = t->program;
	size_t bytes = p->n_rows * sizeof(uint64_t);
	char name[64];

	buf_reset(&s->copied);
	if (bytes && !program_read(p, area->counters, buf_put_zeros(&s->copied, bytes), bytes)) {
		counts_tell(p->counts, true, 1, "the counters of a thread could not be read");
		return;
	}
	proc_name(p->pid, t->tid, name, sizeof(name));
	counts_thread(p->counts, t->number, t->tid, name, area->cost, (const uint64_t *)s->copied.p,
		p->n_rows);
}

static void tell_lost_buffers(struct traced_thread *t, const struct translate_thread *area)
{
	if (area->n_lost_buffers > t->n_lost_buffers)
		counts_tell(t->program->counts, true, area->n_lost_buffers - t->n_lost_buffers,
			"buffers of calls and returns that nobody has read");
	t->n_lost_buffers = area->n_lost_buffers;
}

/* Its area is then as it was read. */
static bool read_events(struct translate_session *s, struct traced_thread *t, uint64_t gs_base,
	struct translate_thread *area, size_t *n)
{
	if (t->program->is_inherited || !thread_area(t, gs_base, area))
		return false;
	*n = thread_copy_events(s, t, area);
	if (*n)
		program_write(t->program, t->area + offsetof(struct translate_thread, events_at),
			&area->events, sizeof(area->events));
	return true;
}

void thread_read_events(struct translate_session *s, struct traced_thread *t, uint64_t gs_base)
{
	struct translate_thread area;
	size_t n;

	if (read_events(s, t, gs_base, &area, &n))
		thread_take_events(s, t, n);
}

bool thread_read(struct translate_session *s, struct traced_thread *t, uint64_t gs_base)
{
	struct translate_thread area;
	size_t n;

	if (!read_events(s, t, gs_base, &area, &n))
		return false;
	program_blocks(s, t->program, false);
	thread_take_events(s, t, n);
	tell_lost_buffers(t, &area);
	take_counters(s, t, &area);
	return true;
}
