/* SPDX-License-Identifier: MIT */
/* Where conditional branches went, side by side, and the targets of indirect ones. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/report/branches_view.h"
#include "cmd/report/table.h"
#include "cmd/report/values.h"

/* Of a branch, as text; JSON has all. */
#define TARGETS_SHOWN 8

const char *const branches_columns[] = {"executed", "taken", "not-taken", "unknown", "exceptions",
	"bias", "targets", "address", "symbol", "image", NULL};

static const char *const kind_names[BRANCH_N_KINDS] = {
	[BRANCH_KIND_CONDITIONAL] = "conditional",
	[BRANCH_KIND_INDIRECT_JUMP] = "indirect-jump",
	[BRANCH_KIND_INDIRECT_CALL] = "indirect-call",
	[BRANCH_KIND_RETURN] = "return",
};

struct branch_totals {
	uint64_t places, executed, taken, not_taken, unknown, exceptions, targets;
};

/* What rows are sorted by, looked up once. */
struct branch_row {
	const struct branch *branch;
	const char *symbol, *image; /* "" when not known */
	double number;		    /* in the column asked for */
};

struct branches {
	const struct report *report;
	struct branch_table table;
	struct branch_row *rows; /* that were executed and match, in the order asked for */
	size_t n_rows;
	struct branch_totals totals[BRANCH_N_KINDS]; /* of the rows */
	struct arena *names;
	struct insn_place place; /* being looked at */
	struct buf text;
};

/* ---- the model ---- */

static uint64_t known_of(const struct branches *v, const struct branch *b)
{
	return branch_executed(&v->table, b) - branch_unknown(&v->table, b);
}

/* The share of the mainline in what is known, in percent. */
static double bias_of(const struct branches *v, const struct branch *b)
{
	uint64_t known = known_of(v, b), most = branch_mainline(b);

	if (b->targets.n)
		most = b->targets.v[0].count;
	return known ? 100.0 * (double)most / (double)known : 0;
}

static double number_of(const struct branches *v, const struct branch *b, const char *column)
{
	if (!strcmp(column, "taken"))
		return (double)b->taken;
	if (!strcmp(column, "not-taken"))
		return (double)b->not_taken;
	if (!strcmp(column, "unknown"))
		return (double)branch_unknown(&v->table, b);
	if (!strcmp(column, "exceptions"))
		return (double)branch_exceptions(b);
	if (!strcmp(column, "bias"))
		return bias_of(v, b);
	if (!strcmp(column, "targets"))
		return (double)b->targets.n;
	return (double)branch_executed(&v->table, b);
}

static uint64_t address_of(const struct branches *v, const struct branch_row *row)
{
	return steps_insn(v->report->steps, row->branch->insn)->addr;
}

/* Texts from A on, addresses from the lowest on, numbers from the largest on. */
static int compare(const void *a, const void *b, void *context)
{
	const struct branch_row *x = a, *y = b;
	const struct branches *v = context;
	const char *column = v->report->options->sort;
	uint64_t x_addr = address_of(v, x), y_addr = address_of(v, y);
	int by_text = 0;

	if (column && !strcmp(column, "symbol"))
		by_text = strcmp(x->symbol, y->symbol);
	else if (column && !strcmp(column, "image"))
		by_text = strcmp(x->image, y->image);
	else if ((!column || strcmp(column, "address") != 0) && x->number != y->number)
		return x->number > y->number ? -1 : 1;
	if (by_text)
		return by_text;
	if (x_addr != y_addr)
		return x_addr < y_addr ? -1 : 1;
	return x->branch < y->branch ? -1 : x->branch > y->branch;
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
	insn_place_get(&v->place, v->report, b->insn);
	if (insn_place_matches(&v->place, v->report))
		return true;
	buf_reset(&v->text);
	insn_text_put(&v->text, v->report, v->place.insn);
	return report_name_matches(v->report, buf_text(&v->text));
}

static int branches_open(struct branches *v, const struct report *report, struct err *err)
{
	const char *sort = report->options->sort ? report->options->sort : "executed";
	int rc;

	memset(v, 0, sizeof(*v));
	v->report = report;
	rc = branches_read(&v->table, report, err);
	if (rc < 0)
		return rc;
	v->names = arena_new();
	v->rows = mem_calloc(v->table.branches.n, sizeof(*v->rows));
	for (size_t i = 1; i < v->table.branches.n; i++) {
		const struct branch *b = &v->table.branches.v[i];
		const struct frame_levels *names = &v->place.names;

		if (!is_wanted(v, b))
			continue;
		add_total(v, b);
		v->rows[v->n_rows++] = (struct branch_row){.branch = b,
			.symbol = v->place.function
					  ? arena_strdup(v->names, v->place.function->name)
					  : "",
			.image = names->n ? names->v[names->n - 1].image : "",
			.number = number_of(v, b, sort)};
	}
	if (v->n_rows)
		qsort_r(v->rows, v->n_rows, sizeof(*v->rows), compare, v);
	return 0;
}

static void branches_close(struct branches *v)
{
	branch_table_release(&v->table);
	arena_free(v->names);
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

static bool is_over(const struct branches *v, size_t n)
{
	return v->report->options->limit && n >= v->report->options->limit;
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

/* The cells Where, Line and Instruction. */
static void place_cells(struct branches *v, struct table *t, const struct branch *b)
{
	insn_place_get(&v->place, v->report, b->insn);
	buf_reset(&v->text);
	insn_place_put(&v->text, &v->place);
	table_cell(t, buf_text(&v->text));
	if (v->place.file)
		table_cellf(t, "%s:%" PRIu32, path_base_name(v->place.file), v->place.line);
	else
		table_cell(t, ".");
	buf_reset(&v->text);
	insn_text_put(&v->text, v->report, v->place.insn);
	table_cell(t, buf_text(&v->text));
}

static void head_cells(struct table *t, const char *const *heads)
{
	table_row(t, TABLE_STYLE_STRONG);
	for (; *heads; heads++)
		table_cell(t, *heads);
}

static void print_table(const struct branches *v, struct table *t, size_t n, size_t n_shown)
{
	if (n_shown) {
		fputc('\n', v->report->out);
		table_print(t, v->report->options->color, v->report->out);
	}
	if (n > n_shown)
		fprintf(v->report->out, "  and %zu more\n", n - n_shown);
	table_release(t);
}

static void print_conditional(struct branches *v)
{
	static const char *const heads[] = {"Executed", "Taken", "Not-taken", "Unknown",
		"Exceptions", "Bias%", "Mainline", "Where", "Line", "Instruction", NULL};
	struct table t = {.left_columns = 1u << 6 | 1u << 7 | 1u << 8};
	size_t n = 0, n_shown = 0;

	head_cells(&t, heads);
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct branch *b = v->rows[i].branch;

		if (b->kind != BRANCH_KIND_CONDITIONAL || is_over(v, n++))
			continue;
		n_shown++;
		table_row(&t, TABLE_STYLE_PLAIN);
		table_number(&t, branch_executed(&v->table, b));
		table_number(&t, b->taken);
		table_number(&t, b->not_taken);
		table_number(&t, branch_unknown(&v->table, b));
		table_number(&t, branch_exceptions(b));
		if (known_of(v, b))
			percent_cell(&t, branch_mainline(b), known_of(v, b));
		else
			table_cell(&t, ".");
		table_cell(&t, mainline_of(b) ? mainline_of(b) : ".");
		place_cells(v, &t, b);
	}
	print_table(v, &t, n, n_shown);
}

static void target_row(struct branches *v, struct table *t, const struct branch *b,
	const struct branch_target *target)
{
	table_row(t, TABLE_STYLE_PLAIN);
	table_number(t, target->count);
	table_cell(t, "");
	table_cell(t, "");
	percent_cell(t, target->count, known_of(v, b));
	table_cell(t, "");
	buf_reset(&v->text);
	buf_put_cstr(&v->text, "  -> ");
	if (target->insn) {
		insn_place_get(&v->place, v->report, target->insn);
		insn_place_put(&v->text, &v->place);
	} else {
		buf_printf(&v->text, "0x%" PRIx64, target->addr);
	}
	table_cell(t, buf_text(&v->text));
}

static void target_rows(struct branches *v, struct table *t, const struct branch *b)
{
	uint64_t rest = b->other;
	size_t n_more = 0;

	for (size_t i = 0; i < b->targets.n; i++) {
		if (i < TARGETS_SHOWN) {
			target_row(v, t, b, &b->targets.v[i]);
			continue;
		}
		rest += b->targets.v[i].count;
		n_more++;
	}
	if (!rest)
		return;
	table_row(t, TABLE_STYLE_FAINT);
	table_number(t, rest);
	table_cell(t, "");
	table_cell(t, "");
	percent_cell(t, rest, known_of(v, b));
	table_cell(t, "");
	if (b->other)
		table_cell(t, "  -> other places");
	else
		table_cellf(t, "  -> %zu more", n_more);
}

static void print_indirect(struct branches *v)
{
	static const char *const heads[] = {"Executed", "Unknown", "Targets", "Share%", "Kind",
		"Where", "Line", "Instruction", NULL};
	struct table t = {.left_columns = 1u << 4 | 1u << 5 | 1u << 6};
	size_t n = 0, n_shown = 0;

	head_cells(&t, heads);
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct branch *b = v->rows[i].branch;

		if (b->kind == BRANCH_KIND_CONDITIONAL || is_over(v, n++))
			continue;
		n_shown++;
		table_row(&t, TABLE_STYLE_STRONG);
		table_number(&t, branch_executed(&v->table, b));
		table_number(&t, branch_unknown(&v->table, b));
		table_number(&t, b->targets.n);
		table_cell(&t, "");
		table_cell(&t, kind_names[b->kind]);
		place_cells(v, &t, b);
		target_rows(v, &t, b);
	}
	print_table(v, &t, n, n_shown);
}

int branches_text(const struct report *report, struct err *err)
{
	struct branches v;
	int rc = branches_open(&v, report, err);

	if (rc < 0)
		return rc;
	print_totals(&v);
	branches_print_loss(report);
	print_conditional(&v);
	print_indirect(&v);
	branches_close(&v);
	return 0;
}

/* ---- JSON ---- */

static void json_totals(struct json *j, const struct branches *v)
{
	static const char *const keys[BRANCH_N_KINDS] = {
		"conditional", "indirect_jump", "indirect_call", "return"};

	json_object_begin(j, "totals");
	for (int kind = 0; kind < BRANCH_N_KINDS; kind++) {
		const struct branch_totals *t = &v->totals[kind];
		bool is_conditional = kind == BRANCH_KIND_CONDITIONAL;

		if (kind == BRANCH_KIND_RETURN && !v->report->options->returns)
			continue;
		json_object_begin(j, keys[kind]);
		json_u64(j, "places", t->places);
		json_u64(j, "executed", t->executed);
		report_json_measured(j, "taken", is_conditional, t->taken);
		report_json_measured(j, "not_taken", is_conditional, t->not_taken);
		json_u64(j, "unknown", t->unknown);
		report_json_measured(j, "exceptions", is_conditional, t->exceptions);
		report_json_measured(j, "targets", !is_conditional, t->targets);
		json_object_end(j);
	}
	json_object_end(j);
}

static void json_targets(struct json *j, struct branches *v, const struct branch *b)
{
	json_array_begin(j, "targets");
	for (size_t i = 0; i < b->targets.n; i++) {
		const struct branch_target *target = &b->targets.v[i];
		const struct frame_level *f;

		insn_place_get(&v->place, v->report, target->insn);
		f = v->place.function;
		json_object_begin(j, NULL);
		json_u64(j, "address", target->addr);
		json_string(j, "symbol", f ? f->name : NULL);
		report_json_measured(j, "offset", f, f ? f->offset : 0);
		json_u64(j, "count", target->count);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_row(struct json *j, struct branches *v, const struct branch *b)
{
	bool is_conditional = b->kind == BRANCH_KIND_CONDITIONAL, is_known = known_of(v, b);

	insn_place_get(&v->place, v->report, b->insn);
	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "kind", kind_names[b->kind]);
	insn_place_json(j, v->report, &v->place);
	report_json_measured(j, "target", is_conditional, b->target);
	json_u64(j, "executed", branch_executed(&v->table, b));
	report_json_measured(j, "taken", is_conditional, b->taken);
	report_json_measured(j, "not_taken", is_conditional, b->not_taken);
	json_u64(j, "unknown", branch_unknown(&v->table, b));
	json_string(j, "mainline", is_conditional ? mainline_of(b) : NULL);
	report_json_measured(j, "exceptions", is_conditional && is_known, branch_exceptions(b));
	if (is_known)
		json_double(j, "bias", bias_of(v, b));
	else
		json_null(j, "bias");
	json_targets(j, v, b);
	report_json_measured(j, "other_targets", !is_conditional, b->other);
	json_object_end(j);
}

int branches_json(const struct report *report, struct err *err)
{
	size_t n_conditional = 0, n_indirect = 0;
	struct branches v;
	struct json j;
	int rc = branches_open(&v, report, err);

	if (rc < 0)
		return rc;
	report_json_begin_steps(&j, report, "branches", v.table.total);
	json_totals(&j, &v);
	report_json_rows(&j);
	for (size_t i = 0; i < v.n_rows; i++) {
		const struct branch *b = v.rows[i].branch;
		bool is_conditional = b->kind == BRANCH_KIND_CONDITIONAL;

		if (!is_over(&v, is_conditional ? n_conditional++ : n_indirect++))
			json_row(&j, &v, b);
	}
	report_json_end(&j, report);
	branches_close(&v);
	return 0;
}
