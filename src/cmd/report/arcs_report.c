/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "calltree/arcs.h"
#include "cmd/report/rows.h"

static const struct column columns[] = {
	{"Source", "Source", COLUMN_LEFT},
	{"calls", "Calls", 0},
	{"base", "Base", COLUMN_UNIT},
	{"cum", "Cum", COLUMN_UNIT},
	{"sampled_base", "SBase", COLUMN_UNIT | COLUMN_ESTIMATED},
	{"sampled_cum", "SCum", COLUMN_UNIT | COLUMN_ESTIMATED},
	{"Function", "Function", 0},
	{0},
};

static void put_arc(struct rows *r, const struct arc_row *row, bool is_parent)
{
	const struct report *report = r->report;
	const struct calltree *tree = report->profile->tree;
	const struct calltree_routine *routine = calltree_get_routine(tree, row->routine);
	const char *site = calltree_site_label(tree, row->site);
	bool has_samples = calltree_has_estimates(tree);
	bool is_measured = row->is_measured && report_is_measured(report, row->is_exact);

	row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
	row_showf(
		r, "Source", "%s%s", row->is_recursive ? "r" : "", is_parent ? "Parent" : "Child");
	row_string(r, "name", routine->name);
	row_text(r, "image", routine->image);
	row_count(r, "calls", row->has_events, row->calls);
	row_value(r, "base", is_measured, row->base);
	row_value(r, "cum", is_measured, row->cum);
	row_value(r, "sampled_base", has_samples, row->sampled_base);
	row_value(r, "sampled_cum", has_samples, row->sampled_cum);
	row_bool(r, "recursive", row->is_recursive);
	row_text(r, "site", site);
	if (!*site)
		row_showf(r, "Function", "%s%s", report_mark(report, row->routine), routine->name);
	else if (is_parent)
		row_show(r, "Function", site); /* it begins with the parent's name */
	else
		row_showf(r, "Function", "%s [%s]", routine->name, site);
	row_end(r);
}

static void put_arcs(
	struct rows *r, const char *key, const struct arc_row *rows, size_t n, bool is_parent)
{
	if (r->is_json)
		json_array_begin(&r->json, key);
	for (size_t i = 0; i < n; i++)
		put_arc(r, &rows[i], is_parent);
	if (r->is_json)
		json_array_end(&r->json);
}

/* In text, where they differ, those of the outermost instances and of all. */
static void put_cum(
	struct rows *r, const char *key, const char *key2, bool is_measured, struct flat_figures f)
{
	const char *unit = r->report->profile->unit;

	if (r->is_json || !is_measured || f.cum == f.cum2)
		row_value(r, key, is_measured, f.cum);
	else if (r->report->options->human)
		row_showf(r, key, "%s/%s", value_human(f.cum, unit).s, value_human(f.cum2, unit).s);
	else
		row_showf(r, key, "%" PRIu64 "/%" PRIu64, f.cum, f.cum2);
	row_value(r, key2, is_measured, f.cum2);
}

static void put_self(struct rows *r, const struct flat_row *self)
{
	const struct report *report = r->report;
	bool is_measured = report_is_measured(report, self->exact);
	bool has_samples = calltree_has_estimates(report->profile->tree);

	row_begin_inside(r, "self", TABLE_STYLE_STRONG);
	row_show(r, "Source", "Self");
	row_count(r, "calls", self->has_events, self->calls);
	row_value(r, "base", is_measured, self->base);
	put_cum(r, "cum", "cum2", is_measured,
		(struct flat_figures){.cum = self->cum, .cum2 = self->cum2});
	row_bool(r, "exact", self->exact);
	row_value(r, "sampled_base", has_samples, self->sampled.base);
	put_cum(r, "sampled_cum", "sampled_cum2", has_samples, self->sampled);
	row_showf(r, "Function", "%s%s", report_mark(report, self->routine),
		calltree_get_routine(report->profile->tree, self->routine)->name);
	row_end(r);
}

/* In JSON a row with the function's own figures in front; text has these between the two lists. */
static void put_stanza(struct rows *r, const struct arc_row *rows, const struct arc_stanza *stanza)
{
	const struct calltree_routine *routine =
		calltree_get_routine(r->report->profile->tree, stanza->self.routine);

	if (r->is_json) {
		row_begin(r, TABLE_STYLE_PLAIN);
		row_string(r, "name", routine->name);
		row_text(r, "image", routine->image);
		row_string(r, "kind", report_routine_kind(routine));
		put_self(r, &stanza->self);
	}
	put_arcs(r, "parents", rows, stanza->n_parents, true);
	if (!r->is_json)
		put_self(r, &stanza->self);
	put_arcs(r, "children", rows + stanza->n_parents, stanza->n_children, false);
	if (r->is_json)
		row_end(r);
}

int arcs_report(const struct report *report, struct err *err)
{
	const struct calltree *tree = report->profile->tree;
	struct flat flat;
	struct arcs arcs;
	struct rows r;
	size_t *order, n;

	if (report->profile->counts.is_flat)
		return report_no_tree(report, err);
	flat_init(&flat, tree);
	arcs_init(&arcs, tree, &flat);
	assert(arcs_check(&arcs, tree, NULL));
	n = query_functions(&report->options->query, tree, &flat, &order);
	rows_begin_plain(&r, report, "arcs", columns);
	for (size_t i = 0; i < n; i++) {
		const struct arc_stanza *stanza = &arcs.stanzas[order[i]];

		if (i && !r.is_json)
			table_line(&r.table, "=");
		put_stanza(&r, arcs.rows.v + stanza->first_row, stanza);
	}
	rows_end_plain(&r);
	free(order);
	arcs_release(&arcs);
	flat_release(&flat);
	return 0;
}
