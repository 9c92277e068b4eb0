/* SPDX-License-Identifier: MIT */
/*
 * Order of the rows: those of one routine stay together, the plain row first. Groups of parents go
 * by calls (by cum when nothing was counted), groups of children by cum, largest first; then by the
 * cum of samples; ties in order of first sight; groups that have only a recursive row last.
 */
#include "calltree/arcs.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"

/* The rows of one other routine while a stanza is being made. */
struct group {
	struct arc_row plain, recursive;
	bool has_plain, has_recursive;
	uint64_t weight, sampled; /* the order: greater first */
	size_t sight;		  /* when first seen */
};

struct stanza_maker {
	const struct calltree *t;
	struct arcs *arcs;
	bool is_exact;		/* Self's figures are by events */
	size_t *group_of;	/* by routine: index + 1 of its group, 0 = none in this list */
	struct map site_groups; /* the same by routine and site, for rows with a site */
	VEC(struct group) groups;
};

/* The group of the other routine, calls from one place apart; created when absent. */
static struct group *group_at(struct stanza_maker *m, uint32_t other, uint32_t site)
{
	uint64_t *of_site =
		site ? map_ensure(&m->site_groups, (uint64_t)other << 32 | site, NULL) : NULL;
	size_t i = of_site ? (size_t)*of_site : m->group_of[other];

	if (!i) {
		struct group fresh = {.sight = m->groups.n};

		fresh.plain.routine = fresh.recursive.routine = other;
		fresh.plain.site = fresh.recursive.site = site;
		fresh.recursive.is_recursive = true;
		vec_push(&m->groups, fresh);
		i = m->groups.n;
		if (of_site)
			*of_site = i;
		else
			m->group_of[other] = i;
	}
	return &m->groups.v[i - 1];
}

/* The figures of node `id`, the callee, in the row of the other routine. */
static void add(struct stanza_maker *m, uint32_t other, bool recursive, uint32_t id)
{
	const struct calltree_node *node = calltree_get(m->t, id);
	struct group *group = group_at(m, other, calltree_site(m->t, id));
	struct arc_row *row;

	if (recursive)
		group->has_recursive = true;
	else
		group->has_plain = true;
	row = recursive ? &group->recursive : &group->plain;
	row->has_events |= !node->sampled;
	row->calls += node->calls;
	row->sampled_base += node->sampled_base;
	row->sampled_cum += node->sampled_cum;
	row->is_exact = m->is_exact;
	if (m->is_exact && !node->exact)
		return;
	row->is_measured = true;
	row->base += m->is_exact ? node->base : node->sampled_base;
	row->cum += m->is_exact ? node->cum : node->sampled_cum;
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return ORDER(y->has_plain, x->has_plain) ?: ORDER(y->weight, x->weight)
		       ?: ORDER(y->sampled, x->sampled) ?: ORDER(x->sight, y->sight);
}

/* Appends the collected groups to the rows and empties them. Returns the number of rows. */
static size_t flush_groups(struct stanza_maker *m, bool by_calls)
{
	size_t before = m->arcs->rows.n;

	for (size_t i = 0; i < m->groups.n; i++) {
		struct group *g = &m->groups.v[i];
		const struct arc_row *row = g->has_plain ? &g->plain : &g->recursive;

		g->weight = by_calls ? row->calls : row->cum;
		g->sampled = by_calls ? 0 : row->sampled_cum;
		m->group_of[g->plain.routine] = 0;
	}
	vec_sort(&m->groups, compare_groups);
	for (size_t i = 0; i < m->groups.n; i++) {
		if (m->groups.v[i].has_plain)
			vec_push(&m->arcs->rows, m->groups.v[i].plain);
		if (m->groups.v[i].has_recursive)
			vec_push(&m->arcs->rows, m->groups.v[i].recursive);
	}
	m->groups.n = 0;
	map_reset(&m->site_groups);
	return m->arcs->rows.n - before;
}

static void make_stanza(struct stanza_maker *m, const struct flat_row *self)
{
	struct arc_stanza stanza = {.self = *self, .first_row = m->arcs->rows.n};
	uint32_t first = calltree_get_routine(m->t, self->routine)->first_instance;
	const struct calltree_node *node;

	m->is_exact = self->exact;
	for (uint32_t id = first; id; id = node->next_instance) {
		node = calltree_get(m->t, id);
		if (node->parent)
			add(m, calltree_get(m->t, node->parent)->routine, node->rl > 1, id);
	}
	stanza.n_parents = flush_groups(m, self->calls > 0);
	for (uint32_t id = first; id; id = node->next_instance) {
		const struct calltree_node *child;

		node = calltree_get(m->t, id);
		for (uint32_t c = node->first_child; c; c = child->next_sibling) {
			child = calltree_get(m->t, c);
			add(m, child->routine, node->rl > 1, c);
		}
	}
	stanza.n_children = flush_groups(m, false);
	m->arcs->stanzas[m->arcs->n_stanzas++] = stanza;
}

void arcs_init(struct arcs *arcs, const struct calltree *t, const struct flat *flat)
{
	struct stanza_maker m = {.t = t, .arcs = arcs};

	memset(arcs, 0, sizeof(*arcs));
	arcs->stanzas = mem_calloc(flat->n_rows + 1, sizeof(*arcs->stanzas));
	vec_reserve(&arcs->rows, 1);
	m.group_of = mem_calloc(calltree_n_routines(t), sizeof(*m.group_of));
	for (size_t i = 0; i < flat->n_rows; i++)
		make_stanza(&m, &flat->rows[i]);
	free(m.group_of);
	vec_release(&m.groups);
	map_release(&m.site_groups);
}

void arcs_release(struct arcs *arcs)
{
	free(arcs->stanzas);
	vec_release(&arcs->rows);
	memset(arcs, 0, sizeof(*arcs));
}

static bool figures_hold(
	struct flat_figures self, struct flat_figures parents, uint64_t children_cum, bool is_root)
{
	if (children_cum != self.cum2 - self.base)
		return false;
	return is_root ||
	       (parents.base == self.base && parents.cum == self.cum && parents.cum2 == self.cum2);
}

static bool stanza_holds(const struct arcs *arcs, const struct arc_stanza *s, bool is_root)
{
	const struct arc_row *row = arcs->rows.v + s->first_row;
	struct flat_figures shown = {0, 0, 0}, sampled = {0, 0, 0};
	uint64_t calls = 0, children = 0, sampled_children = 0;

	for (size_t i = 0; i < s->n_parents; i++, row++) {
		calls += row->calls;
		shown.base += row->base;
		shown.cum2 += row->cum;
		shown.cum += row->is_recursive ? 0 : row->cum;
		sampled.base += row->sampled_base;
		sampled.cum2 += row->sampled_cum;
		sampled.cum += row->is_recursive ? 0 : row->sampled_cum;
	}
	for (size_t i = 0; i < s->n_children; i++, row++) {
		children += row->cum;
		sampled_children += row->sampled_cum;
	}
	if (is_root ? s->n_parents != 0 : calls != s->self.calls)
		return false;
	return figures_hold((struct flat_figures){s->self.base, s->self.cum, s->self.cum2}, shown,
		       children, is_root) &&
	       figures_hold(s->self.sampled, sampled, sampled_children, is_root);
}

bool arcs_check(const struct arcs *arcs, const struct calltree *t, size_t *broken)
{
	for (size_t i = 0; i < arcs->n_stanzas; i++) {
		const struct arc_stanza *s = &arcs->stanzas[i];

		if (stanza_holds(arcs, s, calltree_get_routine(t, s->self.routine)->is_root))
			continue;
		if (broken)
			*broken = i;
		return false;
	}
	return true;
}
