/* SPDX-License-Identifier: MIT */
/*
 * A processed profile of Firefox Profiler (src/types/profile.ts there). It is of version 66, and stays so: readers
 * take any older version than their own, and none that is newer.
 *
 * Threads come one after another, each as columns, and the trace comes in order of time: it is walked once,
 * and its rows are put away by thread. Times are in milliseconds since the start of the trace, with all
 * six places that nanoseconds need.
 */
#include "formats/exports.h"

#include <stdlib.h>
#include <string.h>

#include "formats/firefox_tables.h"
#include "formats/gzip_stream.h"
#include "formats/number_text.h"
#include "formats/row_spool.h"
#include "formats/timed_walk.h"

#define VERSION	      66
#define GECKO_VERSION 31 /* of the profiles that Firefox itself writes; readers ask for it */
#define NS_PLACES     6	 /* of milliseconds */

enum sample_row { SAMPLE_NODE, SAMPLE_NS, SAMPLE_WEIGHT, SAMPLE_ROW };
enum marker_row {
	MARKER_KIND,
	MARKER_NS,
	MARKER_LASTS,
	MARKER_NAME,
	MARKER_N,
	MARKER_TEXT,
	MARKER_ROW
};
enum marker_kind {
	MARKER_KIND_CALL,
	MARKER_KIND_WAIT,
	MARKER_KIND_LOSS,
	MARKER_KIND_THREAD,
	N_MARKER_KINDS
};
enum marker_phase { PHASE_INSTANT = 0, PHASE_INTERVAL = 1 };

static const struct {
	const char *name, *label, *fields; /* as JSON */
} schemas[N_MARKER_KINDS] = {
	[MARKER_KIND_CALL] = {"call", "a call of a hooked function", ""},
	[MARKER_KIND_WAIT] = {"wait", "the thread was off the CPU", ""},
	[MARKER_KIND_LOSS] = {"loss", "what was lost, or is imperfect",
		"{\"key\":\"n\",\"label\":\"Number\",\"format\":\"integer\"},"
		"{\"key\":\"reason\",\"label\":\"Reason\",\"format\":\"string\"}"},
	[MARKER_KIND_THREAD] = {"thread", "life of the thread", ""},
};

struct thread_facts {
	uint64_t ended;	  /* + 1; 0 = not known */
	bool has_weights; /* other ones than 1 */
	bool has_samples, has_markers;
	uint64_t first_sample, last_sample, first_marker, last_marker;
};

struct firefox {
	const struct profile *profile;
	struct export_stacks stacks;
	struct firefox_tables tables;
	struct row_spool samples; /* by thread */
	struct row_spool markers; /* by thread; 0: of the whole trace */
	struct intern texts;	  /* of markers, by number; [0] is "" */
	struct thread_facts *facts;
	struct json json;
};

/* ---- the walk ---- */

static uint64_t since_start(const struct firefox *f, uint64_t time)
{
	return time > f->profile->start ? time - f->profile->start : 0;
}

static void add_row(struct firefox *f, uint32_t thread, uint32_t node, uint64_t ns, uint64_t weight)
{
	struct thread_facts *facts = &f->facts[thread];
	uint64_t row[SAMPLE_ROW] = {node, ns, weight};

	facts->has_weights |= weight != 1;
	facts->first_sample = facts->has_samples ? facts->first_sample : ns;
	facts->last_sample = ns;
	facts->has_samples = true;
	row_spool_put(&f->samples, thread, row);
}

static void add_sample(void *to, const struct sample_view *sample, uint64_t weight)
{
	struct firefox *f = to;

	add_row(f, sample->thread, export_stacks_node(&f->stacks, sample),
		since_start(f, sample->time), weight);
}

static void add_path(void *to, uint32_t thread, uint32_t node, uint64_t weight)
{
	add_row(to, thread, node, 0, weight);
}

static void add_marker(struct firefox *f, uint32_t thread, const uint64_t *row)
{
	struct thread_facts *facts = &f->facts[thread];
	uint64_t from = row[MARKER_NS], to = from + row[MARKER_LASTS];

	facts->first_marker =
		facts->has_markers && facts->first_marker < from ? facts->first_marker : from;
	facts->last_marker = to > facts->last_marker ? to : facts->last_marker;
	facts->has_markers = true;
	row_spool_put(&f->markers, thread, row);
}

static void add_call(void *to, const struct timed_call *call)
{
	struct firefox *f = to;
	const char *name = export_stacks_routine(&f->stacks, call->function)->name;
	uint64_t row[MARKER_ROW] = {MARKER_KIND_CALL, since_start(f, call->from),
		call->to - call->from, intern_text(&f->texts, name)};

	add_marker(f, call->thread, row);
}

static void add_wait(void *to, const struct timed_wait *wait)
{
	struct firefox *f = to;
	uint64_t row[MARKER_ROW] = {MARKER_KIND_WAIT, since_start(f, wait->from),
		wait->to - wait->from,
		intern_text(&f->texts, wait->is_ready ? "ready, another thread ran" : "waiting")};

	add_marker(f, wait->thread, row);
}

static void add_mark(void *to, const struct timed_mark *mark)
{
	struct firefox *f = to;
	uint64_t row[MARKER_ROW] = {
		timed_mark_is_loss(mark->kind) ? MARKER_KIND_LOSS : MARKER_KIND_THREAD,
		since_start(f, mark->time), 0, intern_text(&f->texts, timed_mark_name(mark->kind)),
		mark->n, intern_text(&f->texts, mark->reason)};

	if (mark->kind == TIMED_MARK_THREAD_ENDED)
		f->facts[mark->thread].ended = since_start(f, mark->time) + 1;
	add_marker(f, mark->thread, row);
}

/* ---- columns of samples ---- */

static void put_ms(struct firefox *f, uint64_t ns)
{
	put_decimal(f->json.out, ns, NS_PLACES);
}

static void put_sample_value(
	struct firefox *f, const uint64_t *row, enum sample_row column, bool is_ns, bool *is_next)
{
	FILE *out = f->json.out;

	put_comma(out, is_next);
	if (is_ns)
		put_ms(f, row[column]);
	else if (column != SAMPLE_NODE)
		put_number(out, row[column]);
	else if (row[column])
		put_number(out, row[column] - 1);
	else
		fputs_unlocked("null", out);
}

/* The time line of readers goes from the first sample to the last: where markers go beyond, rows without a stack
 * and without weight stand at its ends. */
struct ends {
	bool has_first, has_last;
	uint64_t first, last;
};

static struct ends find_ends(const struct firefox *f, uint32_t thread, bool is_first)
{
	const struct thread_facts *own = &f->facts[thread], *all = &f->facts[0];
	struct ends ends = {0};

	if (own->has_markers) {
		ends.first = own->first_marker;
		ends.last = own->last_marker;
	}
	if (is_first && all->has_markers) {
		if (!own->has_markers || all->first_marker < ends.first)
			ends.first = all->first_marker;
		if (all->last_marker > ends.last)
			ends.last = all->last_marker;
	}
	if (!own->has_markers && !(is_first && all->has_markers))
		return ends;
	ends.has_first = !own->has_samples || ends.first < own->first_sample;
	ends.has_last = !own->has_samples || ends.last > own->last_sample;
	return ends;
}

static void put_sample_column(struct firefox *f, uint32_t thread, const char *key,
	enum sample_row column, bool is_ns, const struct ends *ends)
{
	const uint64_t first[SAMPLE_ROW] = {0, ends->first, 0},
		       last[SAMPLE_ROW] = {0, ends->last, 0};
	struct row_reader reader;
	uint64_t row[SAMPLE_ROW];
	bool is_next = false;

	json_array_begin(&f->json, key);
	if (ends->has_first)
		put_sample_value(f, first, column, is_ns, &is_next);
	row_reader_open(&reader, &f->samples, thread);
	while (row_reader_next(&reader, row))
		put_sample_value(f, row, column, is_ns, &is_next);
	row_reader_close(&reader);
	if (ends->has_last)
		put_sample_value(f, last, column, is_ns, &is_next);
	json_array_end(&f->json);
}

static void put_samples(struct firefox *f, uint32_t thread, bool is_first)
{
	const char *unit = f->profile->unit;
	bool is_ns = !strcmp(unit, "ns"), is_bytes = !strcmp(unit, "bytes");
	struct ends ends = find_ends(f, thread, is_first);
	bool has_weights = is_ns || is_bytes || f->facts[thread].has_weights || ends.has_first ||
			   ends.has_last;

	json_object_begin(&f->json, "samples");
	put_sample_column(f, thread, "stack", SAMPLE_NODE, false, &ends);
	put_sample_column(f, thread, "time", SAMPLE_NS, true, &ends);
	if (has_weights)
		put_sample_column(f, thread, "weight", SAMPLE_WEIGHT, is_ns, &ends);
	else
		json_null(&f->json, "weight");
	json_string(&f->json, "weightType", is_ns ? "tracing-ms" : is_bytes ? "bytes" : "samples");
	json_u64(&f->json, "length",
		row_spool_n_rows(&f->samples, thread) + ends.has_first + ends.has_last);
	json_object_end(&f->json);
}

/* ---- columns of markers ---- */

static void put_marker_data(struct firefox *f, const uint64_t *row)
{
	struct json data;

	if (row[MARKER_KIND] != MARKER_KIND_LOSS) {
		fprintf(f->json.out, "{\"type\":\"%s\"}", schemas[row[MARKER_KIND]].name);
		return;
	}
	json_init(&data, f->json.out);
	json_object_begin(&data, NULL);
	json_string(&data, "type", schemas[row[MARKER_KIND]].name);
	json_u64(&data, "n", row[MARKER_N]);
	json_string(&data, "reason", intern_get(&f->texts, (uint32_t)row[MARKER_TEXT]));
	json_object_end(&data);
}

static bool lasts(const uint64_t *row)
{
	return row[MARKER_KIND] == MARKER_KIND_CALL || row[MARKER_KIND] == MARKER_KIND_WAIT;
}

enum marker_column {
	COLUMN_DATA,
	COLUMN_NAME,
	COLUMN_START,
	COLUMN_END,
	COLUMN_PHASE,
	COLUMN_CATEGORY
};

static void put_marker_value(struct firefox *f, enum marker_column column, const uint64_t *row)
{
	FILE *out = f->json.out;

	switch (column) {
	case COLUMN_DATA:
		put_marker_data(f, row);
		break;
	case COLUMN_NAME:
		put_number(out, intern_text(&f->tables.strings,
					intern_get(&f->texts, (uint32_t)row[MARKER_NAME])));
		break;
	case COLUMN_START:
		put_ms(f, row[MARKER_NS]);
		break;
	case COLUMN_END:
		if (lasts(row))
			put_ms(f, row[MARKER_NS] + row[MARKER_LASTS]);
		else
			fputs_unlocked("null", out);
		break;
	case COLUMN_PHASE:
		put_number(out, lasts(row) ? PHASE_INTERVAL : PHASE_INSTANT);
		break;
	case COLUMN_CATEGORY:
		put_number(out, row[MARKER_KIND] == MARKER_KIND_CALL ? FIREFOX_CATEGORY_NATIVE
								     : FIREFOX_CATEGORY_OTHER);
		break;
	}
}

static void put_marker_lane(
	struct firefox *f, uint32_t lane, enum marker_column column, bool *is_next)
{
	struct row_reader reader;
	uint64_t row[MARKER_ROW];

	row_reader_open(&reader, &f->markers, lane);
	while (row_reader_next(&reader, row)) {
		put_comma(f->json.out, is_next);
		put_marker_value(f, column, row);
	}
	row_reader_close(&reader);
}

/* Those of the whole trace are with the first thread. */
static void put_markers(struct firefox *f, uint32_t thread, bool is_first)
{
	static const char *const names[] = {
		"data", "name", "startTime", "endTime", "phase", "category"};

	json_object_begin(&f->json, "markers");
	for (enum marker_column column = COLUMN_DATA; column <= COLUMN_CATEGORY; column++) {
		bool is_next = false;

		json_array_begin(&f->json, names[column]);
		if (is_first)
			put_marker_lane(f, 0, column, &is_next);
		if (thread)
			put_marker_lane(f, thread, column, &is_next);
		json_array_end(&f->json);
	}
	json_u64(&f->json, "length",
		(thread ? row_spool_n_rows(&f->markers, thread) : 0) +
			(is_first ? row_spool_n_rows(&f->markers, 0) : 0));
	json_object_end(&f->json);
}

/* ---- threads ---- */

/* That of the process's first thread, which the kernel gives the number of the process. */
static const char *process_name(const struct profile *p, const struct profile_thread *thread)
{
	for (uint32_t id = 1; id < p->n_threads; id++)
		if (p->threads[id].pid == thread->pid && p->threads[id].tid == thread->pid)
			return p->threads[id].name;
	return thread->name;
}

static void put_thread(struct firefox *f, uint32_t id, bool is_first)
{
	const struct profile_thread *thread = &f->profile->threads[id];
	struct json *j = &f->json;
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", thread->pid);
	json_object_begin(j, NULL);
	json_string(j, "name", *thread->name ? thread->name : id ? thread->root_name : "none");
	json_string(j, "processName", process_name(f->profile, thread));
	json_string(j, "processType", "default");
	json_bool(j, "isMainThread", thread->tid == thread->pid);
	json_string(j, "pid", pid);
	json_u64(j, "tid", thread->tid);
	json_u64(j, "processStartupTime", 0);
	json_null(j, "processShutdownTime");
	json_u64(j, "registerTime", 0);
	json_array_begin(j, "pausedRanges");
	json_array_end(j);
	json_bool(j, "showMarkersInTimeline", row_spool_n_rows(&f->markers, id) > 0 || is_first);
	if (f->facts[id].ended)
		json_double(j, "unregisterTime", (double)(f->facts[id].ended - 1) / 1e6);
	else
		json_null(j, "unregisterTime");
	put_samples(f, id, is_first);
	put_markers(f, id, is_first);
	json_object_end(j);
	json_newline(j);
}

/* Those of which there is something; readers want one at least, and thread 0 stands for none. */
static void put_threads(struct firefox *f)
{
	uint32_t n = 0;

	json_array_begin(&f->json, "threads");
	for (uint32_t id = 1; id < f->profile->n_threads; id++)
		if (row_spool_n_rows(&f->samples, id) || row_spool_n_rows(&f->markers, id))
			put_thread(f, id, n++ == 0);
	for (uint32_t id = 1; id < f->profile->n_threads && !n; id++)
		if (f->profile->threads[id].is_wanted)
			put_thread(f, id, n++ == 0);
	if (!n)
		put_thread(f, 0, true);
	json_array_end(&f->json);
}

/* ---- the whole ---- */

static void put_schemas(struct json *j)
{
	bool is_next = false;

	json_array_begin(j, "markerSchema");
	for (size_t i = 0; i < N_MARKER_KINDS; i++) {
		put_comma(j->out, &is_next);
		fprintf(j->out,
			"{\"name\":\"%s\",\"display\":[\"marker-chart\",\"marker-table\","
			"\"timeline-overview\"],\"description\":\"%s\",\"fields\":[%s]}",
			schemas[i].name, schemas[i].label, schemas[i].fields);
	}
	json_array_end(j);
}

static uint64_t meta_number(const struct firefox *f, const char *key)
{
	const char *text = trace_reader_meta(f->profile->reader, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void put_meta(struct firefox *f)
{
	const char *command = trace_reader_meta(f->profile->reader, "command");
	uint64_t hz = meta_number(f, "frequency");
	struct json *j = &f->json;

	json_object_begin(j, "meta");
	json_u64(j, "preprocessedProfileVersion", VERSION);
	json_u64(j, "version", GECKO_VERSION);
	json_double(j, "interval", hz ? 1000.0 / (double)hz : 1);
	json_u64(j, "startTime", meta_number(f, "start_realtime_ns") / 1000000);
	json_u64(j, "processType", 0);
	json_u64(j, "stackwalk", 1);
	json_bool(j, "debug", false);
	json_bool(j, "symbolicated", true);
	json_string(j, "product", command ? command : trace_reader_name(f->profile->reader));
	json_string(j, "importedFrom", "weir " WEIR_VERSION);
	json_string(j, "platform", "Linux");
	json_string(j, "oscpu", "Linux");
	json_string(j, "toolkit", "");
	json_string(j, "misc", "");
	json_string(j, "abi", "");
	json_bool(j, "usesOnlyOneStackType", true);
	json_bool(j, "sourceCodeIsNotOnSearchfox", true);
	json_null(j, "extensions");
	firefox_put_categories(j);
	put_schemas(j);
	json_object_end(j);
}

static void put_file(struct firefox *f)
{
	firefox_tables_init(&f->tables, &f->stacks);
	json_object_begin(&f->json, NULL);
	put_meta(f);
	firefox_put_libraries(&f->tables, &f->json);
	json_array_begin(&f->json, "pages");
	json_array_end(&f->json);
	put_threads(f);
	firefox_put_shared(&f->tables, &f->json);
	json_object_end(&f->json);
	firefox_tables_release(&f->tables);
}

static int put_packed(struct firefox *f, FILE *out, struct err *err)
{
	FILE *packed;
	int rc = gzip_stream_open(&packed, out, GZIP_STREAM_QUICK, err);

	if (rc < 0)
		return rc;
	json_init(&f->json, packed);
	put_file(f);
	fclose(packed); /* a failure is one of `out` */
	rc = row_spool_check(&f->samples, err);
	return rc < 0 ? rc : row_spool_check(&f->markers, err);
}

int export_firefox(const struct profile *profile, FILE *out, struct err *err)
{
	static const struct timed_visitor visitor = {
		.sample = add_sample, .leave = add_call, .wait = add_wait, .mark = add_mark};
	struct firefox f = {.profile = profile};
	int rc = 0;

	export_stacks_init(&f.stacks, profile);
	row_spool_init(&f.samples, SAMPLE_ROW);
	row_spool_init(&f.markers, MARKER_ROW);
	f.facts = mem_calloc(profile->n_threads, sizeof(*f.facts));
	intern_text(&f.texts, "");
	if (export_has_tree_alone(profile))
		export_stacks_of_tree(&f.stacks, add_path, &f);
	else
		rc = timed_walk(&f.stacks, &visitor, &f, err);
	if (rc == 0)
		rc = put_packed(&f, out, err);
	export_stacks_release(&f.stacks);
	row_spool_release(&f.samples);
	row_spool_release(&f.markers);
	intern_release(&f.texts);
	free(f.facts);
	return rc;
}
