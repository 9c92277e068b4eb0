/* SPDX-License-Identifier: MIT */
/*
 * Linker maps and nm output: to which image does a text without identity belong? Which of the images
 * fit it, text_evidence.c says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/catalog/merge_internal.h"

static bool same_version(const struct image_identity *a, const struct image_identity *b)
{
	if (image_identity_has_build_id(a) && image_identity_has_build_id(b))
		return image_identity_same_build_id(a, b);
	return a->content_hash && a->content_hash == b->content_hash;
}

struct text_match {
	size_t image_i;
	struct merge_joined joined; /* handed on to the image when it fits */
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
			n ? m->images.v[v[0].image_i]->id.path : "", n ? v[0].joined.verdict : "");
	}
	for (size_t i = 0; rival == NO_IMAGE && i < n; i++)
		if (v[i].fits) {
			merge_file_decide(f, MERGE_USED, v[i].image_i, "%s of '%s': %s",
				source_kind_name(f->kind), m->images.v[v[i].image_i]->id.path,
				v[i].joined.verdict);
			vec_push(&m->images.v[v[i].image_i]->texts, v[i].joined);
			v[i].joined = (struct merge_joined){0};
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
	struct anchor_name *anchors = merge_text_anchors(f, &names);
	size_t n = 0, n_fit = 0;

	for (int pass = 0; pass < 2 && !n_fit; pass++)
		for (size_t i = 0; i < m->images.n; i++) {
			struct merge_image *image = m->images.v[i];

			if (image->id.kind != IMAGE_KIND_ELF || names_fit(f, image) != (pass == 0))
				continue;
			v[n].image_i = i;
			v[n].fits = merge_text_fits(m, image, file_i, anchors, &v[n].joined);
			n_fit += v[n++].fits;
		}
	join_text(m, file_i, v, n);
	for (size_t i = 0; i < n; i++)
		merge_joined_release(&v[i].joined);
	free(anchors);
	buf_release(&names);
	free(v);
}
