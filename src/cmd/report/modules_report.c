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
#include "cmd/report/report.h"
#include "cmd/report/values.h"
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
	for (uint8_t i = 0; i < image->build_id_n; i++)
		buf_printf(b, "%02x", image->build_id[i]);
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
	uint64_t limit = report->options->limit;
	int rc;

	memset(v, 0, sizeof(*v));
	v->states = mem_calloc(n_images + 1, sizeof(*v->states));
	v->ids = mem_calloc(n_images + 1, sizeof(*v->ids));
	for (uint32_t id = 1; id < n_images && (!limit || v->n < limit); id++)
		if (report_name_matches(
			    report, trace_reader_string(report->reader,
					    trace_reader_image(report->reader, id)->path)))
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

/* --- text --- */

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

static void print_module(
	struct table *t, const struct report *report, struct modules_view *v, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(report->reader, id);
	const struct trace_match *match = trace_reader_match(report->reader, id);

	table_row(t, TABLE_STYLE_PLAIN);
	table_cell(t, image_kind_name(image->kind));
	table_cell(t, report->profile->image_is_used[id] ? "yes" : "no");
	table_cell(t, state_text(&v->states[id], &v->scratch));
	table_cell(t, match_name(match) ? match_name(match) : ".");
	count_cell(t, match && match->n_symbols != UINT64_MAX, match ? match->n_symbols : 0);
	table_cell(t, image->build_id_n ? build_id_text(image, &v->scratch) : ".");
	table_cell(t, trace_reader_string(report->reader, image->path));
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

int modules_text(const struct report *report, struct err *err)
{
	static const char *const head[] = {
		"Kind", "Used", "State", "Match", "Symbols", "Build-id", "Path"};
	struct table t = {.left_columns = 0x2f};
	struct modules_view v;
	int rc = view_init(&v, report, err);

	table_row(&t, TABLE_STYLE_STRONG);
	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; i < v.n; i++)
		print_module(&t, report, &v, v.ids[i]);
	if (rc == 0) {
		table_print(&t, report->options->color, report->out);
		print_reasons(report, &v);
		if (module_map_n_lost(v.modules))
			fprintf(report->out, "\n%" PRIu64 " module records could not be used\n",
				module_map_n_lost(v.modules));
	}
	table_release(&t);
	view_release(&v);
	return rc;
}

/* --- JSON --- */

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
		char address[24];

		if (span->image != id || !is_unload(span->ended))
			continue;
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)span->start);
		json_object_begin(j, NULL);
		json_u64(j, "pid", span->pid);
		json_string(j, "address", address);
		json_u64(j, "time",
			span->to > report->profile->start ? span->to - report->profile->start : 0);
		json_string(j, "how", module_end_name(span->ended));
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_module(
	struct json *j, const struct report *report, struct modules_view *v, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(report->reader, id);
	const struct trace_match *match = trace_reader_match(report->reader, id);

	json_newline(j);
	json_object_begin(j, NULL);
	report_json_text(j, "path", trace_reader_string(report->reader, image->path));
	report_json_text(j, "build_id", build_id_text(image, &v->scratch));
	json_string(j, "kind", image_kind_name(image->kind));
	report_json_text(
		j, "image", match ? trace_reader_string(report->reader, match->catalog_id) : NULL);
	json_string(j, "match", match_name(match));
	report_json_text(
		j, "reason", match ? trace_reader_string(report->reader, match->reason) : NULL);
	json_state(j, &v->states[id], report->profile->image_is_used[id]);
	report_json_measured(j, "symbols", match && match->n_symbols != UINT64_MAX,
		match ? match->n_symbols : 0);
	report_json_text(
		j, "sources", match ? trace_reader_string(report->reader, match->sources) : NULL);
	json_ends(j, report, v, id);
	json_object_end(j);
}

int modules_json(const struct report *report, struct err *err)
{
	struct modules_view v;
	struct json j;
	int rc = view_init(&v, report, err);

	if (rc == 0) {
		report_json_begin(&j, report, "modules");
		if (module_map_n_lost(v.modules))
			json_u64(&j, "module_records_lost", module_map_n_lost(v.modules));
		report_json_rows(&j);
		for (size_t i = 0; i < v.n; i++)
			json_module(&j, report, &v, v.ids[i]);
		report_json_end(&j, report);
	}
	view_release(&v);
	return rc;
}
