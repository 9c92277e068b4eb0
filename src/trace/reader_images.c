/* SPDX-License-Identifier: MIT */
/*
 * What the trace knows of images beyond their table entry, and the address index.
 *
 * Function tables are most of a file and few of them are ever asked for. So at open only the image
 * of each FUNCTIONS chunk is checked, which its header says; the rest is checked when the table is
 * first asked for, and a table with anything wrong in it counts as none.
 */
#include <assert.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/order.h"
#include "trace/reader_internal.h"

void reader_images_release(struct trace_reader *r)
{
	for (size_t i = 0; i < r->functions.n; i++)
		vec_release(&r->functions.v[i].table);
	vec_release(&r->functions);
	vec_release(&r->function_chunks);
	vec_release(&r->facts);
	vec_release(&r->matches);
	vec_release(&r->spans);
	free(r->damaged_functions);
}

static int take_image(struct decoder *d, uint32_t *image)
{
	if (decoder_take(d, image, d->r->images.n, "the image") < 0)
		return ERR_FORMAT;
	return *image ? 0 : decoder_bad(d, "the image", 0);
}

static int take_segment(struct decoder *d, struct trace_segment *s)
{
	if (decoder_take_u64(d, &s->addr) < 0 || decoder_take_u64(d, &s->offset) < 0 ||
		decoder_take_u64(d, &s->file_bytes) < 0 || decoder_take_u64(d, &s->mem_bytes) < 0)
		return ERR_FORMAT;
	return decoder_take(d, &s->flags, ANY_U32, "the flags");
}

int reader_add_image_facts(struct decoder *d)
{
	struct trace_image_facts facts = {0};
	struct trace_segment *segments;
	uint32_t machine;

	if (take_image(d, &facts.image) < 0 ||
		decoder_take(d, &machine, UINT16_MAX + 1, "the machine") < 0)
		return ERR_FORMAT;
	facts.machine = (uint16_t)machine;
	facts.content_hash = cursor_u64(&d->c);
	if (decoder_take(d, &facts.n_segments, TRACE_SEGMENTS_MAX + 1, "the number of segments") <
		0)
		return ERR_FORMAT;
	if (facts.n_segments > cursor_left(&d->c) / SEGMENT_BYTES_MIN)
		return decoder_cut_off(d);
	segments = mem_calloc(facts.n_segments, sizeof(*segments));
	vec_push(&d->r->blocks, segments);
	for (uint32_t i = 0; i < facts.n_segments; i++)
		if (take_segment(d, &segments[i]) < 0)
			return ERR_FORMAT;
	facts.segments = segments;
	d->r->facts.v[facts.image] = facts;
	return 0;
}

int reader_add_match(struct decoder *d)
{
	struct trace_match m = {0};
	uint32_t rung;

	if (take_image(d, &m.image) < 0 ||
		decoder_take(d, &rung, TRACE_MATCH_N_RUNGS, "the rung") < 0 ||
		decoder_take(d, &m.reason, d->r->strings.n, "the reason") < 0 ||
		decoder_take(d, &m.catalog_id, d->r->strings.n, "the catalog's id") < 0 ||
		decoder_take(d, &m.sources, d->r->strings.n, "the sources") < 0 ||
		decoder_take_u64(d, &m.n_symbols) < 0)
		return ERR_FORMAT;
	m.rung = (uint8_t)rung;
	m.n_symbols--; /* 0: not counted */
	d->r->matches.v[m.image] = m;
	return 0;
}

/* Every chunk of the address index says how many rows all of them have. */
int reader_begin_spans(struct decoder *d)
{
	struct trace_reader *r = d->r;
	uint64_t total;

	if (decoder_take_u64(d, &total) < 0)
		return ERR_FORMAT;
	if (total > TABLE_ENTRIES_MAX || (r->spans.n && total != r->n_spans_announced) ||
		r->spans.n + d->view->header.count > total)
		return decoder_bad(d, "the number of all rows", total);
	r->n_spans_announced = total;
	return 0;
}

static bool is_in_order(const struct trace_module_span *a, const struct trace_module_span *b)
{
	return (ORDER(a->pid, b->pid) ?: ORDER(a->process_start, b->process_start) ?:
		ORDER(a->start, b->start) ?: ORDER(a->from, b->from)) <= 0;
}

/* The numbers of a row, `before` being the row before in its chunk. */
static int take_span(
	struct decoder *d, const struct trace_module_span *before, struct trace_module_span *s)
{
	uint64_t length, duration, first;

	if (decoder_take(d, &s->pid, ANY_U32 - before->pid, "the step to the pid") < 0)
		return ERR_FORMAT;
	s->pid += before->pid;
	s->process_start = before->process_start + (uint64_t)cursor_sleb(&d->c);
	s->start = before->start + (uint64_t)cursor_sleb(&d->c);
	length = cursor_uleb(&d->c);
	s->from = before->from + (uint64_t)cursor_sleb(&d->c);
	duration = cursor_uleb(&d->c);
	if (take_image(d, &s->image) < 0 || decoder_take_u64(d, &first) < 0)
		return ERR_FORMAT;
	s->bias = s->start - first;
	if (!length || length > UINT64_MAX - s->start)
		return decoder_bad(d, "the length", length);
	s->end = s->start + length;
	if (duration && duration - 1 > UINT64_MAX - s->from)
		return decoder_bad(d, "the duration", duration);
	s->to = duration ? s->from + (duration - 1) : UINT64_MAX;
	return 0;
}

int reader_add_span(struct decoder *d)
{
	static const struct trace_module_span none;
	struct trace_reader *r = d->r;
	const struct trace_module_span *last = r->spans.n ? &r->spans.v[r->spans.n - 1] : NULL;
	struct trace_module_span s = {0};
	uint8_t tag;

	if (take_span(d, d->i ? last : &none, &s) < 0)
		return ERR_FORMAT;
	tag = cursor_u8(&d->c);
	if (d->c.failed)
		return decoder_cut_off(d);
	if (tag & SPAN_TAG_ZERO || (tag & SPAN_TAG_ENDED) >= MODULE_N_ENDS)
		return decoder_bad(d, "the tag", tag);
	s.ended = (enum module_end)(tag & SPAN_TAG_ENDED);
	s.at_start = (tag & SPAN_TAG_AT_START) != 0;
	s.is_used = (tag & SPAN_TAG_USED) != 0;
	if (last && !is_in_order(last, &s))
		return chunk_error(r, d->view, d->err, "entry %u: is out of order", d->i);
	vec_push(&r->spans, s);
	return 0;
}

void reader_images_finish(struct trace_reader *r)
{
	if (r->spans.n != r->n_spans_announced)
		r->spans.n = 0; /* the recording was killed before its end */
}

int reader_add_function_chunk(struct trace_reader *r, size_t i, struct err *err)
{
	const struct chunk_entry *e = &r->chunks.v[i];
	struct chunk_view view = {.offset = e->offset, .listed_type = CHUNK_TYPE_FUNCTIONS};
	struct function_chunk chunk = {i, (uint32_t)r->strings.n, 0};
	uint32_t number = (uint32_t)r->function_chunks.n;
	struct image_functions *f;

	if (!e->stream || e->stream >= r->images.n)
		return chunk_error(r, &view, err, "image %u is not defined", e->stream);
	f = &r->functions.v[e->stream];
	if (f->last)
		r->function_chunks.v[f->last].next = number;
	else
		f->first = number;
	f->last = number;
	vec_push(&r->function_chunks, chunk);
	return 0;
}

static int add_function(struct decoder *d, struct image_functions *f, uint32_t n_strings)
{
	const struct trace_function *last = f->table.n ? &f->table.v[f->table.n - 1] : NULL;
	uint64_t step, before = d->i ? last->start : 0, name = d->i ? last->name : 0;
	struct trace_function function;

	if (decoder_take_u64(d, &step) < 0 || decoder_take_u64(d, &function.size) < 0)
		return ERR_FORMAT;
	name += (uint64_t)cursor_sleb(&d->c);
	if (d->c.failed)
		return decoder_cut_off(d);
	if (step > UINT64_MAX - before)
		return decoder_bad(d, "the step to the start", step);
	function.start = before + step;
	if (function.size > UINT64_MAX - function.start)
		return decoder_bad(d, "the size", function.size);
	if (name >= n_strings)
		return decoder_bad(d, "the name", name);
	if (last && function.start < last->start)
		return chunk_error(d->r, d->view, d->err, "entry %u: is out of order", d->i);
	function.name = (uint32_t)name;
	vec_push(&f->table, function);
	return 0;
}

static int add_functions(struct trace_reader *r, const struct function_chunk *chunk,
	const struct chunk_view *view, struct err *err)
{
	struct image_functions *f = &r->functions.v[view->header.stream];
	struct decoder d = {r, view, cursor_of(view->raw), 0, err};
	uint32_t count = view->header.count;

	if (count > cursor_left(&d.c) / FUNCTION_BYTES_MIN)
		return chunk_error(r, view, err, "%u entries do not fit", count);
	if (count > IMAGE_FUNCTIONS_MAX - f->table.n)
		return chunk_error(
			r, view, err, "the image has more than %u functions", IMAGE_FUNCTIONS_MAX);
	vec_reserve(&f->table, f->table.n + count);
	for (; d.i < count; d.i++)
		if (add_function(&d, f, chunk->n_strings) < 0)
			return ERR_FORMAT;
	if (d.c.p != d.c.end)
		return chunk_error(r, view, err, "%zu bytes are left over", cursor_left(&d.c));
	return 0;
}

static int decode_functions(struct trace_reader *r, uint32_t first, struct err *err)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	struct buf unpacked = {0};
	int rc = 0;

	if (!zstd)
		return err_set(err, ERR_FAILED, "'%s': not enough memory to unpack", r->name);
	for (uint32_t i = first; i && rc == 0; i = r->function_chunks.v[i].next) {
		const struct function_chunk *chunk = &r->function_chunks.v[i];
		struct chunk_view view = {0};

		rc = chunk_load_listed(r, chunk->chunk_i, zstd, &unpacked, &view, err);
		if (rc == 0)
			rc = add_functions(r, chunk, &view, err);
	}
	buf_release(&unpacked);
	ZSTD_freeDCtx(zstd);
	return rc;
}

size_t trace_reader_functions(
	struct trace_reader *r, uint32_t image, const struct trace_function **functions)
{
	struct image_functions *f;
	struct err err;

	assert(image < r->functions.n);
	f = &r->functions.v[image];
	if (f->first && !f->is_decoded && decode_functions(r, f->first, &err) < 0) {
		vec_release(&f->table);
		r->n_damaged_functions++;
		if (!r->damaged_functions)
			r->damaged_functions = mem_strdup(err.text);
	}
	f->is_decoded = true;
	*functions = f->table.v;
	return f->table.n;
}

uint32_t trace_reader_n_damaged_functions(const struct trace_reader *r, const char **first)
{
	if (first)
		*first = r->damaged_functions;
	return r->n_damaged_functions;
}

const struct trace_image_facts *trace_reader_image_facts(
	const struct trace_reader *r, uint32_t image)
{
	assert(image < r->facts.n);
	return r->facts.v[image].image ? &r->facts.v[image] : NULL;
}

const struct trace_match *trace_reader_match(const struct trace_reader *r, uint32_t image)
{
	assert(image < r->matches.n);
	return r->matches.v[image].image ? &r->matches.v[image] : NULL;
}

void trace_reader_set_match(struct trace_reader *r, const struct trace_match *match)
{
	assert(match->image > 0 && match->image < r->matches.n);
	assert(match->rung < TRACE_MATCH_N_RUNGS && match->reason < r->strings.n &&
		match->catalog_id < r->strings.n && match->sources < r->strings.n);
	r->matches.v[match->image] = *match;
}

size_t trace_reader_module_spans(
	const struct trace_reader *r, const struct trace_module_span **spans)
{
	*spans = r->spans.v;
	return r->spans.n;
}
