/* SPDX-License-Identifier: MIT */
/*
 * trace_dump write FILE   writes a trace with every kind of definition and record
 * trace_dump dump FILE    prints a trace as JSON, in the form of tests/format/read_trace.py
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/trace_everything.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "trace/reader.h"

static int say(const struct err *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

static int write_trace(const char *path)
{
	struct trace_writer *w;
	struct err err;

	if (trace_writer_open(&w, path, &err) < 0)
		return say(&err);
	everything_write_all(w);
	return trace_writer_close(w, &err) < 0 ? say(&err) : 0;
}

static const char *hex(struct buf *b, const uint8_t *p, size_t n)
{
	buf_reset(b);
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%02x", p[i]);
	return buf_text(b);
}

static void dump_small_tables(struct json *j, const struct trace_reader *r)
{
	json_array_begin(j, "strings");
	for (uint32_t i = 0; i < trace_reader_n_strings(r); i++)
		json_string(j, NULL, trace_reader_string(r, i));
	json_array_end(j);
	json_array_begin(j, "metrics");
	for (uint32_t i = 1; i < trace_reader_n_metrics(r); i++) {
		json_array_begin(j, NULL);
		json_string(j, NULL, trace_reader_string(r, trace_reader_metric(r, i)->name));
		json_string(j, NULL, trace_reader_string(r, trace_reader_metric(r, i)->unit));
		json_array_end(j);
	}
	json_array_end(j);
	json_array_begin(j, "streams");
	for (uint32_t i = 1; i < trace_reader_n_streams(r); i++) {
		json_array_begin(j, NULL);
		json_u64(j, NULL, trace_reader_stream(r, i)->kind);
		json_u64(j, NULL, trace_reader_stream(r, i)->number);
		json_array_end(j);
	}
	json_array_end(j);
	json_array_begin(j, "threads");
	for (uint32_t i = 1; i < trace_reader_n_threads(r); i++) {
		json_array_begin(j, NULL);
		json_u64(j, NULL, trace_reader_thread(r, i)->pid);
		json_u64(j, NULL, trace_reader_thread(r, i)->tid);
		json_u64(j, NULL, trace_reader_thread(r, i)->start_ns);
		json_array_end(j);
	}
	json_array_end(j);
}

static void dump_images(struct json *j, const struct trace_reader *r)
{
	struct buf b = {0};

	json_array_begin(j, "images");
	for (uint32_t i = 1; i < trace_reader_n_images(r); i++) {
		const struct trace_image *image = trace_reader_image(r, i);

		json_array_begin(j, NULL);
		json_u64(j, NULL, image->kind);
		json_string(j, NULL, trace_reader_string(r, image->path));
		json_u64(j, NULL, image->bits);
		json_string(j, NULL, hex(&b, image->build_id, image->build_id_n));
		json_u64(j, NULL, image->file_bytes);
		json_u64(j, NULL, image->file_mtime_ns);
		json_u64(j, NULL, image->pid);
		json_array_end(j);
	}
	json_array_end(j);
	buf_release(&b);
}

static void dump_code_tables(struct json *j, const struct trace_reader *r)
{
	json_array_begin(j, "frames");
	for (uint32_t i = 1; i < trace_reader_n_frames(r); i++) {
		const struct trace_frame *f = trace_reader_frame(r, i);

		json_array_begin(j, NULL);
		json_u64(j, NULL, f->kind);
		json_bool(j, NULL, f->is_caller);
		json_u64(j, NULL, f->image);
		json_string(j, NULL, trace_reader_string(r, f->name));
		json_u64(j, NULL, f->addr);
		json_array_end(j);
	}
	json_array_end(j);
	json_array_begin(j, "stacks");
	for (uint32_t i = 1; i < trace_reader_n_stacks(r); i++) {
		json_array_begin(j, NULL);
		json_u64(j, NULL, trace_reader_stack(r, i)->parent);
		json_u64(j, NULL, trace_reader_stack(r, i)->frame);
		json_array_end(j);
	}
	json_array_end(j);
}

static void dump_symbols(struct json *j, const struct trace_reader *r)
{
	json_array_begin(j, "symbols");
	for (uint32_t i = 1; i < trace_reader_n_frames(r); i++) {
		const struct trace_symbol *s = trace_reader_symbol(r, i);

		if (!s)
			continue;
		json_array_begin(j, NULL);
		json_u64(j, NULL, s->frame);
		json_string(j, NULL, trace_reader_string(r, s->reason));
		json_array_begin(j, NULL);
		for (uint32_t k = 0; k < s->n_levels; k++) {
			json_array_begin(j, NULL);
			json_string(j, NULL, trace_reader_string(r, s->levels[k].name));
			json_string(j, NULL, trace_reader_string(r, s->levels[k].file));
			json_u64(j, NULL, s->levels[k].line);
			json_u64(j, NULL, s->levels[k].offset);
			json_array_end(j);
		}
		json_array_end(j);
		json_array_end(j);
	}
	json_array_end(j);
}

static void dump_image_facts(struct json *j, const struct trace_reader *r)
{
	json_array_begin(j, "image_facts");
	for (uint32_t i = 1; i < trace_reader_n_images(r); i++) {
		const struct trace_image_facts *f = trace_reader_image_facts(r, i);

		if (!f)
			continue;
		json_array_begin(j, NULL);
		json_u64(j, NULL, f->image);
		json_u64(j, NULL, f->machine);
		json_u64(j, NULL, f->content_hash);
		json_array_begin(j, NULL);
		for (uint32_t k = 0; k < f->n_segments; k++) {
			json_array_begin(j, NULL);
			json_u64(j, NULL, f->segments[k].addr);
			json_u64(j, NULL, f->segments[k].offset);
			json_u64(j, NULL, f->segments[k].file_bytes);
			json_u64(j, NULL, f->segments[k].mem_bytes);
			json_u64(j, NULL, f->segments[k].flags);
			json_array_end(j);
		}
		json_array_end(j);
		json_array_end(j);
	}
	json_array_end(j);
}

static void dump_matches(struct json *j, const struct trace_reader *r)
{
	json_array_begin(j, "matches");
	for (uint32_t i = 1; i < trace_reader_n_images(r); i++) {
		const struct trace_match *m = trace_reader_match(r, i);

		if (!m)
			continue;
		json_array_begin(j, NULL);
		json_u64(j, NULL, m->image);
		json_u64(j, NULL, m->rung);
		json_string(j, NULL, trace_reader_string(r, m->reason));
		json_string(j, NULL, trace_reader_string(r, m->catalog_id));
		json_string(j, NULL, trace_reader_string(r, m->sources));
		json_u64(j, NULL, m->n_symbols);
		json_array_end(j);
	}
	json_array_end(j);
}

static void dump_functions(struct json *j, struct trace_reader *r)
{
	json_array_begin(j, "functions");
	for (uint32_t i = 1; i < trace_reader_n_images(r); i++) {
		const struct trace_function *f;
		size_t n = trace_reader_functions(r, i, &f);

		if (!n)
			continue;
		json_array_begin(j, NULL);
		json_u64(j, NULL, i);
		json_array_begin(j, NULL);
		for (size_t k = 0; k < n; k++) {
			json_array_begin(j, NULL);
			json_u64(j, NULL, f[k].start);
			json_u64(j, NULL, f[k].size);
			json_string(j, NULL, trace_reader_string(r, f[k].name));
			json_array_end(j);
		}
		json_array_end(j);
		json_array_end(j);
	}
	json_array_end(j);
	json_u64(j, "damaged_functions", trace_reader_n_damaged_functions(r, NULL));
}

static void dump_addresses(struct json *j, const struct trace_reader *r)
{
	const struct trace_module_span *s;
	size_t n = trace_reader_module_spans(r, &s);

	json_array_begin(j, "addresses");
	for (size_t i = 0; i < n; i++) {
		json_array_begin(j, NULL);
		json_u64(j, NULL, s[i].pid);
		json_u64(j, NULL, s[i].process_start);
		json_u64(j, NULL, s[i].start);
		json_u64(j, NULL, s[i].from);
		json_u64(j, NULL, s[i].end);
		json_u64(j, NULL, s[i].to);
		json_u64(j, NULL, s[i].image);
		json_u64(j, NULL, s[i].bias);
		json_u64(j, NULL, s[i].ended);
		json_bool(j, NULL, s[i].at_start);
		json_bool(j, NULL, s[i].is_used);
		json_array_end(j);
	}
	json_array_end(j);
}

/* Outermost first; a symbol with levels gives one name each. */
static void dump_stack_names(struct json *j, const struct trace_reader *r, uint32_t stack)
{
	const struct trace_stack *s = trace_reader_stack(r, stack);
	const struct trace_symbol *symbol = trace_reader_symbol(r, s->frame);
	const struct trace_frame *f = trace_reader_frame(r, s->frame);
	char address[32];

	if (!stack)
		return;
	dump_stack_names(j, r, s->parent);
	for (uint32_t k = symbol ? symbol->n_levels : 0; k-- > 0;)
		json_string(j, NULL, trace_reader_string(r, symbol->levels[k].name));
	if (symbol && symbol->n_levels)
		return;
	snprintf(address, sizeof(address), "0x%" PRIx64, f->addr);
	json_string(j, NULL, f->name ? trace_reader_string(r, f->name) : address);
}

static bool is_sample(const struct trace_record *record)
{
	return record->major == RECORD_MAJOR_STACK_SAMPLE && record->minor == RECORD_MINOR_STACK;
}

static void dump_sample(
	struct json *j, const struct trace_reader *r, const struct trace_record *record)
{
	const struct trace_thread *t;
	struct trace_sample sample;
	struct err err;

	if (trace_record_sample(r, record, &sample, &err) < 0)
		exit(say(&err));
	t = trace_reader_thread(r, sample.thread);
	json_array_begin(j, NULL);
	json_u64(j, NULL, record->time);
	json_u64(j, NULL, t->pid);
	json_u64(j, NULL, t->tid);
	json_array_begin(j, NULL);
	dump_stack_names(j, r, sample.stack);
	json_array_end(j);
	json_string(j, NULL, trace_reader_string(r, trace_reader_metric(r, sample.metric)->name));
	json_u64(j, NULL, sample.weight);
	json_array_end(j);
}

static void dump_record(struct json *j, const struct trace_record *record, struct buf *b)
{
	json_array_begin(j, NULL);
	json_u64(j, NULL, record->time);
	json_u64(j, NULL, record->stream);
	json_u64(j, NULL, record->major);
	json_u64(j, NULL, record->minor);
	json_string(j, NULL, hex(b, record->payload.p, record->payload.n));
	json_array_end(j);
}

/* All records, or the samples among them; returns the number of damaged chunks. */
static unsigned dump_records(struct json *j, const struct trace_reader *r, bool samples)
{
	struct trace_record record;
	struct trace_cursor *c;
	unsigned n_damaged = 0;
	struct buf b = {0};
	struct err err;
	int rc;

	if (trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err) < 0)
		exit(say(&err));
	json_array_begin(j, samples ? "samples" : "records");
	while ((rc = trace_cursor_next(c, &record, &err)) != 0) {
		if (rc < 0)
			n_damaged++;
		else if (!samples)
			dump_record(j, &record, &b);
		else if (is_sample(&record))
			dump_sample(j, r, &record);
	}
	json_array_end(j);
	trace_cursor_close(c);
	buf_release(&b);
	return n_damaged;
}

static int dump_trace(const char *path)
{
	struct trace_reader *r;
	struct json j;
	struct err err;
	const char *key;

	if (trace_reader_open(&r, path, &err) < 0)
		return say(&err);
	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_bool(&j, "recovered", trace_reader_is_recovered(r, NULL));
	json_u64(&j, "unknown_chunks", trace_reader_n_unknown_chunks(r));
	json_object_begin(&j, "meta");
	for (uint32_t i = 0; (key = trace_reader_meta_key(r, i)); i++)
		json_string(&j, key, trace_reader_meta(r, key));
	json_object_end(&j);
	dump_small_tables(&j, r);
	dump_images(&j, r);
	dump_code_tables(&j, r);
	dump_symbols(&j, r);
	dump_image_facts(&j, r);
	dump_matches(&j, r);
	dump_functions(&j, r);
	dump_addresses(&j, r);
	dump_records(&j, r, false);
	json_u64(&j, "damaged_chunks", dump_records(&j, r, true));
	json_object_end(&j);
	putchar('\n');
	trace_reader_close(r);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "write"))
		return write_trace(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "dump"))
		return dump_trace(argv[2]);
	fprintf(stderr, "usage: trace_dump write|dump FILE\n");
	return 2;
}
