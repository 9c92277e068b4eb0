/* SPDX-License-Identifier: MIT */
/*
 * A block ends behind a jump, before the target of one, and wherever the number of executions
 * changes: so that count times instructions is exact, however code was entered and left.
 *
 * Instructions of one place in several processes, or of several contents but one length, are one
 * here.
 */
#include "steps/calls/step_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "formats/ran_file.h"
#include "symbols/symtab.h"

/* Code of functions that were not executed, which is decoded in all. */
#define UNEXECUTED_BYTES_MAX (64u << 20)
#define FUNCTION_BYTES_MAX   (16u << 20)

struct block_insn {
	uint64_t addr;
	uint64_t target; /* in the image; 0: none */
	uint64_t count;
	uint32_t file, line, own_file, own_line;
	uint8_t length, flow;
	bool is_nop;
	bool is_target; /* of a jump in the function */
};

/* A function that the image has, executed or not. */
struct known_function {
	uint64_t start, bytes;
	const char *name; /* as the linker has it */
};

/* A row of instructions that is one block, or of one line in it. */
struct block_row {
	size_t first, n;
};

struct blocks {
	const struct step_blocks_of *of;
	struct ran_file image; /* the one that is worked on */
	uint32_t image_id;
	bool has_file;
	bool needs_lines;   /* functions without any are left out */
	uint64_t n_foreign; /* they and those of libraries are so many */
	uint64_t bytes_left;
	uint64_t n_left_out; /* functions, for want of bytes_left */
	uint64_t n_written;  /* functions */
	size_t row_at;
	VEC(struct block_insn) insns; /* of one function */
	VEC(struct block_insn) merged;
	VEC(struct block_row) rows;
	VEC(struct known_function) known; /* of the image, by start; none when it is not our own */
};

/* ---- the instructions of a function ---- */

static int compare_insns(const void *a, const void *b)
{
	const struct block_insn *x = a, *y = b;

	return ORDER(x->addr, y->addr) ?: ORDER(x->length, y->length) ?: ORDER(y->count, x->count);
}

static void add_executed(struct blocks *b, const struct step_place_in *place)
{
	const struct step_insn *insn = steps_insn(b->of->steps, place->insn);
	const struct trace_symbol *symbol =
		insn->frame ? trace_reader_symbol(b->of->r, insn->frame) : NULL;
	struct block_insn to = {.addr = place->addr,
		.count = b->of->executed[place->insn],
		.length = insn->length ? insn->length : 1,
		.flow = insn->flow};

	if (!to.count)
		return;
	if (insn->has_target)
		to.target = insn->target - insn->addr + place->addr;
	if (symbol && symbol->n_levels) {
		const struct trace_symbol_level *own = &symbol->levels[symbol->n_levels - 1];

		to.file = symbol->levels[0].file;
		to.line = symbol->levels[0].line;
		to.own_file = own->file;
		to.own_line = own->line;
	}
	vec_push(&b->insns, to);
}

/* What the file has between two addresses, executed or not. */
static void add_decoded(struct blocks *b, uint64_t start, uint64_t bytes)
{
	struct span code = elf_file_bytes_at(&b->image.elf, (struct iaddr){start});
	size_t offset = 0;

	code = span_sub(code, 0, code.n < bytes ? code.n : (size_t)bytes);
	while (offset < code.n) {
		struct span rest = span_sub(code, offset, code.n - offset);
		struct block_insn to = {.addr = start + offset};
		const struct ran_row *row;
		struct x86_insn insn;

		if (!x86_decode(&insn, rest, to.addr, b->image.elf.is_64))
			return; /* data; behind it only what was executed is known */
		row = ran_file_row(&b->image, to.addr, &b->row_at);
		to.target = insn.has_target ? insn.target : 0;
		to.length = insn.length;
		to.flow = insn.flow;
		to.is_nop = insn.is_nop || insn.is_padding;
		to.file = row->file;
		to.line = row->line;
		to.own_file = row->own_file;
		to.own_line = row->own_line;
		vec_push(&b->insns, to);
		offset += insn.length;
	}
}

/* In order of addresses, each once; those that were executed come first among equals. Where an
 * executed one lies across decoded ones, the decoding was wrong there. */
static void merge_insns(struct blocks *b)
{
	uint64_t end = 0; /* of the last executed one */

	vec_sort(&b->insns, compare_insns);
	b->merged.n = 0;
	for (size_t i = 0; i < b->insns.n; i++) {
		const struct block_insn *insn = &b->insns.v[i];
		struct block_insn *last = b->merged.n ? &b->merged.v[b->merged.n - 1] : NULL;

		if (last && last->addr == insn->addr && last->length == insn->length) {
			last->count += insn->count;
			last->is_nop |= insn->is_nop;
			continue;
		}
		if (!insn->count && insn->addr < end)
			continue;
		while (insn->count && last && !last->count &&
			last->addr + last->length > insn->addr) {
			b->merged.n--;
			last = b->merged.n ? &b->merged.v[b->merged.n - 1] : NULL;
		}
		vec_push(&b->merged, *insn);
		if (insn->count)
			end = insn->addr + insn->length;
	}
}

static struct block_insn *insn_at(struct blocks *b, uint64_t addr)
{
	size_t low = SEARCH(0, b->merged.n, middle, b->merged.v[middle].addr < addr);

	return low < b->merged.n && b->merged.v[low].addr == addr ? &b->merged.v[low] : NULL;
}

static bool is_call(const struct block_insn *insn)
{
	return insn->flow == X86_FLOW_CALL || insn->flow == X86_FLOW_CALL_FAR;
}

static void mark_targets(struct blocks *b)
{
	for (size_t i = 0; i < b->merged.n; i++) {
		struct block_insn *to;

		if (!b->merged.v[i].target || is_call(&b->merged.v[i]))
			continue;
		to = insn_at(b, b->merged.v[i].target);
		if (to)
			to->is_target = true;
	}
}

/* ---- blocks ---- */

/* Nops behind a jump or a call that does not come back, which nothing reaches. */
static bool is_padding(const struct blocks *b, const struct block_row *row)
{
	const struct block_insn *insn = &b->merged.v[row->first];

	if (insn->count || insn->is_target || !row->first)
		return false;
	for (size_t i = 0; i < row->n; i++)
		if (!insn[i].is_nop)
			return false;
	return insn[-1].flow != X86_FLOW_BRANCH;
}

static void find_blocks(struct blocks *b)
{
	b->rows.n = 0;
	for (size_t i = 0; i < b->merged.n; i++) {
		const struct block_insn *insn = &b->merged.v[i], *last = i ? insn - 1 : NULL;

		if (!last || last->addr + last->length != insn->addr ||
			x86_ends_block(last->flow) || insn->is_target ||
			last->count != insn->count) {
			if (b->rows.n && is_padding(b, &b->rows.v[b->rows.n - 1]))
				b->rows.n--;
			vec_push(&b->rows, ((struct block_row){.first = i}));
		}
		b->rows.v[b->rows.n - 1].n++;
	}
	if (b->rows.n && is_padding(b, &b->rows.v[b->rows.n - 1]))
		b->rows.n--;
}

/* ---- records ---- */

static void put(const struct blocks *b, uint32_t minor, const uint64_t *numbers, size_t n)
{
	trace_writer_numbers(
		b->of->w, b->of->stream, b->of->time, RECORD_MAJOR_COUNT, minor, numbers, n);
}

static void write_lines(const struct blocks *b, const struct block_row *row)
{
	const struct block_insn *insns = &b->merged.v[row->first];

	for (size_t i = 0, n; i < row->n; i += n) {
		uint64_t line[4] = {insns[i].file, insns[i].line, 0, insns[i].addr};

		for (n = 1; i + n < row->n && insns[i + n].file == insns[i].file &&
			    insns[i + n].line == insns[i].line;
			n++)
			;
		line[2] = n;
		put(b, RECORD_COUNT_LINE, line, 4);
	}
}

static void write_symbol(const struct blocks *b, const struct step_function *f, uint32_t frame)
{
	struct trace_symbol_level level = {.name = trace_writer_string(b->of->w, f->name)};
	struct trace_symbol symbol = {.frame = frame, .n_levels = 1, .levels = &level};

	for (size_t i = 0; i < b->merged.n; i++) {
		const struct block_insn *insn = &b->merged.v[i];

		ran_begins_at(&level.file, &level.line, insn->own_file, insn->own_line);
	}
	trace_writer_symbol(b->of->w, &symbol);
}

static void write_function(struct blocks *b, const struct step_function *f, uint32_t frame)
{
	uint64_t function[6] = {frame, f->bytes, 0, 0, f->is_part ? RECORD_COUNT_FRAGMENT : 0, 0};

	merge_insns(b);
	mark_targets(b);
	find_blocks(b);
	write_symbol(b, f, frame);
	function[3] = b->rows.n;
	b->n_written++;
	put(b, RECORD_COUNT_FUNCTION, function, 6);
	for (size_t i = 0; i < b->rows.n; i++) {
		const struct block_row *row = &b->rows.v[i];
		const struct block_insn *first = &b->merged.v[row->first];
		const struct block_insn *last = first + row->n - 1;
		uint64_t block[6] = {
			frame, first->addr, last->addr + last->length, row->n, 0, first->count};

		put(b, RECORD_COUNT_BLOCK, block, 6);
		write_lines(b, row);
	}
	b->insns.n = 0;
}

/* ---- functions ---- */

static bool has_lines(const struct blocks *b)
{
	for (size_t i = 0; i < b->insns.n; i++)
		if (b->insns.v[i].line)
			return true;
	return false;
}

static void write_executed(struct blocks *b, uint32_t function)
{
	const struct step_function *f = &b->of->functions->v.v[function];

	for (uint32_t i = 0; i < f->n_places; i++)
		add_executed(b, &b->of->functions->places.v[f->first_place + i]);
	if (!b->insns.n)
		return;
	if (b->has_file && f->bytes <= FUNCTION_BYTES_MAX)
		add_decoded(b, f->start, f->bytes);
	if (!b->needs_lines || has_lines(b)) {
		write_function(b, f, b->of->frames[function]);
	} else {
		b->n_foreign++;
		b->insns.n = 0;
	}
}

static void write_unexecuted(struct blocks *b, const struct known_function *from)
{
	struct step_function f = {.image = b->image_id,
		.kind = FRAME_KIND_NATIVE,
		.start = from->start,
		.bytes = from->bytes,
		.linkage_name = from->name};
	char *readable;

	if (from->bytes > b->bytes_left) {
		b->n_left_out++;
		return;
	}
	b->bytes_left -= from->bytes;
	readable = symbol_demangle(f.linkage_name);
	f.name = readable;
	f.is_part = strstr(f.linkage_name, ".cold") != NULL;
	add_decoded(b, f.start, f.bytes);
	if (b->insns.n)
		write_function(b, &f, step_function_frame(b->of->w, &f));
	free(readable);
}

/* Functions of the image that begin in none that was executed, nor in one another. */
static void write_others(struct blocks *b, size_t first, size_t end, bool needs_lines)
{
	const struct step_function *executed = b->of->functions->v.v;
	uint64_t upto = 0; /* the end of what was seen */
	size_t next = first;

	for (size_t i = 0; i < b->known.n; i++) {
		const struct known_function *f = &b->known.v[i];

		for (; next < end && executed[next].start <= f->start; next++)
			if (executed[next].start + executed[next].bytes > upto)
				upto = executed[next].start + executed[next].bytes;
		if (f->start < upto || !f->bytes || !*f->name)
			continue;
		if (needs_lines && !ran_file_row(&b->image, f->start, &b->row_at)->line)
			continue;
		upto = f->start + f->bytes;
		write_unexecuted(b, f);
	}
}

/* ---- images ---- */

static int compare_known(const void *a, const void *b)
{
	const struct known_function *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(y->bytes, x->bytes);
}

static void add_symbol(void *ctx, const struct elf_symbol *symbol)
{
	struct blocks *b = ctx;

	vec_push(&b->known, ((struct known_function){symbol->addr.v, symbol->size, symbol->name}));
}

/* By the table in the trace; one that was cut off has none, so then by the file. */
static void read_known(struct blocks *b)
{
	const struct trace_function *table;
	size_t n = trace_reader_functions(b->of->r, b->image_id, &table);

	for (size_t i = 0; i < n; i++)
		vec_push(&b->known, ((struct known_function){table[i].start, table[i].size,
					    trace_reader_string(b->of->r, table[i].name)}));
	if (!n)
		elf_file_each_function(&b->image.elf, false, add_symbol, b);
	vec_sort(&b->known, compare_known);
}

static void read_lines(struct blocks *b, size_t first, size_t end)
{
	const struct trace_image *image = trace_reader_image(b->of->r, b->image_id);
	uint64_t *addrs = mem_calloc(b->known.n + (end - first) + 1, sizeof(*addrs));
	size_t n = 0;

	for (size_t i = first; i < end; i++)
		addrs[n++] = b->of->functions->v.v[i].start;
	for (size_t i = 0; i < b->known.n; i++)
		addrs[n++] = b->known.v[i].start;
	ran_file_read_lines(
		&b->image, trace_reader_string(b->of->r, image->path), b->of->w, addrs, n);
	free(addrs);
}

static void note(const struct blocks *b, uint64_t n, const char *sentence)
{
	if (n)
		trace_writer_loss(
			b->of->w, b->of->stream, b->of->time, RECORD_LOSS_NOTE, n, sentence);
}

static void note_no_file(const struct blocks *b, const char *why)
{
	const struct trace_image *image = trace_reader_image(b->of->r, b->image_id);
	char *text =
		mem_printf("'%s' is not at hand (%s): what was not executed of it is not known",
			trace_reader_string(b->of->r, image->path), why);

	note(b, 1, text);
	free(text);
}

static bool is_program(const struct step_functions *f, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (!strcmp(f->v.v[i].linkage_name, "main"))
			return true;
	return false;
}

/* The functions from `first` to before `end` are all that were executed of an image. */
static void write_image(struct blocks *b, size_t first, size_t end)
{
	bool is_the_program = is_program(b->of->functions, first, end), is_own;
	const char *why = NULL;

	b->image_id = b->of->functions->v.v[first].image;
	b->row_at = 0;
	b->has_file = b->image_id && ran_file_open_image(&b->image, b->of->r, b->image_id, &why);
	is_own = is_the_program ||
		 (b->has_file && elf_file_find_section(&b->image.elf, ".debug_info"));
	b->known.n = 0;
	if (b->has_file && is_own)
		read_known(b);
	if (b->has_file && (is_own || !b->of->lines_only))
		read_lines(b, first, end);
	else if (!b->has_file && b->image_id &&
		 trace_reader_image(b->of->r, b->image_id)->kind == IMAGE_KIND_ELF)
		note_no_file(b, why);
	if (b->has_file && !is_own && b->of->lines_only) {
		b->n_foreign += end - first;
		ran_file_close(&b->image);
		return;
	}
	b->needs_lines = b->of->lines_only && (b->image.rows.n || !is_the_program);
	for (size_t i = first; i < end; i++)
		write_executed(b, (uint32_t)i);
	if (b->has_file && is_own)
		write_others(b, first, end, b->image.rows.n);
	ran_file_close(&b->image);
}

uint32_t step_function_frame(struct trace_writer *w, const struct step_function *f)
{
	struct trace_frame frame = {.kind = f->kind,
		.image = f->image,
		.name = trace_writer_string(w, f->linkage_name),
		.addr = f->start};

	return trace_writer_frame(w, &frame);
}

static void write_images(struct blocks *b)
{
	const struct step_function *f = b->of->functions->v.v;
	size_t n = b->of->functions->v.n;

	for (size_t i = 1, end; i < n; i = end) {
		for (end = i + 1; end < n && f[end].image == f[i].image; end++)
			;
		write_image(b, i, end);
	}
}

void step_blocks_write(const struct step_blocks_of *of)
{
	struct step_blocks_of all = *of;
	struct blocks b = {.of = of, .bytes_left = UNEXECUTED_BYTES_MAX};

	write_images(&b);
	if (!b.n_written && of->lines_only) { /* nothing has lines: then they do not matter */
		all.lines_only = false;
		b.of = &all;
		b.n_foreign = 0;
		write_images(&b);
	}
	note(&b, b.n_left_out,
		"a function that was not executed is left out: there is too much code");
	note(&b, b.n_foreign,
		"a function was executed whose file has no source lines of it: coverage leaves it out");
	vec_release(&b.insns);
	vec_release(&b.merged);
	vec_release(&b.rows);
	vec_release(&b.known);
}
