/* SPDX-License-Identifier: MIT */
#include "record/hooks/hook_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"

struct hook_layout *hook_layout_new(const struct hook_layout *old)
{
	struct hook_layout *l = mem_zalloc(sizeof(*l));

	l->n_refs = 1;
	if (!old)
		return l;
	l->region_start = old->region_start;
	l->region_bytes = old->region_bytes;
	for (size_t i = 0; i < old->modules.n; i++)
		vec_push(&l->modules, old->modules.v[i]);
	for (size_t i = 0; i < old->moved.n; i++)
		vec_push(&l->moved, old->moved.v[i]);
	hook_layout_sort(l);
	return l;
}

void hook_layout_free(struct hook_layout *l)
{
	if (!l)
		return;
	vec_release(&l->modules);
	vec_release(&l->moved);
	vec_release(&l->by_site);
	free(l);
}

void hook_layout_drop(struct hook_layout *l, uint64_t start, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < l->modules.n; i++)
		if (l->modules.v[i].end <= start || l->modules.v[i].start >= end)
			l->modules.v[n++] = l->modules.v[i];
	l->modules.n = n;
	n = 0;
	for (size_t i = 0; i < l->moved.n; i++) {
		const struct hook_moved *m = &l->moved.v[i];
		bool is_site = m->site >= start && m->site < end;
		bool is_code = m->code - HOOK_CALL_BYTES < end && m->code + m->n_code > start;

		if (!is_site && !is_code)
			l->moved.v[n++] = *m;
	}
	l->moved.n = n;
}

ORDER_BY(by_code, struct hook_moved, code)

static int compare_sites(const void *a, const void *b, void *ctx)
{
	const struct hook_layout *l = ctx;
	uint64_t x = l->moved.v[*(const uint32_t *)a].site;
	uint64_t y = l->moved.v[*(const uint32_t *)b].site;

	return ORDER(x, y);
}

void hook_layout_sort(struct hook_layout *l)
{
	vec_sort(&l->moved, by_code);
	l->by_site.n = 0;
	for (size_t i = 0; i < l->moved.n; i++)
		vec_push(&l->by_site, (uint32_t)i);
	if (l->by_site.n)
		qsort_r(l->by_site.v, l->by_site.n, sizeof(*l->by_site.v), compare_sites, l);
}

/* The last one whose call begins at or before the pc. */
static const struct hook_moved *find_code(const struct hook_layout *l, uint64_t pc)
{
	size_t lo = SEARCH(0, l->moved.n, mid, l->moved.v[mid].code - HOOK_CALL_BYTES <= pc);

	return lo ? &l->moved.v[lo - 1] : NULL;
}

bool hook_layout_original_pc(const struct hook_layout *l, uint64_t pc, uint64_t *original)
{
	const struct hook_moved *m = find_code(l, pc);
	const struct planned_function *f;
	uint64_t at;
	uint8_t from = 0;

	if (!m || pc >= m->code + m->n_code)
		return false;
	f = m->planned;
	if (pc <= m->code) {
		*original = m->function;
		return true;
	}
	at = pc - m->code;
	for (uint8_t i = 0; f && i < f->n_moves && f->moves[i].to <= at; i++)
		from = f->moves[i].from;
	*original = m->site + from;
	return true;
}

bool hook_layout_is_entry(const struct hook_layout *l, uint64_t pc)
{
	const struct hook_moved *m = find_code(l, pc);

	return m && pc <= m->code;
}

bool hook_layout_is_trampoline(const struct hook_layout *l, uint64_t pc)
{
	const struct hook_moved *m = find_code(l, pc);

	return m && pc < m->code;
}

bool hook_layout_is_trap(const struct hook_layout *l, uint64_t pc)
{
	size_t lo = SEARCH(0, l->by_site.n, mid, l->moved.v[l->by_site.v[mid]].site < pc);
	const struct hook_moved *m = lo ? &l->moved.v[l->by_site.v[lo - 1]] : NULL;

	return m && m->planned && m->planned->method == HOOK_METHOD_INT3 && m->site + 1 == pc;
}

uint64_t hook_layout_moved_pc(const struct hook_layout *l, uint64_t pc)
{
	size_t lo = SEARCH(0, l->by_site.n, mid, l->moved.v[l->by_site.v[mid]].site <= pc);
	const struct hook_moved *m;
	uint64_t at;

	if (!lo)
		return pc;
	m = &l->moved.v[l->by_site.v[lo - 1]];
	at = pc - m->site;
	if (!at || at >= m->n_patched || !m->planned)
		return pc; /* at the first byte it runs the jump, as everybody will */
	for (uint8_t i = 0; i < m->planned->n_moves; i++)
		if (m->planned->moves[i].from == at)
			return m->code + m->planned->moves[i].to;
	return pc;
}

const struct hook_module_at *hook_layout_module(
	const struct hook_layout *l, const struct planned_image *image)
{
	for (size_t i = 0; i < l->modules.n; i++)
		if (l->modules.v[i].image == image)
			return &l->modules.v[i];
	return NULL;
}
