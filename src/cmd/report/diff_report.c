/* SPDX-License-Identifier: MIT */
#include "cmd/report/diff_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/rows.h"

#define NUMBER_BYTES   48
#define WHOLE_MAX      9e15 /* whole numbers below it are exact */
#define ROUNDED_FROM   1e5  /* greater ones are whole in JSON, which has six digits of others */
#define DECIMALS_BELOW 100  /* numbers that are not whole have two decimals */
#define COLUMNS_MAX    12

struct diff_writer {
	const struct run_diff *d;
	const struct diff_report_options *options;
	struct rows rows;
	char before[NUMBER_BYTES], after[NUMBER_BYTES], difference[NUMBER_BYTES]; /* heads */
	struct column columns[COLUMNS_MAX];
	struct buf name;
};

/* ---- numbers ---- */

static bool is_whole(double value)
{
	return value == floor(value) && fabs(value) < WHOLE_MAX;
}

static void json_number(struct json *j, const char *key, double value)
{
	if (!isfinite(value))
		json_null(j, key);
	else if (is_whole(value) || (fabs(value) >= ROUNDED_FROM && fabs(value) < WHOLE_MAX))
		json_i64(j, key, (int64_t)llround(value));
	else
		json_double(j, key, value);
}

static void put_number(
	const struct diff_writer *w, char text[NUMBER_BYTES], double value, bool is_signed)
{
	const char *sign = value < 0 ? "-" : is_signed && value > 0 ? "+" : "";
	double size = fabs(value);

	if (w->options->human && strchr(run_diff_unit(w->d), '/') == NULL)
		snprintf(text, NUMBER_BYTES, "%s%s", sign,
			value_human((uint64_t)(size + 0.5), run_diff_unit(w->d)).s);
	else if (is_whole(size) || size >= DECIMALS_BELOW)
		snprintf(text, NUMBER_BYTES, "%s%.0f", sign, size);
	else
		snprintf(text, NUMBER_BYTES, "%s%.2f", sign, size);
}

static void show_number(
	struct diff_writer *w, const char *key, bool is_known, double value, bool is_signed)
{
	char text[NUMBER_BYTES];

	put_number(w, text, value, is_signed);
	row_show(&w->rows, key, is_known ? text : ".");
}

/* What would tell: samples of a run, or runs. */
struct need {
	double samples, runs; /* infinite: no number of them */
};

static struct need need_of(const struct diff_writer *w, const struct run_diff_row *row)
{
	struct need need = {INFINITY, INFINITY};
	double samples[N_RUN_SIDES], runs[N_RUN_SIDES];

	if (row->answer.verdict != COMPARE_UNKNOWN)
		return need;
	for (int side = 0; side < N_RUN_SIDES; side++) {
		samples[side] = run_diff_samples(w->d, (enum run_side)side);
		runs[side] = (double)run_diff_n_runs(w->d, (enum run_side)side);
	}
	if (runs[RUNS_BEFORE] > 1 || runs[RUNS_AFTER] > 1)
		need.runs = ceil(row->answer.needed * fmax(runs[RUNS_BEFORE], runs[RUNS_AFTER]));
	else
		need.samples =
			ceil(row->answer.needed * fmax(samples[RUNS_BEFORE], samples[RUNS_AFTER]));
	return need;
}

#define NEED_MAX 1e9 /* nobody takes more */

static void show_need(struct diff_writer *w, const struct run_diff_row *row)
{
	struct need need = need_of(w, row);

	if (row->answer.verdict != COMPARE_UNKNOWN)
		row_show(&w->rows, "needs", "");
	else if (need.samples > 0 && need.samples < NEED_MAX)
		row_showf(&w->rows, "needs", "%.0f samples", need.samples);
	else if (need.runs < NEED_MAX)
		row_showf(&w->rows, "needs", "%.0f runs", need.runs);
	else
		row_show(&w->rows, "needs", "runs");
}

/* ---- text ---- */

static enum table_style style_of(const struct run_diff_row *row)
{
	return row->answer.verdict == COMPARE_MORE	? TABLE_STYLE_HOT
	       : row->answer.verdict == COMPARE_UNKNOWN ? TABLE_STYLE_FAINT
							: TABLE_STYLE_PLAIN;
}

static void show_interval(struct diff_writer *w, const struct compare_answer *answer)
{
	char low[NUMBER_BYTES], high[NUMBER_BYTES];

	put_number(w, low, answer->low, true);
	put_number(w, high, answer->high, true);
	if (answer->has_interval)
		row_showf(&w->rows, "interval", "%s .. %s", low, high);
	else
		row_show(&w->rows, "interval", "exact");
}

static void show_percent(struct diff_writer *w, const struct run_diff_row *row)
{
	if (row->answer.before > 0)
		row_showf(&w->rows, "percent", "%+.2f",
			100 * row->answer.difference / row->answer.before);
	else
		row_show(&w->rows, "percent", row->answer.after > 0 ? "new" : ".");
}

static bool is_gone(const struct run_diff_row *row)
{
	return row->is_there[RUNS_BEFORE] && !row->is_there[RUNS_AFTER];
}

static void show_row(struct diff_writer *w, const struct run_diff_row *row)
{
	const struct compare_answer *answer = &row->answer;
	bool has_split = row->id && row->has_calls && row->n_callers;
	const char *name = run_diff_name(w->d, row, &w->name);

	row_begin(&w->rows, row->id ? style_of(row) : TABLE_STYLE_STRONG);
	row_show(&w->rows, "verdict", compare_verdict_name(answer->verdict));
	show_number(w, "before", true, answer->before, false);
	show_number(w, "after", true, answer->after, false);
	show_number(w, "difference", true, answer->difference, true);
	show_interval(w, answer);
	show_percent(w, row);
	show_number(w, "more_calls", has_split, row->split.more_calls, true);
	show_number(w, "dearer_calls", has_split, row->split.dearer_calls, true);
	show_need(w, row);
	row_show(&w->rows, "name", name);
	row_end(&w->rows);
}

static const char *caller_name(const struct diff_writer *w, uint32_t key)
{
	return key ? diff_key_name(run_diff_keys(w->d), key) : "(thread)";
}

static void show_callers(struct diff_writer *w, const struct run_diff_row *row)
{
	const struct run_diff_caller *callers = run_diff_callers(w->d, row);

	for (size_t i = 0; row->has_calls && i < row->n_callers; i++) {
		const struct run_diff_caller *c = &callers[i];

		row_begin(&w->rows, TABLE_STYLE_PLAIN);
		row_show(&w->rows, "verdict", "");
		show_number(w, "before", true, c->values[RUNS_BEFORE], false);
		show_number(w, "after", true, c->values[RUNS_AFTER], false);
		show_number(w, "difference", true, c->values[RUNS_AFTER] - c->values[RUNS_BEFORE],
			true);
		row_showf(&w->rows, "interval", "%.0f -> %.0f calls", c->calls[RUNS_BEFORE],
			c->calls[RUNS_AFTER]);
		row_show(&w->rows, "percent", "");
		show_number(w, "more_calls", true, c->split.more_calls, true);
		show_number(w, "dearer_calls", true, c->split.dearer_calls, true);
		row_show(&w->rows, "needs", "");
		row_showf(&w->rows, "name", "  from %s", caller_name(w, c->key));
		row_end(&w->rows);
	}
}

static void put_head(char head[NUMBER_BYTES], const char *word, const struct diff_writer *w)
{
	const char *unit = run_diff_unit(w->d);
	bool is_plain = !strcmp(unit, "1") || (w->options->human && !strchr(unit, '/'));

	snprintf(head, NUMBER_BYTES, is_plain ? "%s" : "%s[%s]", word, unit);
}

static bool has_splits(const struct run_diff *d)
{
	const struct run_diff_row *rows;
	size_t n = run_diff_rows(d, &rows);

	for (size_t i = 0; i < n; i++)
		if (rows[i].has_calls && rows[i].n_callers)
			return true;
	return false;
}

static void make_columns(struct diff_writer *w)
{
	size_t n = 0;

	put_head(w->before, "Before", w);
	put_head(w->after, "After", w);
	put_head(w->difference, "Difference", w);
	w->columns[n++] = (struct column){"verdict", "Verdict", COLUMN_LEFT};
	w->columns[n++] = (struct column){"before", w->before, 0};
	w->columns[n++] = (struct column){"after", w->after, 0};
	w->columns[n++] = (struct column){"difference", w->difference, 0};
	w->columns[n++] = (struct column){"interval", "95%-interval", 0};
	w->columns[n++] = (struct column){"percent", "Diff%", 0};
	if (has_splits(w->d)) {
		w->columns[n++] = (struct column){"more_calls", "More-calls", 0};
		w->columns[n++] = (struct column){"dearer_calls", "Dearer-calls", 0};
	}
	w->columns[n++] = (struct column){"needs", "Needs", COLUMN_LEFT};
	w->columns[n++] = (struct column){"name", "Name", 0};
	w->columns[n] = (struct column){0};
}

static void show_counts(const struct diff_writer *w, FILE *out)
{
	const struct run_diff_row *rows;
	size_t n = run_diff_rows(w->d, &rows), n_of[4] = {0}, n_new = 0, n_gone = 0;

	for (size_t i = 0; i < n; i++) {
		n_of[rows[i].answer.verdict]++;
		n_gone += is_gone(&rows[i]);
		n_new += !rows[i].is_there[RUNS_BEFORE];
	}
	fprintf(out,
		"%zu more, %zu less, %zu same, %zu cannot be told; %zu are new, %zu are gone\n",
		n_of[COMPARE_MORE], n_of[COMPARE_LESS], n_of[COMPARE_SAME], n_of[COMPARE_UNKNOWN],
		n_new, n_gone);
}

static void show_renames(const struct diff_writer *w, FILE *out)
{
	const struct run_diff_rename *renames;
	size_t n = run_diff_renames(w->d, &renames);

	if (n)
		fputs("Perhaps renamed (--map FILE joins what a line OLD NEW of it names)\n", out);
	for (size_t i = 0; i < n; i++) {
		const struct run_diff_rename *r = &renames[i];

		fprintf(out, "  %s\t%s\t%u of %u callers and callees",
			diff_key_name(run_diff_keys(w->d), r->old),
			diff_key_name(run_diff_keys(w->d), r->new), r->n_common, r->n_neighbours);
		if (r->bytes)
			fprintf(out, ", %" PRIu64 " bytes of code each", r->bytes);
		putc('\n', out);
	}
}

/* ---- JSON ---- */

static const char *const side_names[N_RUN_SIDES] = {"before", "after"};

static void json_side(struct json *j, const struct run_diff_row *row, int side)
{
	json_object_begin(j, side_names[side]);
	json_bool(j, "there", row->is_there[side]);
	json_number(j, "value", side == RUNS_BEFORE ? row->answer.before : row->answer.after);
	json_u64_if(j, "samples", !row->is_exact, row->samples[side]);
	if (row->id && row->has_calls)
		json_number(j, "calls", row->calls[side]);
	else
		json_null(j, "calls");
	json_object_end(j);
}

static void json_split(struct json *j, const struct call_split *split)
{
	json_number(j, "more_calls", split->more_calls);
	json_number(j, "dearer_calls", split->dearer_calls);
}

static void json_callers(struct diff_writer *w, const struct run_diff_row *row)
{
	struct json *j = &w->rows.json;
	const struct run_diff_caller *callers = run_diff_callers(w->d, row);

	json_array_begin(j, "callers");
	for (size_t i = 0; row->has_calls && i < row->n_callers; i++) {
		json_object_begin(j, NULL);
		json_string(j, "name", callers[i].key ? caller_name(w, callers[i].key) : NULL);
		for (int side = 0; side < N_RUN_SIDES; side++) {
			json_object_begin(j, side_names[side]);
			json_number(j, "value", callers[i].values[side]);
			json_number(j, "calls", callers[i].calls[side]);
			json_object_end(j);
		}
		json_split(j, &callers[i].split);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_row(struct diff_writer *w, const char *key, const struct run_diff_row *row)
{
	struct json *j = &w->rows.json;
	const struct compare_answer *answer = &row->answer;
	struct need need = need_of(w, row);
	bool has_split = row->id && row->has_calls && row->n_callers;

	json_newline(j);
	json_object_begin(j, key);
	json_string(j, "name", run_diff_name(w->d, row, &w->name));
	report_json_text(j, "image", run_diff_image(w->d, row));
	json_string(j, "verdict", compare_verdict_name(answer->verdict));
	json_bool(j, "exact", row->is_exact);
	json_side(j, row, RUNS_BEFORE);
	json_side(j, row, RUNS_AFTER);
	json_number(j, "difference", answer->difference);
	json_number(j, "low", answer->has_interval ? answer->low : NAN);
	json_number(j, "high", answer->has_interval ? answer->high : NAN);
	json_number(j, "needed_samples", need.samples);
	json_number(j, "needed_runs", need.runs);
	if (has_split) {
		json_split(j, &row->split);
		json_callers(w, row);
	}
	json_object_end(j);
}

static void json_traces(struct diff_writer *w)
{
	size_t n = run_diff_n_runs(w->d, RUNS_BEFORE) + run_diff_n_runs(w->d, RUNS_AFTER);
	struct json *j = &w->rows.json;

	json_array_begin(j, "traces");
	for (size_t i = 0; i < n; i++) {
		struct run_diff_run run = run_diff_run(w->d, i);

		json_newline(j);
		json_object_begin(j, NULL);
		json_string(j, "side", side_names[run.side]);
		json_string(j, "trace", run.name);
		json_u64(j, "samples", run.samples);
		json_u64(j, "samples_lost", run.samples_lost);
		json_u64(j, "events_lost", run.events_lost);
		json_bool(j, "cut", run.is_cut);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_head(struct diff_writer *w)
{
	static const char *const bys[] = {"function", "stack", "line", "image"};
	static const char *const pers[] = {"run", "wall", "cpu", "call", "sample"};
	const struct run_diff_question *q = run_diff_question(w->d);
	struct json *j = &w->rows.json;

	json_object_begin(j, NULL);
	json_u64(j, "weir", 1);
	json_string(j, "kind", "diff");
	json_object_begin(j, "metric");
	json_string(j, "name", run_diff_metric(w->d));
	json_string(j, "unit", run_diff_unit(w->d));
	json_object_end(j);
	json_string(j, "by", bys[q->by]);
	json_string(j, "per", pers[q->per]);
	json_string(j, "figure", q->with_callees ? "cum" : "base");
	json_object_begin(j, "runs");
	for (int side = 0; side < N_RUN_SIDES; side++)
		json_u64(j, side_names[side], run_diff_n_runs(w->d, (enum run_side)side));
	json_object_end(j);
	json_traces(w);
	if (q->per != DIFF_PER_CALL)
		json_row(w, "total", run_diff_total(w->d));
	else
		json_null(j, "total"); /* calls of all functions are no calls of one thing */
}

static void json_tail(struct diff_writer *w)
{
	struct json *j = &w->rows.json;
	const struct run_diff_rename *renames;
	size_t n = run_diff_renames(w->d, &renames);

	json_newline(j);
	json_array_begin(j, "renamed");
	for (size_t i = 0; i < n; i++) {
		json_object_begin(j, NULL);
		json_string(j, "old", diff_key_name(run_diff_keys(w->d), renames[i].old));
		json_string(j, "new", diff_key_name(run_diff_keys(w->d), renames[i].new));
		json_u64_if(j, "bytes", renames[i].bytes != 0, renames[i].bytes);
		json_u64(j, "common", renames[i].n_common);
		json_u64(j, "neighbours", renames[i].n_neighbours);
		json_object_end(j);
	}
	json_array_end(j);
	json_newline(j);
	json_array_begin(j, "notes");
	for (size_t i = 0; i < run_diff_n_notes(w->d); i++)
		json_string(j, NULL, run_diff_note(w->d, i));
	json_array_end(j);
	json_object_end(j);
}

/* ---- both ---- */

static void put_row(struct diff_writer *w, const struct run_diff_row *row)
{
	if (w->rows.is_json) {
		json_row(w, NULL, row);
		return;
	}
	show_row(w, row);
	if (w->options->callers)
		show_callers(w, row);
}

void diff_report(const struct run_diff *d, const struct diff_report_options *options, FILE *out)
{
	struct diff_writer w = {.d = d, .options = options};
	const struct run_diff_row *rows;
	size_t *order, n = run_diff_order(d, &options->query, &order);
	size_t n_shown = query_limit(&options->query, n);

	run_diff_rows(d, &rows);
	rows_init(&w.rows, out, options->json);
	w.rows.color = options->color;
	if (options->json)
		json_head(&w);
	else
		make_columns(&w);
	rows_open(&w.rows, "rows", w.columns);
	if (!options->json && run_diff_question(d)->per != DIFF_PER_CALL)
		show_row(&w, run_diff_total(d));
	for (size_t i = 0; i < n_shown; i++)
		put_row(&w, &rows[order[i]]);
	rows_close(&w.rows);
	if (options->json) {
		json_tail(&w);
	} else {
		rows_more(&w.rows, n, n_shown);
		show_counts(&w, out);
		show_renames(&w, out);
	}
	buf_release(&w.rows.cells);
	buf_release(&w.rows.line);
	if (options->json)
		putc('\n', out);
	buf_release(&w.name);
	free(order);
}

void diff_report_folded(const struct run_diff *d, const struct query *query, FILE *out)
{
	const struct run_diff_row *rows;
	size_t *order, n = run_diff_order(d, query, &order);
	struct buf name = {0};

	run_diff_rows(d, &rows);
	for (size_t i = 0; i < query_limit(query, n); i++) {
		const struct run_diff_row *row = &rows[order[i]];

		fprintf(out, "%s %.0f %.0f\n", run_diff_name(d, row, &name), row->answer.before,
			row->answer.after);
	}
	buf_release(&name);
	free(order);
}
