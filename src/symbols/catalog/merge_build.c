/* SPDX-License-Identifier: MIT */
/* The bytes of the images that merge_join.c put together. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "symbols/catalog/image_make.h"
#include "symbols/catalog/merge_internal.h"
#include "symbols/debug_file.h"
#include "symbols/source/debuginfod.h"

/* --- run-time code --- */

/* The lines of a method become rows of a unit, so that they are stored like all others. */
static void add_jit_rows(
	struct dwarf_unit_map *unit, struct intern *files, const struct jit_code *c)
{
	for (size_t i = 0; i < c->n_lines; i++) {
		const struct jit_line *l = &c->lines[i];
		uint32_t file = intern_text(files, l->file) + 1;

		if (l->addr < c->addr || l->addr - c->addr >= c->bytes)
			continue;
		if (file == unit->files.n)
			vec_push(&unit->files,
				((struct dwarf_text){l->file, (uint32_t)strlen(l->file)}));
		vec_push(&unit->rows,
			((struct dwarf_row){.addr = l->addr, .file = file, .line = l->line}));
	}
	if (c->n_lines)
		vec_push(&unit->rows,
			((struct dwarf_row){.addr = c->addr + c->bytes, .is_hole = true}));
}

static int compare_codes(const void *a, const void *b)
{
	const struct jit_code *x = *(const struct jit_code *const *)a;
	const struct jit_code *y = *(const struct jit_code *const *)b;

	return ORDER(x->addr, y->addr);
}

static int compare_rows(const void *a, const void *b)
{
	const struct dwarf_row *x = a, *y = b;

	/* a method that begins where another ends */
	return ORDER(x->addr, y->addr) ?: ORDER(y->is_hole, x->is_hole);
}

/* Rows by address, the last of equal ones, a hole at the end. */
static void tidy_rows(struct dwarf_unit_map *unit)
{
	size_t kept = 0;

	vec_sort(&unit->rows, compare_rows);
	for (size_t i = 0; i < unit->rows.n; i++) {
		if (kept && unit->rows.v[kept - 1].addr == unit->rows.v[i].addr)
			kept--;
		unit->rows.v[kept++] = unit->rows.v[i];
	}
	unit->rows.n = kept;
}

/* What the dump says of the end of the run: code that was moved or replaced is left out. */
static void add_jitdump(struct image_builder *b, const struct jitdump *j)
{
	VEC(const struct jit_code *) last = {0};
	struct dwarf_unit_map unit = {0};
	struct intern files = {0};

	for (size_t i = 0; i < j->codes.n; i++)
		if (j->codes.v[i].to_ns == UINT64_MAX)
			vec_push(&last, &j->codes.v[i]);
	vec_sort(&last, compare_codes);
	vec_push(&unit.files, ((struct dwarf_text){"", 0}));
	vec_push(&unit.names, ((struct dwarf_text){"", 0}));
	vec_push(&unit.sites, ((struct dwarf_site){0}));
	for (size_t i = 0; i < last.n; i++) {
		image_builder_symbol(b, &(struct candidate){.name = last.v[i]->name,
						.name_bytes = (uint32_t)strlen(last.v[i]->name),
						.source = SYMBOL_SOURCE_JITDUMP,
						.start = last.v[i]->addr,
						.size = last.v[i]->bytes,
						.room = last.v[i]->bytes});
		add_jit_rows(&unit, &files, last.v[i]);
	}
	if (unit.rows.n) {
		tidy_rows(&unit);
		image_builder_unit(b, &unit);
	}
	dwarf_unit_map_release(&unit);
	intern_release(&files);
	vec_release(&last);
}

/* --- sources --- */

static bool base_has(struct catalog_image *base, enum symbol_source kind, const char *path)
{
	for (size_t i = 0; base && i < catalog_image_n_sources(base); i++) {
		struct catalog_source s = catalog_image_source(base, i);

		if (s.kind == kind && !strcmp(s.path, path))
			return true;
	}
	return false;
}

static void begin_text_source(struct image_builder *b, const struct merge_file *f,
	const struct merge_joined *joined, enum match_rung rung)
{
	bool is_weak = rung == MATCH_SEGMENTS;

	image_builder_source(b, &(struct catalog_source){.kind = merge_text_source(f->kind),
					.path = f->path,
					.identity = is_weak ? "not pinned" : "",
					.verdict = is_weak ? joined->weak_verdict : joined->verdict,
					.rung = rung});
}

/* The pinned names of a text and the others do not stand on one rung: each is a source. */
static void add_text_names(const struct merge_image *image, const struct merge_file *f,
	const struct merge_joined *joined, enum match_rung rung, struct image_builder *b)
{
	bool has_begun = !joined->is_pinned;

	if (has_begun)
		begin_text_source(b, f, joined, rung);
	for (size_t k = 0; k < f->candidates.n; k++) {
		struct candidate c = f->candidates.v[k];
		const char *linkage;

		if (joined->is_pinned && joined->is_pinned[k] != (rung == MATCH_CHECKSUM))
			continue;
		if (!has_begun)
			begin_text_source(b, f, joined, rung);
		has_begun = true;
		linkage = merge_image_linkage_name(image, c.name, c.name_bytes, c.start);
		c.source = (uint8_t)merge_text_source(f->kind);
		if (linkage) {
			c.name = linkage;
			c.name_bytes = (uint32_t)strlen(linkage);
		}
		image_builder_symbol(b, &c);
	}
}

static bool add_texts(struct merge *m, struct merge_image *image, struct image_builder *b)
{
	bool any = false;

	for (size_t i = 0; i < image->texts.n; i++) {
		struct merge_file *f = m->files.v[image->texts.v[i].file_i];
		enum symbol_source kind = merge_text_source(f->kind);

		if (base_has(image->base, kind, f->path))
			continue;
		any = true;
		if (image->id.kind == IMAGE_KIND_JIT)
			image_builder_set_later_wins(b);
		if (!image->texts.v[i].is_pinned) {
			add_text_names(image, f, &image->texts.v[i], MATCH_BUILD_ID, b);
		} else {
			add_text_names(image, f, &image->texts.v[i], MATCH_CHECKSUM, b);
			add_text_names(image, f, &image->texts.v[i], MATCH_SEGMENTS, b);
		}
		if (f->kind == SOURCE_KIND_JITDUMP)
			add_jitdump(b, &f->jitdump);
	}
	return any;
}

struct debuginfod_progress {
	struct merge *m;
	const char *path;
};

static int show_debuginfod(void *ctx, long have, long of)
{
	struct debuginfod_progress *p = ctx;

	merge_progress(p->m, p->path, have > 0 ? (size_t)have : 0, of > 0 ? (size_t)of : 0);
	return 0;
}

/* What a server sends is believed no more than any other file. */
static int take_from_server(
	struct debug_file *d, const struct elf_file *elf, char *path, struct err *err)
{
	struct span wanted = elf_file_build_id(elf), got;
	int rc = debug_file_open_found(d, elf, path, err);

	if (rc < 0)
		return rc;
	got = elf_file_build_id(&d->elf);
	if (!span_equal(got, wanted))
		return err_set(
			err, ERR_FORMAT, "'%s': has another build-id than was asked for", path);
	d->verdict = "build-id equal, from debuginfod";
	return 0;
}

/* Installed debug files first, then the servers that the user named. */
static bool search_debug(
	struct merge *m, const struct merge_file *f, struct debug_file *d, struct image_builder *b)
{
	struct debuginfod_progress progress = {m, f->path};
	struct debuginfod_options options = {.progress = show_debuginfod, .ctx = &progress};
	struct span id = elf_file_build_id(&f->elf);
	struct err err = {0};
	char *path;

	if (debug_file_open(d, &f->elf, f->open_path ? f->open_path : f->path, &err) == 0)
		return true;
	if (err.code == ERR_FORMAT)
		image_builder_note(b, "%s", err.text);
	if (d->path || !id.n || !getenv("DEBUGINFOD_URLS"))
		return false;
	if (debuginfod_find(DEBUGINFOD_DEBUG_FILE, id, &options, &path, &err) == 0 &&
		take_from_server(d, &f->elf, path, &err) == 0)
		return true;
	image_builder_note(b, "%s", err.text);
	return false;
}

static void show_units(void *ctx, size_t done, size_t of)
{
	struct debuginfod_progress *p = ctx;

	merge_progress(p->m, p->path, done, of);
}

/* The file itself with one debug file: the one that was given, else one that is found. */
static void add_file_sources(struct merge *m, struct merge_image *image, struct image_builder *b)
{
	struct merge_file *f = m->files.v[image->file_i];
	struct debuginfod_progress progress = {m, f->path};
	struct image_recipe recipe = {.elf = &f->elf,
		.path = f->path,
		.columns = m->options.columns,
		.n_threads = m->options.n_threads,
		.progress = show_units,
		.ctx = &progress};
	struct debug_file found = {0};
	struct debug_source debug;

	if (image->debug.n) {
		const struct merge_file *d = m->files.v[image->debug.v[0].file_i];

		debug = (struct debug_source){&d->elf, d->path, image->debug.v[0].verdict};
		recipe.debug = &debug;
	} else if (f->kind == SOURCE_KIND_ELF_IMAGE && !elf_file_has_dwarf(&f->elf) &&
		   !m->options.no_search && search_debug(m, f, &found, b)) {
		debug = (struct debug_source){&found.elf, found.path, found.verdict};
		recipe.debug = &debug;
	}
	image_make_add(b, &recipe);
	debug_file_close(&found);
}

static bool add_debug_to_base(struct merge *m, struct merge_image *image, struct image_builder *b)
{
	bool any = false;

	for (size_t i = 0; i < image->debug.n; i++) {
		const struct merge_file *d = m->files.v[image->debug.v[i].file_i];
		struct debug_source source = {&d->elf, d->path, image->debug.v[i].verdict};

		if (base_has(image->base, SYMBOL_SOURCE_DWARF, d->path) ||
			base_has(image->base, SYMBOL_SOURCE_DEBUG_FILE, d->path))
			continue;
		image_make_add(b, &(struct image_recipe){.debug = &source,
					  .columns = m->options.columns,
					  .n_threads = m->options.n_threads});
		any = true;
	}
	return any;
}

/* What other catalogs have of the same image; true when that is more than the base has. */
static bool add_others(struct merge_image *image, struct image_builder *b)
{
	bool any = false;

	for (size_t i = 0; i < image->others.n; i++) {
		struct catalog_image *other = image->others.v[i];

		for (size_t k = 0; k < catalog_image_n_sources(other); k++) {
			struct catalog_source s = catalog_image_source(other, k);

			any |= !base_has(image->base, s.kind, s.path);
		}
		image_builder_image(b, other);
	}
	return any;
}

/* True when there is something to write. */
static bool add_sources(struct merge *m, struct merge_image *image, struct image_builder *b)
{
	bool any = false;

	if (merge_image_base(m, image)) {
		image_builder_image(b, image->base);
		any = add_debug_to_base(m, image, b) || image->is_joined;
	} else if (image->file_i != NO_IMAGE) {
		add_file_sources(m, image, b);
		any = true;
	}
	any |= add_others(image, b);
	return add_texts(m, image, b) || any;
}

static void set_known(struct merge *m, struct merge_image *image)
{
	for (size_t i = 0; i < m->files.n; i++)
		if (m->files.v[i]->image_i != NO_IMAGE && !m->files.v[i]->catalog &&
			m->images.v[m->files.v[i]->image_i] == image)
			m->files.v[i]->verdict = MERGE_KNOWN;
}

static int build_image(struct merge *m, struct merge_image *image, struct err *err)
{
	struct image_builder *b;
	struct catalog_image *made;
	int rc = 0;

	if (image->file_i == NO_IMAGE && !image->debug.n && !image->texts.n && !image->is_joined &&
		!image->others.n)
		return 0; /* of the base, and nothing joined it */
	b = image_builder_new(&image->id);
	if (!add_sources(m, image, b))
		set_known(m, image);
	else
		rc = image_builder_finish(b, m->options.n_threads, &image->bytes, err);
	image_builder_free(b);
	if (rc < 0 || !image->bytes.n)
		return rc;
	rc = catalog_image_open(&made, buf_span(&image->bytes), err);
	if (rc < 0)
		return rc;
	memcpy(image->catalog_id, catalog_image_id(made), sizeof(image->catalog_id));
	catalog_image_close(made);
	vec_push(&m->changed, image);
	return 0;
}

static int compare_images(const void *a, const void *b)
{
	const struct merge_image *x = *(struct merge_image *const *)a;
	const struct merge_image *y = *(struct merge_image *const *)b;

	return strcmp(x->id.path ?: "", y->id.path ?: "") ?: strcmp(x->catalog_id, y->catalog_id);
}

/* An image that cannot be made refuses its file; the others go on. */
static void refuse_image(struct merge *m, struct merge_image *image, const struct err *err)
{
	for (size_t i = 0; i < m->files.n; i++) {
		struct merge_file *f = m->files.v[i];

		/* Which catalog it is of is not kept: all that were given are told of. */
		if (!(f->catalog && (image->is_joined || image->others.n)) &&
			(f->image_i == NO_IMAGE || m->images.v[f->image_i] != image))
			continue;
		f->verdict = MERGE_REFUSED;
		f->image_i = NO_IMAGE;
		free(f->reason);
		f->reason = mem_strdup(err->text);
	}
}

int merge_build(struct merge *m, struct err *err)
{
	for (size_t i = 0; i < m->images.n; i++) {
		struct merge_image *image = m->images.v[i];

		merge_progress(m, image->id.path ? image->id.path : "", i, m->images.n);
		if (build_image(m, image, err) < 0)
			refuse_image(m, image, err);
	}
	vec_sort(&m->changed, compare_images);
	return 0;
}
