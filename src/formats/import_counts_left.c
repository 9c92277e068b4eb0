/* SPDX-License-Identifier: MIT */
/*
 * Calls that did not come back. A block is counted as a whole when it begins; nodes of a kind of their
 * own say how often it ended at which of its calls. Such a block is written in parts, each with the
 * number of times that it was executed, so that functions, lines and coverage have what they should.
 */
#include "base/order.h"
#include "formats/import_counts_internal.h"

#include <string.h>

#include "base/search.h"

static struct counts_call *find_call(const struct counts_file *f, const struct count_node *node)
{
	bool is_site = node->key & COUNT_KEY_FOREIGN;
	uint64_t place = node->key & ~(COUNT_KEY_FOREIGN | COUNT_KEY_LEFT);
	size_t i = SEARCH(0, f->calls.n, middle,
		f->calls.v[middle].end - (is_site ? f->calls.v[middle].length : 0) < place);
	struct counts_call *call = i < f->calls.n ? &f->calls.v[i] : NULL;

	return call && call->end - (is_site ? call->length : 0) == place ? call : NULL;
}

/* The block that a place behind one of its instructions is in; NULL. */
static struct counts_block *block_of(struct counts_file *f, const struct counts_call *call)
{
	const struct counts_unit *unit = &f->units.v[call->unit];
	size_t first = unit->first_block, end = first + unit->n_blocks;
	size_t i = SEARCH(first, end, middle, f->blocks.v[middle].address < call->end);
	struct counts_block *b = i > first ? &f->blocks.v[i - 1] : NULL;

	return b && call->end - b->address <= b->bytes && call->rest < b->n_insns ? b : NULL;
}

bool counts_node_is_left(const struct count_node *node)
{
	return node->key & COUNT_KEY_LEFT;
}

struct counts_block *counts_left_block(
	struct counts_file *f, const struct count_node *node, uint16_t *rest)
{
	const struct counts_call *call = find_call(f, node);
	struct counts_block *b = call ? block_of(f, call) : NULL;

	*rest = b ? call->rest : 0;
	return b;
}

static void add_area(
	struct counts_file *f, const struct counts_thread *thread, const struct counts_area *area)
{
	size_t n = area->bytes.n / sizeof(struct count_node);

	for (size_t i = 0; i < n; i++) {
		struct count_node node;
		struct counts_call *call;

		if (thread->has_row && area->row.first + i >= thread->row.n_nodes)
			break;
		memcpy(&node, area->bytes.p + i * sizeof(node), sizeof(node));
		call = counts_node_is_left(&node) ? find_call(f, &node) : NULL;
		if (call && call->rest)
			call->left += node.calls;
	}
}

ORDER_BY(compare_ends, struct counts_call, end)

void counts_read_left(struct counts_file *f)
{
	vec_sort(&f->calls, compare_ends);
	for (size_t i = 0; i < f->threads.n; i++)
		for (size_t k = 0; k < f->threads.v[i].nodes.n; k++)
			add_area(f, &f->threads.v[i], &f->threads.v[i].nodes.v[k]);
	for (size_t i = 0; i < f->calls.n; i++) {
		const struct counts_call *call = &f->calls.v[i];
		struct counts_block *b = call->left ? block_of(f, call) : NULL;

		if (!b)
			continue;
		if (!b->n_left++)
			b->first_left = (uint32_t)f->left.n;
		vec_push(&f->left, ((struct counts_part){call->end, call->rest, call->left}));
	}
}

/* ---- a block in parts ---- */

struct part_writer {
	struct counts_file *file;
	const struct counts_function *function;
	const struct counts_block *block;
	uint64_t start;		/* of this part */
	uint64_t count;		/* how often it was executed */
	uint32_t n_insns;	/* of it */
	uint32_t line, n_taken; /* the next line, and how many of its instructions are taken */
};

static void write_lines(struct part_writer *p)
{
	uint32_t n = p->n_insns;

	while (n && p->line < p->block->n_lines) {
		const struct counts_line *line = &p->file->lines.v[p->block->first_line + p->line];
		uint32_t left = line->n_insns - p->n_taken, here = left < n ? left : n;
		uint64_t numbers[4] = {line->file, line->line, here,
			p->n_taken ? p->start - p->file->header->base : line->address};

		if (here)
			trace_writer_numbers(p->file->w, p->file->life, 0, RECORD_MAJOR_COUNT,
				RECORD_COUNT_LINE, numbers, 4);
		n -= here;
		p->n_taken += here;
		if (p->n_taken == line->n_insns) {
			p->line++;
			p->n_taken = 0;
		}
	}
}

static void write_part(struct part_writer *p, uint64_t end)
{
	const struct counts_block *b = p->block;
	uint64_t base = p->file->header->base;
	uint64_t n[6] = {p->function->frame, p->start - base, end - base, p->n_insns,
		b->n_insns ? (uint64_t)b->cost * p->n_insns / b->n_insns : b->cost, p->count};

	trace_writer_numbers(
		p->file->w, p->file->life, 0, RECORD_MAJOR_COUNT, RECORD_COUNT_BLOCK, n, 6);
	write_lines(p);
}

void counts_write_block(
	struct counts_file *f, const struct counts_function *function, const struct counts_block *b)
{
	struct part_writer p = {.file = f,
		.function = function,
		.block = b,
		.start = b->address,
		.count = b->count};
	uint32_t n_behind = b->n_insns;

	for (uint32_t i = 0; i < b->n_left; i++) {
		const struct counts_part *part = &f->left.v[b->first_left + i];

		if (part->rest > n_behind)
			continue;
		p.n_insns = n_behind - part->rest;
		write_part(&p, part->start);
		p.start = part->start;
		n_behind = part->rest;
		/* They may be fewer than in the block: it was begun before fork. */
		p.count = (int64_t)(p.count - part->left) > 0 ? p.count - part->left : 0;
	}
	p.n_insns = n_behind;
	write_part(&p, b->address + b->bytes);
}

/* ---- without a call tree ---- */

/* Blocks of these two places, one behind the other, are both of the unit. */
static uint64_t second_returns(struct counts_file *f, const struct counts_call *call)
{
	const struct counts_block *b = block_of(f, call);
	const struct counts_unit *unit = &f->units.v[call->unit];

	if (!b || b + 1 >= f->blocks.v + unit->first_block + unit->n_blocks ||
		b[1].count <= b->count)
		return 0;
	return b[1].count - b->count;
}

static uint64_t landings(struct counts_file *f, const struct counts_call *call)
{
	const struct counts_unit *unit = &f->units.v[call->unit];
	size_t first = unit->first_block, end = first + unit->n_blocks;
	size_t i = SEARCH(first, end, middle,
		f->blocks.v[middle].address + f->blocks.v[middle].bytes <= call->end);

	return i < end ? f->blocks.v[i].count : 0;
}

void counts_note_left(struct counts_file *f)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->calls.n; i++) {
		const struct counts_call *call = &f->calls.v[i];

		if (!(f->units.v[call->unit].flags & COUNT_UNIT_TREE))
			n += call->length ? second_returns(f, call) : landings(f, call);
	}
	if (n)
		counts_note(f, n,
			"an exception or longjmp came by, and without a call tree (--counts) it is not known "
			"which calls it left: instructions behind those in their blocks are counted as executed");
}
