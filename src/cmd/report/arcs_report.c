/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "calltree/arcs.h"
#include "cmd/report/report.h"
#include "cmd/report/values.h"

struct arcs_view {
	struct flat flat;
	struct arcs arcs;
	size_t *rows, n; /* stanzas in the order asked for */
};

static void view_init(struct arcs_view *v, const struct report *report)
{
	const struct calltree *tree = report->profile->tree;

	flat_init(&v->flat, tree);
	arcs_init(&v->arcs, tree, &v->flat);
	assert(arcs_check(&v->arcs, tree, NULL));
	v->n = report_select_flat(report, &v->flat, &v->rows);
}

static void view_release(struct arcs_view *v)
{
	free(v->rows);
	arcs_release(&v->arcs);
	flat_release(&v->flat);
}

/* What samples say beside what events measured. */
static bool has_sampled_columns(const struct report *report)
{
	return report->profile->is_merged && calltree_has_estimates(report->profile->tree);
}

static void print_arc(struct table *t, const struct report *report, const struct arc_row *row,
	const char *source, bool is_parent)
{
	const struct calltree *tree = report->profile->tree;
	const char *name = calltree_get_routine(tree, row->routine)->name;
	const char *site = calltree_site_label(tree, row->site);
	bool is_measured = row->is_measured && report_is_measured(report, row->is_exact);

	table_row(t, TABLE_STYLE_PLAIN);
	table_cellf(t, "%s%s", row->is_recursive ? "r" : "", source);
	count_cell(t, row->has_events, row->calls);
	value_cell(t, report, is_measured, row->base);
	value_cell(t, report, is_measured, row->cum);
	if (has_sampled_columns(report)) {
		value_cell(t, report, true, row->sampled_base);
		value_cell(t, report, true, row->sampled_cum);
	}
	if (!*site)
		table_cellf(t, "%s%s", report_mark(report, row->routine), name);
	else if (is_parent)
		table_cell(t, site); /* it begins with the parent's name */
	else
		table_cellf(t, "%s [%s]", name, site);
}

/* Where they differ, those of the outermost instances and of all. */
static void print_cum(struct table *t, const struct report *report, uint64_t cum, uint64_t cum2)
{
	const char *unit = report->profile->unit;

	if (cum == cum2)
		value_cell(t, report, true, cum);
	else if (report->options->human)
		table_cellf(t, "%s/%s", value_human(cum, unit).s, value_human(cum2, unit).s);
	else
		table_cellf(t, "%" PRIu64 "/%" PRIu64, cum, cum2);
}

static void print_self(struct table *t, const struct report *report, const struct flat_row *self)
{
	bool is_measured = report_is_measured(report, self->exact);

	table_row(t, TABLE_STYLE_STRONG);
	table_cell(t, "Self");
	count_cell(t, self->has_events, self->calls);
	value_cell(t, report, is_measured, self->base);
	if (is_measured)
		print_cum(t, report, self->cum, self->cum2);
	else
		value_cell(t, report, false, 0);
	if (has_sampled_columns(report)) {
		value_cell(t, report, true, self->sampled.base);
		print_cum(t, report, self->sampled.cum, self->sampled.cum2);
	}
	table_cellf(t, "%s%s", report_mark(report, self->routine),
		calltree_get_routine(report->profile->tree, self->routine)->name);
}

static void print_stanza(struct table *t, const struct report *report, const struct arcs *arcs,
	const struct arc_stanza *stanza)
{
	const struct arc_row *row = arcs->rows + stanza->first_row;

	for (size_t i = 0; i < stanza->n_parents; i++)
		print_arc(t, report, row++, "Parent", true);
	print_self(t, report, &stanza->self);
	for (size_t i = 0; i < stanza->n_children; i++)
		print_arc(t, report, row++, "Child", false);
}

int arcs_text(const struct report *report, struct err *err)
{
	struct table t = {.left_columns = 1};
	struct arcs_view v;

	if (report->profile->counts.is_flat)
		return report_no_tree(report, err);
	view_init(&v, report);
	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Source");
	table_cell(&t, "Calls");
	unit_head(&t, report, "Base");
	unit_head(&t, report, "Cum");
	if (has_sampled_columns(report)) {
		unit_head(&t, report, "SBase");
		unit_head(&t, report, "SCum");
	}
	table_cell(&t, "Function");
	for (size_t i = 0; i < v.n; i++) {
		if (i)
			table_line(&t, "=");
		print_stanza(&t, report, &v.arcs, &v.arcs.stanzas[v.rows[i]]);
	}
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	view_release(&v);
	return 0;
}

static void json_arcs(struct json *j, const struct report *report, const char *key,
	const struct arc_row *rows, size_t n)
{
	bool has_samples = calltree_has_estimates(report->profile->tree);

	json_array_begin(j, key);
	for (size_t i = 0; i < n; i++) {
		const struct calltree_routine *routine =
			calltree_get_routine(report->profile->tree, rows[i].routine);
		bool is_measured =
			rows[i].is_measured && report_is_measured(report, rows[i].is_exact);

		json_object_begin(j, NULL);
		json_string(j, "name", routine->name);
		report_json_text(j, "image", routine->image);
		report_json_measured(j, "calls", rows[i].has_events, rows[i].calls);
		report_json_measured(j, "base", is_measured, rows[i].base);
		report_json_measured(j, "cum", is_measured, rows[i].cum);
		report_json_measured(j, "sampled_base", has_samples, rows[i].sampled_base);
		report_json_measured(j, "sampled_cum", has_samples, rows[i].sampled_cum);
		json_bool(j, "recursive", rows[i].is_recursive);
		report_json_text(
			j, "site", calltree_site_label(report->profile->tree, rows[i].site));
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_stanza(struct json *j, const struct report *report, const struct arcs *arcs,
	const struct arc_stanza *stanza)
{
	const struct flat_row *self = &stanza->self;
	const struct calltree_routine *routine =
		calltree_get_routine(report->profile->tree, self->routine);
	const struct arc_row *rows = arcs->rows + stanza->first_row;
	bool is_measured = report_is_measured(report, self->exact);
	bool has_samples = calltree_has_estimates(report->profile->tree);

	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "name", routine->name);
	report_json_text(j, "image", routine->image);
	json_string(j, "kind", report_routine_kind(routine));
	json_object_begin(j, "self");
	report_json_measured(j, "calls", self->has_events, self->calls);
	report_json_measured(j, "base", is_measured, self->base);
	report_json_measured(j, "cum", is_measured, self->cum);
	report_json_measured(j, "cum2", is_measured, self->cum2);
	json_bool(j, "exact", self->exact);
	report_json_measured(j, "sampled_base", has_samples, self->sampled.base);
	report_json_measured(j, "sampled_cum", has_samples, self->sampled.cum);
	report_json_measured(j, "sampled_cum2", has_samples, self->sampled.cum2);
	json_object_end(j);
	json_arcs(j, report, "parents", rows, stanza->n_parents);
	json_arcs(j, report, "children", rows + stanza->n_parents, stanza->n_children);
	json_object_end(j);
}

int arcs_json(const struct report *report, struct err *err)
{
	struct arcs_view v;
	struct json j;

	if (report->profile->counts.is_flat)
		return report_no_tree(report, err);
	view_init(&v, report);
	report_json_begin(&j, report, "arcs");
	report_json_rows(&j);
	for (size_t i = 0; i < v.n; i++)
		json_stanza(&j, report, &v.arcs, &v.arcs.stanzas[v.rows[i]]);
	report_json_end(&j, report);
	view_release(&v);
	return 0;
}
