/* SPDX-License-Identifier: MIT */
/*
 * Versions differ in where tables are: in each thread, or (since 56) some of them once for all, which may come behind
 * the threads; the first pass reads these. A sample has a weight of its own or counts one; what its weight is the
 * thread says.
 */
#include "formats/foreign/firefox_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/foreign/firefox_columns.h"
#include "formats/text_lines.h"

#define VERSION_MAX 70 /* of the layouts that are known */
#define NS_PER_MS   1e6
#define VALUE_MAX   ((double)(UINT64_C(1) << 62))

struct firefox {
	struct json_reader json;
	struct foreign_trace *trace;
	struct firefox_columns shared;
	struct intern texts; /* of libraries */
	VEC(uint32_t) libs;  /* paths in texts */
	double version;
	bool has_meta, is_unsymbolicated, has_metric;
	uint32_t n_threads;
	uint64_t n_wrong, n_markers;
};

struct thread {
	struct firefox_columns tables;
	struct firefox_column stack, time, delta, weight;
	struct buf name, process, unit;
	uint64_t pid, tid;
	uint32_t *frames, *stacks; /* of the trace, by row + 1; 0: not made yet */
	size_t n_frames, n_stacks;
};

bool firefox_is(struct span first)
{
	return first.n && first.p[0] == '{' &&
	       (memmem(first.p, first.n, "\"preprocessedProfileVersion\"", 28) ||
		       (memmem(first.p, first.n, "\"meta\"", 6) &&
			       memmem(first.p, first.n, "\"interval\"", 10)));
}

/* ---- the first pass ---- */

static void take_symbolicated(struct firefox *f)
{
	enum json_kind kind = json_begin(&f->json);

	f->is_unsymbolicated = kind == JSON_FALSE;
	json_skip_begun(&f->json, kind);
}

static void take_meta(struct firefox *f)
{
	struct span key;

	f->has_meta = true;
	while (json_next_key(&f->json, &key)) {
		if (json_key_is(key, "preprocessedProfileVersion"))
			f->version = json_take_number(&f->json, 0);
		else if (json_key_is(key, "symbolicated"))
			take_symbolicated(f);
		else
			json_skip(&f->json);
	}
}

static void take_lib(struct firefox *f)
{
	struct buf path = {0};
	struct span key, text;

	while (json_next_key(&f->json, &key)) {
		if (!json_key_is(key, "path") && !(json_key_is(key, "name") && !path.n)) {
			json_skip(&f->json);
			continue;
		}
		text = json_take_text(&f->json);
		buf_reset(&path);
		buf_put(&path, text.p, text.n);
	}
	vec_push(&f->libs, intern_bytes(&f->texts, path.n ? (const void *)path.p : "", path.n));
	buf_release(&path);
}

static void take_libs(struct firefox *f)
{
	while (json_next_item(&f->json)) {
		if (f->libs.n == FIREFOX_ENTRIES_MAX)
			json_reader_wrong(&f->json, "has too many libraries");
		if (json_enter(&f->json, JSON_OBJECT))
			take_lib(f);
	}
}

static void take_shared(struct firefox *f)
{
	struct span key;

	while (json_next_key(&f->json, &key))
		if (!firefox_columns_take(&f->shared, &f->json, key))
			json_skip(&f->json);
}

static void take_head(struct firefox *f, struct span key)
{
	if (json_key_is(key, "meta")) {
		if (json_enter(&f->json, JSON_OBJECT))
			take_meta(f);
	} else if (json_key_is(key, "libs")) {
		if (json_enter(&f->json, JSON_ARRAY))
			take_libs(f);
	} else if (json_key_is(key, "shared")) {
		if (json_enter(&f->json, JSON_OBJECT))
			take_shared(f);
	} else {
		json_skip(&f->json);
	}
}

/* ---- threads ---- */

static void take_text(struct firefox *f, struct buf *to)
{
	struct span text = json_take_text(&f->json);

	buf_reset(to);
	buf_put(to, text.p, text.n);
}

static uint64_t take_id(struct firefox *f)
{
	enum json_kind kind = json_begin(&f->json);
	struct span text;
	uint64_t id = 0;
	double number;

	if (kind == JSON_NUMBER) {
		number = json_number(&f->json);
		return number > 0 && number <= UINT32_MAX ? (uint64_t)number : 0;
	}
	if (kind != JSON_TEXT) {
		json_skip_begun(&f->json, kind);
		return 0;
	}
	text = json_text(&f->json);
	for (size_t i = 0; i < text.n; i++) /* "123.1": a second process of that number */
		if (text.p[i] == '.')
			text.n = i;
	return text_word_number(text, UINT32_MAX, &id) ? id : 0;
}

static void take_samples(struct firefox *f, struct thread *t)
{
	struct span key;

	while (json_next_key(&f->json, &key)) {
		if (json_key_is(key, "stack"))
			firefox_column_take(&t->stack, &f->json);
		else if (json_key_is(key, "time"))
			firefox_column_take(&t->time, &f->json);
		else if (json_key_is(key, "timeDeltas"))
			firefox_column_take(&t->delta, &f->json);
		else if (json_key_is(key, "weight"))
			firefox_column_take(&t->weight, &f->json);
		else if (json_key_is(key, "weightType"))
			take_text(f, &t->unit);
		else
			json_skip(&f->json);
	}
}

static void take_markers(struct firefox *f)
{
	struct span key;

	while (json_next_key(&f->json, &key)) {
		if (json_key_is(key, "length")) {
			double n = json_take_number(&f->json, 0);

			f->n_markers += n > 0 && n < VALUE_MAX ? (uint64_t)n : 0;
		} else {
			json_skip(&f->json);
		}
	}
}

static void take_thread(struct firefox *f, struct thread *t)
{
	struct span key;

	while (json_next_key(&f->json, &key)) {
		if (json_key_is(key, "name"))
			take_text(f, &t->name);
		else if (json_key_is(key, "processName"))
			take_text(f, &t->process);
		else if (json_key_is(key, "pid"))
			t->pid = take_id(f);
		else if (json_key_is(key, "tid"))
			t->tid = take_id(f);
		else if (json_key_is(key, "samples") && json_enter(&f->json, JSON_OBJECT))
			take_samples(f, t);
		else if (json_key_is(key, "markers") && json_enter(&f->json, JSON_OBJECT))
			take_markers(f);
		else if (!json_key_is(key, "samples") && !json_key_is(key, "markers") &&
			 !firefox_columns_take(&t->tables, &f->json, key))
			json_skip(&f->json);
	}
}

/* The thread's own table, or the one of all. */
#define TABLE(f, t, column) ((t)->tables.column.v.n ? &(t)->tables.column : &(f)->shared.column)

static struct span string_of(const struct firefox *f, const struct thread *t, double number)
{
	return firefox_columns_string(t->tables.strings.n ? &t->tables : &f->shared, number);
}

static struct span image_of(const struct firefox *f, const struct thread *t, double func)
{
	double resource = firefox_column_get(TABLE(f, t, func_resource), func);
	double lib = firefox_column_get(TABLE(f, t, resource_lib), resource);
	const struct intern_item *item;

	if (!(lib >= 0 && lib < (double)f->libs.n))
		return (struct span){0};
	item = &f->texts.items[f->libs.v[(size_t)lib]];
	return (struct span){(const uint8_t *)item->p, item->n};
}

static uint32_t make_frame(struct firefox *f, struct thread *t, double row)
{
	double func = firefox_column_get(TABLE(f, t, frame_func), row);
	double line = firefox_column_get(TABLE(f, t, frame_line), row);
	double address = firefox_column_get(TABLE(f, t, frame_address), row);
	struct foreign_level level = {
		.name = string_of(f, t, firefox_column_get(TABLE(f, t, func_name), func)),
		.file = string_of(f, t, firefox_column_get(TABLE(f, t, func_file), func)),
		.line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0};
	struct foreign_frame frame = {.kind = FRAME_KIND_NATIVE,
		.image = image_of(f, t, func),
		.levels = &level,
		.n_levels = 1};

	if (!level.name.n) {
		f->n_wrong++;
		level.name = (struct span){(const uint8_t *)"[damaged]", 9};
	}
	if (frame.image.n >= 7 && !memcmp(frame.image.p, "[kernel", 7))
		frame.kind = FRAME_KIND_KERNEL;
	/* Then the name is the address, as text. */
	if (f->is_unsymbolicated && address > 0 && address < VALUE_MAX && frame.image.n) {
		frame.addr = (uint64_t)address;
		frame.n_levels = 0;
	}
	return foreign_trace_frame(f->trace, &frame);
}

static uint32_t frame_at(struct firefox *f, struct thread *t, double row)
{
	if (!(row >= 0 && row < (double)t->n_frames)) {
		f->n_wrong++;
		return foreign_trace_name(f->trace, FRAME_KIND_NATIVE,
			(struct span){(const uint8_t *)"[damaged]", 9});
	}
	if (!t->frames[(size_t)row])
		t->frames[(size_t)row] = make_frame(f, t, row);
	return t->frames[(size_t)row];
}

/* Prefixes have smaller rows: else the table is damaged, and the stack begins there. */
static double prefix_of(struct firefox *f, struct thread *t, double row)
{
	const struct firefox_column *offsets = TABLE(f, t, stack_offset);
	double offset = firefox_column_get(offsets, row);
	double prefix = offsets->v.n ? (offset > 0 ? row - offset : FIREFOX_NULL)
				     : firefox_column_get(TABLE(f, t, stack_prefix), row);

	if (prefix < row)
		return prefix;
	f->n_wrong++;
	return FIREFOX_NULL;
}

static void make_stacks(struct firefox *f, struct thread *t)
{
	t->n_frames = TABLE(f, t, frame_func)->v.n;
	t->n_stacks = TABLE(f, t, stack_frame)->v.n;
	t->frames = mem_calloc(t->n_frames + 1, sizeof(*t->frames));
	t->stacks = mem_calloc(t->n_stacks + 1, sizeof(*t->stacks));
	for (size_t i = 0; i < t->n_stacks; i++) {
		double row = (double)i, prefix = prefix_of(f, t, row);

		t->stacks[i] =
			foreign_trace_stack(f->trace, prefix >= 0 ? t->stacks[(size_t)prefix] : 0,
				frame_at(f, t, firefox_column_get(TABLE(f, t, stack_frame), row)));
	}
}

static const struct unit {
	const char *name, *metric, *of_trace;
	double scale;
} units[] = {
	{"samples", "samples", "1", 1},
	{"tracing-ms", "time", "ns", NS_PER_MS},
	{"bytes", "bytes", "bytes", 1},
};

static const struct unit *unit_of(const struct thread *t)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (text_word_is(buf_span(&t->unit), units[i].name))
			return &units[i];
	return &units[0];
}

static void put_samples(struct firefox *f, struct thread *t)
{
	const struct unit *unit = unit_of(t);
	struct trace_sample sample = {.thread = foreign_trace_thread(f->trace, (uint32_t)t->pid,
					      (uint32_t)t->tid, buf_span(&t->name))};
	double at = 0;

	foreign_trace_process(f->trace, (uint32_t)t->pid, buf_span(&t->process));
	sample.metric = f->has_metric
				? foreign_trace_metric(f->trace, unit->metric, unit->of_trace)
				: foreign_trace_main_metric(f->trace, unit->metric, unit->of_trace);
	f->has_metric = true;
	for (size_t i = 0; i < t->stack.v.n; i++) {
		double row = (double)i, stack = t->stack.v.v[i];
		double weight = t->weight.v.n ? firefox_column_get(&t->weight, row) : 1;

		at = t->delta.v.n ? at + firefox_column_get(&t->delta, row)
				  : firefox_column_get(&t->time, row);
		weight *= unit->scale;
		if (!(weight >= 0 && weight < VALUE_MAX) || stack >= (double)t->n_stacks) {
			f->n_wrong++;
			continue;
		}
		sample.stack = stack >= 0 ? t->stacks[(size_t)stack] : 0;
		sample.weight = (uint64_t)(weight + 0.5);
		foreign_trace_sample(f->trace,
			at > 0 && at * NS_PER_MS < VALUE_MAX ? (uint64_t)(at * NS_PER_MS) : 0,
			&sample);
	}
}

static void thread_release(struct thread *t)
{
	firefox_columns_release(&t->tables);
	vec_release(&t->stack.v);
	vec_release(&t->time.v);
	vec_release(&t->delta.v);
	vec_release(&t->weight.v);
	buf_release(&t->name);
	buf_release(&t->process);
	buf_release(&t->unit);
	free(t->frames);
	free(t->stacks);
}

static void take_threads(struct firefox *f)
{
	while (json_next_item(&f->json)) {
		struct thread t = {.pid = 0};

		if (!json_enter(&f->json, JSON_OBJECT))
			continue;
		f->n_threads++;
		take_thread(f, &t);
		if (!f->json.failed) {
			make_stacks(f, &t);
			put_samples(f, &t);
		}
		thread_release(&t);
	}
}

/* ---- the whole ---- */

static int take_all(struct firefox *f, struct foreign_input *in, bool is_first, struct err *err)
{
	struct span key;
	int rc;

	json_reader_init(&f->json, in);
	if (!json_enter(&f->json, JSON_OBJECT))
		json_reader_wrong(&f->json, "is no object");
	while (json_next_key(&f->json, &key)) {
		if (is_first)
			take_head(f, key);
		else if (!json_key_is(key, "threads"))
			json_skip(&f->json);
		else if (json_enter(&f->json, JSON_ARRAY))
			take_threads(f);
	}
	rc = json_reader_failure(&f->json, err);
	json_reader_release(&f->json);
	return rc;
}

static int check_version(const struct firefox *f, struct foreign_input *in, struct err *err)
{
	if (!f->has_meta || !(f->version >= 1))
		return foreign_input_wrong(in, err,
			"is no processed profile (a raw one can be opened and saved by "
			"profiler.firefox.com)");
	if (f->version > VERSION_MAX)
		foreign_trace_note(
			f->trace, 1, "the profile's version is newer than those that are known");
	return 0;
}

int firefox_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct firefox f = {.trace = foreign_trace_new(w, "firefox")};
	int rc = take_all(&f, in, true, err);

	(void)path;
	(void)options;
	if (rc == 0)
		rc = check_version(&f, in, err);
	if (rc == 0 && !foreign_input_restart(in))
		rc = foreign_input_wrong(in, err, "is a pipe, but must be read twice");
	if (rc == 0)
		rc = take_all(&f, in, false, err);
	if (rc == 0 && f.n_wrong)
		foreign_trace_lost(f.trace, f.n_wrong,
			"samples and rows of tables that refer to what is not there");
	if (rc == 0 && f.n_markers)
		foreign_trace_note(f.trace, f.n_markers, "markers are not shown");
	foreign_trace_free(f.trace);
	firefox_columns_release(&f.shared);
	intern_release(&f.texts);
	vec_release(&f.libs);
	return rc;
}
