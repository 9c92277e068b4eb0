/* SPDX-License-Identifier: MIT */
/*
 * Instructions of one place in several processes, or of several contents but one length, are one
 * here.
 */
#include "steps/calls/step_blocks.h"

#include <stdlib.h>

#include "base/order.h"
#include "formats/counted_code.h"

struct blocks {
	const struct step_blocks_of *of;
	struct counted_code code;
	VEC(struct counted_function) executed; /* of the image that is worked on */
	VEC(struct counted_known) known;
	size_t first; /* number of executed.v[0] */
};

/* ---- the instructions of a function ---- */

static void add_executed(struct blocks *b, const struct step_place_in *place)
{
	const struct step_insn *insn = steps_insn(b->of->steps, place->insn);
	const struct trace_symbol *symbol =
		insn->frame ? trace_reader_symbol(b->of->r, insn->frame) : NULL;
	struct counted_insn to = {.addr = place->addr,
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
	counted_code_add(&b->code, &to);
}

static void add_insns(void *ctx, struct counted_code *c, size_t function)
{
	struct blocks *b = ctx;
	const struct step_function *f = &b->of->functions->v.v[b->first + function];

	(void)c;
	for (uint32_t i = 0; i < f->n_places; i++)
		add_executed(b, &b->of->functions->places.v[f->first_place + i]);
}

/* ---- images ---- */

static int compare_known(const void *a, const void *b)
{
	const struct counted_known *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(y->bytes, x->bytes);
}

static void add_symbol(void *ctx, const struct elf_symbol *symbol)
{
	struct blocks *b = ctx;

	vec_push(&b->known, ((struct counted_known){symbol->addr.v, symbol->size, symbol->name}));
}

/* By the table in the trace; one that was cut off has none, so then by the file. */
static void read_known(struct blocks *b, const struct counted_image *image)
{
	const struct trace_function *table;
	size_t n = trace_reader_functions(b->of->r, image->id, &table);

	for (size_t i = 0; i < n; i++)
		vec_push(&b->known, ((struct counted_known){table[i].start, table[i].size,
					    trace_reader_string(b->of->r, table[i].name)}));
	if (!n)
		elf_file_each_function(&image->file->elf, false, add_symbol, b);
	vec_sort(&b->known, compare_known);
}

static void note_no_file(const struct blocks *b, const char *path, const char *why)
{
	char *text = mem_printf(
		"'%s' is not at hand (%s): what was not executed of it is not known", path, why);

	trace_writer_loss(b->of->w, b->of->stream, b->of->time, RECORD_LOSS_NOTE, 1, text);
	free(text);
}

/* The functions from `first` to before `end` are all that were executed of an image. */
static void write_image(struct blocks *b, size_t first, size_t end)
{
	const struct step_function *f = b->of->functions->v.v;
	uint32_t id = f[first].image;
	const struct trace_image *of = trace_reader_image(b->of->r, id);
	struct counted_image image = {.id = id, .insns = add_insns, .ctx = b};
	const char *why = NULL;
	struct ran_file file = {0};

	b->first = first;
	b->executed.n = b->known.n = 0;
	for (size_t i = first; i < end; i++)
		vec_push(&b->executed, ((struct counted_function){f[i].start, f[i].bytes, f[i].name,
					       f[i].linkage_name, b->of->frames[i], f[i].is_part}));
	image.executed = b->executed.v;
	image.n_executed = b->executed.n;
	image.path = trace_reader_string(b->of->r, of->path);
	if (id && ran_file_open_image(&file, b->of->r, id, &why))
		image.file = &file;
	else if (id && of->kind == IMAGE_KIND_ELF)
		note_no_file(b, image.path, why);
	if (image.file && counted_image_is_own(&image))
		read_known(b, &image);
	image.known = b->known.v;
	image.n_known = b->known.n;
	counted_code_write(&b->code, &image);
	ran_file_close(&file);
}

uint32_t step_function_frame(struct trace_writer *w, const struct step_function *f)
{
	return counted_frame(w,
		&(struct trace_frame){.kind = f->kind, .image = f->image, .addr = f->start},
		f->linkage_name);
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
	struct blocks b = {.of = of,
		.code = {.w = of->w,
			.stream = of->stream,
			.time = of->time,
			.lines_only = of->lines_only}};

	write_images(&b);
	if (!b.code.n_written && of->lines_only) { /* nothing has lines: then they do not matter */
		b.code.lines_only = false;
		b.code.n_foreign = 0;
		write_images(&b);
	}
	counted_code_end(&b.code);
	vec_release(&b.executed);
	vec_release(&b.known);
}
