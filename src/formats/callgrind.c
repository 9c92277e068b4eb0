/* SPDX-License-Identifier: MIT */
/*
 * The text of a callgrind profile. Names are written once, "(number) name", and from then on
 * "(number)". A call is "cfn=", "calls=COUNT LINE-OF-CALLEE" and a line of costs with the line of
 * the call. Readers take costs behind "calls=0" for the function's own, so an arc has at least one
 * call.
 */
#include "formats/exports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "formats/callgrind_model.h"

struct callgrind_writer {
	const struct callgrind_model *model;
	FILE *out;
	struct intern files, objects; /* number = id + 1 */
	bool *is_named;		      /* by function */
};

static void put_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' ? '?' : *text, out);
}

static void put_name(
	struct callgrind_writer *w, struct intern *names, const char *key, const char *name)
{
	size_t had = names->n_items;
	uint32_t id = intern_text(names, *name ? name : "???");

	fprintf(w->out, "%s=(%" PRIu32 ")", key, id + 1);
	if (names->n_items > had) {
		fputc(' ', w->out);
		put_text(w->out, *name ? name : "???");
	}
	fputc('\n', w->out);
}

static void put_function(struct callgrind_writer *w, const char *key, uint32_t function)
{
	fprintf(w->out, "%s=(%" PRIu32 ")", key, function + 1);
	if (!w->is_named[function]) {
		fputc(' ', w->out);
		put_text(w->out, w->model->functions.v[function].name);
		w->is_named[function] = true;
	}
	fputc('\n', w->out);
}

static void put_values(struct callgrind_writer *w, const uint64_t *values)
{
	for (size_t i = 0; i < w->model->n_events; i++)
		fprintf(w->out, " %" PRIu64, values[i]);
	fputc('\n', w->out);
}

static void put_call(struct callgrind_writer *w, const struct callgrind_call *call)
{
	const struct callgrind_function *caller = &w->model->functions.v[call->caller];
	const struct callgrind_function *callee = &w->model->functions.v[call->callee];

	if (strcmp(caller->object, callee->object))
		put_name(w, &w->objects, "cob", callee->object);
	if (strcmp(caller->file, callee->file))
		put_name(w, &w->files, "cfi", callee->file);
	put_function(w, "cfn", call->callee);
	fprintf(w->out, "calls=%" PRIu64 " %" PRIu32 "\n%" PRIu32, call->calls ? call->calls : 1,
		callee->line, call->line);
	put_values(w, call->values);
}

/* Own costs first, then calls; *cost and *call go on to what is behind this function. */
static void put_body(struct callgrind_writer *w, uint32_t function, size_t *cost, size_t *call)
{
	const struct callgrind_model *m = w->model;
	const struct callgrind_function *f = &m->functions.v[function];
	const char *file = f->file;

	for (; *cost < m->costs.n && m->costs.v[*cost].function == function; (*cost)++) {
		const struct callgrind_cost *c = &m->costs.v[*cost];

		if (strcmp(c->file, file))
			put_name(w, &w->files, strcmp(c->file, f->file) ? "fi" : "fe", c->file);
		file = c->file;
		fprintf(w->out, "%" PRIu32, c->line);
		put_values(w, c->values);
	}
	if (strcmp(file, f->file))
		put_name(w, &w->files, "fe", f->file);
	for (; *call < m->calls.n && m->calls.v[*call].caller == function; (*call)++)
		put_call(w, &m->calls.v[*call]);
}

static void put_functions(struct callgrind_writer *w)
{
	const struct callgrind_model *m = w->model;
	const char *object = NULL;
	size_t cost = 0, call = 0;

	for (uint32_t i = 0; i < m->functions.n; i++) {
		const struct callgrind_function *f = &m->functions.v[i];
		bool has_costs = cost < m->costs.n && m->costs.v[cost].function == i;

		if (!has_costs && !(call < m->calls.n && m->calls.v[call].caller == i))
			continue;
		fputc('\n', w->out);
		if (!object || strcmp(object, f->object))
			put_name(w, &w->objects, "ob", f->object);
		object = f->object;
		put_name(w, &w->files, "fl", f->file);
		put_function(w, "fn", i);
		put_body(w, i, &cost, &call);
	}
}

static void put_head(struct callgrind_writer *w, const struct profile *p, const uint64_t *totals)
{
	const struct callgrind_model *m = w->model;
	const char *command = trace_reader_meta(p->reader, "command");

	fprintf(w->out, "# callgrind format\nversion: 1\ncreator: weir %s\n", WEIR_VERSION);
	if (p->n_threads > 1)
		fprintf(w->out, "pid: %" PRIu32 "\n", p->threads[1].pid);
	if (command && *command) {
		fputs("cmd: ", w->out);
		put_text(w->out, command);
		fputc('\n', w->out);
	}
	fputs("part: 1\n\npositions: line\n", w->out);
	for (size_t i = 0; i < m->n_events; i++)
		fprintf(w->out, "event: %s : %s\n", m->events[i], m->titles[i]);
	fputs("events:", w->out);
	for (size_t i = 0; i < m->n_events; i++)
		fprintf(w->out, " %s", m->events[i]);
	fputs("\nsummary:", w->out);
	put_values(w, totals);
}

static int compare_costs(const void *a, const void *b)
{
	const struct callgrind_cost *x = a, *y = b;

	return ORDER(x->function, y->function) ?: strcmp(x->file, y->file)
		       ?: ORDER(x->line, y->line);
}

ORDER_BY(compare_calls, struct callgrind_call, caller, callee, line)

static void add_values(uint64_t *to, const uint64_t *values)
{
	for (size_t i = 0; i < CALLGRIND_EVENTS_MAX; i++)
		to[i] += values[i];
}

/* In order, each line of a function and each place of a call once. */
static void put_in_order(struct callgrind_model *m)
{
	size_t n = 0;

	vec_sort(&m->costs, compare_costs);
	for (size_t i = 0; i < m->costs.n; i++)
		if (n && !compare_costs(&m->costs.v[n - 1], &m->costs.v[i]))
			add_values(m->costs.v[n - 1].values, m->costs.v[i].values);
		else
			m->costs.v[n++] = m->costs.v[i];
	m->costs.n = n;
	n = 0;
	vec_sort(&m->calls, compare_calls);
	for (size_t i = 0; i < m->calls.n; i++)
		if (n && !compare_calls(&m->calls.v[n - 1], &m->calls.v[i])) {
			add_values(m->calls.v[n - 1].values, m->calls.v[i].values);
			m->calls.v[n - 1].calls += m->calls.v[i].calls;
		} else {
			m->calls.v[n++] = m->calls.v[i];
		}
	m->calls.n = n;
}

static void put_model(struct callgrind_writer *w, const struct profile *p)
{
	uint64_t totals[CALLGRIND_EVENTS_MAX] = {0};

	for (size_t i = 0; i < w->model->costs.n; i++)
		add_values(totals, w->model->costs.v[i].values);
	w->is_named = mem_calloc(w->model->functions.n + 1, sizeof(*w->is_named));
	put_head(w, p, totals);
	put_functions(w);
	fputs("\ntotals:", w->out);
	put_values(w, totals);
	free(w->is_named);
	intern_release(&w->files);
	intern_release(&w->objects);
}

/* Blocks are counted over all threads, and have no other metrics. */
static bool is_by_blocks(const struct profile *p)
{
	if (!p->counts.n_blocks ||
		(strcmp(p->metric, "instructions") && strcmp(p->metric, "cycles")))
		return false;
	for (uint32_t id = 1; id < p->n_threads; id++)
		if (!p->threads[id].is_wanted)
			return false;
	return true;
}

int export_callgrind(const struct profile *profile, FILE *out, struct err *err)
{
	struct callgrind_model model = {0};
	struct callgrind_writer w = {.model = &model, .out = out};
	int rc = 0;

	if (is_by_blocks(profile))
		rc = callgrind_from_counts(&model, profile, err);
	else
		rc = callgrind_from_tree(&model, profile, err);
	if (rc == 0) {
		put_in_order(&model);
		put_model(&w, profile);
	}
	vec_release(&model.functions);
	vec_release(&model.costs);
	vec_release(&model.calls);
	intern_release(&model.texts);
	return rc;
}
