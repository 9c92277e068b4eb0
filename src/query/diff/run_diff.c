/* SPDX-License-Identifier: MIT */
#include "query/diff/run_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "query/diff/run_diff_internal.h"

struct run_diff *run_diff_new(const struct run_diff_question *q)
{
	struct run_diff *d = mem_zalloc(sizeof(*d));

	d->question = *q;
	diff_keys_init(&d->keys, q->map);
	return d;
}

void run_diff_free(struct run_diff *d)
{
	if (!d)
		return;
	for (int side = 0; side < N_RUN_SIDES; side++) {
		for (size_t i = 0; i < d->sides[side].n; i++)
			diff_run_release(&d->sides[side].v[i]);
		vec_release(&d->sides[side]);
	}
	for (size_t i = 0; i < d->facts.n; i++)
		run_facts_release(&d->facts.v[i]);
	for (size_t i = 0; i < d->notes.n; i++)
		free(d->notes.v[i]);
	vec_release(&d->facts);
	vec_release(&d->notes);
	vec_release(&d->rows);
	vec_release(&d->callers);
	vec_release(&d->renames);
	free(d->figures);
	free(d->metric);
	free(d->unit);
	diff_keys_release(&d->keys);
	free(d);
}

void run_diff_add_note(struct run_diff *d, const char *fmt, ...)
{
	va_list ap;
	char *note;

	va_start(ap, fmt);
	note = mem_vprintf(fmt, ap);
	va_end(ap);
	vec_push(&d->notes, note);
}

/* ---- runs ---- */

#define NS_PER_S 1e9

static int no_scale(const struct profile *p, const char *per, const char *what, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "'%s': has no %s, so there are no figures per %s",
		trace_reader_name(p->reader), what, per);
}

/* What a run's figures are multiplied by. Those per call are divided row by row. */
static int find_scale(
	struct diff_run *run, const struct profile *p, enum diff_per per, struct err *err)
{
	double wall = (double)(p->end - p->start), cpu = (double)p->loss.cpu_ns;

	if (!strcmp(p->metric, "cpu"))
		cpu = run->total.value;
	if (per == DIFF_PER_WALL && wall <= 0)
		return no_scale(p, "wall", "duration", err);
	if (per == DIFF_PER_CPU && cpu <= 0)
		return no_scale(p, "cpu", "known CPU time", err);
	if (per == DIFF_PER_SAMPLE && !run->samples)
		return no_scale(p, "sample", "samples", err);
	run->scale = per == DIFF_PER_WALL     ? NS_PER_S / wall
		     : per == DIFF_PER_CPU    ? NS_PER_S / cpu
		     : per == DIFF_PER_SAMPLE ? 1 / (double)run->samples
					      : 1;
	return 0;
}

int run_diff_add(
	struct run_diff *d, enum run_side side, const struct profile *profile, struct err *err)
{
	struct diff_run_question q = {
		d->question.by, d->question.with_callees, side == RUNS_BEFORE};
	struct diff_run run;
	int rc = diff_run_init(&run, &d->keys, profile, &q, err);

	if (rc < 0)
		return rc;
	rc = run_diff_check(d, &run, profile, err);
	if (rc == 0)
		rc = find_scale(&run, profile, d->question.per, err);
	if (rc < 0) {
		diff_run_release(&run);
		return rc;
	}
	vec_push(&d->sides[side], run);
	return 0;
}

/* ---- rows ---- */

static struct figure scaled(struct figure f, double by)
{
	return (struct figure){f.value * by, f.squares * by * by};
}

static const struct diff_run_row *row_of(const struct diff_run *run, uint32_t id)
{
	static const struct diff_run_row none;

	return id < run->rows.n ? &run->rows.v[id] : &none;
}

static double scale_of(const struct run_diff *d, const struct diff_run *run, uint32_t id)
{
	double calls = id ? row_of(run, id)->calls : 0;

	if (d->question.per != DIFF_PER_CALL)
		return run->scale;
	return calls > 0 ? 1 / calls : 0;
}

static void put_side(
	struct run_diff *d, struct run_diff_row *row, enum run_side side, struct figure *figures)
{
	size_t n = d->sides[side].n;
	struct compare_side *to =
		side == RUNS_BEFORE ? &row->question.before : &row->question.after;

	to->runs = figures;
	to->n = n;
	row->has_calls |= side == RUNS_BEFORE;
	for (size_t i = 0; i < n; i++) {
		const struct diff_run *run = &d->sides[side].v[i];
		const struct diff_run_row *from = row_of(run, row->id);
		double scale = scale_of(d, run, row->id);

		figures[i] = scaled(row->id ? from->figure : run->total, scale);
		to->grain += run->grain * scale / (double)n;
		if (d->question.per != DIFF_PER_CALL) /* which have no whole */
			to->whole += run->total.value * run->scale / (double)n;
		row->samples[side] += row->id ? from->samples : run->samples;
		row->calls[side] += from->calls / (double)n;
		row->is_there[side] |= from->is_there || !row->id;
		row->is_kernel |= from->is_kernel;
		row->is_exact &= row->id ? from->is_exact || (!from->is_there && run->is_measured)
					 : run->is_measured;
		row->has_calls &= from->has_calls || (!from->is_there && run->is_measured);
		row->question.is_exact &= run->is_counted || !run->is_measured;
	}
}

static double noise_of(const struct run_diff *d, const struct run_diff_row *row)
{
	if (d->question.noise >= 0)
		return d->question.noise;
	return row->is_kernel ? COMPARE_NOISE_OUTSIDE : COMPARE_NOISE;
}

/* Nothing of it was used on either side: it has callees alone. */
static bool is_empty(const struct run_diff *d, uint32_t id)
{
	for (int side = 0; side < N_RUN_SIDES; side++)
		for (size_t i = 0; i < d->sides[side].n; i++)
			if (row_of(&d->sides[side].v[i], id)->figure.value != 0)
				return false;
	return true;
}

static struct figure *make_row(
	struct run_diff *d, struct run_diff_row *row, uint32_t id, struct figure *figures)
{
	*row = (struct run_diff_row){.id = id, .is_exact = true, .question.is_exact = true};
	for (int side = 0; side < N_RUN_SIDES; side++) {
		put_side(d, row, (enum run_side)side, figures);
		figures += d->sides[side].n;
	}
	row->question.is_exact &= row->is_exact;
	row->question.noise = noise_of(d, row);
	row->answer = compare_figures(&row->question);
	return figures;
}

static bool has_calls_for(const struct run_diff *d, const struct run_diff_row *row)
{
	return d->question.per != DIFF_PER_CALL ||
	       (row->has_calls && (row->calls[RUNS_BEFORE] > 0 || !row->is_there[RUNS_BEFORE]) &&
		       (row->calls[RUNS_AFTER] > 0 || !row->is_there[RUNS_AFTER]));
}

static void make_rows(struct run_diff *d)
{
	size_t n_ids = 0, n_runs = d->sides[RUNS_BEFORE].n + d->sides[RUNS_AFTER].n;
	struct figure *to;

	for (int side = 0; side < N_RUN_SIDES; side++)
		for (size_t i = 0; i < d->sides[side].n; i++)
			n_ids = d->sides[side].v[i].rows.n > n_ids ? d->sides[side].v[i].rows.n
								   : n_ids;
	d->figures = mem_calloc((n_ids + 1) * n_runs, sizeof(*d->figures));
	to = make_row(d, &d->total, 0, d->figures);
	for (uint32_t id = 1; id < n_ids; id++) {
		struct run_diff_row row;

		if (is_empty(d, id))
			continue;
		to = make_row(d, &row, id, to);
		if (has_calls_for(d, &row))
			vec_push(&d->rows, row);
		else
			d->n_without_calls++;
	}
	if (d->n_without_calls)
		run_diff_add_note(d,
			"%zu rows are left out: their calls were not counted on both sides",
			d->n_without_calls);
}

static int rank_of(const struct run_diff_row *row)
{
	return row->answer.verdict == COMPARE_SAME	? 2
	       : row->answer.verdict == COMPARE_UNKNOWN ? 1
							: 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct run_diff_row *x = a, *y = b;

	return ORDER(rank_of(x), rank_of(y)) ?: ORDER(fabs(y->answer.difference),
							fabs(x->answer.difference))
			       ?: ORDER(y->answer.before, x->answer.before) ?: ORDER(x->id, y->id);
}

/* What is assumed is told. */
static void note_noise(struct run_diff *d)
{
	bool is_estimate = !d->total.question.is_exact;

	for (size_t i = 0; i < d->rows.n; i++)
		is_estimate |= !d->rows.v[i].question.is_exact;
	if (is_estimate && d->question.noise < 0 && d->sides[RUNS_BEFORE].n == 1 &&
		d->sides[RUNS_AFTER].n == 1)
		run_diff_add_note(d,
			"one run a side does not show how runs differ: %.0f %% is assumed of each function "
			"(%.0f %% of the kernel's); several runs measure it, --noise says it",
			100 * COMPARE_NOISE, 100 * COMPARE_NOISE_OUTSIDE);
}

static void note_names_not_met(struct run_diff *d)
{
	for (size_t i = 0; i < name_map_n(d->question.map); i++) {
		const char *new_name = name_map_new(d->question.map, i);
		bool is_met = false;

		for (uint32_t key = 1; !is_met && key < diff_keys_n(&d->keys); key++)
			is_met = !strcmp(diff_key_name(&d->keys, key), new_name);
		if (!is_met)
			run_diff_add_note(d, "--map: neither side has '%s' or '%s'",
				name_map_old(d->question.map, i), new_name);
	}
}

void run_diff_finish(struct run_diff *d)
{
	make_rows(d);
	note_noise(d);
	note_names_not_met(d);
	if (d->question.by == DIFF_BY_FUNCTION) {
		if (d->question.per != DIFF_PER_CALL)
			run_diff_split_calls(d);
		run_diff_find_renames(d);
	}
	vec_sort(&d->rows, compare_rows);
}

/* ---- what is asked of it ---- */

const char *run_diff_metric(const struct run_diff *d)
{
	return d->metric;
}

const struct run_diff_question *run_diff_question(const struct run_diff *d)
{
	return &d->question;
}

const struct diff_keys *run_diff_keys(const struct run_diff *d)
{
	return &d->keys;
}

const char *run_diff_unit(const struct run_diff *d)
{
	return d->unit;
}

size_t run_diff_n_runs(const struct run_diff *d, enum run_side side)
{
	return d->sides[side].n;
}

struct run_diff_run run_diff_run(const struct run_diff *d, size_t i)
{
	const struct run_facts *f = &d->facts.v[i];

	return (struct run_diff_run){.side = i < d->sides[RUNS_BEFORE].n ? RUNS_BEFORE : RUNS_AFTER,
		.name = f->name,
		.samples = f->samples,
		.samples_lost = f->samples_lost,
		.events_lost = f->events_lost,
		.is_cut = f->is_cut};
}

double run_diff_samples(const struct run_diff *d, enum run_side side)
{
	return (double)d->total.samples[side] / (double)d->sides[side].n;
}

const struct run_diff_row *run_diff_total(const struct run_diff *d)
{
	return &d->total;
}

size_t run_diff_rows(const struct run_diff *d, const struct run_diff_row **rows)
{
	*rows = d->rows.v;
	return d->rows.n;
}

const struct run_diff_caller *run_diff_callers(
	const struct run_diff *d, const struct run_diff_row *row)
{
	return d->callers.v + row->first_caller;
}

size_t run_diff_renames(const struct run_diff *d, const struct run_diff_rename **renames)
{
	*renames = d->renames.v;
	return d->renames.n;
}

size_t run_diff_n_notes(const struct run_diff *d)
{
	return d->notes.n;
}

const char *run_diff_note(const struct run_diff *d, size_t i)
{
	return d->notes.v[i];
}

const char *run_diff_name(const struct run_diff *d, const struct run_diff_row *row, struct buf *out)
{
	buf_reset(out);
	if (!row->id)
		buf_put_cstr(out, "total");
	else if (d->question.by == DIFF_BY_STACK)
		diff_path_put(&d->keys, row->id, out);
	else
		buf_put_cstr(out, diff_key_name(&d->keys, row->id));
	return buf_text(out);
}

const char *run_diff_image(const struct run_diff *d, const struct run_diff_row *row)
{
	return row->id && d->question.by != DIFF_BY_STACK ? diff_key_image(&d->keys, row->id) : "";
}

const char *compare_verdict_name(enum compare_verdict verdict)
{
	static const char *const names[] = {[COMPARE_SAME] = "same",
		[COMPARE_MORE] = "more",
		[COMPARE_LESS] = "less",
		[COMPARE_UNKNOWN] = "cannot tell"};

	return names[verdict];
}

/* ---- order ---- */

struct ordering {
	const struct run_diff *d;
	const char *sort;
	char **names; /* by row; NULL: not asked for */
};

/* Doubles in the order of unsigned numbers. */
static uint64_t order_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static struct query_key key_of(void *context, size_t i)
{
	const struct ordering *o = context;
	const struct compare_answer *answer = &o->d->rows.v[i].answer;

	if (!strcmp(o->sort, "name"))
		return (struct query_key){.text = o->names[i]};
	return (struct query_key){
		.number = order_of(!strcmp(o->sort, "before")  ? answer->before
				   : !strcmp(o->sort, "after") ? answer->after
							       : fabs(answer->difference))};
}

size_t run_diff_order(const struct run_diff *d, const struct query *q, size_t **rows)
{
	struct ordering o = {d, q->sort, mem_calloc(d->rows.n + 1, sizeof(char *))};
	size_t n = 0;
	struct buf name = {0};

	*rows = mem_calloc(d->rows.n + 1, sizeof(**rows));
	for (size_t i = 0; i < d->rows.n; i++) {
		const char *text = run_diff_name(d, &d->rows.v[i], &name);

		if (!query_matches(q, text))
			continue;
		(*rows)[n++] = i;
		if (q->sort && !strcmp(q->sort, "name"))
			o.names[i] = mem_strdup(text);
	}
	if (q->sort && strcmp(q->sort, "verdict") != 0)
		query_order(*rows, n, key_of, &o);
	for (size_t i = 0; i < d->rows.n; i++)
		free(o.names[i]);
	free(o.names);
	buf_release(&name);
	return n;
}
