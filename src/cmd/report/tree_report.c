/* SPDX-License-Identifier: MIT */
/* The tree, depth first. */
#include <stdlib.h>

#include "cmd/report/rows.h"
#include "cmd/report/tree_lines.h"

/* Deeper rows are not indented further; their Level says where they are. */
#define TREE_INDENT_MAX 400

static const struct column columns[] = {
	{"level", "Level", 0},
	{"rl", "RL", 0},
	{"calls", "Calls", 0},
	{"base", "Base", COLUMN_UNIT},
	{"cum", "Cum", COLUMN_UNIT},
	{"elapsed", "Elapsed", COLUMN_UNIT | COLUMN_ELAPSED},
	{"Base%", "Base%", COLUMN_PERCENT},
	{"Cum%", "Cum%", COLUMN_PERCENT},
	{"Indent", "Indent", 0},
	{0},
};

/* On a terminal the lines say what Level and RL say. */
static const struct column drawn_columns[] = {
	{"Cum%", "Cum%", COLUMN_PERCENT},
	{"Base%", "Base%", COLUMN_PERCENT},
	{"cum", "Cum", COLUMN_UNIT},
	{"base", "Base", COLUMN_UNIT},
	{"elapsed", "Elapsed", COLUMN_UNIT | COLUMN_ELAPSED},
	{"calls", "Calls", 0},
	{"Indent", "Function", 0},
	{0},
};

struct tree_rows {
	struct rows rows;
	struct buf text;
	struct tree_lines lines;
	bool is_drawn;
	uint32_t marked;      /* the parent whose chains have their marker */
	uint8_t marked_kinds; /* and what it said */
};

/* "- - name" for level 2; "- - name [site]" when calls from several places are kept apart. */
static void show_indented(struct tree_rows *t, size_t row, uint32_t level, const char *mark,
	const char *name, const char *site)
{
	struct buf *b = &t->text;

	buf_reset(b);
	if (t->is_drawn)
		tree_lines_put(&t->lines, row, b);
	for (uint32_t i = 0; !t->is_drawn && i < level && i < TREE_INDENT_MAX; i++)
		buf_put_cstr(b, "- ");
	buf_put_cstr(b, mark);
	buf_put_cstr(b, name);
	if (*site)
		buf_printf(b, " [%s]", site);
	row_show(&t->rows, "Indent", buf_text(b));
}

/* Where stacks hang below an event: the codes of their records, before the first chain. */
static void put_chain_marker(struct tree_rows *t, const struct calltree_node *node)
{
	static const char *const names[] = {
		[CALLTREE_STACK_SAMPLE] = "stack_0x40",
		[CALLTREE_STACK_EVENT] = "stack_0x41",
		[CALLTREE_STACK_SAMPLE | CALLTREE_STACK_EVENT] = "stack_0x40 stack_0x41",
	};
	const char *name = names[node->stack_kinds & 3u];

	if (node->parent == t->marked && node->stack_kinds == t->marked_kinds)
		return;
	t->marked = node->parent;
	t->marked_kinds = node->stack_kinds;
	row_begin(&t->rows, TABLE_STYLE_FAINT);
	row_number(&t->rows, "level", node->level);
	for (const struct column *c = &columns[1]; c->head; c++)
		row_show(&t->rows, c->key, ".");
	show_indented(t, 0, node->level, "", name ? name : "stack_0x40", "");
	row_end(&t->rows);
}

static void put_node(struct tree_rows *t, size_t row, uint32_t id)
{
	struct rows *r = &t->rows;
	const struct profile *p = r->report->profile;
	const struct calltree_node *node = calltree_get(p->tree, id);
	const struct calltree_routine *routine = calltree_get_routine(p->tree, node->routine);
	const char *site = calltree_site_label(p->tree, calltree_site(p->tree, id));
	bool has_estimates = calltree_has_estimates(p->tree);
	bool is_measured = report_is_measured(r->report, node->exact);
	bool is_merged = calltree_has_events(p->tree) && node->sampled && node->parent;

	row_begin(r, TABLE_STYLE_PLAIN);
	row_number(r, "level", node->level);
	row_number(r, "rl", node->rl);
	row_count(r, "calls", !node->sampled && report_has_calls(r->report), node->calls);
	row_value(r, "base", is_measured, node->base);
	row_value(r, "cum", is_measured, node->cum);
	row_value(r, "elapsed", !node->sampled && p->is_time, node->elapsed);
	row_count(r, "samples", calltree_has_samples(p->tree), node->samples);
	row_string(r, "name", routine->name);
	row_text(r, "image", routine->image);
	row_string(r, "kind", report_routine_kind(routine));
	row_bool(r, "sampled", node->sampled);
	row_number(r, "id", id);
	row_count(r, "parent", node->parent != 0, node->parent);
	row_bool(r, "exact", node->exact);
	row_value(r, "sampled_base", has_estimates, node->sampled_base);
	row_value(r, "sampled_cum", has_estimates, node->sampled_cum);
	row_count(r, "occurrences", (p->is_merged || p->n_stack_events) && node->sampled,
		node->occurrences);
	row_count(r, "stack_events", p->n_stack_events, node->stack_events);
	row_text(r, "site", site);
	row_show_percent(r, "Base%", true, node->base, p->total);
	row_show_percent(r, "Cum%", true, node->cum, p->total);
	if (!r->is_json)
		show_indented(t, row, node->level, is_merged ? "+" : "", routine->name, site);
	row_end(r);
}

int tree_report(const struct report *report, struct err *err)
{
	const struct calltree *tree = report->profile->tree;
	struct tree_rows t = {.marked = 0};
	uint32_t *nodes;
	size_t n;

	if (report->profile->counts.is_flat)
		return report_no_tree(report, err);
	n = query_nodes(&report->options->query, tree, &nodes);
	t.is_drawn = report->options->terminal.is_there;
	if (t.is_drawn)
		tree_lines_init(&t.lines, &report->options->terminal, tree, nodes, n);
	rows_begin_plain(&t.rows, report, "tree", t.is_drawn ? drawn_columns : columns);
	for (size_t i = 0; i < n; i++) {
		if (!t.rows.is_json && !t.is_drawn && calltree_begins_chain(tree, nodes[i]))
			put_chain_marker(&t, calltree_get(tree, nodes[i]));
		put_node(&t, i, nodes[i]);
	}
	rows_end_plain(&t.rows);
	tree_lines_release(&t.lines);
	buf_release(&t.text);
	free(nodes);
	return 0;
}
