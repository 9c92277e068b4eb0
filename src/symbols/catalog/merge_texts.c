/* SPDX-License-Identifier: MIT */
/*
 * Linker maps and nm output: to which image does a text without identity belong? Exported names
 * that both have must sit at equal addresses, and the code sections of a map must be those of the
 * image.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "symbols/catalog/merge_internal.h"
#include "symbols/elf_tables.h"

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
static struct anchor_name *anchors_of_text(const struct merge_file *f, struct buf *names)
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

/* Compares the map's executable sections with the image's: 1 when .text is equal in both, 0 when
 * nothing can be compared, -1 when one of them cannot be the same. */
static int compare_sections(
	struct merge *m, struct merge_image *image, const struct merge_file *f, struct err *why)
{
	const struct elf_file *elf =
		image->file_i != NO_IMAGE ? &m->files.v[image->file_i]->elf : NULL;
	int found = 0;

	for (size_t i = 0; elf && i < f->text.sections.n; i++) {
		const struct image_segment *t = &f->text.sections.v[i];
		const struct elf_section *s = elf_file_find_section(elf, t->name);

		if (!s || !(s->flags & SHF_EXECINSTR))
			continue;
		if (s->addr.v != t->addr || s->size != t->mem_bytes) {
			err_set(why, ERR_FORMAT,
				"%s is 0x%lx bytes at 0x%lx in the map, 0x%lx at 0x%lx in it",
				t->name, t->mem_bytes, t->addr, s->size, s->addr.v);
			return -1;
		}
		if (!strcmp(t->name, ".text"))
			found = 1;
	}
	return found;
}

/* Does the text belong to the image? `verdict` gets the phrase either way. */
static bool text_fits(struct merge *m, struct merge_image *image, struct merge_file *f,
	const struct anchor_name *names, char *verdict, size_t verdict_bytes)
{
	struct anchor_result r = {0};
	struct err why = {0};
	int sections = compare_sections(m, image, f, &why);

	make_anchors(m, image);
	anchor_check(image->anchors.v, image->anchors.n, names, f->candidates.n, &r);
	if (sections < 0)
		snprintf(verdict, verdict_bytes, "%s", why.text);
	else if (r.n_common && r.n_agree == r.n_common)
		snprintf(verdict, verdict_bytes, "%zu of %zu agree", r.n_agree, r.n_common);
	else if (r.n_common)
		snprintf(verdict, verdict_bytes,
			"%zu of %zu agree: %s is at 0x%lx in it, at 0x%lx in the text", r.n_agree,
			r.n_common, r.first_wrong, r.wrong_in_image, r.wrong_in_source);
	else if (sections > 0)
		snprintf(verdict, verdict_bytes,
			"its code sections agree in address and size; no exported names to compare");
	else
		snprintf(verdict, verdict_bytes, "0 of 0 agree: no name is in both");
	return sections >= 0 && r.n_agree == r.n_common && (r.n_common || sections > 0);
}

static bool same_version(const struct image_identity *a, const struct image_identity *b)
{
	if (image_identity_has_build_id(a) && image_identity_has_build_id(b))
		return image_identity_same_build_id(a, b);
	return a->content_hash && a->content_hash == b->content_hash;
}

struct text_match {
	size_t image_i;
	char verdict[300];
	bool fits;
};

/* The first image of another version than the first that fits; NO_IMAGE when all are one version.
 */
static size_t find_rival(struct merge *m, const struct text_match *v, size_t n)
{
	size_t first = NO_IMAGE;

	for (size_t i = 0; i < n; i++) {
		if (!v[i].fits)
			continue;
		if (first == NO_IMAGE)
			first = v[i].image_i;
		else if (!same_version(&m->images.v[first]->id, &m->images.v[v[i].image_i]->id))
			return v[i].image_i;
	}
	return NO_IMAGE;
}

/* Where several versions fit, those beside the text have it. */
static void prefer_same_folder(
	struct merge *m, struct merge_file *f, struct text_match *v, size_t n)
{
	size_t folder_bytes = (size_t)(path_base_name(f->path) - f->path);
	bool any = false;

	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++) {
			const char *path = m->images.v[v[i].image_i]->id.path;
			bool beside = path &&
				      (size_t)(path_base_name(path) - path) == folder_bytes &&
				      !strncmp(path, f->path, folder_bytes);

			if (pass == 0)
				any |= v[i].fits && beside;
			else if (any && !beside)
				v[i].fits = false;
		}
}

static size_t first_fitting(const struct text_match *v, size_t n)
{
	size_t i = 0;

	while (i < n && !v[i].fits)
		i++;
	return i;
}

static void join_text(struct merge *m, size_t file_i, struct text_match *v, size_t n)
{
	struct merge_file *f = m->files.v[file_i];
	size_t rival = find_rival(m, v, n), first;

	if (rival != NO_IMAGE) {
		prefer_same_folder(m, f, v, n);
		rival = find_rival(m, v, n);
	}
	first = first_fitting(v, n);
	if (rival != NO_IMAGE) {
		struct buf a = {0}, b = {0};

		merge_file_decide(f, MERGE_REFUSED, NO_IMAGE,
			"ambiguous: fits '%s' (%s) as well as '%s' (%s)",
			m->images.v[v[first].image_i]->id.path,
			image_identity_text(&m->images.v[v[first].image_i]->id, &a),
			m->images.v[rival]->id.path,
			image_identity_text(&m->images.v[rival]->id, &b));
		buf_release(&a);
		buf_release(&b);
	} else if (first == n) {
		merge_file_decide(f, MERGE_REFUSED, NO_IMAGE,
			n ? "belongs to no image here: '%s': %s"
			  : "no image is here that it could belong to",
			n ? m->images.v[v[0].image_i]->id.path : "", n ? v[0].verdict : "");
	}
	for (size_t i = 0; rival == NO_IMAGE && i < n; i++)
		if (v[i].fits) {
			vec_push(&m->images.v[v[i].image_i]->texts,
				((struct merge_joined){file_i, mem_strdup(v[i].verdict)}));
			merge_file_decide(f, MERGE_USED, v[i].image_i, "%s of '%s': %s",
				source_kind_name(f->kind), m->images.v[v[i].image_i]->id.path,
				v[i].verdict);
		}
}

static bool names_fit(const struct merge_file *f, const struct merge_image *image)
{
	struct buf a = {0}, b = {0};
	bool same;

	image_base_name(image->id.path ? image->id.path : "", &a);
	same = !strcmp(buf_text(&a), image_base_name(f->path, &b)) ||
	       (f->text.output[0] && !strcmp(buf_text(&a), image_base_name(f->text.output, &b)));
	buf_release(&a);
	buf_release(&b);
	return same;
}

/* Images of the text's name are asked first; when none of them fits, all others. */
void merge_place_text(struct merge *m, size_t file_i)
{
	struct merge_file *f = m->files.v[file_i];
	struct text_match *v = mem_calloc(m->images.n + 1, sizeof(*v));
	struct buf names = {0};
	struct anchor_name *anchors = anchors_of_text(f, &names);
	size_t n = 0, n_fit = 0;

	for (int pass = 0; pass < 2 && !n_fit; pass++)
		for (size_t i = 0; i < m->images.n; i++) {
			struct merge_image *image = m->images.v[i];

			if (image->id.kind != IMAGE_KIND_ELF || names_fit(f, image) != (pass == 0))
				continue;
			v[n].image_i = i;
			v[n].fits =
				text_fits(m, image, f, anchors, v[n].verdict, sizeof(v[n].verdict));
			n_fit += v[n++].fits;
		}
	join_text(m, file_i, v, n);
	free(anchors);
	buf_release(&names);
	free(v);
}
