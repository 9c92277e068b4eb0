/* SPDX-License-Identifier: MIT */
/* The items of several threads in order of their times; see steps.h. */
#include <stdlib.h>

#include "steps/read/steps_internal.h"

/* One thread. Its cursor is opened when its first item may be the next of all. */
struct merge_part {
	uint32_t thread;
	uint64_t time; /* of `item`; without a cursor: none of its items is before it */
	struct step_cursor *cursor;
	struct step_item item;
};

struct step_merge {
	const struct steps *s;
	VEC(struct merge_part) parts; /* those that have not ended */
	struct merge_part *given;     /* its item is the caller's until the next call */
	uint64_t from;
	struct err err;
};

struct step_merge *step_merge_new(const struct steps *s, const uint32_t *threads, uint32_t n)
{
	struct step_merge *m = mem_zalloc(sizeof(*m));

	m->s = s;
	if (!threads)
		n = steps_n_threads(s);
	for (uint32_t i = 0; i < n; i++) {
		struct merge_part part = {.thread = threads ? threads[i] : i};

		part.time = steps_thread(s, part.thread)->first_time;
		vec_push(&m->parts, part);
	}
	return m;
}

void step_merge_free(struct step_merge *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->parts.n; i++)
		step_cursor_close(m->parts.v[i].cursor);
	vec_release(&m->parts);
	free(m);
}

void step_merge_seek_time(struct step_merge *m, uint64_t time)
{
	m->from = time;
	for (size_t i = 0; i < m->parts.n; i++)
		if (m->parts.v[i].time < time)
			m->parts.v[i].time = time;
}

static void drop(struct step_merge *m, struct merge_part *part)
{
	memmove(part, part + 1, (size_t)(m->parts.v + m->parts.n - (part + 1)) * sizeof(*part));
	m->parts.n--;
}

/* The part's next item; at its end the part is gone. */
static void advance(struct step_merge *m, struct merge_part *part)
{
	if (step_cursor_next(part->cursor, &part->item) > 0) {
		/* An item of damage may not know its time. */
		if (part->item.time > part->time)
			part->time = part->item.time;
		return;
	}
	step_cursor_close(part->cursor);
	drop(m, part);
}

static struct merge_part *earliest(struct step_merge *m)
{
	struct merge_part *found = m->parts.n ? m->parts.v : NULL;

	for (size_t i = 1; i < m->parts.n; i++)
		if (m->parts.v[i].time < found->time)
			found = &m->parts.v[i];
	return found;
}

int step_merge_next(struct step_merge *m, uint32_t *thread, struct step_item *item)
{
	struct merge_part *part;

	if (m->given)
		advance(m, m->given);
	m->given = NULL;
	while ((part = earliest(m)) && !part->cursor) {
		if (step_cursor_open(&part->cursor, m->s, part->thread, &m->err) < 0) {
			*thread = part->thread;
			*item = (struct step_item){.kind = STEP_ITEM_DAMAGE,
				.time = part->time,
				.sentence = m->err.text};
			drop(m, part);
			return 1;
		}
		if (m->from)
			step_cursor_seek_time(part->cursor, m->from);
		advance(m, part);
	}
	if (!part)
		return 0;
	m->given = part;
	*thread = part->thread;
	*item = part->item;
	return 1;
}
