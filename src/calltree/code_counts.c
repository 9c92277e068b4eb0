/* SPDX-License-Identifier: MIT */
/*
 * Records of one function come in any order as far as this reader is concerned: everything is
 * collected first, then put in order, so that a damaged or foreign trace gives a smaller model and
 * never a wrong index.
 */
#include "calltree/code_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"

/* A block on its way into the model. */
struct loose_block {
	struct code_block block;
	uint32_t frame;
	size_t function; /* index, once functions are in order */
};

struct collector {
	const struct trace_reader *reader;
	VEC(struct code_function) functions;
	VEC(struct loose_block) blocks;
	VEC(struct code_line) lines; /* in order of their blocks */
	VEC(const char *) files;
	struct map file_of;	/* string id -> index in files */
	struct map function_of; /* frame -> index in functions */
	struct map calls_of;	/* frame -> calls */
	uint32_t last_stream;	/* of the last block */
};

static uint32_t file_index(struct collector *c, uint64_t string)
{
	bool created;
	uint64_t *at;

	if (!string || string >= trace_reader_n_strings(c->reader))
		return 0;
	at = map_ensure(&c->file_of, string, &created);
	if (created) {
		*at = c->files.n;
		vec_push(&c->files, trace_reader_string(c->reader, (uint32_t)string));
	}
	return (uint32_t)*at;
}

static const char *text(const struct collector *c, uint64_t string)
{
	bool is_there = string < trace_reader_n_strings(c->reader);

	return is_there ? trace_reader_string(c->reader, (uint32_t)string) : "";
}

/* --- collecting --- */

static void name_function(struct collector *c, struct code_function *f, uint32_t frame_id)
{
	const struct trace_frame *frame = trace_reader_frame(c->reader, frame_id);
	const struct trace_symbol *symbol = trace_reader_symbol(c->reader, frame_id);
	const struct trace_symbol_level *level =
		symbol && symbol->n_levels ? &symbol->levels[symbol->n_levels - 1] : NULL;

	f->linkage_name = trace_reader_string(c->reader, frame->name);
	f->name = level ? trace_reader_string(c->reader, level->name) : f->linkage_name;
	if (!*f->linkage_name)
		f->linkage_name = f->name;
	f->image = frame->image ? trace_reader_string(c->reader,
					  trace_reader_image(c->reader, frame->image)->path)
				: "";
	f->address = frame->addr;
	if (level && level->file) {
		f->file = file_index(c, level->file);
		f->line = level->line;
	}
}

static void add_function(struct collector *c, const struct trace_record *record)
{
	uint64_t n[6]; /* frame, bytes, reason, blocks, flags, object */
	struct code_function f = {0};
	bool created;
	uint64_t *at;

	if (trace_record_numbers(c->reader, record, n, 6, NULL) < 0 || !n[0] ||
		n[0] >= trace_reader_n_frames(c->reader))
		return;
	at = map_ensure(&c->function_of, n[0], &created);
	if (!created)
		return;
	*at = c->functions.n;
	name_function(c, &f, (uint32_t)n[0]);
	f.frame = (uint32_t)n[0];
	f.bytes = n[1];
	f.reason = text(c, n[2]);
	f.is_counted = !n[2];
	f.is_fragment = n[4] & RECORD_COUNT_FRAGMENT;
	f.object = text(c, n[5]);
	vec_push(&c->functions, f);
}

static void add_block(struct collector *c, const struct trace_record *record)
{
	uint64_t n[6]; /* frame, address, end, instructions, cost, count */
	struct loose_block b = {0};

	c->last_stream = 0;
	if (trace_record_numbers(c->reader, record, n, 6, NULL) < 0 || n[0] > UINT32_MAX ||
		n[3] > UINT32_MAX || n[4] > UINT32_MAX || n[2] < n[1] || c->lines.n >= UINT32_MAX ||
		c->blocks.n >= UINT32_MAX)
		return;
	b.frame = (uint32_t)n[0];
	b.block = (struct code_block){.address = n[1],
		.end = n[2],
		.n_insns = (uint32_t)n[3],
		.cost = (uint32_t)n[4],
		.count = n[5],
		.first_line = (uint32_t)c->lines.n};
	vec_push(&c->blocks, b);
	c->last_stream = record->stream;
}

static void add_line(struct collector *c, const struct trace_record *record)
{
	uint64_t n[4]; /* file, line, instructions, address */
	struct code_line line;

	if (!c->blocks.n || c->last_stream != record->stream ||
		trace_record_numbers(c->reader, record, n, 4, NULL) < 0 || n[1] > UINT32_MAX ||
		n[2] > UINT32_MAX || c->lines.n >= UINT32_MAX)
		return;
	line = (struct code_line){.file = file_index(c, n[0]),
		.line = (uint32_t)n[1],
		.n_insns = (uint32_t)n[2],
		.address = n[3]};
	vec_push(&c->lines, line);
	c->blocks.v[c->blocks.n - 1].block.n_lines++;
}

static void add_calls(struct collector *c, const struct trace_record *record)
{
	uint64_t n[5]; /* thread, node, parent, frame, calls + 1 */

	if (trace_record_numbers(c->reader, record, n, 5, NULL) == 0 && n[4])
		*map_ensure(&c->calls_of, n[3], NULL) += n[4] - 1;
}

static void collect(void *ctx, const struct trace_record *record)
{
	struct collector *c = ctx;

	if (record->minor == RECORD_COUNT_FUNCTION)
		add_function(c, record);
	else if (record->minor == RECORD_COUNT_BLOCK)
		add_block(c, record);
	else if (record->minor == RECORD_COUNT_LINE)
		add_line(c, record);
	else if (record->minor == RECORD_COUNT_NODE)
		add_calls(c, record);
}

int code_counts_walk(const struct trace_reader *r,
	void (*each)(void *ctx, const struct trace_record *record), void *ctx, struct err *err)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	int rc = trace_cursor_open(&cursor, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(cursor, &record, NULL)) != 0)
		if (rc > 0 && record.major == RECORD_MAJOR_COUNT)
			each(ctx, &record);
	trace_cursor_close(cursor);
	return 0;
}

/* --- putting in order --- */

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct collector *c = context;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const struct code_function *f = &c->functions.v[x], *g = &c->functions.v[y];

	return strcmp(f->image, g->image) ?: strcmp(c->files.v[f->file], c->files.v[g->file])
		       ?: ORDER(f->address, g->address) ?: ORDER(x, y);
}

ORDER_BY(compare_blocks, struct loose_block, function, block.address, block.first_line)

/* A function is where its first instruction is. */
static void place_functions(struct collector *c)
{
	struct map first = {0}; /* function -> block with the lowest address + 1 */

	for (size_t i = 0; i < c->blocks.n; i++) {
		const uint64_t *function = map_find(&c->function_of, c->blocks.v[i].frame);
		uint64_t *at;

		if (!function || !c->blocks.v[i].block.n_lines)
			continue;
		at = map_ensure(&first, *function, NULL);
		if (!*at || c->blocks.v[i].block.address < c->blocks.v[*at - 1].block.address)
			*at = i + 1;
	}
	for (size_t i = 0; i < c->functions.n; i++) {
		struct code_function *f = &c->functions.v[i];
		const uint64_t *at = map_find(&first, i);
		const struct code_line *line;

		if (!at || f->file)
			continue;
		line = &c->lines.v[c->blocks.v[*at - 1].block.first_line];
		f->file = line->file;
		f->line = line->line;
	}
	map_release(&first);
}

static void order_functions(struct collector *c, struct code_counts *out)
{
	size_t n = c->functions.n;
	size_t *order = mem_calloc(n + 1, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof(*order), compare_functions, c);
	out->functions = mem_calloc(n + 1, sizeof(*out->functions));
	out->n_functions = n;
	for (size_t i = 0; i < n; i++) {
		uint32_t frame = c->functions.v[order[i]].frame;
		const uint64_t *calls = map_find(&c->calls_of, frame);

		out->functions[i] = c->functions.v[order[i]];
		out->functions[i].calls = calls ? *calls : 0;
		*map_ensure(&c->function_of, frame, NULL) = i;
	}
	free(order);
}

/* The lines of one block, with its cost shared out by instructions. */
static void put_lines(struct code_counts *out, struct code_block *b, const struct code_line *lines)
{
	uint64_t n_insns = 0, before = 0, shared = 0;

	for (uint32_t i = 0; i < b->n_lines; i++)
		n_insns += lines[i].n_insns;
	b->first_line = (uint32_t)out->n_lines;
	for (uint32_t i = 0; i < b->n_lines; i++) {
		struct code_line line = lines[i];
		uint64_t upto;

		before += line.n_insns;
		upto = n_insns ? b->cost * before / n_insns : 0;
		line.cost = (uint32_t)(upto - shared);
		shared = upto;
		out->lines[out->n_lines++] = line;
	}
	if (b->n_lines)
		return;
	b->n_lines = 1;
	out->lines[out->n_lines++] =
		(struct code_line){.n_insns = b->n_insns, .cost = b->cost, .address = b->address};
}

static void order_blocks(struct collector *c, struct code_counts *out)
{
	size_t n = 0;

	for (size_t i = 0; i < c->blocks.n; i++) { /* those of no known function are left out */
		const uint64_t *function = map_find(&c->function_of, c->blocks.v[i].frame);

		if (!function)
			continue;
		c->blocks.v[i].function = (size_t)*function;
		c->blocks.v[n++] = c->blocks.v[i];
	}
	if (n)
		qsort(c->blocks.v, n, sizeof(*c->blocks.v), compare_blocks);
	out->blocks = mem_calloc(n + 1, sizeof(*out->blocks));
	out->lines = mem_calloc(c->lines.n + n + 1, sizeof(*out->lines));
	for (size_t i = 0; i < n; i++) {
		struct code_block *b = &out->blocks[out->n_blocks++];
		struct code_function *f = &out->functions[c->blocks.v[i].function];

		*b = c->blocks.v[i].block;
		put_lines(out, b, b->n_lines ? c->lines.v + b->first_line : NULL);
		if (!f->n_blocks++)
			f->first_block = (uint32_t)i;
		f->instructions += b->count * b->n_insns;
		f->cost += b->count * b->cost;
		out->has_cost |= b->cost != 0;
	}
}

static void collector_release(struct collector *c)
{
	vec_release(&c->functions);
	vec_release(&c->blocks);
	vec_release(&c->lines);
	vec_release(&c->files);
	map_release(&c->file_of);
	map_release(&c->function_of);
	map_release(&c->calls_of);
}

int code_counts_build(struct code_counts **out, const struct trace_reader *r, struct err *err)
{
	struct code_counts *counts = mem_zalloc(sizeof(*counts));
	struct collector c = {.reader = r};
	int rc = 0;

	vec_push(&c.files, "");
	if (trace_reader_has_kind(r, RECORD_MAJOR_COUNT, 0))
		rc = code_counts_walk(r, collect, &c, err);
	if (rc == 0) {
		place_functions(&c);
		order_functions(&c, counts);
		order_blocks(&c, counts);
		counts->files = c.files.v;
		counts->n_files = c.files.n;
		c.files.v = NULL;
		*out = counts;
	} else {
		code_counts_free(counts);
	}
	collector_release(&c);
	return rc;
}

void code_counts_free(struct code_counts *c)
{
	if (!c)
		return;
	free(c->functions);
	free(c->blocks);
	free(c->lines);
	free(c->files);
	free(c);
}
