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

static void print_arc(
	struct table *t, const struct report *report, const struct arc_row *row, const char *source)
{
	table_row(t, TABLE_STYLE_PLAIN);
	table_cellf(t, "%s%s", row->is_recursive ? "r" : "", source);
	count_cell(t, row->has_events, row->calls);
	value_cell(t, report, true, row->base);
	value_cell(t, report, true, row->cum);
	table_cell(t, calltree_get_routine(report->profile->tree, row->routine)->name);
}

static void print_self(struct table *t, const struct report *report, const struct flat_row *self)
{
	const char *unit = report->profile->unit;

	table_row(t, TABLE_STYLE_STRONG);
	table_cell(t, "Self");
	count_cell(t, self->has_events, self->calls);
	value_cell(t, report, true, self->base);
	if (self->cum == self->cum2)
		value_cell(t, report, true, self->cum);
	else if (report->options->human)
		table_cellf(t, "%s/%s", value_human(self->cum, unit).s,
			value_human(self->cum2, unit).s);
	else
		table_cellf(t, "%" PRIu64 "/%" PRIu64, self->cum, self->cum2);
	table_cell(t, calltree_get_routine(report->profile->tree, self->routine)->name);
}

static void print_stanza(struct table *t, const struct report *report, const struct arcs *arcs,
	const struct arc_stanza *stanza)
{
	const struct arc_row *row = arcs->rows + stanza->first_row;

	for (size_t i = 0; i < stanza->n_parents; i++)
		print_arc(t, report, row++, "Parent");
	print_self(t, report, &stanza->self);
	for (size_t i = 0; i < stanza->n_children; i++)
		print_arc(t, report, row++, "Child");
}

int arcs_text(const struct report *report, struct err *err)
{
	struct table t = {.left_columns = 1};
	struct arcs_view v;

	(void)err;
	view_init(&v, report);
	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Source");
	table_cell(&t, "Calls");
	unit_head(&t, report, "Base");
	unit_head(&t, report, "Cum");
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
	json_array_begin(j, key);
	for (size_t i = 0; i < n; i++) {
		const struct calltree_routine *routine =
			calltree_get_routine(report->profile->tree, rows[i].routine);

		json_object_begin(j, NULL);
		json_string(j, "name", routine->name);
		report_json_text(j, "image", routine->image);
		report_json_measured(j, "calls", rows[i].has_events, rows[i].calls);
		json_u64(j, "base", rows[i].base);
		json_u64(j, "cum", rows[i].cum);
		json_bool(j, "recursive", rows[i].is_recursive);
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

	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "name", routine->name);
	report_json_text(j, "image", routine->image);
	json_string(j, "kind", report_routine_kind(routine));
	json_object_begin(j, "self");
	report_json_measured(j, "calls", self->has_events, self->calls);
	json_u64(j, "base", self->base);
	json_u64(j, "cum", self->cum);
	json_u64(j, "cum2", self->cum2);
	json_object_end(j);
	json_arcs(j, report, "parents", rows, stanza->n_parents);
	json_arcs(j, report, "children", rows + stanza->n_parents, stanza->n_children);
	json_object_end(j);
}

int arcs_json(const struct report *report, struct err *err)
{
	struct arcs_view v;
	struct json j;

	(void)err;
	view_init(&v, report);
	report_json_begin(&j, report, "arcs");
	report_json_rows(&j);
	for (size_t i = 0; i < v.n; i++)
		json_stanza(&j, report, &v.arcs, &v.arcs.stanzas[v.rows[i]]);
	report_json_end(&j, report);
	view_release(&v);
	return 0;
}
