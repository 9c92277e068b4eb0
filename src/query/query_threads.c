/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/mem.h"
#include "query/query.h"

static const struct query_column columns[] = {
	{"samples", offsetof(struct profile_thread, samples)},
	{"events", offsetof(struct profile_thread, events)},
	{"switches", offsetof(struct profile_thread, switches)},
	{0},
};

struct order {
	const struct profile *profile;
	const char *sort;
};

uint64_t query_thread_cum(const struct profile *p, const struct profile_thread *thread)
{
	return thread->root ? calltree_get(p->tree, thread->root)->cum : 0;
}

/* Names from A on, then by what they used; ids from the lowest on. */
static struct query_key key_of(void *context, size_t id)
{
	const struct order *o = context;
	const struct profile_thread *t = &o->profile->threads[id];
	bool is_name = !strcmp(o->sort, "name");

	if (is_name || !strcmp(o->sort, "base"))
		return (struct query_key){.text = is_name ? t->name : NULL,
			.number = query_thread_cum(o->profile, t)};
	if (!strcmp(o->sort, "pid"))
		return (struct query_key){.number = UINT32_MAX - t->pid};
	if (!strcmp(o->sort, "tid"))
		return (struct query_key){.number = UINT32_MAX - t->tid};
	return (struct query_key){.number = query_number(columns, o->sort, t)};
}

size_t query_threads(const struct query *q, const struct profile *p, size_t **ids)
{
	struct order order = {p, q->sort ? q->sort : "base"};
	size_t n = 0;

	*ids = mem_calloc(p->n_threads + 1, sizeof(**ids));
	for (uint32_t id = 1; id < p->n_threads; id++)
		if (p->threads[id].is_wanted && query_matches(q, p->threads[id].name))
			(*ids)[n++] = id;
	query_order(*ids, n, key_of, &order);
	return query_limit(q, n);
}
