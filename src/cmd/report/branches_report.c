/* SPDX-License-Identifier: MIT */
/* Where conditional branches went, side by side, and the targets of indirect ones. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "cmd/report/insn_place.h"
#include "cmd/report/rows.h"
#include "cmd/report/steps_view.h"

/* Of a branch, as text; JSON has all. */
#define TARGETS_SHOWN 8

static const char *const kind_names[BRANCH_N_KINDS] = {
	[BRANCH_KIND_CONDITIONAL] = "conditional",
	[BRANCH_KIND_INDIRECT_JUMP] = "indirect-jump",
	[BRANCH_KIND_INDIRECT_CALL] = "indirect-call",
	[BRANCH_KIND_RETURN] = "return",
};

struct branch_totals {
	uint64_t places, executed, taken, not_taken, unknown, exceptions, targets;
};

struct branches {
	const struct report *report;
	struct branch_table table;
	size_t *rows; /* in the table: that were executed and match, in the order asked for */
	size_t n_rows;
	const char *sort;
	struct branch_totals totals[BRANCH_N_KINDS]; /* of the rows */
	struct intern names;			     /* that rows are sorted by */
	struct insn_place place;		     /* being looked at */
	struct buf text;
};

/* ---- the model ---- */

static uint64_t known_of(const struct branches *v, const struct branch *b)
{
	return branch_executed(&v->table, b) - branch_unknown(&v->table, b);
}

/* How often it went the way that it went most often. */
static uint64_t mainline_count(const struct branch *b)
{
	return b->targets.n ? b->targets.v[0].count : branch_mainline(b);
}

/* The share of that in what is known, in percent. */
static double bias_of(const struct branches *v, const struct branch *b)
{
	uint64_t known = known_of(v, b);

	return known ? 100.0 * (double)mainline_count(b) / (double)known : 0;
}

/* The name of the function at v->place, or its image; "" when not known. */
static const char *keep(struct branches *v, bool is_symbol)
{
	const struct insn_place *place = &v->place;
	const char *image = place->names.n ? place->names.v[place->names.n - 1].image : "";

	if (!is_symbol)
		return image;
	return place->function
		       ? intern_get(&v->names, intern_text(&v->names, place->function->name))
		       : "";
}

/* Texts from A on, addresses from the lowest on, numbers from the largest on. */
static struct query_key key_of(void *context, size_t i)
{
	struct branches *v = context;
	const struct branch *b = &v->table.branches.v[i];
	const char *sort = v->sort;
	struct query_key key = {.number = branch_executed(&v->table, b)};
	double bias = bias_of(v, b);

	insn_place_get(&v->place, v->report, b->insn, false);
	if (!strcmp(sort, "taken"))
		key.number = b->taken;
	else if (!strcmp(sort, "not-taken"))
		key.number = b->not_taken;
	else if (!strcmp(sort, "unknown"))
		key.number = branch_unknown(&v->table, b);
	else if (!strcmp(sort, "exceptions"))
		key.number = branch_exceptions(b);
	else if (!strcmp(sort, "bias")) /* numbers from 0 on are in the order of their bits */
		memcpy(&key.number, &bias, sizeof(bias));
	else if (!strcmp(sort, "targets"))
		key.number = b->targets.n;
	else if (!strcmp(sort, "address"))
		key.number = UINT64_MAX - v->place.insn->addr;
	else if (!strcmp(sort, "symbol") || !strcmp(sort, "image"))
		key = (struct query_key){.text = keep(v, *sort == 's')};
	return key;
}

static void add_total(struct branches *v, const struct branch *b)
{
	struct branch_totals *t = &v->totals[b->kind];

	t->places++;
	t->executed += branch_executed(&v->table, b);
	t->taken += b->taken;
	t->not_taken += b->not_taken;
	t->unknown += branch_unknown(&v->table, b);
	t->exceptions += branch_exceptions(b);
	t->targets += b->targets.n;
}

static bool is_wanted(struct branches *v, const struct branch *b)
{
	if (!branch_executed(&v->table, b))
		return false;
	insn_place_get(&v->place, v->report, b->insn, false);
	if (insn_place_matches(&v->place, v->report))
		return true;
	buf_reset(&v->text);
	insn_text_put(&v->text, v->report, v->place.insn, false);
	return query_matches(&v->report->options->query, buf_text(&v->text));
}

static int branches_open(struct branches *v, const struct report *report, struct err *err)
{
	const char *sort = report->options->query.sort;
	int rc;

	memset(v, 0, sizeof(*v));
	v->report = report;
	rc = branches_read(&v->table, report, err);
	if (rc < 0)
		return rc;
	v->rows = mem_calloc(v->table.branches.n, sizeof(*v->rows));
	for (size_t i = 1; i < v->table.branches.n; i++)
		if (is_wanted(v, &v->table.branches.v[i])) {
			add_total(v, &v->table.branches.v[i]);
			v->rows[v->n_rows++] = i;
		}
	v->sort = "address";
	query_order(v->rows, v->n_rows, key_of, v);
	v->sort = sort ? sort : "executed";
	query_order(v->rows, v->n_rows, key_of, v);
	return 0;
}

static void branches_close(struct branches *v)
{
	branch_table_release(&v->table);
	intern_release(&v->names);
	free(v->rows);
	buf_release(&v->text);
}

/* NULL when no outcome is known. */
static const char *mainline_of(const struct branch *b)
{
	if (!b->taken && !b->not_taken)
		return NULL;
	if (b->taken == b->not_taken)
		return "even";
	return b->taken > b->not_taken ? "taken" : "not-taken";
}

/* ---- text ---- */

static void print_totals(const struct branches *v)
{
	static const char *const heads[BRANCH_N_KINDS] = {
		"conditional branches", "indirect jumps", "indirect calls", "returns"};
	const struct branch_totals *c = &v->totals[BRANCH_KIND_CONDITIONAL];
	uint64_t known = c->taken + c->not_taken;
	FILE *out = v->report->out;

	fprintf(out, "%20s  %" PRIu64 " executed at %" PRIu64 " place%s", heads[0], c->executed,
		c->places, c->places == 1 ? "" : "s");
	fprintf(out, ": %" PRIu64 " taken (%s %%)", c->taken, value_percent(c->taken, known).s);
	fprintf(out, ", %" PRIu64 " not taken (%s %%)", c->not_taken,
		value_percent(c->not_taken, known).s);
	fprintf(out, ", %" PRIu64 " unknown; %" PRIu64 " exceptions (%s %%)\n", c->unknown,
		c->exceptions, value_percent(c->exceptions, known).s);
	for (int kind = 1; kind < BRANCH_N_KINDS; kind++) {
		const struct branch_totals *t = &v->totals[kind];

		if (kind == BRANCH_KIND_RETURN && !v->report->options->returns)
			continue;
		fprintf(out,
			"%20s  %" PRIu64 " executed at %" PRIu64 " place%s: %" PRIu64
			" target%s, %" PRIu64 " unknown\n",
			heads[kind], t->executed, t->places, t->places == 1 ? "" : "s", t->targets,
			t->targets == 1 ? "" : "s", t->unknown);
	}
}

static const struct column conditional_columns[] = {
	{"executed", "Executed", 0},
	{"taken", "Taken", 0},
	{"not_taken", "Not-taken", 0},
	{"unknown", "Unknown", 0},
	{"Exceptions", "Exceptions", 0},
	{"Bias%", "Bias%", 0},
	{"mainline", "Mainline", COLUMN_LEFT},
	{"Where", "Where", COLUMN_LEFT},
	{"Line", "Line", COLUMN_LEFT},
	{"Instruction", "Instruction", 0},
	{0},
};
static const struct column indirect_columns[] = {
	{"executed", "Executed", 0},
	{"unknown", "Unknown", 0},
	{"Targets", "Targets", 0},
	{"Share%", "Share%", 0},
	{"kind", "Kind", COLUMN_LEFT},
	{"Where", "Where", COLUMN_LEFT},
	{"Line", "Line", COLUMN_LEFT},
	{"Instruction", "Instruction", 0},
	{0},
};

/* The place of the branch, at v->place. */
static void show_place(struct rows *r, struct branches *v)
{
	buf_reset(&v->text);
	insn_place_put(&v->text, &v->place);
	row_show(r, "Where", buf_text(&v->text));
	if (v->place.file && v->place.line)
		row_showf(r, "Line", "%s:%" PRIu32, path_base_name(v->place.file), v->place.line);
	else
		row_show(r, "Line", ".");
	buf_reset(&v->text);
	insn_text_put(&v->text, v->report, v->place.insn, false);
	row_show(r, "Instruction", buf_text(&v->text));
}

static void show_target(struct rows *r, struct branches *v, const struct branch *b,
	const struct branch_target *target)
{
	row_begin(r, TABLE_STYLE_PLAIN);
	row_number(r, "executed", target->count);
	row_show_percent(r, "Share%", true, target->count, known_of(v, b));
	buf_reset(&v->text);
	buf_put_cstr(&v->text, "  -> ");
	if (target->insn) {
		insn_place_get(&v->place, v->report, target->insn, false);
		insn_place_put(&v->text, &v->place);
	} else {
		buf_printf(&v->text, "0x%" PRIx64, target->addr);
	}
	row_show(r, "Where", buf_text(&v->text));
	row_end(r);
}

static void show_targets(struct rows *r, struct branches *v, const struct branch *b)
{
	uint64_t rest = b->other;
	size_t n_more = 0;

	for (size_t i = 0; i < b->targets.n; i++) {
		if (i < TARGETS_SHOWN) {
			show_target(r, v, b, &b->targets.v[i]);
			continue;
		}
		rest += b->targets.v[i].count;
		n_more++;
	}
	if (!rest)
		return;
	row_begin(r, TABLE_STYLE_FAINT);
	row_number(r, "executed", rest);
	row_show_percent(r, "Share%", true, rest, known_of(v, b));
	if (b->other)
		row_show(r, "Where", "  -> other places");
	else
		row_showf(r, "Where", "  -> %zu more", n_more);
	row_end(r);
}

static void json_targets(struct rows *r, struct branches *v, const struct branch *b)
{
	json_array_begin(&r->json, "targets");
	for (size_t i = 0; i < b->targets.n; i++) {
		const struct branch_target *target = &b->targets.v[i];
		const struct frame_level *f;

		insn_place_get(&v->place, v->report, target->insn, false);
		f = v->place.function;
		row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
		row_number(r, "address", target->addr);
		row_string(r, "symbol", f ? f->name : NULL);
		row_count(r, "offset", f, f ? f->offset : 0);
		row_number(r, "count", target->count);
		row_end(r);
	}
	json_array_end(&r->json);
}

static void json_place(struct rows *r, const struct branches *v)
{
	char text[X86_TEXT_BYTES];

	json_u64(&r->json, "address", v->place.insn->addr);
	insn_place_json(&r->json, &v->place);
	json_string(
		&r->json, "text", insn_text_format(v->report, text, v->place.insn) ? text : NULL);
}

static void put_branch(struct rows *r, struct branches *v, const struct branch *b)
{
	bool is_conditional = b->kind == BRANCH_KIND_CONDITIONAL;
	uint64_t known = known_of(v, b);

	insn_place_get(&v->place, v->report, b->insn, false);
	row_begin(r, is_conditional ? TABLE_STYLE_PLAIN : TABLE_STYLE_STRONG);
	row_string(r, "kind", kind_names[b->kind]);
	if (r->is_json)
		json_place(r, v);
	row_count(r, "target", is_conditional, b->target);
	row_number(r, "executed", branch_executed(&v->table, b));
	row_count(r, "taken", is_conditional, b->taken);
	row_count(r, "not_taken", is_conditional, b->not_taken);
	row_number(r, "unknown", branch_unknown(&v->table, b));
	row_string(r, "mainline", is_conditional ? mainline_of(b) : NULL);
	row_count(r, "exceptions", is_conditional && known, branch_exceptions(b));
	row_percent(r, "bias", known, mainline_count(b), known);
	if (r->is_json) {
		json_targets(r, v, b);
		json_u64_if(&r->json, "other_targets", !is_conditional, b->other);
	} else {
		row_count(r, "Exceptions", true, branch_exceptions(b));
		row_show_percent(r, "Bias%", known, branch_mainline(b), known);
		row_count(r, "Targets", true, b->targets.n);
		show_place(r, v);
	}
	row_end(r);
	if (!r->is_json && !is_conditional)
		show_targets(r, v, b);
}

/* In text conditional branches and the others are two lists; --limit is about each. */
static void show_branches(
	struct rows *r, struct branches *v, bool is_conditional, const struct column *columns)
{
	uint64_t limit = v->report->options->query.limit;
	size_t n = 0, n_shown = 0;

	rows_open(r, NULL, columns);
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct branch *b = &v->table.branches.v[v->rows[i]];

		if ((b->kind == BRANCH_KIND_CONDITIONAL) != is_conditional ||
			(++n > limit && limit))
			continue;
		n_shown++;
		put_branch(r, v, b);
	}
	if (n_shown) {
		fputc('\n', v->report->out);
		rows_close(r);
	}
	table_release(&r->table);
	rows_more(r, n, n_shown);
}

static void json_totals(struct rows *r, const struct branches *v)
{
	static const char *const keys[BRANCH_N_KINDS] = {
		"conditional", "indirect_jump", "indirect_call", "return"};

	json_object_begin(&r->json, "totals");
	for (int kind = 0; kind < BRANCH_N_KINDS; kind++) {
		const struct branch_totals *t = &v->totals[kind];
		bool is_conditional = kind == BRANCH_KIND_CONDITIONAL;

		if (kind == BRANCH_KIND_RETURN && !v->report->options->returns)
			continue;
		row_begin_inside(r, keys[kind], TABLE_STYLE_PLAIN);
		row_number(r, "places", t->places);
		row_number(r, "executed", t->executed);
		row_count(r, "taken", is_conditional, t->taken);
		row_count(r, "not_taken", is_conditional, t->not_taken);
		row_number(r, "unknown", t->unknown);
		row_count(r, "exceptions", is_conditional, t->exceptions);
		row_count(r, "targets", !is_conditional, t->targets);
		row_end(r);
	}
	json_object_end(&r->json);
}

static void json_branches(struct rows *r, struct branches *v)
{
	uint64_t limit = v->report->options->query.limit, n[2] = {0, 0};

	json_totals(r, v);
	rows_open(r, "rows", NULL);
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct branch *b = &v->table.branches.v[v->rows[i]];

		if (++n[b->kind == BRANCH_KIND_CONDITIONAL] <= limit || !limit)
			put_branch(r, v, b);
	}
	rows_close(r);
}

int branches_report(const struct report *report, struct err *err)
{
	struct branches v;
	struct rows r;
	int rc = branches_open(&v, report, err);

	if (rc < 0)
		return rc;
	rows_begin(&r, report, "branches", v.table.total);
	if (r.is_json) {
		json_branches(&r, &v);
	} else {
		print_totals(&v);
		branches_print_loss(report);
		show_branches(&r, &v, true, conditional_columns);
		show_branches(&r, &v, false, indirect_columns);
	}
	rows_end(&r);
	branches_close(&v);
	return 0;
}
