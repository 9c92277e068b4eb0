/* SPDX-License-Identifier: MIT */
/*
 * outermost TRACE: where the stacks of samples end, so that the same judge can be asked about
 * weir's and about perf's: lines "COUNT KIND ADDRESS PATH-OR-REASON", then "samples N frames N
 * stacks N".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "trace/reader.h"

static const char *const kinds[] = {[FRAME_KIND_NATIVE] = "native",
	[FRAME_KIND_KERNEL] = "kernel",
	[FRAME_KIND_INTERPRETED] = "interpreted",
	[FRAME_KIND_JITTED] = "jitted",
	[FRAME_KIND_MARKER] = "marker"};

struct totals {
	uint64_t n_samples, n_frames;
	uint64_t *by_frame; /* samples whose outermost frame it is */
};

static void add_stack(const struct trace_reader *r, uint32_t id, struct totals *t)
{
	const struct trace_stack *s;

	t->n_samples++;
	do {
		s = trace_reader_stack(r, id);
		t->n_frames++;
		id = s->parent;
	} while (id);
	t->by_frame[s->frame]++;
}

static int add_samples(const struct trace_reader *r, struct totals *t, struct err *err)
{
	struct trace_cursor *c;
	struct trace_record record;
	struct trace_sample sample;
	int rc = trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(c, &record, err)) > 0) {
		if (record.major != RECORD_MAJOR_STACK_SAMPLE)
			continue;
		rc = trace_record_sample(r, &record, &sample, err);
		if (rc < 0)
			break;
		if (sample.stack)
			add_stack(r, sample.stack, t);
	}
	trace_cursor_close(c);
	return rc;
}

static void print(const struct trace_reader *r, const struct totals *t)
{
	for (uint32_t i = 1; i < trace_reader_n_frames(r); i++) {
		const struct trace_frame *f = trace_reader_frame(r, i);
		uint32_t text = f->kind == FRAME_KIND_MARKER
					? f->name
					: trace_reader_image(r, f->image)->path;

		if (t->by_frame[i])
			printf("%" PRIu64 " %s %" PRIx64 " %s\n", t->by_frame[i], kinds[f->kind],
				f->addr, trace_reader_string(r, text));
	}
	printf("samples %" PRIu64 " frames %" PRIu64 " stacks %u\n", t->n_samples, t->n_frames,
		trace_reader_n_stacks(r) - 1);
}

int main(int argc, char **argv)
{
	struct trace_reader *r;
	struct totals t = {0};
	struct err err;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: outermost TRACE\n");
		return 2;
	}
	rc = trace_reader_open(&r, argv[1], &err);
	if (rc == 0) {
		t.by_frame = mem_calloc(trace_reader_n_frames(r), sizeof(*t.by_frame));
		rc = add_samples(r, &t, &err);
		if (rc == 0)
			print(r, &t);
		free(t.by_frame);
		trace_reader_close(r);
	}
	if (rc < 0)
		fprintf(stderr, "outermost: %s\n", err.text);
	return rc < 0;
}
