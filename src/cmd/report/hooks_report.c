/* SPDX-License-Identifier: MIT */
/* What became of each function that was asked for by record --events, --stack-at and --tree. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "calltree/frame_names.h"
#include "cmd/report/hooks_view.h"
#include "cmd/report/values.h"

const char *const hooks_columns[] = {"function", "image", "method", "reason", "hits", "off", NULL};

static const char *const methods[PROFILE_HOOK_N_METHODS] = {
	[PROFILE_HOOK_REFUSED] = "refused",
	[PROFILE_HOOK_JUMP] = "jump",
	[PROFILE_HOOK_INT3] = "int3",
	[PROFILE_HOOK_NOP] = "nop",
	[PROFILE_HOOK_MCOUNT] = "mcount",
	[PROFILE_HOOK_INSTRUMENT] = "instrument",
};

struct hook_row {
	const struct profile_hook *hook;
	const char *name, *image;
	size_t order; /* of the records */
};

struct hooks_view {
	struct frame_levels levels; /* being looked at */
	struct intern names;
	struct hook_row *rows;
	size_t n;
};

void hooks_count(const struct profile *p, struct hooks_totals *totals)
{
	memset(totals, 0, sizeof(*totals));
	for (size_t i = 0; i < p->n_hooks; i++) {
		totals->by_method[p->hooks[i].method]++;
		totals->n_off += p->hooks[i].is_off;
		totals->hits += p->hooks[i].hits;
	}
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

/* Hits from the largest on; refused ones, by name, at the end. */
static int compare_by(const char *column, const struct hook_row *a, const struct hook_row *b)
{
	if (!strcmp(column, "function"))
		return strcmp(a->name, b->name);
	if (!strcmp(column, "image"))
		return strcmp(a->image, b->image);
	if (!strcmp(column, "method"))
		return strcmp(methods[a->hook->method], methods[b->hook->method]);
	if (!strcmp(column, "reason"))
		return -strcmp(a->hook->reason, b->hook->reason);
	if (!strcmp(column, "off"))
		return compare_numbers(a->hook->is_off ? UINT64_MAX - a->hook->off_time : 0,
			b->hook->is_off ? UINT64_MAX - b->hook->off_time : 0);
	return compare_numbers(a->hook->hits, b->hook->hits);
}

static int compare(const void *a, const void *b, void *context)
{
	const struct hook_row *x = a, *y = b;
	const char *column = context;
	int by = compare_by(column ? column : "hits", x, y);

	if (!by && !column)
		by = compare_numbers(x->hook->method != PROFILE_HOOK_REFUSED,
			y->hook->method != PROFILE_HOOK_REFUSED);
	if (!by && !column)
		by = strcmp(x->name, y->name);
	if (by)
		return by;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Fails when there are none, as other reports do for what was not recorded. */
static int view_init(struct hooks_view *v, const struct report *report, struct err *err)
{
	const struct profile *p = report->profile;
	const struct report_options *o = report->options;

	memset(v, 0, sizeof(*v));
	if (!p->n_hooks)
		return err_set(err, ERR_NOT_FOUND,
			"'%s': has no hooks (nothing of that kind was recorded)",
			trace_reader_name(report->reader));
	v->rows = mem_calloc(p->n_hooks, sizeof(*v->rows));
	for (size_t i = 0; i < p->n_hooks; i++) {
		const struct frame_level *level;

		frame_names_get(report->reader, p->hooks[i].frame, &v->levels);
		level = &v->levels.v[v->levels.n - 1]; /* the function that has the code */
		if (report_name_matches(report, level->name))
			v->rows[v->n++] = (struct hook_row){&p->hooks[i],
				intern_get(&v->names, intern_text(&v->names, level->name)),
				level->image, i};
	}
	if (v->n)
		qsort_r(v->rows, v->n, sizeof(*v->rows), compare, (void *)o->sort);
	if (o->limit && o->limit < v->n)
		v->n = o->limit;
	return 0;
}

static void view_release(struct hooks_view *v)
{
	free(v->rows);
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
}

int hooks_text(const struct report *report, struct err *err)
{
	bool is_clock = trace_reader_meta(report->reader, "clock") != NULL;
	struct table t = {.left_columns = 1u << 2 | 1u << 3 | 1u << 4};
	struct hooks_view v;
	int rc = view_init(&v, report, err);

	if (rc < 0)
		return rc;
	print_totals(report);
	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Hits");
	table_cell(&t, is_clock ? "Off[ns]" : "Off");
	table_cell(&t, "Method");
	table_cell(&t, "Function");
	table_cell(&t, "Image");
	table_cell(&t, "Reason");
	for (size_t i = 0; i < v.n; i++) {
		const struct profile_hook *hook = v.rows[i].hook;
		bool is_hooked = hook->method != PROFILE_HOOK_REFUSED;

		table_row(&t, is_hooked ? TABLE_STYLE_PLAIN : TABLE_STYLE_FAINT);
		count_cell(&t, is_hooked, hook->hits);
		count_cell(&t, hook->is_off, hook->off_time);
		table_cell(&t, methods[hook->method]);
		table_cell(&t, v.rows[i].name);
		table_cell(&t, *v.rows[i].image ? path_base_name(v.rows[i].image) : ".");
		table_cell(&t, *hook->reason ? hook->reason : ".");
	}
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	view_release(&v);
	return 0;
}

int hooks_json(const struct report *report, struct err *err)
{
	struct hooks_view v;
	struct json j;
	int rc = view_init(&v, report, err);

	if (rc < 0)
		return rc;
	report_json_begin(&j, report, "hooks");
	report_json_rows(&j);
	for (size_t i = 0; i < v.n; i++) {
		const struct profile_hook *hook = v.rows[i].hook;

		json_newline(&j);
		json_object_begin(&j, NULL);
		json_string(&j, "function", v.rows[i].name);
		report_json_text(&j, "image", v.rows[i].image);
		json_string(&j, "method", methods[hook->method]);
		report_json_text(&j, "reason", hook->reason);
		report_json_measured(&j, "hits", hook->method != PROFILE_HOOK_REFUSED, hook->hits);
		report_json_measured(&j, "off", hook->is_off, hook->off_time);
		json_object_end(&j);
	}
	report_json_end(&j, report);
	view_release(&v);
	return 0;
}
