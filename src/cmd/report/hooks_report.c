/* SPDX-License-Identifier: MIT */
/* What became of each function that was asked for by record --events, --stack-at and --tree. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "calltree/frame_names.h"
#include "cmd/report/rows.h"
#include "cmd/report/summary.h"

static const char *const methods[PROFILE_HOOK_N_METHODS] = {
	[PROFILE_HOOK_REFUSED] = "refused",
	[PROFILE_HOOK_JUMP] = "jump",
	[PROFILE_HOOK_INT3] = "int3",
	[PROFILE_HOOK_NOP] = "nop",
	[PROFILE_HOOK_MCOUNT] = "mcount",
	[PROFILE_HOOK_INSTRUMENT] = "instrument",
	[PROFILE_HOOK_BYTECODE] = "bytecode",
};

struct named_hook {
	const struct profile_hook *hook;
	const char *name, *image;
};

struct hooks_view {
	struct frame_levels levels; /* being looked at */
	struct intern names;
	struct named_hook *hooks;
	size_t *order, n;
	const char *sort;
};

void hooks_count(const struct profile *p, struct hooks_totals *totals)
{
	memset(totals, 0, sizeof(*totals));
	for (size_t i = 0; i < p->n_hooks; i++) {
		totals->by_method[p->hooks[i].method]++;
		totals->n_off += p->hooks[i].is_off;
	}
}

static struct query_key key_of(void *context, size_t i)
{
	const struct hooks_view *v = context;
	const struct profile_hook *hook = v->hooks[i].hook;

	if (!strcmp(v->sort, "function"))
		return (struct query_key){.text = v->hooks[i].name};
	if (!strcmp(v->sort, "image"))
		return (struct query_key){.text = v->hooks[i].image};
	if (!strcmp(v->sort, "method"))
		return (struct query_key){.text = methods[hook->method]};
	if (!strcmp(v->sort, "reason"))
		return (struct query_key){.text = hook->reason, .is_reverse = true};
	if (!strcmp(v->sort, "off"))
		return (struct query_key){.number = hook->is_off ? UINT64_MAX - hook->off_time : 0};
	if (!strcmp(v->sort, "hooked"))
		return (struct query_key){.number = hook->method != PROFILE_HOOK_REFUSED};
	return (struct query_key){.number = hook->hits};
}

/* Hits from the largest on; refused ones, by name, at the end. */
static void put_in_order(struct hooks_view *v, const char *sort)
{
	static const char *const usual[] = {"function", "hooked", "hits"};

	for (size_t i = 0; i < (sort ? 1 : sizeof(usual) / sizeof(usual[0])); i++) {
		v->sort = sort ? sort : usual[i];
		query_order(v->order, v->n, key_of, v);
	}
}

static void view_init(struct hooks_view *v, const struct report *report)
{
	const struct profile *p = report->profile;
	const struct query *q = &report->options->query;

	memset(v, 0, sizeof(*v));
	v->hooks = mem_calloc(p->n_hooks, sizeof(*v->hooks));
	v->order = mem_calloc(p->n_hooks, sizeof(*v->order));
	for (size_t i = 0; i < p->n_hooks; i++) {
		const struct frame_level *level;

		frame_names_get(report->reader, p->hooks[i].frame, &v->levels);
		level = &v->levels.v[v->levels.n - 1]; /* the function that has the code */
		v->hooks[i] = (struct named_hook){&p->hooks[i],
			intern_get(&v->names, intern_text(&v->names, level->name)), level->image};
		if (query_matches(q, level->name))
			v->order[v->n++] = i;
	}
	put_in_order(v, q->sort);
	v->n = query_limit(q, v->n);
}

static void view_release(struct hooks_view *v)
{
	free(v->hooks);
	free(v->order);
	intern_release(&v->names);
}

/* "12 functions: 9 jump, 1 int3, 2 refused; 1 unhooked to keep the budget" */
static void print_totals(const struct report *report)
{
	const struct profile *p = report->profile;
	struct hooks_totals totals;
	const char *before = ": ";

	hooks_count(p, &totals);
	fprintf(report->out, "%zu function%s", p->n_hooks, p->n_hooks == 1 ? "" : "s");
	for (size_t i = 1; i <= PROFILE_HOOK_N_METHODS; i++) {
		size_t method = i % PROFILE_HOOK_N_METHODS; /* refused ones last */

		if (!totals.by_method[method])
			continue;
		fprintf(report->out, "%s%" PRIu64 " %s", before, totals.by_method[method],
			methods[method]);
		before = ", ";
	}
	if (totals.n_off)
		fprintf(report->out, "; %" PRIu64 " unhooked to keep the budget", totals.n_off);
	fputs("\n", report->out);
	hooks_print_costs(report);
}

static void put_hook(struct rows *r, const struct named_hook *h, const struct profile_cost *cost)
{
	const struct profile_hook *hook = h->hook;
	bool is_hooked = hook->method != PROFILE_HOOK_REFUSED;

	row_begin(r, is_hooked ? TABLE_STYLE_PLAIN : TABLE_STYLE_FAINT);
	row_string(r, "function", h->name);
	row_text(r, "image", r->is_json ? h->image : path_base_name(h->image));
	row_string(r, "method", methods[hook->method]);
	row_text(r, "reason", hook->reason);
	row_count(r, "hits", is_hooked, hook->hits);
	row_count(r, "off", hook->is_off, hook->off_time);
	row_count(r, "inner_ps", cost != NULL, cost ? cost->inner_ps : 0);
	row_count(r, "outer_ps", cost != NULL, cost ? cost->outer_ps : 0);
	row_end(r);
}

/* Fails when there are none, as other reports do for what was not recorded. */
int hooks_report(const struct report *report, struct err *err)
{
	const struct column columns[] = {
		{"hits", "Hits", 0},
		{"off", trace_reader_meta(report->reader, "clock") ? "Off[ns]" : "Off", 0},
		{"method", "Method", COLUMN_LEFT},
		{"function", "Function", COLUMN_LEFT},
		{"image", "Image", COLUMN_LEFT},
		{"reason", "Reason", 0},
		{0},
	};
	struct hooks_view v;
	struct rows r;

	if (!report->profile->n_hooks)
		return err_set(err, ERR_NOT_FOUND,
			"'%s': has no hooks (nothing of that kind was recorded)",
			trace_reader_name(report->reader));
	view_init(&v, report);
	if (!report->options->json)
		print_totals(report);
	rows_begin_plain(&r, report, "hooks", columns);
	for (size_t i = 0; i < v.n; i++)
		put_hook(&r, &v.hooks[v.order[i]],
			profile_cost_find(report->profile, v.hooks[v.order[i]].hook->cost));
	rows_end_plain(&r);
	view_release(&v);
	return 0;
}
