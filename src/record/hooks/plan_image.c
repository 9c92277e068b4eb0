/* SPDX-License-Identifier: MIT */
/*
 * What an image has: sections of code, functions by their symbols, the extents of nameless
 * functions by their frame descriptions.
 *
 * 1. regions and stretches are sorted and do not overlap; functions are sorted by their start and
 *    have different ones, but may nest;
 * 2. an address of `labels` is no function's start;
 * 3. names are borrowed from the image, its mini debug information or its debug file.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "dwarf/cfi_entries.h"
#include "record/hooks/plan_internal.h"

static int compare_first_words(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return ORDER(*x, *y);
}

void image_sort(void *items, size_t n, size_t bytes)
{
	if (n)
		qsort(items, n, bytes, compare_first_words);
}

/* --- code -------------------------------------------------------------------------------- */

static void add_region(struct image_facts *f, uint64_t start, struct span bytes, bool is_stub)
{
	struct code_region r = {start, 0, bytes, NULL, NULL, is_stub};

	if (bytes.n && !__builtin_add_overflow(start, bytes.n, &r.end))
		vec_push(&f->regions, r);
}

/* Those that begin in another one are cut or left out. */
static void separate_regions(struct image_facts *f)
{
	uint64_t end = 0;
	size_t n = 0;

	image_sort(f->regions.v, f->regions.n, sizeof(*f->regions.v));
	for (size_t i = 0; i < f->regions.n; i++) {
		struct code_region r = f->regions.v[i];

		if (r.start < end)
			continue;
		end = r.end;
		r.is_wanted = mem_calloc(r.bytes.n / 64 + 1, 8);
		r.is_start = mem_calloc(r.bytes.n / 64 + 1, 8);
		f->regions.v[n++] = r;
	}
	f->regions.n = n;
}

static bool is_stub_section(const char *name)
{
	return strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0;
}

static void find_regions(struct image_facts *f)
{
	const struct elf_file *elf = f->elf;

	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if ((s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) &&
			!(s->flags & SHF_COMPRESSED))
			add_region(f, s->addr.v, elf_file_section_bytes(elf, s),
				is_stub_section(s->name));
	}
	for (size_t i = 0; !elf->n_sections && i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X))
			add_region(f, s->addr.v, span_sub(elf->bytes, s->offset.v, s->file_size),
				false);
	}
	separate_regions(f);
}

struct code_region *image_region(const struct image_facts *f, uint64_t addr)
{
	size_t low = SEARCH(0, f->regions.n, middle, f->regions.v[middle].end <= addr);

	if (low == f->regions.n || addr < f->regions.v[low].start)
		return NULL;
	return &f->regions.v[low];
}

struct span image_code(const struct image_facts *f, uint64_t addr)
{
	const struct code_region *r = image_region(f, addr);

	return r ? span_sub(r->bytes, addr - r->start, r->end - addr) : (struct span){NULL, 0};
}

bool image_decode(const struct image_facts *f, uint64_t addr, struct x86_insn *insn)
{
	return x86_decode(insn, image_code(f, addr), addr, f->is_64);
}

/* --- names ------------------------------------------------------------------------------- */

struct collecting {
	struct image_facts *f;
	uint64_t bytes_left; /* of names; hostile symbols all name the rest of one text */
};

static void add_name(void *ctx, const struct candidate *candidate)
{
	struct collecting *c = ctx;
	const struct code_region *r = image_region(c->f, candidate->start);
	struct candidate n = *candidate;
	const char *version;

	if (!r || r->is_stub || c->f->names.n >= SYMTAB_SYMBOLS_MAX)
		return;
	if (n.name_bytes >= c->bytes_left || n.name_bytes >= SYMTAB_NAME_BYTES_MAX)
		return;
	c->bytes_left -= n.name_bytes;
	version = memchr(n.name, '@', n.name_bytes);
	if (version && version != n.name) {
		n.name_bytes = (uint32_t)(version - n.name);
		vec_push(&c->f->owned, mem_strndup(n.name, n.name_bytes));
		n.name = c->f->owned.v[c->f->owned.n - 1];
	}
	if (n.room > r->end - n.start)
		n.room = r->end - n.start;
	if (n.size > n.room)
		n.size = n.room;
	vec_push(&c->f->names, n);
}

static void collect_names(struct image_facts *f)
{
	struct collecting c = {f, f->elf->bytes.n};
	const struct symbol_sink sink = {add_name, &c};

	elf_tables_open(&f->tables, f->elf, f->path);
	for (size_t i = 0; i < f->tables.n; i++) {
		if (f->tables.v[i].elf != f->elf)
			c.bytes_left += f->tables.v[i].elf->bytes.n;
		elf_table_read(&f->tables.v[i], &sink);
	}
}

static int compare_names(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return ORDER(x->start, y->start) ?: candidate_is_better(y, x) - candidate_is_better(x, y);
}

/* --- functions --------------------------------------------------------------------------- */

/* The ranges of .eh_frame, by address. */
static void find_frames(const struct image_facts *f, struct ranges *frames)
{
	const struct elf_section *s = elf_file_find_section(f->elf, ".eh_frame");
	struct cfi_entries entries = {0};
	struct cfi_source source = {.is_64 = f->is_64, .is_386 = !f->is_64, .is_eh = true};

	if (!s)
		return;
	source.bytes = elf_file_section_bytes(f->elf, s);
	source.addr = s->addr.v;
	source.data_addr = f->got_base;
	cfi_entries_read(&entries, &source);
	for (size_t i = 0; i < entries.fdes.n; i++) {
		const struct cfi_fde *fde = &entries.fdes.v[i];
		const struct code_region *r = image_region(f, fde->start);

		if (r && !r->is_stub && fde->size && fde->size <= r->end - fde->start)
			vec_push(
				&frames->all, ((struct range){fde->start, fde->start + fde->size}));
	}
	cfi_entries_release(&entries);
	image_sort(frames->all.v, frames->all.n, sizeof(*frames->all.v));
}

/* The frame that covers `addr`; NULL when none does. */
static const struct range *frame_at(const struct ranges *frames, uint64_t addr)
{
	size_t low = SEARCH(0, frames->all.n, middle, frames->all.v[middle].start <= addr);

	return low && addr < frames->all.v[low - 1].end ? &frames->all.v[low - 1] : NULL;
}

static void set_start_bit(struct image_facts *f, uint64_t addr)
{
	struct code_region *r = image_region(f, addr);
	uint64_t at = addr - r->start;

	r->is_start[at / 64] |= 1ull << at % 64;
}

/* One function of the names [i, end), which have one address. `covered` is the end of the sized
 * functions before it. False when they are only labels. */
static bool add_function(
	struct image_facts *f, size_t i, size_t end, const struct ranges *frames, uint64_t covered)
{
	struct image_function fn = {
		.start = f->names.v[i].start, .name_i = (uint32_t)i, .is_label = true};
	const struct range *frame = frame_at(frames, fn.start);
	uint64_t size = 0, room = f->names.v[i].room;
	bool is_global = false;

	for (size_t k = i; k < end; k++) {
		const struct candidate *n = &f->names.v[k];

		size = n->size > size ? n->size : size;
		is_global |= n->bind != CANDIDATE_BIND_LOCAL;
		fn.is_ifunc |= n->is_ifunc;
		fn.is_fragment |= function_name_is_fragment(n->name);
		fn.is_label &= n->kind == CANDIDATE_KIND_LABEL;
	}
	fn.n_names = (uint32_t)(end - i);
	if (fn.is_label && frame && frame->start == fn.start)
		fn.is_label = false;
	if (fn.is_label && (!is_global || fn.start < covered || frame))
		return false;
	if (!size) {
		size = room;
		if (end < f->names.n && f->names.v[end].start - fn.start < size)
			size = f->names.v[end].start - fn.start;
		if (frame && frame->end - fn.start < size)
			size = frame->end - fn.start;
	}
	fn.end = fn.start + size;
	vec_push(&f->functions, fn);
	set_start_bit(f, fn.start);
	return true;
}

static void find_functions(struct image_facts *f, const struct ranges *frames)
{
	uint64_t covered = 0;
	size_t end;

	for (size_t i = 0; i < f->names.n; i = end) {
		uint64_t addr = f->names.v[i].start;

		for (end = i + 1; end < f->names.n && f->names.v[end].start == addr;)
			end++;
		if (!add_function(f, i, end, frames, covered)) {
			vec_push(&f->labels, addr);
			continue;
		}
		if (f->functions.v[f->functions.n - 1].end > covered)
			covered = f->functions.v[f->functions.n - 1].end;
	}
}

/* Frames show where no function is. */
static void find_stretches(struct image_facts *f, const struct ranges *frames)
{
	struct ranges ranges = {0};
	struct range_piece *pieces;
	size_t n;

	vec_reserve(&ranges.all, frames->all.n + f->functions.n + 1);
	for (size_t i = 0; i < frames->all.n; i++) {
		vec_push(&ranges.all, frames->all.v[i]);
		if (image_function_at(f, frames->all.v[i].start) == NO_FUNCTION)
			vec_push(&f->labels, frames->all.v[i].start);
	}
	for (size_t i = 0; i < f->functions.n; i++)
		vec_push(&ranges.all,
			((struct range){f->functions.v[i].start, f->functions.v[i].end}));
	n = range_paint(ranges.all.v, ranges.all.n, &pieces);
	vec_reserve(&f->stretches, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t range_i = pieces[i].range_i;

		vec_push(&f->stretches,
			((struct code_stretch){pieces[i].start, pieces[i].end,
				range_i < frames->all.n ? NO_FUNCTION
							: range_i - (uint32_t)frames->all.n}));
	}
	free(pieces);
	vec_release(&ranges.all);
	image_sort(f->labels.v, f->labels.n, sizeof(*f->labels.v));
}

uint32_t image_function_at(const struct image_facts *f, uint64_t start)
{
	size_t low = SEARCH(0, f->functions.n, middle, f->functions.v[middle].start < start);

	return low < f->functions.n && f->functions.v[low].start == start ? (uint32_t)low
									  : NO_FUNCTION;
}

uint32_t image_function_named(const struct image_facts *f, const char *name)
{
	for (size_t i = 0; i < f->names.n; i++)
		if (strcmp(f->names.v[i].name, name) == 0)
			return image_function_at(f, f->names.v[i].start);
	return NO_FUNCTION;
}

size_t image_stretch_from(const struct image_facts *f, uint64_t addr)
{
	return SEARCH(0, f->stretches.n, middle, f->stretches.v[middle].end <= addr);
}

static uint64_t find_got_base(const struct elf_file *elf)
{
	const struct elf_section *s = elf_file_find_section(elf, ".got.plt");
	uint64_t value;

	if (elf_file_dynamic(elf, DT_PLTGOT, &value))
		return value;
	if (!s)
		s = elf_file_find_section(elf, ".got");
	return s ? s->addr.v : 0;
}

int image_facts_init(
	struct image_facts *f, const struct elf_file *elf, const char *path, struct err *err)
{
	struct ranges frames = {0};

	f->elf = elf;
	f->path = path;
	f->is_64 = elf->is_64;
	f->got_base = find_got_base(elf);
	find_regions(f);
	if (!f->regions.n)
		return err_set(err, ERR_FORMAT, "'%s': has no code", path);
	collect_names(f);
	vec_sort(&f->names, compare_names);
	find_frames(f, &frames);
	find_functions(f, &frames);
	find_stretches(f, &frames);
	vec_release(&frames.all);
	return 0;
}

void image_facts_release(struct image_facts *f)
{
	for (size_t i = 0; i < f->regions.n; i++) {
		free(f->regions.v[i].is_wanted);
		free(f->regions.v[i].is_start);
	}
	vec_release(&f->regions);
	vec_release(&f->names);
	vec_release(&f->functions);
	vec_release(&f->stretches);
	vec_release(&f->labels);
	vec_release(&f->targets);
	vec_release_all(&f->owned);
	map_release(&f->callee_of);
	map_release(&f->callee_slot);
	map_release(&f->pads_used);
	elf_tables_close(&f->tables);
}
