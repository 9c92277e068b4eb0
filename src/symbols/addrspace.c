/* SPDX-License-Identifier: MIT */
#include "symbols/addrspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"

struct addrspace {
	VEC(struct mapping) mappings; /* sorted, disjoint */
	unsigned n_owners;
	uint64_t generation;
};

static uint64_t next_generation(void)
{
	static uint64_t last; /* one thread applies records */

	return ++last;
}

struct addrspace *addrspace_new(void)
{
	struct addrspace *a = mem_zalloc(sizeof(*a));

	a->n_owners = 1;
	a->generation = next_generation();
	return a;
}

struct addrspace *addrspace_share(struct addrspace *a)
{
	a->n_owners++;
	return a;
}

void addrspace_free(struct addrspace *a)
{
	if (!a || --a->n_owners)
		return;
	vec_release(&a->mappings);
	free(a);
}

static struct addrspace *make_private(struct addrspace *a)
{
	struct addrspace *copy;

	if (a->n_owners == 1)
		return a;
	copy = addrspace_new();
	vec_reserve(&copy->mappings, a->mappings.n + 1);
	if (a->mappings.n)
		memcpy(copy->mappings.v, a->mappings.v, a->mappings.n * sizeof(*a->mappings.v));
	copy->mappings.n = a->mappings.n;
	a->n_owners--;
	return copy;
}

size_t addrspace_first_after(const struct addrspace *a, uint64_t addr)
{
	return SEARCH(0, a->mappings.n, i, a->mappings.v[i].end <= addr);
}

static struct mapping tail_from(const struct mapping *m, uint64_t start)
{
	struct mapping tail = *m;

	tail.offset.v += start - m->start;
	tail.start = start;
	return tail;
}

/* Cuts [start, end) out of the table, which is private, from mapping *i on; *i is then where a
 * mapping of that range belongs. */
static size_t cut_range(struct addrspace *a, size_t *i, uint64_t start, uint64_t end)
{
	size_t n_touched = 0;

	while (*i < a->mappings.n && a->mappings.v[*i].start < end) {
		struct mapping *old = &a->mappings.v[*i];

		n_touched++;
		if (old->start < start && old->end > end) { /* split in two */
			struct mapping tail = tail_from(old, end);

			old->end = start;
			++*i;
			vec_insert(&a->mappings, *i, tail);
			break;
		}
		if (old->start < start) {
			old->end = start;
			++*i;
		} else if (old->end > end) {
			*old = tail_from(old, end);
			break;
		} else {
			memmove(old, old + 1, (--a->mappings.n - *i) * sizeof(*old));
		}
	}
	return n_touched;
}

size_t addrspace_map(struct addrspace **owner, const struct mapping *m)
{
	struct addrspace *a = *owner = make_private(*owner);
	size_t i = addrspace_first_after(a, m->start);
	size_t n_touched;

	if (m->start >= m->end)
		return 0;
	a->generation = next_generation();
	n_touched = cut_range(a, &i, m->start, m->end);
	vec_insert(&a->mappings, i, *m);
	return n_touched;
}

size_t addrspace_unmap(struct addrspace **owner, uint64_t start, uint64_t end)
{
	size_t i = addrspace_first_after(*owner, start);

	if (start >= end || i == (*owner)->mappings.n || (*owner)->mappings.v[i].start >= end)
		return 0;
	*owner = make_private(*owner);
	(*owner)->generation = next_generation();
	return cut_range(*owner, &i, start, end);
}

const struct mapping *addrspace_find(const struct addrspace *a, struct vaddr addr)
{
	size_t i = addrspace_first_after(a, addr.v);

	return i < a->mappings.n && a->mappings.v[i].start <= addr.v ? &a->mappings.v[i] : NULL;
}

size_t addrspace_n(const struct addrspace *a)
{
	return a->mappings.n;
}

const struct mapping *addrspace_get(const struct addrspace *a, size_t i)
{
	return &a->mappings.v[i];
}

uint64_t addrspace_generation(const struct addrspace *a)
{
	return a->generation;
}
