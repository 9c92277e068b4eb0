/* SPDX-License-Identifier: MIT */
/*
 * A block ends behind a jump, before the target of one, and wherever the number of executions changes: so that count
 * times instructions is exact, however code was entered and left.
 */
#include "formats/counted_code.h"

#include <stdlib.h>
#include <string.h>

#include "arch/x86_code.h"
#include "base/order.h"
#include "base/search.h"
#include "symbols/symtab.h"

/* Code of functions that were not executed, which is decoded in all. */
#define UNEXECUTED_BYTES_MAX (64u << 20)
#define FUNCTION_BYTES_MAX   (16u << 20)

/* ---- the instructions of a function ---- */

static int compare_insns(const void *a, const void *b)
{
	const struct counted_insn *x = a, *y = b;

	return ORDER(x->addr, y->addr) ?: ORDER(x->length, y->length) ?: ORDER(y->count, x->count);
}

void counted_code_add(struct counted_code *c, const struct counted_insn *insn)
{
	vec_push(&c->insns, *insn);
}

void counted_code_place(struct counted_code *c, struct counted_insn *insn)
{
	const struct ran_row *row;

	if (!c->file)
		return;
	row = ran_file_row(c->file, insn->addr, &c->row_at);
	insn->file = row->file;
	insn->line = row->line;
	insn->own_file = row->own_file;
	insn->own_line = row->own_line;
}

/* What the file has between two addresses, beside the executed instructions that are there already. */
static void add_decoded(struct counted_code *c, uint64_t start, uint64_t bytes)
{
	struct span code = elf_file_bytes_at(&c->file->elf, (struct iaddr){start});
	size_t offset = 0, next = 0, n_executed = c->insns.n;

	code = span_sub(code, 0, code.n < bytes ? code.n : (size_t)bytes);
	while (offset < code.n) {
		struct span rest = span_sub(code, offset, code.n - offset);
		struct counted_insn to = {.addr = start + offset};
		struct x86_insn insn;

		for (; next < n_executed && c->insns.v[next].addr < to.addr; next++)
			;
		if (next < n_executed && c->insns.v[next].addr == to.addr) {
			offset += c->insns.v[next].length;
			continue;
		}
		if (!x86_decode(&insn, rest, to.addr, c->file->elf.is_64))
			return; /* data; behind it only what was executed is known */
		to.target = insn.has_target ? insn.target : 0;
		to.length = insn.length;
		to.flow = insn.flow;
		to.is_nop = insn.is_nop || insn.is_padding;
		counted_code_place(c, &to);
		vec_push(&c->insns, to);
		offset += insn.length;
	}
}

/* Executed ones are mostly in order, and so are those behind them that were not. */
static void sort_insns(struct counted_code *c)
{
	size_t n = c->insns.n, middle = 1, end, a = 0, b;

	while (middle < n && compare_insns(&c->insns.v[middle - 1], &c->insns.v[middle]) <= 0)
		middle++;
	for (end = middle + 1; end < n && compare_insns(&c->insns.v[end - 1], &c->insns.v[end]) <= 0;)
		end++;
	if (middle >= n)
		return;
	if (end < n) {
		vec_sort(&c->insns, compare_insns);
		return;
	}
	c->merged.n = 0;
	vec_reserve(&c->merged, n);
	for (b = middle; a < middle || b < n;) {
		bool is_first = b == n || (a < middle && compare_insns(&c->insns.v[a], &c->insns.v[b]) <= 0);

		c->merged.v[c->merged.n++] = c->insns.v[is_first ? a++ : b++];
	}
	memcpy(c->insns.v, c->merged.v, n * sizeof(*c->insns.v));
}

/* In order of addresses, each once; those that were executed come first among equals. Where an
 * executed one lies across decoded ones, the decoding was wrong there. */
static void merge_insns(struct counted_code *c)
{
	uint64_t end = 0; /* of the last executed one */

	sort_insns(c);
	c->merged.n = 0;
	for (size_t i = 0; i < c->insns.n; i++) {
		const struct counted_insn *insn = &c->insns.v[i];
		struct counted_insn *last = c->merged.n ? &c->merged.v[c->merged.n - 1] : NULL;

		if (last && last->addr == insn->addr && last->length == insn->length) {
			last->count += insn->count;
			last->is_nop |= insn->is_nop;
			continue;
		}
		if (!insn->count && insn->addr < end)
			continue;
		while (insn->count && last && !last->count &&
			last->addr + last->length > insn->addr) {
			c->merged.n--;
			last = c->merged.n ? &c->merged.v[c->merged.n - 1] : NULL;
		}
		vec_push(&c->merged, *insn);
		if (insn->count)
			end = insn->addr + insn->length;
	}
}

static struct counted_insn *insn_at(struct counted_code *c, uint64_t addr)
{
	size_t low = SEARCH(0, c->merged.n, middle, c->merged.v[middle].addr < addr);

	return low < c->merged.n && c->merged.v[low].addr == addr ? &c->merged.v[low] : NULL;
}

static bool is_call(const struct counted_insn *insn)
{
	return insn->flow == X86_FLOW_CALL || insn->flow == X86_FLOW_CALL_FAR;
}

static void mark_targets(struct counted_code *c)
{
	for (size_t i = 0; i < c->merged.n; i++) {
		struct counted_insn *to;

		if (!c->merged.v[i].target || is_call(&c->merged.v[i]))
			continue;
		to = insn_at(c, c->merged.v[i].target);
		if (to)
			to->is_target = true;
	}
}

/* ---- blocks ---- */

/* Nops behind a jump or a call that does not come back, which nothing reaches. */
static bool is_padding(const struct counted_code *c, const struct counted_block *block)
{
	const struct counted_insn *insn = &c->merged.v[block->first];

	if (insn->count || insn->is_target || !block->first)
		return false;
	for (size_t i = 0; i < block->n; i++)
		if (!insn[i].is_nop)
			return false;
	return insn[-1].flow != X86_FLOW_BRANCH;
}

static void find_blocks(struct counted_code *c)
{
	c->blocks.n = 0;
	for (size_t i = 0; i < c->merged.n; i++) {
		const struct counted_insn *insn = &c->merged.v[i], *last = i ? insn - 1 : NULL;

		if (!last || last->addr + last->length != insn->addr ||
			x86_ends_block(last->flow) || insn->is_target ||
			last->count != insn->count) {
			if (c->blocks.n && is_padding(c, &c->blocks.v[c->blocks.n - 1]))
				c->blocks.n--;
			vec_push(&c->blocks, ((struct counted_block){.first = i}));
		}
		c->blocks.v[c->blocks.n - 1].n++;
	}
	if (c->blocks.n && is_padding(c, &c->blocks.v[c->blocks.n - 1]))
		c->blocks.n--;
}

/* ---- records ---- */

static void put(const struct counted_code *c, uint32_t minor, const uint64_t *numbers, size_t n)
{
	trace_writer_numbers(c->w, c->stream, c->time, RECORD_MAJOR_COUNT, minor, numbers, n);
}

static void write_lines(const struct counted_code *c, const struct counted_block *block)
{
	const struct counted_insn *insns = &c->merged.v[block->first];

	for (size_t i = 0, n; i < block->n; i += n) {
		uint64_t line[4] = {insns[i].file, insns[i].line, 0, insns[i].addr};

		for (n = 1; i + n < block->n && insns[i + n].file == insns[i].file &&
			    insns[i + n].line == insns[i].line;
			n++)
			;
		line[2] = n;
		put(c, RECORD_COUNT_LINE, line, 4);
	}
}

static void write_symbol(const struct counted_code *c, const struct counted_function *f)
{
	struct trace_symbol_level level = {.name = trace_writer_string(c->w, f->name)};
	struct trace_symbol symbol = {.frame = f->frame, .n_levels = 1, .levels = &level};

	for (size_t i = 0; i < c->merged.n; i++) {
		const struct counted_insn *insn = &c->merged.v[i];

		ran_begins_at(&level.file, &level.line, insn->own_file, insn->own_line);
	}
	trace_writer_symbol(c->w, &symbol);
}

static void write_function(struct counted_code *c, const struct counted_function *f)
{
	uint64_t function[6] = {
		f->frame, f->bytes, 0, 0, f->is_part ? RECORD_COUNT_FRAGMENT : 0, 0};

	merge_insns(c);
	mark_targets(c);
	find_blocks(c);
	if (f->name)
		write_symbol(c, f);
	function[3] = c->blocks.n;
	c->n_written++;
	put(c, RECORD_COUNT_FUNCTION, function, 6);
	for (size_t i = 0; i < c->blocks.n; i++) {
		const struct counted_block *row = &c->blocks.v[i];
		const struct counted_insn *first = &c->merged.v[row->first];
		const struct counted_insn *last = first + row->n - 1;
		uint64_t block[6] = {
			f->frame, first->addr, last->addr + last->length, row->n, 0, first->count};

		put(c, RECORD_COUNT_BLOCK, block, 6);
		write_lines(c, row);
	}
	c->insns.n = 0;
}

uint32_t counted_frame(struct trace_writer *w, const struct trace_frame *at, const char *linkage_name)
{
	struct trace_frame frame = *at;

	frame.name = trace_writer_string(w, linkage_name);
	return trace_writer_frame(w, &frame);
}

/* ---- functions ---- */

static bool has_lines(const struct counted_code *c)
{
	for (size_t i = 0; i < c->insns.n; i++)
		if (c->insns.v[i].line)
			return true;
	return false;
}

static void write_executed(struct counted_code *c, const struct counted_image *image, size_t i)
{
	const struct counted_function *f = &image->executed[i];

	image->insns(image->ctx, c, i);
	if (!c->insns.n)
		return;
	if (c->file && f->bytes <= FUNCTION_BYTES_MAX)
		add_decoded(c, f->start, f->bytes);
	if (!c->needs_lines || has_lines(c)) {
		write_function(c, f);
	} else {
		c->n_foreign++;
		c->insns.n = 0;
	}
}

static void write_unexecuted(
	struct counted_code *c, const struct counted_image *image, const struct counted_known *from)
{
	struct trace_frame at = {
		.kind = FRAME_KIND_NATIVE, .image = image->id, .addr = from->start};
	struct counted_function f = {
		.start = from->start, .bytes = from->bytes, .linkage_name = from->name};
	char *readable;

	if (from->bytes > UNEXECUTED_BYTES_MAX - c->bytes_decoded) {
		c->n_left_out++;
		return;
	}
	c->bytes_decoded += from->bytes;
	readable = symbol_demangle(f.linkage_name);
	f.name = readable;
	f.is_part = strstr(f.linkage_name, ".cold") != NULL;
	add_decoded(c, f.start, f.bytes);
	if (c->insns.n) {
		f.frame = counted_frame(c->w, &at, f.linkage_name);
		write_function(c, &f);
	}
	free(readable);
}

/* Functions of the image that begin in none that was executed, nor in one another. */
static void write_others(struct counted_code *c, const struct counted_image *image)
{
	const struct counted_function *executed = image->executed;
	bool needs_lines = c->file->rows.n;
	uint64_t upto = 0; /* the end of what was seen */
	size_t next = 0;

	for (size_t i = 0; i < image->n_known; i++) {
		const struct counted_known *f = &image->known[i];

		for (; next < image->n_executed && executed[next].start <= f->start; next++)
			if (executed[next].start + executed[next].bytes > upto)
				upto = executed[next].start + executed[next].bytes;
		if (f->start < upto || !f->bytes || !f->name || !*f->name)
			continue;
		if (needs_lines && !ran_file_row(c->file, f->start, &c->row_at)->line)
			continue;
		upto = f->start + f->bytes;
		write_unexecuted(c, image, f);
	}
}

/* ---- images ---- */

static bool is_program(const struct counted_image *image)
{
	for (size_t i = 0; i < image->n_executed; i++)
		if (image->executed[i].linkage_name &&
			!strcmp(image->executed[i].linkage_name, "main"))
			return true;
	return false;
}

bool counted_image_is_own(const struct counted_image *image)
{
	return is_program(image) ||
	       (image->file && elf_file_find_section(&image->file->elf, ".debug_info"));
}

static void read_lines(const struct counted_code *c, const struct counted_image *image, bool is_own)
{
	size_t n_known = is_own ? image->n_known : 0, n = 0;
	uint64_t *addrs = mem_calloc(n_known + image->n_executed + 1, sizeof(*addrs));

	for (size_t i = 0; i < image->n_executed; i++)
		addrs[n++] = image->executed[i].start;
	for (size_t i = 0; i < n_known; i++)
		addrs[n++] = image->known[i].start;
	ran_file_read_lines(image->file, image->path, c->w, addrs, n);
	free(addrs);
}

void counted_code_write(struct counted_code *c, const struct counted_image *image)
{
	bool is_the_program = is_program(image), is_own = counted_image_is_own(image);

	c->file = image->file;
	c->row_at = 0;
	if (image->file && (is_own || !c->lines_only))
		read_lines(c, image, is_own);
	if (image->file && !is_own && c->lines_only) {
		c->n_foreign += image->n_executed;
		return;
	}
	c->needs_lines = c->lines_only && ((image->file && image->file->rows.n) || !is_the_program);
	for (size_t i = 0; i < image->n_executed; i++)
		write_executed(c, image, i);
	if (image->file && is_own)
		write_others(c, image);
}

static void note(const struct counted_code *c, uint64_t n, const char *sentence)
{
	if (n)
		trace_writer_loss(c->w, c->stream, c->time, RECORD_LOSS_NOTE, n, sentence);
}

void counted_code_end(struct counted_code *c)
{
	note(c, c->n_left_out,
		"a function that was not executed is left out: there is too much code");
	note(c, c->n_foreign,
		"a function was executed whose file has no source lines of it: coverage leaves it out");
	vec_release(&c->insns);
	vec_release(&c->merged);
	vec_release(&c->blocks);
}
