/* SPDX-License-Identifier: MIT */
/* Opens bytes as a trace, without comparing check sums, and walks every table and every record. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"

/* Unpacked chunks are as large as 16 MiB each; walk what a second or so can hold. */
#define RECORDS_MAX 200000

static volatile uint64_t sink; /* keeps the reads */

static void walk_tables(struct trace_reader *r)
{
	uint64_t sum = 0;
	const char *key;

	for (uint32_t i = 0; i < 100 && (key = trace_reader_meta_key(r, i)); i++)
		sum += strlen(trace_reader_meta(r, key));
	for (uint32_t i = 0; i < trace_reader_n_strings(r); i++)
		sum += strlen(trace_reader_string(r, i));
	for (uint32_t i = 0; i < trace_reader_n_metrics(r); i++)
		sum += *trace_reader_string(r, trace_reader_metric(r, i)->unit);
	for (uint32_t i = 0; i < trace_reader_n_streams(r); i++)
		if (trace_reader_stream(r, i)->kind == STREAM_KIND_THREAD)
			sum += trace_reader_thread(r, trace_reader_stream(r, i)->number)->pid;
	for (uint32_t i = 0; i < trace_reader_n_images(r); i++)
		sum += *trace_reader_string(r, trace_reader_image(r, i)->path);
	for (uint32_t i = 0; i < trace_reader_n_stacks(r); i++) {
		const struct trace_stack *s = trace_reader_stack(r, i);
		const struct trace_frame *f = trace_reader_frame(r, s->frame);
		const struct trace_symbol *symbol = trace_reader_symbol(r, s->frame);

		if (i && s->parent >= i)
			abort();
		sum += trace_reader_image(r, f->image)->pid + *trace_reader_string(r, f->name);
		for (uint32_t k = 0; symbol && k < symbol->n_levels; k++)
			sum += *trace_reader_string(r, symbol->levels[k].name) +
			       *trace_reader_string(r, symbol->levels[k].file);
	}
	sink += sum;
}

static void walk_images(struct trace_reader *r)
{
	const struct trace_module_span *spans;
	size_t n = trace_reader_module_spans(r, &spans);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (spans[i].start >= spans[i].end || spans[i].from > spans[i].to ||
			spans[i].ended >= MODULE_N_ENDS || !spans[i].image)
			abort();
		sum += trace_reader_image(r, spans[i].image)->pid;
	}
	for (uint32_t i = 0; i < trace_reader_n_images(r); i++) {
		const struct trace_image_facts *facts = trace_reader_image_facts(r, i);
		const struct trace_match *m = trace_reader_match(r, i);
		const struct trace_function *f;

		for (uint32_t k = 0; facts && k < facts->n_segments; k++)
			sum += facts->segments[k].flags;
		sum += m ? *trace_reader_string(r, m->reason) : 0;
		n = trace_reader_functions(r, i, &f);
		for (size_t k = 0; k < n; k++) {
			if ((k && f[k].start < f[k - 1].start) ||
				f[k].start + f[k].size < f[k].start)
				abort();
			sum += *trace_reader_string(r, f[k].name);
		}
	}
	sink += sum;
}

static void walk_records(struct trace_reader *r, uint32_t stream, uint64_t from, uint64_t to)
{
	struct trace_record record;
	struct trace_sample sample;
	struct trace_cursor *c;
	uint64_t time = 0, number;
	struct err err;
	int rc;

	if (trace_cursor_open(&c, r, stream, from, to, &err) < 0)
		return;
	for (int i = 0; i < RECORDS_MAX; i++) {
		rc = trace_cursor_next(c, &record, &err);
		if (rc == 0)
			break;
		if (rc < 0)
			continue;
		if (record.time < time || record.time < from || record.time >= to)
			abort();
		time = record.time;
		for (size_t k = 0; k < record.payload.n; k++)
			sink += record.payload.p[k];
		if (trace_record_numbers(r, &record, &number, 1, &err) == 0)
			sink += number;
		if (trace_record_sample(r, &record, &sample, &err) == 0)
			sink += trace_reader_stack(r, sample.stack)->frame +
				trace_reader_thread(r, sample.thread)->pid +
				trace_reader_metric(r, sample.metric)->unit;
	}
	trace_cursor_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct trace_reader *r;
	struct err err;

	if (trace_reader_open_bytes(&r, (struct span){data, n}, false, "fuzz", &err) < 0)
		return 0;
	walk_tables(r);
	walk_images(r);
	walk_records(r, TRACE_ALL_STREAMS, 0, UINT64_MAX);
	walk_records(r, 1, 1000, 6000000000);
	trace_reader_close(r);
	return 0;
}
