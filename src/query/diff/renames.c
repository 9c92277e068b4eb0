/* SPDX-License-Identifier: MIT */
/*
 * Functions that may have got another name: one is gone, another is new in the same image, and both have the same callers
 * and callees, or most of them. Code of the same size is a sign more; code of another size is one against it. It stays a
 * proposal: what was renamed and changed at the same time looks like what was replaced.
 */
#include <string.h>

#include "base/order.h"
#include "query/diff/run_diff_internal.h"

#define RENAMES_MAX 20
#define SIDE_MAX    500 /* more functions than these that are gone or new are not a renaming */

struct candidate {
	uint32_t key;
	uint64_t bytes;
	VEC(uint32_t) neighbours; /* sorted: key * 2, + 1 for callees; keys of both sides alone */
};

struct candidates {
	VEC(struct candidate) v;
};

static uint64_t bytes_of(const struct run_diff *d, enum run_side side, uint32_t key)
{
	const struct diff_run *run = &d->sides[side].v[0];

	return key < run->bytes.n ? run->bytes.v[key] : 0;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return ORDER(*x, *y);
}

/* What is on both sides tells two functions apart; 0 is the thread. */
static void add_neighbours(struct candidate *c, const struct diff_run *run, const bool *is_on_both)
{
	for (size_t i = 0; i < run->arcs.n; i++) {
		const struct diff_arc *arc = &run->arcs.v[i];

		if (arc->callee == c->key && arc->caller != c->key && is_on_both[arc->caller])
			vec_push(&c->neighbours, arc->caller * 2);
		if (arc->caller == c->key && arc->callee != c->key && is_on_both[arc->callee])
			vec_push(&c->neighbours, arc->callee * 2 + 1);
	}
	vec_sort(&c->neighbours, by_number);
}

static void find_candidates(
	struct run_diff *d, enum run_side side, const bool *is_on_both, struct candidates *to)
{
	for (size_t i = 0; i < d->rows.n; i++) {
		const struct run_diff_row *row = &d->rows.v[i];
		struct candidate c = {.key = row->id};

		if (!row->is_there[side] || row->is_there[!side] || to->v.n == SIDE_MAX)
			continue;
		c.bytes = bytes_of(d, side, row->id);
		vec_push(&to->v, c);
	}
	for (size_t i = 0; to->v.n < SIDE_MAX && i < to->v.n; i++)
		add_neighbours(&to->v.v[i], &d->sides[side].v[0], is_on_both);
}

static uint32_t count_common(const struct candidate *a, const struct candidate *b)
{
	uint32_t n = 0;

	for (size_t i = 0, j = 0; i < a->neighbours.n && j < b->neighbours.n;) {
		uint32_t x = a->neighbours.v[i], y = b->neighbours.v[j];

		n += x == y;
		i += x <= y;
		j += y <= x;
	}
	return n;
}

/* Better is greater; 0: they are not alike. */
static double likeness(const struct run_diff *d, const struct candidate *a,
	const struct candidate *b, struct run_diff_rename *rename)
{
	uint32_t common, all;
	double part;

	if (strcmp(diff_key_image(&d->keys, a->key), diff_key_image(&d->keys, b->key)) != 0)
		return 0;
	common = count_common(a, b);
	all = (uint32_t)(a->neighbours.n + b->neighbours.n) - common;
	part = all ? (double)common / all : 0;
	*rename = (struct run_diff_rename){
		a->key, b->key, a->bytes == b->bytes ? a->bytes : 0, common, all};
	if (common < (rename->bytes || d->sides[0].v[0].is_measured ? 1 : 2))
		return 0; /* one caller of a function that was seldom seen says nothing */
	if (part < 0.5 || (a->bytes && b->bytes && a->bytes != b->bytes && part < 1))
		return 0;
	return part + (rename->bytes ? 1 : 0) - (a->bytes && b->bytes && !rename->bytes ? 0.4 : 0);
}

/* The best one of the other side, when no other is as good. */
static size_t best_of(const struct run_diff *d, const struct candidate *a,
	const struct candidates *others, bool is_old, struct run_diff_rename *rename)
{
	size_t best = SIZE_MAX;
	double most = 0;
	bool is_alone = true;

	for (size_t i = 0; i < others->v.n; i++) {
		struct run_diff_rename r;
		const struct candidate *b = &others->v.v[i];
		double alike = is_old ? likeness(d, a, b, &r) : likeness(d, b, a, &r);

		is_alone = alike > most || (is_alone && alike < most);
		if (alike > most) {
			most = alike;
			best = i;
			*rename = r;
		}
	}
	return is_alone ? best : SIZE_MAX;
}

static void release(struct candidates *c)
{
	for (size_t i = 0; i < c->v.n; i++)
		vec_release(&c->v.v[i].neighbours);
	vec_release(&c->v);
}

void run_diff_find_renames(struct run_diff *d)
{
	bool *is_on_both = mem_calloc(diff_keys_n(&d->keys), sizeof(*is_on_both));
	struct candidates gone = {0}, fresh = {0};

	is_on_both[0] = true;
	for (uint32_t key = 1; key < diff_keys_n(&d->keys); key++)
		is_on_both[key] = key < d->sides[RUNS_BEFORE].v[0].rows.n &&
				  key < d->sides[RUNS_AFTER].v[0].rows.n &&
				  d->sides[RUNS_BEFORE].v[0].rows.v[key].is_there &&
				  d->sides[RUNS_AFTER].v[0].rows.v[key].is_there;
	find_candidates(d, RUNS_BEFORE, is_on_both, &gone);
	find_candidates(d, RUNS_AFTER, is_on_both, &fresh);
	for (size_t i = 0; i < gone.v.n && d->renames.n < RENAMES_MAX; i++) {
		struct run_diff_rename rename, back;
		size_t best = best_of(d, &gone.v.v[i], &fresh, true, &rename);

		if (best != SIZE_MAX && best_of(d, &fresh.v.v[best], &gone, false, &back) == i)
			vec_push(&d->renames, rename);
	}
	free(is_on_both);
	release(&gone);
	release(&fresh);
}
