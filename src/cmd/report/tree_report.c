/* SPDX-License-Identifier: MIT */
/*
 * The tree, depth first. Rows are put in order before anything is printed, with an explicit stack,
 * since a tree may be as deep as the program's stack.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/report/report.h"
#include "cmd/report/values.h"

/* Deeper rows are not indented further; their Level says where they are. */
#define TREE_INDENT_MAX 400

const char *const tree_columns[] = {"calls", "base", "cum", "elapsed", "name", NULL};

struct tree_view {
	const struct report *report;
	const struct calltree *tree;
	bool *is_kept;	       /* by node: it or something below it passes the filter */
	VEC(uint32_t) order;   /* nodes as they are shown */
	VEC(uint32_t) pending; /* still to be visited, the next one last */
};

/* Children have greater ids than their parents, so one pass backwards reaches all ancestors. */
static void mark_kept(struct tree_view *v)
{
	size_t n = calltree_n_nodes(v->tree);

	v->is_kept = mem_calloc(n, sizeof(*v->is_kept));
	for (size_t id = n; id-- > 1;) {
		const struct calltree_node *node = calltree_get(v->tree, (uint32_t)id);

		if (!v->is_kept[id])
			v->is_kept[id] = report_name_matches(
				v->report, calltree_get_routine(v->tree, node->routine)->name);
		if (v->is_kept[id])
			v->is_kept[node->parent] = true;
	}
}

static uint64_t number_of(const struct calltree_node *node, const char *column)
{
	if (!strcmp(column, "calls"))
		return node->calls;
	if (!strcmp(column, "base"))
		return node->base;
	if (!strcmp(column, "cum"))
		return node->cum;
	return node->elapsed;
}

/* The largest, or the first in the alphabet, comes last, since the last is visited first. */
static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct tree_view *v = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct calltree_node *p = calltree_get(v->tree, x), *q = calltree_get(v->tree, y);
	const char *column = v->report->options->sort;

	if (column && !strcmp(column, "name")) {
		int by_name = strcmp(calltree_get_routine(v->tree, q->routine)->name,
			calltree_get_routine(v->tree, p->routine)->name);
		if (by_name)
			return by_name;
	} else if (column && number_of(p, column) != number_of(q, column)) {
		return number_of(p, column) < number_of(q, column) ? -1 : 1;
	}
	return x > y ? -1 : x < y;
}

static void push_siblings(struct tree_view *v, uint32_t first)
{
	size_t from = v->pending.n, n;

	for (uint32_t id = first; id; id = calltree_get(v->tree, id)->next_sibling)
		if (v->is_kept[id])
			vec_push(&v->pending, id);
	n = v->pending.n - from;
	if (n > 1)
		qsort_r(v->pending.v + from, n, sizeof(uint32_t), compare_siblings, v);
}

static void view_init(struct tree_view *v, const struct report *report)
{
	uint64_t limit = report->options->limit;

	memset(v, 0, sizeof(*v));
	v->report = report;
	v->tree = report->profile->tree;
	mark_kept(v);
	push_siblings(v, calltree_first_root(v->tree));
	while (v->pending.n && (!limit || v->order.n < limit)) {
		uint32_t id = v->pending.v[--v->pending.n];

		vec_push(&v->order, id);
		push_siblings(v, calltree_get(v->tree, id)->first_child);
	}
}

static void view_release(struct tree_view *v)
{
	free(v->is_kept);
	vec_release(&v->order);
	vec_release(&v->pending);
}

static void print_head(struct table *t, const struct report *report)
{
	table_row(t, TABLE_STYLE_STRONG);
	table_cell(t, "Level");
	table_cell(t, "RL");
	table_cell(t, "Calls");
	unit_head(t, report, "Base");
	unit_head(t, report, "Cum");
	if (report->options->elapsed)
		unit_head(t, report, "Elapsed");
	if (report->options->percent) {
		table_cell(t, "Base%");
		table_cell(t, "Cum%");
	}
	table_cell(t, "Indent");
}

/* "- - name" for level 2; "- - name [site]" when calls from several places are kept apart. */
static const char *indented(
	struct buf *b, uint32_t level, const char *mark, const char *name, const char *site)
{
	buf_reset(b);
	for (uint32_t i = 0; i < level && i < TREE_INDENT_MAX; i++)
		buf_put_cstr(b, "- ");
	buf_put_cstr(b, mark);
	buf_put_cstr(b, name);
	if (*site)
		buf_printf(b, " [%s]", site);
	return buf_text(b);
}

/* Where stacks hang below an event: the codes of their records, before the first chain. */
static void print_chain_marker(struct table *t, const struct report *report,
	const struct calltree_node *node, struct buf *b)
{
	static const char *const names[] = {
		[CALLTREE_STACK_SAMPLE] = "stack_0x40",
		[CALLTREE_STACK_EVENT] = "stack_0x41",
		[CALLTREE_STACK_SAMPLE | CALLTREE_STACK_EVENT] = "stack_0x40 stack_0x41",
	};
	const struct report_options *o = report->options;
	size_t n_cells = 4 + (o->percent ? 2 : 0) + (o->elapsed ? 1 : 0);
	const char *name = names[node->stack_kinds & 3u];

	table_row(t, TABLE_STYLE_FAINT);
	table_number(t, node->level);
	for (size_t i = 0; i < n_cells; i++)
		table_cell(t, ".");
	table_cell(t, indented(b, node->level, "", name ? name : "stack_0x40", ""));
}

static void print_node(struct table *t, const struct report *report, uint32_t id, struct buf *b)
{
	const struct calltree *tree = report->profile->tree;
	const struct calltree_node *node = calltree_get(tree, id);
	bool is_merged = calltree_has_events(tree) && node->sampled && node->parent;
	bool is_measured = report_is_measured(report, node->exact);

	table_row(t, TABLE_STYLE_PLAIN);
	table_number(t, node->level);
	table_number(t, node->rl);
	count_cell(t, !node->sampled && report_has_calls(report), node->calls);
	value_cell(t, report, is_measured, node->base);
	value_cell(t, report, is_measured, node->cum);
	if (report->options->elapsed)
		value_cell(t, report, !node->sampled && report->profile->is_time, node->elapsed);
	if (report->options->percent) {
		percent_cell(t, node->base, report->profile->total);
		percent_cell(t, node->cum, report->profile->total);
	}
	table_cell(t, indented(b, node->level, is_merged ? "+" : "",
			      calltree_get_routine(tree, node->routine)->name,
			      calltree_site_label(tree, calltree_site(tree, id))));
}

int tree_text(const struct report *report, struct err *err)
{
	const struct calltree *tree = report->profile->tree;
	struct tree_view v;
	struct table t = {0};
	struct buf b = {0};
	uint32_t marked = 0;	  /* the parent whose chains have their marker */
	uint8_t marked_kinds = 0; /* and what it said */

	if (report->profile->counts.is_flat)
		return report_no_tree(report, err);
	view_init(&v, report);
	print_head(&t, report);
	for (size_t i = 0; i < v.order.n; i++) {
		const struct calltree_node *node = calltree_get(tree, v.order.v[i]);

		if (calltree_begins_chain(tree, v.order.v[i]) &&
			(node->parent != marked || node->stack_kinds != marked_kinds)) {
			marked = node->parent;
			marked_kinds = node->stack_kinds;
			print_chain_marker(&t, report, node, &b);
		}
		print_node(&t, report, v.order.v[i], &b);
	}
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	buf_release(&b);
	view_release(&v);
	return 0;
}

static void json_node(struct json *j, const struct report *report, uint32_t id)
{
	const struct profile *p = report->profile;
	const struct calltree_node *node = calltree_get(p->tree, id);
	const struct calltree_routine *routine = calltree_get_routine(p->tree, node->routine);
	bool has_samples = calltree_has_samples(p->tree);
	bool has_estimates = calltree_has_estimates(p->tree);
	bool is_measured = report_is_measured(report, node->exact);

	json_newline(j);
	json_object_begin(j, NULL);
	json_u64(j, "level", node->level);
	json_u64(j, "rl", node->rl);
	report_json_measured(j, "calls", !node->sampled && report_has_calls(report), node->calls);
	report_json_measured(j, "base", is_measured, node->base);
	report_json_measured(j, "cum", is_measured, node->cum);
	report_json_measured(j, "elapsed", !node->sampled && p->is_time, node->elapsed);
	report_json_measured(j, "samples", has_samples, node->samples);
	json_string(j, "name", routine->name);
	report_json_text(j, "image", routine->image);
	json_string(j, "kind", report_routine_kind(routine));
	json_bool(j, "sampled", node->sampled);
	json_u64(j, "id", id);
	report_json_measured(j, "parent", node->parent != 0, node->parent);
	json_bool(j, "exact", node->exact);
	report_json_measured(j, "sampled_base", has_estimates, node->sampled_base);
	report_json_measured(j, "sampled_cum", has_estimates, node->sampled_cum);
	report_json_measured(j, "occurrences", (p->is_merged || p->n_stack_events) && node->sampled,
		node->occurrences);
	report_json_measured(j, "stack_events", p->n_stack_events, node->stack_events);
	report_json_text(j, "site", calltree_site_label(p->tree, calltree_site(p->tree, id)));
	json_object_end(j);
}

int tree_json(const struct report *report, struct err *err)
{
	struct tree_view v;
	struct json j;

	if (report->profile->counts.is_flat)
		return report_no_tree(report, err);
	view_init(&v, report);
	report_json_begin(&j, report, "tree");
	report_json_rows(&j);
	for (size_t i = 0; i < v.order.n; i++)
		json_node(&j, report, v.order.v[i]);
	report_json_end(&j, report);
	view_release(&v);
	return 0;
}
