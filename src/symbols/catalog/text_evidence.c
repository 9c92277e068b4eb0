/* SPDX-License-Identifier: MIT */
/*
 * What speaks for a text without identity (a linker map, nm output) being an image's own, and what
 * against. Exported names that both have must sit at equal addresses, the code sections of a map
 * must be those of the image, and functions must lie where the image's unwind table has functions.
 *
 * None of it is an identity. So names of a text never stand on the rung of the image itself: those
 * that are pinned (extent_check.h) in a text that exported names confirm stand on rung checksum, all
 * others on rung segments.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "symbols/catalog/extent_check.h"
#include "symbols/catalog/merge_internal.h"
#include "symbols/elf_tables.h"

/* Hand-written code has entry points inside what its unwind table calls one function: of so many
 * functions one may be elsewhere. */
#define FUNCTIONS_TO_ONE_WRONG 20

static void add_anchor(void *ctx, const struct candidate *c)
{
	struct merge_image *image = ctx;

	vec_push(&image->anchors, ((struct anchor_name){c->name, c->start}));
}

static int compare_anchors(const void *a, const void *b)
{
	return strcmp(((const struct anchor_name *)a)->name, ((const struct anchor_name *)b)->name);
}

static void anchors_of_base(struct merge *m, struct merge_image *image)
{
	struct catalog_image *base = merge_image_base(m, image);

	for (size_t i = 0; base && i < catalog_image_n_symbols(base); i++) {
		struct catalog_symbol s = catalog_image_symbol(base, i);

		vec_push(&image->anchors, ((struct anchor_name){s.linkage_name, s.start}));
		for (uint32_t k = 0; k < s.n_aliases; k++)
			vec_push(&image->anchors,
				((struct anchor_name){
					catalog_image_alias(base, s.first_alias + k), s.start}));
	}
}

static int compare_demangled(const void *a, const void *b)
{
	const struct demangled_name *x = a, *y = b;

	return strcmp(x->text, y->text) ?: ORDER(x->addr, y->addr);
}

/* Every mangled name is an anchor under its readable form as well. */
static void add_demangled(struct merge_image *image)
{
	size_t n = image->anchors.n;

	for (size_t i = 0; i < n; i++) {
		const struct anchor_name a = image->anchors.v[i];
		char *text = symbol_demangle(a.name);

		if (strcmp(text, a.name) == 0) {
			free(text);
			continue;
		}
		vec_push(&image->demangled, ((struct demangled_name){text, a.name, a.addr}));
		vec_push(&image->anchors, ((struct anchor_name){text, a.addr}));
	}
	vec_sort(&image->demangled, compare_demangled);
}

const char *merge_image_linkage_name(
	const struct merge_image *image, const char *text, size_t n, uint64_t addr)
{
	char *copy = mem_strndup(text, n);
	const struct demangled_name wanted = {copy, NULL, addr};
	const struct demangled_name *found = NULL;

	if (image->demangled.n)
		found = bsearch(&wanted, image->demangled.v, image->demangled.n, sizeof(wanted),
			compare_demangled);
	free(copy);
	return found ? found->linkage : NULL;
}

/* Exported names; of an image that exports nothing, all that it has. */
static void make_anchors(struct merge *m, struct merge_image *image)
{
	const struct symbol_sink sink = {add_anchor, image};
	struct elf_tables tables;

	if (image->has_anchors)
		return;
	image->has_anchors = true;
	if (image->file_i != NO_IMAGE) {
		elf_tables_init(&tables, &m->files.v[image->file_i]->elf);
		for (size_t i = tables.n; i-- > 0 && !image->anchors.n;)
			elf_table_read(&tables.v[i], &sink);
	} else {
		anchors_of_base(m, image);
	}
	add_demangled(image);
	vec_sort(&image->anchors, compare_anchors);
}

/* The candidates' names end in the text, not in a zero byte: they are copied. */
struct anchor_name *merge_text_anchors(const struct merge_file *f, struct buf *names)
{
	struct anchor_name *v = mem_calloc(f->candidates.n + 1, sizeof(*v));
	size_t at = 0;

	for (size_t i = 0; i < f->candidates.n; i++) {
		const struct candidate *c = &f->candidates.v[i];

		buf_put(names, c->name, c->name_bytes);
		buf_put_u8(names, 0);
	}
	for (size_t i = 0; i < f->candidates.n; i++) {
		const struct candidate *c = &f->candidates.v[i];

		v[i] = (struct anchor_name){(const char *)names->p + at, c->start};
		at += c->name_bytes + 1;
	}
	return v;
}

/* --- what is compared --- */

struct evidence {
	int sections; /* 1: .text is equal in both, 0: nothing to compare, -1: one cannot be the same */
	struct err why;
	struct anchor_result names;
	struct extent_result extents;
	const char *wrong_function;
};

/* The image's section with code of this name. */
static bool find_code_section(
	struct merge *m, struct merge_image *image, const char *name, struct extent *out)
{
	const struct elf_section *s;
	struct catalog_image *base;

	if (image->file_i != NO_IMAGE) {
		s = elf_file_find_section(&m->files.v[image->file_i]->elf, name);
		if (s)
			*out = (struct extent){s->addr.v, s->size};
		return s && s->flags & SHF_EXECINSTR;
	}
	base = merge_image_base(m, image);
	for (size_t i = 0; base && i < catalog_image_n_sections(base); i++) {
		struct catalog_section c = catalog_image_section(base, i);

		*out = (struct extent){c.addr, c.bytes};
		if (!strcmp(c.name, name) && c.flags & SHF_EXECINSTR)
			return true;
	}
	return false;
}

static int compare_sections(
	struct merge *m, struct merge_image *image, const struct merge_file *f, struct err *why)
{
	int found = 0;

	for (size_t i = 0; i < f->text.sections.n; i++) {
		const struct image_segment *t = &f->text.sections.v[i];
		struct extent s = {0};

		if (!find_code_section(m, image, t->name, &s))
			continue;
		if (s.start != t->addr || s.bytes != t->mem_bytes) {
			err_set(why, ERR_FORMAT,
				"%s is 0x%lx bytes at 0x%lx in the map, 0x%lx at 0x%lx in it",
				t->name, t->mem_bytes, t->addr, s.bytes, s.start);
			return -1;
		}
		if (!strcmp(t->name, ".text"))
			found = 1;
	}
	return found;
}

static void compare_extents(struct merge *m, struct merge_image *image, const struct merge_file *f,
	const struct anchor_name *names, struct evidence *e, bool *is_pinned)
{
	bool *is_anchored = mem_calloc(f->candidates.n + 1, sizeof(*is_anchored));
	struct extent_question q = {.pieces = f->text.pieces.v,
		.n_pieces = f->text.pieces.n,
		.functions = f->candidates.v,
		.n_functions = f->candidates.n,
		.is_anchored = is_anchored};

	for (size_t i = 0; i < f->candidates.n; i++)
		is_anchored[i] = anchor_agrees(
			image->anchors.v, image->anchors.n, names[i].name, names[i].addr);
	if (!image->extents && image->file_i != NO_IMAGE)
		image->extents = extents_of_elf(&m->files.v[image->file_i]->elf, &image->n_extents);
	q.image = image->extents;
	q.n_image = image->n_extents;
	extent_check(&q, &e->extents, is_pinned);
	if (e->extents.first_wrong != SIZE_MAX)
		e->wrong_function = names[e->extents.first_wrong].name;
	free(is_anchored);
}

/* --- the verdict --- */

static bool extents_hold(const struct evidence *e)
{
	size_t n_wrong = e->extents.n_compared - e->extents.n_agree;

	return !e->extents.torn.bytes && n_wrong * FUNCTIONS_TO_ONE_WRONG <= e->extents.n_compared;
}

static bool evidence_holds(const struct evidence *e)
{
	return e->sections >= 0 && e->names.n_agree == e->names.n_common &&
	       (e->names.n_common || e->sections > 0) && extents_hold(e);
}

static void say_wrong_extents(const struct evidence *e, struct buf *to)
{
	const struct extent *torn = &e->extents.torn, *in = &e->extents.wrong_in_image;

	if (torn->bytes) {
		buf_printf(to,
			"an input section of the map is 0x%lx to 0x%lx, but its unwind table has one "
			"function from 0x%lx to 0x%lx",
			e->extents.torn_piece.start,
			e->extents.torn_piece.start + e->extents.torn_piece.bytes, torn->start,
			torn->start + torn->bytes);
		return;
	}
	buf_printf(to,
		"%zu of %zu functions are where its unwind table has them: ", e->extents.n_agree,
		e->extents.n_compared);
	if (in->bytes)
		buf_printf(to, "%s does not fit 0x%lx to 0x%lx", e->wrong_function, in->start,
			in->start + in->bytes);
	else
		buf_printf(
			to, "%s is at 0x%lx, between two functions", e->wrong_function, in->start);
}

static void say_evidence(const struct evidence *e, struct buf *to)
{
	const struct anchor_result *r = &e->names;

	if (e->sections < 0) {
		buf_put_cstr(to, e->why.text);
	} else if (r->n_agree != r->n_common) {
		buf_printf(to, "%zu of %zu agree: %s is at 0x%lx in it, at 0x%lx in the text",
			r->n_agree, r->n_common, r->first_wrong, r->wrong_in_image,
			r->wrong_in_source);
	} else if (!r->n_common && e->sections <= 0) {
		buf_put_cstr(to, "0 of 0 agree: no name is in both");
	} else if (!extents_hold(e)) {
		say_wrong_extents(e, to);
	} else {
		if (r->n_common)
			buf_printf(to, "%zu of %zu agree", r->n_agree, r->n_common);
		else
			buf_put_cstr(to, "its code sections agree in address and size, "
					 "no exported names to compare");
		if (e->extents.n_compared)
			buf_printf(to, "; %zu of %zu functions are where its unwind table has them",
				e->extents.n_agree, e->extents.n_compared);
		else
			buf_put_cstr(to, "; no unwind table to compare with");
	}
}

bool merge_text_fits(struct merge *m, struct merge_image *image, size_t file_i,
	const struct anchor_name *names, struct merge_joined *out)
{
	const struct merge_file *f = m->files.v[file_i];
	struct evidence e = {0};
	struct buf text = {0};
	bool is_confirmed;

	*out = (struct merge_joined){
		.file_i = file_i, .is_pinned = mem_calloc(f->candidates.n + 1, sizeof(bool))};
	e.sections = compare_sections(m, image, f, &e.why);
	make_anchors(m, image);
	anchor_check(image->anchors.v, image->anchors.n, names, f->candidates.n, &e.names);
	compare_extents(m, image, f, names, &e, out->is_pinned);
	is_confirmed = e.names.n_common && e.extents.n_compared;
	if (!is_confirmed)
		memset(out->is_pinned, 0, f->candidates.n);
	say_evidence(&e, &text);
	out->verdict = mem_strdup(buf_text(&text));
	buf_printf(&text, "; %s",
		is_confirmed ? "others of the same extents could be in their place"
			     : "nothing more tells it from that of another build");
	out->weak_verdict = mem_strdup(buf_text(&text));
	buf_release(&text);
	return evidence_holds(&e);
}
