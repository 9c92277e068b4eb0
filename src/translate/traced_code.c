/* SPDX-License-Identifier: MIT */
/*
 * Which function code is of, and the blocks of all programs, added up by image: the same file is counted once however
 * many processes execute it.
 *
 * Code that no table knows is cut into functions where calls lead, and where executed code is far from other such
 * code; whoever names frames names them by their addresses.
 */
#include "translate/count_trace_internal.h"

#include <stdlib.h>

#include "arch/x86_code.h"
#include "base/order.h"
#include "base/search.h"
#include "base/sort.h"
#include "formats/counted_code.h"
#include "symbols/symtab.h"

/* Unnamed code further apart than this is not one function, nor with a function of a table between. */
#define REGION_GAP (64u << 10)

struct piece_key {
	uint64_t addr;
	uint32_t bytes, n_insns, n_counted, is_32;
};

void traced_image_release(struct traced_image *image)
{
	map_release(&image->function_of);
	vec_release(&image->entries);
	intern_release(&image->keys);
	vec_release(&image->pieces);
	vec_release(&image->code);
}

static uint32_t image_index(struct count_trace *t, uint32_t number)
{
	bool is_known = number < images_n(t->process_images);
	uint32_t i = is_known ? number + 1 : 0;
	struct image *of;

	if (i < t->images.n && t->images.v[i].kind)
		return i;
	vec_ensure_zero(&t->images, (size_t)i + 1);
	t->images.v[i].kind = FRAME_KIND_NATIVE;
	t->images.v[i].number = is_known ? number : COUNTS_NO_IMAGE;
	if (!is_known)
		return i;
	of = images_get(t->process_images, number);
	of->is_hit = true;
	t->images.v[i].id = images_trace_id(t->process_images, number, t->w);
	if (of->kind == IMAGE_KIND_JIT)
		t->images.v[i].kind = FRAME_KIND_JITTED;
	return i;
}

/* --- functions --------------------------------------------------------------------------------- */

static const struct image_function *find_in_tables(
	struct count_trace *t, const struct traced_image *image, uint64_t addr)
{
	return image->number == COUNTS_NO_IMAGE ? NULL : function_tables_find(t->tables, image->number, addr);
}

/* The last entry at or before an address; false: there is none. */
static bool find_entry(const struct traced_image *image, uint64_t addr, uint64_t *entry)
{
	size_t i = SEARCH(0, image->entries.n, k, image->entries.v[k] <= addr);

	if (i)
		*entry = image->entries.v[i - 1];
	return i;
}

static uint32_t add_function(
	struct count_trace *t, uint32_t image, uint64_t start, const struct image_function *known)
{
	struct traced_function f = {.start = start, .image = image};
	struct trace_frame frame = {
		.kind = t->images.v[image].kind, .image = t->images.v[image].id, .addr = start};

	if (known) {
		f.bytes = known->bytes;
		f.linkage_name = known->linkage_name;
		f.is_part = known->is_part;
	}
	f.frame = f.linkage_name ? counted_frame(t->w, &frame, f.linkage_name)
				 : trace_writer_frame(t->w, &frame);
	vec_push(&t->functions, f);
	return (uint32_t)t->functions.n - 1;
}

uint32_t traced_code_function(struct count_trace *t, uint32_t number, uint64_t addr)
{
	uint32_t i = image_index(t, number);
	struct traced_image *image = &t->images.v[i];
	const struct image_function *known = find_in_tables(t, image, addr);
	uint64_t start = known ? known->start : addr;
	bool created;
	uint64_t *at;

	if (!known)
		find_entry(image, addr, &start);
	at = map_ensure(&image->function_of, start, &created);
	if (created)
		*at = add_function(t, i, start, known);
	return (uint32_t)*at;
}

/* --- code that no table knows ------------------------------------------------------------------ */

struct loose_code {
	uint64_t addr, end;
	uint32_t image; /* index */
	bool is_entry;
};

struct loose_codes {
	VEC(struct loose_code) all;
};

ORDER_BY(compare_loose, struct loose_code, image, addr, end)

static void add_loose(struct count_trace *t, struct loose_codes *loose, uint32_t number, uint64_t addr,
	uint64_t bytes, bool is_entry)
{
	uint32_t i = image_index(t, number);

	if (!find_in_tables(t, &t->images.v[i], addr))
		vec_push(&loose->all, ((struct loose_code){addr, addr + bytes, i, is_entry}));
}

/* Near each other, and no function of a table between them. */
static bool is_near(struct count_trace *t, const struct traced_image *image, uint64_t from, uint64_t to)
{
	const struct image_function *v = NULL;
	size_t n = 0, i;

	if (to <= from)
		return true;
	if (to - from > REGION_GAP)
		return false;
	if (image->number != COUNTS_NO_IMAGE)
		n = function_tables_get(t->tables, image->number, &v);
	i = SEARCH(0, n, k, v[k].start < from);
	return i == n || v[i].start >= to;
}

/* Whether it goes on with what is in front of it, which ends at `end` (0: nothing is) or is an entry. */
static bool goes_on(struct count_trace *t, const struct traced_image *image, uint64_t addr, uint64_t end)
{
	uint64_t entry = 0;

	return (end && is_near(t, image, end, addr)) ||
	       (find_entry(image, addr, &entry) && is_near(t, image, entry, addr));
}

/* Where functions begin among them. */
static void find_entries(struct count_trace *t, struct loose_codes *loose)
{
	size_t n = 0;
	uint64_t end = 0;

	vec_sort(&loose->all, compare_loose);
	for (size_t i = 0; i < loose->all.n; i++) {
		const struct loose_code code = loose->all.v[i];

		if (!i || loose->all.v[i - 1].image != code.image)
			end = 0;
		if (code.is_entry || !goes_on(t, &t->images.v[code.image], code.addr, end))
			loose->all.v[n++] = code;
		end = code.end > end ? code.end : end;
	}
	for (size_t i = 0; i < n; i++)
		vec_push(&t->images.v[loose->all.v[i].image].entries, loose->all.v[i].addr);
	for (size_t i = 0; n && i < t->images.n; i++)
		t->images.v[i].entries.n =
			sort_distinct_u64(t->images.v[i].entries.v, t->images.v[i].entries.n);
}

static void cut_loose_code(struct count_trace *t, const struct counts *c)
{
	struct loose_codes loose = {0};

	for (size_t i = 1; i < c->by_number.n; i++) {
		const struct call_function *f = &c->by_number.v[i];

		add_loose(t, &loose, f->image, f->address - f->bias, 1, true);
	}
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct counts_row *row = &c->rows.v[i];

		if (row->count)
			add_loose(t, &loose, row->image, row->pc - row->bias, row->bytes, false);
	}
	find_entries(t, &loose);
	vec_release(&loose.all);
}

/* --- blocks ------------------------------------------------------------------------------------ */

static struct code_piece *piece_of(struct traced_image *image, const struct counts_row *row, uint32_t n_counted)
{
	struct piece_key key = {
		.addr = row->pc - row->bias, .bytes = row->bytes, .n_insns = row->n_insns, .n_counted = n_counted,
		.is_32 = !!(row->flags & COUNTS_BLOCK_I386)};
	uint32_t i = intern_bytes(&image->keys, &key, sizeof(key));

	if (i == image->pieces.n)
		vec_push(&image->pieces, ((struct code_piece){.addr = key.addr,
						 .bytes = key.bytes,
						 .n_insns = key.n_insns,
						 .n_counted = n_counted,
						 .is_32 = key.is_32}));
	return &image->pieces.v[i];
}

static void keep_code(
	struct traced_image *image, struct code_piece *piece, const struct counts *c, const struct counts_row *row)
{
	if (piece->code || !row->code)
		return;
	piece->code = image->code.n + 1;
	vec_reserve(&image->code, image->code.n + row->bytes);
	memcpy(image->code.v + image->code.n, c->code.v + row->code - 1, row->bytes);
	image->code.n += row->bytes;
}

static void add_piece(struct count_trace *t, const struct counts *c, const struct counts_row *row,
	uint32_t n_counted, uint64_t count)
{
	uint32_t i = image_index(t, row->image);
	struct traced_image *image = &t->images.v[i];
	struct code_piece *piece = piece_of(image, row, n_counted);

	piece->count += count;
	keep_code(image, piece, c, row);
}

/* The block was executed once less, and its first instructions once more. */
static void add_faults(struct count_trace *t, const struct counts *c, const struct call_thread *thread)
{
	for (size_t i = 0; i < thread->faults.n; i++) {
		const struct counts_fault *fault = &thread->faults.v[i];
		const struct counts_row *row = &c->rows.v[fault->block];

		add_piece(t, c, row, row->n_insns, -fault->count);
		if (fault->n_left < row->n_insns)
			add_piece(t, c, row, row->n_insns - fault->n_left, fault->count);
	}
}

void traced_code_add(struct count_trace *t, const struct counts *c, uint32_t **function_of)
{
	uint32_t *functions = mem_calloc(c->rows.n + 1, sizeof(*functions));

	cut_loose_code(t, c);
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct counts_row *row = &c->rows.v[i];

		functions[i] = UINT32_MAX;
		if (!row->count)
			continue;
		functions[i] = traced_code_function(t, row->image, row->pc - row->bias);
		add_piece(t, c, row, row->n_insns, row->count);
		t->totals.n_blocks++;
	}
	for (size_t i = 0; i < c->threads.n; i++)
		add_faults(t, c, c->threads.v[i]);
	*function_of = functions;
}

/* --- writing ----------------------------------------------------------------------------------- */

/* Executed instructions of one function that follow each other in `insns`. */
struct code_run {
	uint64_t start; /* of the function */
	uint32_t function;
	size_t first, n;
};

struct code_writer {
	struct count_trace *t;
	struct traced_image *image;
	struct counted_code code;
	VEC(struct counted_insn) insns; /* of the image, by address while is_sorted */
	VEC(struct counted_insn) piece; /* of the one that is worked on */
	bool is_sorted;
	VEC(struct code_run) runs;
	VEC(size_t) first_runs; /* of each of: */
	VEC(struct counted_function) executed;
	VEC(struct counted_known) known;
};

static const struct image *image_of(const struct code_writer *w)
{
	return w->image->number == COUNTS_NO_IMAGE ? NULL
						   : images_get(w->t->process_images, w->image->number);
}

static struct span code_of(const struct code_writer *w, const struct code_piece *piece)
{
	const struct image *of = image_of(w);

	if (piece->code)
		return (struct span){w->image->code.v + piece->code - 1, piece->bytes};
	return of && of->has_elf ? span_sub(elf_file_bytes_at(&of->elf, (struct iaddr){piece->addr}), 0, piece->bytes)
				 : (struct span){NULL, 0};
}

/* Known from another block that has it, or decoded. False: it is none. */
static bool read_insn(
	struct code_writer *w, const struct code_piece *piece, struct span code, uint64_t offset, size_t *at)
{
	struct counted_insn to = {.addr = piece->addr + offset};
	struct x86_insn insn;

	for (; *at < w->insns.n && w->insns.v[*at].addr < to.addr; ++*at)
		;
	if (*at < w->insns.n && w->insns.v[*at].addr == to.addr && !piece->code) {
		vec_push(&w->piece, w->insns.v[*at]);
		return true;
	}
	if (offset >= code.n || !x86_decode(&insn, span_sub(code, offset, code.n - offset), to.addr, !piece->is_32))
		return false;
	to.target = insn.has_target ? insn.target : 0;
	to.length = insn.length;
	to.flow = insn.flow;
	vec_push(&w->piece, to);
	return true;
}

/* False: they are not the instructions that were counted. */
static bool decode_piece(struct code_writer *w, const struct code_piece *piece, size_t at)
{
	struct span code = code_of(w, piece);
	uint64_t offset = 0;

	w->piece.n = 0;
	for (uint32_t i = 0; i < piece->n_insns; i++) {
		if (!read_insn(w, piece, code, offset, &at))
			return false;
		offset += w->piece.v[i].length;
	}
	return offset == piece->bytes;
}

/* As if they were of one size. */
static void divide_piece(struct code_writer *w, const struct code_piece *piece)
{
	uint32_t size = piece->bytes / piece->n_insns;

	w->piece.n = 0;
	for (uint32_t i = 0; i < piece->n_insns; i++) {
		struct counted_insn to = {.addr = piece->addr + (uint64_t)i * size};

		to.length = (uint8_t)(i + 1 < piece->n_insns ? size : piece->bytes - i * size);
		vec_push(&w->piece, to);
	}
	w->t->n_undecoded++;
}

static void add_insns(struct code_writer *w, const struct code_piece *piece)
{
	size_t at = SEARCH(0, w->insns.n, k, w->insns.v[k].addr < piece->addr);

	if (!w->is_sorted)
		at = w->insns.n;
	if (!decode_piece(w, piece, at))
		divide_piece(w, piece);
	for (uint32_t i = 0; i < piece->n_counted; i++) {
		struct counted_insn *insn = &w->piece.v[i];

		for (; at < w->insns.n && w->insns.v[at].addr < insn->addr; at++)
			;
		if (at < w->insns.n && w->insns.v[at].addr == insn->addr &&
			w->insns.v[at].length == insn->length) {
			w->insns.v[at].count += piece->count;
			continue;
		}
		w->is_sorted &= at == w->insns.n;
		insn->count = piece->count;
		vec_push(&w->insns, *insn);
	}
}

ORDER_BY(compare_places, struct counted_insn, addr, length)

static void put_in_order(struct code_writer *w)
{
	size_t n = 0;

	vec_sort(&w->insns, compare_places);
	for (size_t i = 0; i < w->insns.n; i++) {
		const struct counted_insn *insn = &w->insns.v[i];

		if (n && w->insns.v[n - 1].addr == insn->addr && w->insns.v[n - 1].length == insn->length)
			w->insns.v[n - 1].count += insn->count;
		else
			w->insns.v[n++] = *insn;
	}
	w->insns.n = n;
}

static void read_insns(struct code_writer *w)
{
	size_t n = w->image->pieces.n;
	struct sort_pair *order = mem_calloc(n, sizeof(*order));

	w->insns.n = 0;
	w->is_sorted = true;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct sort_pair){w->image->pieces.v[i].addr, (uint32_t)i};
	sort_pairs(order, n);
	for (size_t i = 0; i < n; i++)
		if ((int64_t)w->image->pieces.v[order[i].i].count > 0)
			add_insns(w, &w->image->pieces.v[order[i].i]);
	if (!w->is_sorted)
		put_in_order(w);
	free(order);
}

ORDER_BY(compare_runs, struct code_run, start, first)

static void find_runs(struct code_writer *w)
{
	const struct image_function *v = NULL;
	size_t n = 0, next = 0; /* of v: the first that begins behind the instruction */

	w->runs.n = 0;
	if (w->image->number != COUNTS_NO_IMAGE)
		n = function_tables_get(w->t->tables, w->image->number, &v);
	for (size_t i = 0; i < w->insns.n; i++) {
		struct code_run *last = w->runs.n ? &w->runs.v[w->runs.n - 1] : NULL;
		uint64_t addr = w->insns.v[i].addr;
		uint32_t function;

		for (; next < n && v[next].start <= addr; next++)
			;
		if (last && next && v[next - 1].start == last->start && addr - last->start < v[next - 1].bytes) {
			last->n++;
			continue;
		}
		function = traced_code_function(w->t, w->image->number, addr);
		if (last && last->function == function)
			last->n++;
		else
			vec_push(&w->runs, ((struct code_run){w->t->functions.v[function].start, function, i, 1}));
	}
	vec_sort(&w->runs, compare_runs);
}

static void add_executed(struct code_writer *w, const struct code_run *run)
{
	const struct traced_function *f = &w->t->functions.v[run->function];
	struct counted_function to = {.start = f->start,
		.bytes = f->bytes,
		.linkage_name = f->linkage_name,
		.frame = f->frame,
		.is_part = f->is_part};

	if (f->linkage_name)
		to.name = symbol_demangle(f->linkage_name);
	vec_push(&w->executed, to);
}

static void find_executed(struct code_writer *w)
{
	w->executed.n = w->first_runs.n = 0;
	for (size_t i = 0; i < w->runs.n; i++) {
		const struct code_run *run = &w->runs.v[i];
		const struct counted_insn *last = &w->insns.v[run->first + run->n - 1];
		struct counted_function *f;

		if (!i || run[-1].function != run->function) {
			vec_push(&w->first_runs, i);
			add_executed(w, run);
		}
		f = &w->executed.v[w->executed.n - 1];
		if (!w->t->functions.v[run->function].bytes && last->addr + last->length - f->start > f->bytes)
			f->bytes = last->addr + last->length - f->start;
	}
	vec_push(&w->first_runs, w->runs.n);
}

static void give_insns(void *ctx, struct counted_code *c, size_t function)
{
	struct code_writer *w = ctx;

	for (size_t i = w->first_runs.v[function]; i < w->first_runs.v[function + 1]; i++)
		for (size_t k = 0; k < w->runs.v[i].n; k++) {
			struct counted_insn insn = w->insns.v[w->runs.v[i].first + k];

			counted_code_place(c, &insn);
			counted_code_add(c, &insn);
		}
}

static void read_known(struct code_writer *w)
{
	const struct image_function *v;
	size_t n = function_tables_get(w->t->tables, w->image->number, &v);

	w->known.n = 0;
	for (size_t i = 0; i < n; i++)
		if (v[i].linkage_name)
			vec_push(&w->known,
				((struct counted_known){v[i].start, v[i].bytes, v[i].linkage_name}));
}

/* Only an image that is a file has one; why there is none is told. */
static struct ran_file *open_file(struct code_writer *w)
{
	const struct image *of = image_of(w);
	const char *path, *why;
	struct ran_file *file;
	char *text;

	if (!of || of->kind != IMAGE_KIND_ELF)
		return NULL;
	path = images_opened(w->t->process_images, w->image->number);
	file = code_files_get(w->t->files, w->image->number, of, path ? path : of->path, &why);
	if (file)
		return file;
	text = mem_printf("'%s' is not at hand (%s): what was not executed of it is not known", of->path, why);
	count_trace_note(w->t, w->code.time, 1, text);
	free(text);
	return NULL;
}

static void write_image(struct code_writer *w)
{
	struct counted_image image = {.id = w->image->id, .insns = give_insns, .ctx = w};
	struct ran_file *file = open_file(w);

	read_insns(w);
	find_runs(w);
	find_executed(w);
	image.executed = w->executed.v;
	image.n_executed = w->executed.n;
	if (file) {
		image.file = file;
		image.path = image_of(w)->path;
		read_known(w);
		image.known = w->known.v;
		image.n_known = w->known.n;
	}
	counted_code_write(&w->code, &image);
	if (file)
		vec_release(&file->rows);
	for (size_t i = 0; i < w->executed.n; i++)
		free((char *)w->executed.v[i].name);
}

void traced_code_write(struct count_trace *t, uint64_t time)
{
	struct code_writer w = {.t = t, .code = {.w = t->w, .stream = t->life, .time = time}};

	for (size_t i = 0; i < t->images.n; i++) {
		w.image = &t->images.v[i];
		if (w.image->pieces.n)
			write_image(&w);
	}
	counted_code_end(&w.code);
	vec_release(&w.insns);
	vec_release(&w.piece);
	vec_release(&w.runs);
	vec_release(&w.first_runs);
	vec_release(&w.executed);
	vec_release(&w.known);
}
