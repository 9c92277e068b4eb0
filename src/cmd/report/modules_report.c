/* SPDX-License-Identifier: MIT */
/*
 * The images that a trace knows: when each was there (by the module history), which symbols it got,
 * and how sure it is that they are its own.
 *
 * A module that was still mapped when its process ended is not unloaded; how each mapping ended is
 * told apart in the JSON form.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "calltree/classes.h"
#include "cmd/report/rows.h"
#include "symbols/catalog/match.h"
#include "symbols/resolve/module_map.h"

struct module_state {
	bool is_known; /* the history has it */
	bool at_start; /* there before the run began */
	bool loaded;   /* mapped while it ran */
	bool unloaded; /* gone while its process went on */
	uint64_t n_ends[MODULE_N_ENDS];
};

static bool is_unload(enum module_end end)
{
	return end != MODULE_END_NONE && end != MODULE_END_EXIT;
}

static void read_states(struct module_state *states, const struct module_map *modules)
{
	for (size_t i = 0; i < module_map_n(modules); i++) {
		const struct trace_module_span *span = module_map_get(modules, i);
		struct module_state *state = &states[span->image];

		state->is_known = true;
		state->at_start |= span->at_start;
		state->loaded |= !span->at_start;
		state->unloaded |= is_unload(span->ended);
		state->n_ends[span->ended]++;
	}
}

static const char *build_id_text(const struct trace_image *image, struct buf *b)
{
	buf_reset(b);
	buf_put_hex(b, (struct span){image->build_id, image->build_id_n});
	return buf_text(b);
}

/* NULL when the trace does not say which symbols the image got. */
static const char *match_name(const struct trace_match *match)
{
	if (!match || match->rung >= MATCH_N_RUNGS)
		return NULL;
	return match_rung_name((enum match_rung)match->rung);
}

struct modules_view {
	struct module_map *modules;
	struct module_state *states; /* by image */
	uint32_t *ids;		     /* of the images shown */
	size_t n;
	struct buf scratch;
};

static int view_init(struct modules_view *v, const struct report *report, struct err *err)
{
	uint32_t n_images = trace_reader_n_images(report->reader);
	uint64_t limit = report->options->query.limit;
	int rc;

	memset(v, 0, sizeof(*v));
	v->states = mem_calloc(n_images + 1, sizeof(*v->states));
	v->ids = mem_calloc(n_images + 1, sizeof(*v->ids));
	for (uint32_t id = 1; id < n_images && (!limit || v->n < limit); id++)
		if (query_matches(&report->options->query,
			    trace_reader_string(
				    report->reader, trace_reader_image(report->reader, id)->path)))
			v->ids[v->n++] = id;
	rc = module_map_new(&v->modules, report->reader, err);
	if (rc == 0)
		read_states(v->states, v->modules);
	return rc;
}

static void view_release(struct modules_view *v)
{
	module_map_free(v->modules);
	free(v->states);
	free(v->ids);
	buf_release(&v->scratch);
}

static const char *state_text(const struct module_state *state, struct buf *b)
{
	buf_reset(b);
	if (state->at_start)
		buf_put_cstr(b, "start ");
	if (state->loaded)
		buf_put_cstr(b, "loaded ");
	if (state->unloaded)
		buf_put_cstr(b, "unloaded ");
	if (!b->n)
		return ".";
	b->n--; /* the last blank */
	return buf_text(b);
}

/* Why those that do not stand on the highest rung stand where they do. */
static void print_reasons(const struct report *report, const struct modules_view *v)
{
	bool has_any = false;

	for (size_t i = 0; i < v->n; i++) {
		const struct trace_match *match = trace_reader_match(report->reader, v->ids[i]);

		if (!match_name(match) || match->rung == MATCH_BUILD_ID)
			continue;
		if (!has_any)
			fputc('\n', report->out);
		has_any = true;
		fprintf(report->out, "%s: %s: %s\n",
			trace_reader_string(report->reader,
				trace_reader_image(report->reader, v->ids[i])->path),
			match_name(match), trace_reader_string(report->reader, match->reason));
	}
}

static void json_known(struct json *j, const char *key, bool is_known, bool value)
{
	if (is_known)
		json_bool(j, key, value);
	else
		json_null(j, key);
}

static void json_state(struct json *j, const struct module_state *state, bool is_used)
{
	json_object_begin(j, "state");
	json_known(j, "at_start", state->is_known, state->at_start);
	json_known(j, "loaded", state->is_known, state->loaded);
	json_known(j, "unloaded", state->is_known, state->unloaded);
	json_bool(j, "used", is_used);
	json_object_end(j);
}

/* How many mappings ended in which way, and the single ones but for those that ended with their
 * process. */
static void json_ends(
	struct json *j, const struct report *report, const struct modules_view *v, uint32_t id)
{
	json_object_begin(j, "ends");
	for (size_t end = 1; end < MODULE_N_ENDS; end++)
		if (v->states[id].n_ends[end])
			json_u64(j, module_end_name((enum module_end)end),
				v->states[id].n_ends[end]);
	json_object_end(j);
	json_array_begin(j, "unloads");
	for (size_t i = 0; v->states[id].unloaded && i < module_map_n(v->modules); i++) {
		const struct trace_module_span *span = module_map_get(v->modules, i);

		if (span->image != id || !is_unload(span->ended))
			continue;
		json_object_begin(j, NULL);
		json_u64(j, "pid", span->pid);
		json_address(j, "address", span->start);
		json_u64(j, "time",
			span->to > report->profile->start ? span->to - report->profile->start : 0);
		json_string(j, "how", module_end_name(span->ended));
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_module(struct rows *r, struct modules_view *v, uint32_t id)
{
	const struct trace_reader *reader = r->report->reader;
	const struct trace_image *image = trace_reader_image(reader, id);
	const struct trace_match *match = trace_reader_match(reader, id);
	bool is_used = r->report->profile->image_is_used[id];

	row_begin(r, TABLE_STYLE_PLAIN);
	row_text(r, "path", trace_reader_string(reader, image->path));
	row_text(r, "build_id", build_id_text(image, &v->scratch));
	row_string(r, "kind", image_kind_name(image->kind));
	row_text(r, "image", match ? trace_reader_string(reader, match->catalog_id) : NULL);
	row_string(r, "match", match_name(match));
	row_text(r, "reason", match ? trace_reader_string(reader, match->reason) : NULL);
	row_show(r, "Path", trace_reader_string(reader, image->path));
	row_show(r, "Used", is_used ? "yes" : "no");
	row_show(r, "State", state_text(&v->states[id], &v->scratch));
	if (r->is_json)
		json_state(&r->json, &v->states[id], is_used);
	row_count(r, "symbols", match && match->n_symbols != UINT64_MAX,
		match ? match->n_symbols : 0);
	row_text(r, "sources", match ? trace_reader_string(reader, match->sources) : NULL);
	if (r->is_json)
		json_ends(&r->json, r->report, v, id);
	row_end(r);
}

static const struct column columns[] = {
	{"kind", "Kind", COLUMN_LEFT},
	{"Used", "Used", COLUMN_LEFT},
	{"State", "State", COLUMN_LEFT},
	{"match", "Match", COLUMN_LEFT},
	{"symbols", "Symbols", 0},
	{"build_id", "Build-id", COLUMN_LEFT},
	{"Path", "Path", 0},
	{0},
};

static const struct column class_columns[] = {
	{"Used", "Used", COLUMN_LEFT},
	{"State", "State", COLUMN_LEFT},
	{"loads", "Loads", 0},
	{"unloads", "Unloads", 0},
	{"name", "Class", 0},
	{0},
};

static void put_class(struct rows *r, const struct class_row *c, struct buf *scratch)
{
	const struct module_state state = {.is_known = c->n_start || c->n_loaded,
		.at_start = c->n_start,
		.loaded = c->n_loaded,
		.unloaded = c->n_unloaded};

	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "name", c->name);
	row_show(r, "Used", c->is_used ? "yes" : "no");
	row_show(r, "State", state_text(&state, scratch));
	if (r->is_json)
		json_state(&r->json, &state, c->is_used);
	row_count(r, "loads", state.is_known, c->n_start + c->n_loaded);
	row_count(r, "unloads", state.is_known, c->n_unloaded);
	row_end(r);
}

/* A runtime has thousands: people see those that were used, or that they ask for. */
static bool is_class_shown(const struct report *report, const struct class_row *c)
{
	const struct query *q = &report->options->query;

	return query_matches(q, c->name) && (q->filter || c->is_used || report->options->json);
}

static void put_classes(struct rows *r, const struct classes *classes, struct buf *scratch)
{
	uint64_t n_start = 0, n_loaded = 0, n_unloaded = 0, limit = r->report->options->query.limit;
	size_t n = 0, n_shown = 0;

	if (!r->is_json)
		fputc('\n', r->out);
	rows_open(r, "classes", class_columns);
	for (size_t i = 0; i < classes->rows.n; i++) {
		const struct class_row *c = &classes->rows.v[i];

		n_start += c->n_start > 0;
		n_loaded += c->n_loaded > 0;
		n_unloaded += c->n_unloaded > 0;
		if (is_class_shown(r->report, c) && (n++, !limit || n_shown < limit)) {
			n_shown++;
			put_class(r, c, scratch);
		}
	}
	rows_close(r);
	rows_more(r, n, n_shown);
	if (!r->is_json)
		fprintf(r->out,
			"%zu classes: %" PRIu64 " there at the start, %" PRIu64 " loaded, %" PRIu64
			" unloaded%s\n",
			classes->rows.n, n_start, n_loaded, n_unloaded,
			r->report->options->query.filter
				? ""
				: "; here are those that were used, --filter shows others");
}

static void put_modules(
	struct modules_view *v, const struct classes *classes, const struct report *report)
{
	uint64_t n_lost = module_map_n_lost(v->modules);
	struct rows r;

	rows_begin(&r, report, "modules", report->profile->total);
	if (r.is_json && n_lost)
		json_u64(&r.json, "module_records_lost", n_lost);
	rows_open(&r, "rows", columns);
	for (size_t i = 0; i < v->n; i++)
		put_module(&r, v, v->ids[i]);
	rows_close(&r);
	if (!r.is_json)
		print_reasons(report, v);
	if (classes->rows.n)
		put_classes(&r, classes, &v->scratch);
	rows_end(&r);
	if (r.is_json)
		return;
	if (n_lost)
		fprintf(report->out, "\n%" PRIu64 " module records could not be used\n", n_lost);
}

int modules_report(const struct report *report, struct err *err)
{
	struct modules_view v;
	struct classes classes = {0};
	int rc = view_init(&v, report, err);

	if (rc == 0)
		rc = classes_init(&classes, report->profile, err);
	if (rc == 0)
		put_modules(&v, &classes, report);
	classes_release(&classes);
	view_release(&v);
	return rc;
}
