/* SPDX-License-Identifier: MIT */
/*
 * Definitions are handed over in order of their ids, so that a writer, which counts from 1 too,
 * gives each the same id again; that it did is checked. Then records need not be looked into.
 */
#include "trace/copy.h"

struct copier {
	struct trace_reader *r;
	struct trace_writer *w;
	struct err *err;
};

static int check_id(const struct copier *c, const char *what, uint32_t id, uint32_t expected)
{
	const char *damage;

	if (id == expected)
		return 0;
	if (trace_reader_n_damaged_tables(c->r, &damage))
		return err_set(c->err, ERR_FORMAT,
			"'%s': its definitions are damaged, nothing else can be made of it: %s",
			trace_reader_name(c->r), damage);
	return err_set(c->err, ERR_FORMAT, "'%s': defines %s %u a second time, as %u",
		trace_reader_name(c->r), what, id, expected);
}

static int copy_strings(const struct copier *c)
{
	int rc = 0;

	for (uint32_t id = 0; id < trace_reader_n_strings(c->r) && rc == 0; id++)
		rc = check_id(
			c, "text", trace_writer_string(c->w, trace_reader_string(c->r, id)), id);
	return rc;
}

static int copy_metrics(const struct copier *c)
{
	int rc = 0;

	for (uint32_t id = 1; id < trace_reader_n_metrics(c->r) && rc == 0; id++) {
		const struct trace_metric *m = trace_reader_metric(c->r, id);

		rc = check_id(c, "metric",
			trace_writer_metric(c->w, trace_reader_string(c->r, m->name),
				trace_reader_string(c->r, m->unit)),
			id);
	}
	return rc;
}

static int copy_threads_and_streams(const struct copier *c)
{
	int rc = 0;

	for (uint32_t id = 1; id < trace_reader_n_threads(c->r) && rc == 0; id++)
		rc = check_id(
			c, "thread", trace_writer_thread(c->w, trace_reader_thread(c->r, id)), id);
	for (uint32_t id = 1; id < trace_reader_n_streams(c->r) && rc == 0; id++) {
		const struct trace_stream *s = trace_reader_stream(c->r, id);

		rc = check_id(c, "stream", trace_writer_stream(c->w, s->kind, s->number), id);
	}
	return rc;
}

static int copy_code(const struct copier *c)
{
	int rc = 0;

	for (uint32_t id = 1; id < trace_reader_n_images(c->r) && rc == 0; id++)
		rc = check_id(
			c, "image", trace_writer_image(c->w, trace_reader_image(c->r, id)), id);
	for (uint32_t id = 1; id < trace_reader_n_frames(c->r) && rc == 0; id++)
		rc = check_id(
			c, "frame", trace_writer_frame(c->w, trace_reader_frame(c->r, id)), id);
	for (uint32_t id = 1; id < trace_reader_n_stacks(c->r) && rc == 0; id++) {
		const struct trace_stack *s = trace_reader_stack(c->r, id);

		rc = check_id(c, "stack", trace_writer_stack(c->w, s->parent, s->frame), id);
	}
	return rc;
}

static void copy_images(const struct copier *c)
{
	const struct trace_module_span *spans;
	size_t n_spans = trace_reader_module_spans(c->r, &spans);

	for (uint32_t id = 1; id < trace_reader_n_images(c->r); id++) {
		const struct trace_function *functions;
		size_t n = trace_reader_functions(c->r, id, &functions);

		if (trace_reader_image_facts(c->r, id))
			trace_writer_image_facts(c->w, trace_reader_image_facts(c->r, id));
		if (trace_reader_match(c->r, id))
			trace_writer_match(c->w, trace_reader_match(c->r, id));
		trace_writer_functions(c->w, id, functions, n);
	}
	if (n_spans)
		trace_writer_module_spans(c->w, spans, n_spans);
}

int trace_copy_definitions(struct trace_writer *w, struct trace_reader *r, struct err *err)
{
	const struct copier c = {.r = r, .w = w, .err = err};
	const char *key;
	int rc;

	for (uint32_t i = 0; (key = trace_reader_meta_key(r, i)); i++)
		trace_writer_meta(w, key, trace_reader_meta(r, key));
	rc = copy_strings(&c);
	if (rc == 0)
		rc = copy_metrics(&c);
	if (rc == 0)
		rc = copy_threads_and_streams(&c);
	if (rc == 0)
		rc = copy_code(&c);
	if (rc < 0)
		return rc;
	for (uint32_t id = 1; id < trace_reader_n_frames(r); id++)
		if (trace_reader_symbol(r, id))
			trace_writer_symbol(w, trace_reader_symbol(r, id));
	copy_images(&c);
	return 0;
}

/* ---- records ---- */

static void say(struct trace_writer *w, uint64_t n, const char *sentence)
{
	uint32_t life = trace_writer_stream(w, STREAM_KIND_LIFE, 0);

	if (n)
		trace_writer_loss(
			w, life, trace_writer_stream_time(w, life), RECORD_LOSS_PART, n, sentence);
}

/* What the trace lacks as a whole, in the words of reports on it. */
static void say_what_is_missing(struct trace_writer *w, const struct trace_reader *r)
{
	const char *why;
	uint32_t n = trace_reader_n_damaged_tables(r, &why);

	if (n)
		say(w, 1, why);
	say(w, n ? n - 1 : 0, "more chunks of definitions are damaged");
	say(w, trace_reader_n_unplaced(r), "records of a stream whose definition is damaged");
	if (trace_reader_is_recovered(r, &why))
		say(w, 1, why ? why : "the end of the trace is missing");
}

static int copy_stream(struct trace_writer *w, const struct trace_reader *r, uint32_t stream,
	const struct trace_copy_filter *filter, struct err *err)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct err damage = {0};
	int rc = trace_cursor_open(&cursor, r, stream, 0, UINT64_MAX, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(cursor, &record, &damage)) != 0) {
		if (rc < 0)
			say(w, 1, damage.text);
		else if (!filter || filter->wants(filter->ctx, &record))
			trace_writer_record(w, stream, record.time, record.major, record.minor,
				record.payload.p, record.payload.n);
	}
	trace_cursor_close(cursor);
	return 0;
}

int trace_copy_records(struct trace_writer *w, const struct trace_reader *r,
	const struct trace_copy_filter *filter, struct err *err)
{
	int rc = 0;

	for (uint32_t id = 1; id < trace_reader_n_streams(r) && rc == 0; id++)
		rc = copy_stream(w, r, id, filter, err);
	say_what_is_missing(w, r);
	return rc;
}
