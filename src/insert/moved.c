/* SPDX-License-Identifier: MIT */
#include "insert/moved.h"

#include <assert.h>
#include <stdlib.h>

#include "base/search.h"

void moved_init(struct moved *m, size_t n_sections)
{
	m->sections = mem_calloc(n_sections + 1, sizeof(*m->sections));
	m->n_sections = n_sections;
}

void moved_release(struct moved *m)
{
	for (size_t i = 0; m->sections && i < m->n_sections; i++) {
		vec_release(&m->sections[i].rows);
		vec_release(&m->sections[i].leaves);
		vec_release(&m->sections[i].values);
	}
	free(m->sections);
	*m = (struct moved){0};
}

void moved_add(struct moved *m, uint32_t section, uint64_t old, uint64_t label, uint64_t place)
{
	struct moved_section *s = &m->sections[section];

	assert(section < m->n_sections);
	assert(!s->rows.n || s->rows.v[s->rows.n - 1].old < old);
	vec_push(&s->rows, ((struct moved_row){old, label, place}));
}

void moved_add_leave(struct moved *m, uint32_t section, uint64_t start, uint64_t end)
{
	struct moved_section *s = &m->sections[section];

	assert(section < m->n_sections);
	assert(!s->leaves.n || s->leaves.v[s->leaves.n - 1].end <= start);
	vec_push(&s->leaves, ((struct moved_leave){start, end}));
}

const struct moved_leave *moved_leave_from(const struct moved *m, uint32_t section, uint64_t old)
{
	const struct moved_section *s = &m->sections[section];
	size_t low = SEARCH(
		0, section < m->n_sections ? s->leaves.n : 0, mid, s->leaves.v[mid].start < old);

	return section < m->n_sections && low < s->leaves.n ? &s->leaves.v[low] : NULL;
}

void moved_add_value(struct moved *m, uint32_t section, const struct moved_value *value)
{
	struct moved_section *s = &m->sections[section];

	assert(section < m->n_sections);
	assert(!s->values.n || s->values.v[s->values.n - 1].old <= value->old);
	vec_push(&s->values, *value);
}

const struct moved_value *moved_values(
	const struct moved *m, uint32_t section, uint64_t old, uint64_t end, size_t *n)
{
	const struct moved_section *s = &m->sections[section];
	size_t n_all = section < m->n_sections ? s->values.n : 0;
	size_t first = SEARCH(0, n_all, i, s->values.v[i].old < old);

	*n = SEARCH(first, n_all, i, s->values.v[i].old < end) - first;
	return *n ? &s->values.v[first] : NULL;
}

bool moved_has(const struct moved *m, uint32_t section)
{
	return section < m->n_sections && m->sections[section].rows.n;
}

/* The last row at or before `old`; NULL when there is none. */
static const struct moved_row *row_of(const struct moved *m, uint32_t section, uint64_t old)
{
	const struct moved_section *s = moved_has(m, section) ? &m->sections[section] : NULL;
	size_t low = s ? SEARCH(0, s->rows.n, i, s->rows.v[i].old <= old) : 0;

	return low ? &s->rows.v[low - 1] : NULL;
}

uint64_t moved_label(const struct moved *m, uint32_t section, uint64_t old)
{
	const struct moved_row *row = row_of(m, section, old);

	if (!row)
		return old;
	return row->old == old ? row->label : row->place + (old - row->old);
}

uint64_t moved_place(const struct moved *m, uint32_t section, uint64_t old)
{
	const struct moved_row *row = row_of(m, section, old);

	return row ? row->place + (old - row->old) : old;
}
