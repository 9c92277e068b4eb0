/* SPDX-License-Identifier: MIT */
/*
 * What is known of images beyond their table entry, and the address index. Facts and verdicts are
 * kept encoded until the next record chunk; function tables and the address index can be large and
 * go into the file at once, behind the definitions that they refer to.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/order.h"
#include "trace/writer_internal.h"

void trace_writer_image_facts(struct trace_writer *w, const struct trace_image_facts *facts)
{
	struct writer_tables *t = &w->tables;
	uint32_t n =
		facts->n_segments < TRACE_SEGMENTS_MAX ? facts->n_segments : TRACE_SEGMENTS_MAX;

	assert(facts->image > 0 && facts->image < t->images.n);
	buf_put_ulebs(&t->facts.bytes, facts->image, facts->machine);
	buf_put_u64(&t->facts.bytes, facts->content_hash);
	buf_put_uleb(&t->facts.bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct trace_segment *s = &facts->segments[i];

		buf_put_ulebs(&t->facts.bytes, s->addr, s->offset, s->file_bytes, s->mem_bytes, s->flags);
	}
	writer_tables_added(w, &t->facts);
}

void trace_writer_match(struct trace_writer *w, const struct trace_match *match)
{
	struct writer_tables *t = &w->tables;

	assert(match->image > 0 && match->image < t->images.n && match->rung < TRACE_MATCH_N_RUNGS);
	assert(match->reason < t->strings.n_items && match->catalog_id < t->strings.n_items &&
		match->sources < t->strings.n_items);
	buf_put_ulebs(&t->matches.bytes, match->image, match->rung, match->reason, match->catalog_id,
		match->sources, match->n_symbols + 1); /* not counted becomes 0 */
	writer_tables_added(w, &t->matches);
}

/* Appends functions until the chunk is full; returns how many. */
static size_t put_functions(
	struct buf *b, const struct writer_tables *t, const struct trace_function *f, size_t n)
{
	uint64_t start = 0;
	uint32_t name = 0;
	size_t i;

	for (i = 0; i < n && b->n < FUNCTIONS_CUT_BYTES; i++) {
		assert(f[i].start >= start && f[i].size <= UINT64_MAX - f[i].start);
		assert(f[i].name < t->strings.n_items);
		buf_put_ulebs(b, f[i].start - start, f[i].size);
		buf_put_sleb(b, (int64_t)f[i].name - (int64_t)name);
		start = f[i].start;
		name = f[i].name;
	}
	return i;
}

void trace_writer_functions(
	struct trace_writer *w, uint32_t image, const struct trace_function *functions, size_t n)
{
	struct writer_tables *t = &w->tables;
	uint64_t *last = map_ensure(&t->function_starts, image, NULL);
	uint64_t *total = map_ensure(&t->function_counts, image, NULL);

	assert(image > 0 && image < t->images.n);
	if (!n)
		return;
	assert(functions[0].start >= *last && n <= IMAGE_FUNCTIONS_MAX - *total);
	*total += n;
	*last = functions[n - 1].start;
	writer_tables_write(w);
	while (n) {
		struct buf *b = &w->scratch;
		size_t k;

		buf_reset(b);
		k = put_functions(b, t, functions, n);
		writer_append_chunk(w,
			(struct chunk_header){.type = CHUNK_TYPE_FUNCTIONS,
				.stream = image,
				.count = (uint32_t)k},
			buf_span(b));
		functions += k;
		n -= k;
	}
}

/* The order of the index; the rest only makes the bytes the same for the same spans. */
ORDER_BY(compare_spans, struct trace_module_span, pid, process_start, start, from, to, end, image)

/* One row; numbers that grow are differences from the row before in the chunk. */
static void put_span(
	struct buf *b, const struct trace_module_span *s, const struct trace_module_span *before)
{
	assert(s->start < s->end && s->from <= s->to && s->ended < MODULE_N_ENDS);
	buf_put_uleb(b, s->pid - before->pid);
	buf_put_sleb(b, (int64_t)(s->process_start - before->process_start));
	buf_put_sleb(b, (int64_t)(s->start - before->start));
	buf_put_uleb(b, s->end - s->start);
	buf_put_sleb(b, (int64_t)(s->from - before->from));
	buf_put_ulebs(b, s->to == UINT64_MAX ? 0 : s->to - s->from + 1, s->image, s->start - s->bias);
	buf_put_u8(b, (uint8_t)(s->ended | (s->at_start ? SPAN_TAG_AT_START : 0) |
				(s->is_used ? SPAN_TAG_USED : 0)));
}

void trace_writer_module_spans(
	struct trace_writer *w, const struct trace_module_span *spans, size_t n)
{
	static const struct trace_module_span none;
	struct trace_module_span *sorted;
	size_t i = 0;

	assert(!w->tables.has_spans && n < TABLE_ENTRIES_MAX);
	w->tables.has_spans = true;
	if (!n)
		return;
	sorted = mem_dup(spans, n * sizeof(*spans));
	qsort(sorted, n, sizeof(*sorted), compare_spans);
	trace_writer_flush(w, NULL); /* a failure is kept and told at the end */
	while (i < n) {
		struct buf *b = &w->scratch;
		size_t first = i;

		buf_reset(b);
		buf_put_ulebs(b, first, n);
		for (; i < n && b->n < ADDRESSES_CUT_BYTES; i++) {
			assert(sorted[i].image > 0 && sorted[i].image < w->tables.images.n);
			put_span(b, &sorted[i], i == first ? &none : &sorted[i - 1]);
		}
		writer_append_chunk(w,
			(struct chunk_header){
				.type = CHUNK_TYPE_ADDRESSES, .count = (uint32_t)(i - first)},
			buf_span(b));
	}
	free(sorted);
}
