/* SPDX-License-Identifier: MIT */
/* What there is to ask about: the trace, its metrics, what was measured how, what was lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report.h"
#include "cmd/view/engine.h"

/* Facts of the trace as they are; docs/format/trace.md has their names. */
static void put_facts(struct json *j, const struct trace_reader *r)
{
	const char *key;

	json_object_begin(j, "facts");
	for (uint32_t i = 0; (key = trace_reader_meta_key(r, i)); i++)
		json_string(j, key, trace_reader_meta(r, key));
	json_object_end(j);
}

/* All that there are, in order of their numbers, and which one this is. */
static void put_traces(struct json *j, const struct view_engine *e, const struct trace_reader *this)
{
	uint32_t number = 0;

	json_array_begin(j, "traces");
	for (uint32_t i = 1; i <= view_n_traces(e); i++) {
		json_string(j, NULL, trace_reader_name(view_trace(e, i)));
		number = view_trace(e, i) == this ? i : number;
	}
	json_array_end(j);
	json_u64(j, "number", number);
}

static void put_metrics(struct json *j, const struct trace_reader *r)
{
	json_array_begin(j, "metrics");
	for (uint32_t i = 1; i < trace_reader_n_metrics(r); i++) {
		const struct trace_metric *m = trace_reader_metric(r, i);

		json_object_begin(j, NULL);
		json_string(j, "name", trace_reader_string(r, m->name));
		json_string(j, "unit", trace_reader_string(r, m->unit));
		json_object_end(j);
	}
	json_array_end(j);
}

/* Whether the panes have something to show; an empty one says why. */
static void put_content(struct json *j, const struct profile *p)
{
	const struct trace_reader *r = p->reader;

	json_object_begin(j, "has");
	json_bool(j, "samples", p->n_samples > 0);
	json_bool(j, "events", p->n_events > 0);
	json_bool(j, "calls",
		calltree_has_events(p->tree) && (!p->counts.n_nodes || p->counts.has_calls));
	json_bool(j, "counts", p->counts.n_functions > 0);
	json_bool(j, "steps",
		trace_reader_has_steps(r) ||
			trace_reader_has_kind(r, RECORD_MAJOR_STEP, RECORD_STEP_TOLD));
	json_bool(j, "hooks", p->n_hooks > 0);
	json_bool(j, "merged", p->is_merged);
	json_bool(j, "tree", !p->counts.is_flat);
	json_bool(j, "timeless", p->counts.n_nodes || p->n_kept_nodes);
	json_object_end(j);
}

/* Of the selection; threads are none. */
static uint64_t count_functions(const struct calltree *t)
{
	uint64_t n = 0;

	for (uint32_t id = 1; id < calltree_n_routines(t); id++) {
		const struct calltree_routine *r = calltree_get_routine(t, id);

		n += !r->is_root && r->first_instance;
	}
	return n;
}

static void put_profile(struct json *j, const struct profile *p)
{
	json_string(j, "metric", p->metric);
	json_string(j, "unit", p->unit);
	json_bool(j, "time", p->is_time);
	json_bool(j, "exact", calltree_has_events(p->tree));
	json_bool(j, "estimates", calltree_has_estimates(p->tree));
	json_u64(j, "total", p->total);
	json_u64(j, "start", p->start);
	json_u64(j, "end", p->end);
	json_u64(j, "samples", p->n_samples);
	json_u64(j, "events", p->n_events);
	json_u64(j, "functions", count_functions(p->tree));
	json_u64(j, "nodes", calltree_n_nodes(p->tree) - 1);
	put_content(j, p);
}

int view_answer_meta(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct profile *p;
	struct json j;
	char *text = NULL;
	size_t n = 0;
	FILE *file;

	if (view_profile(e, q, &p, err) < 0)
		return err->code;
	file = open_memstream(&text, &n);
	if (!file)
		return err_set(err, ERR_FAILED, "no memory for the answer");
	json_init(&j, file);
	json_object_begin(&j, NULL);
	json_u64(&j, "weir", 1);
	json_string(&j, "version", WEIR_VERSION);
	json_string(&j, "trace", trace_reader_name(p->reader));
	put_traces(&j, e, p->reader);
	put_facts(&j, p->reader);
	put_metrics(&j, p->reader);
	put_profile(&j, p);
	report_json_loss(&j, &p->loss);
	json_object_end(&j);
	fclose(file);
	buf_put(out, text, n);
	free(text);
	return 0;
}
