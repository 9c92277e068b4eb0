/* SPDX-License-Identifier: MIT */
/* Inputs: files, folders, the kernel; and what became of each. */
#include "symbols/catalog/merge_internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER_DEPTH_MAX 64

struct merge *merge_new(const struct merge_options *options)
{
	struct merge *m = mem_zalloc(sizeof(*m));

	m->options = *options;
	return m;
}

static void file_free(struct merge_file *f)
{
	jitdump_release(&f->jitdump);
	catalog_close(f->catalog);
	text_source_release(&f->text);
	vec_release(&f->candidates);
	if (f->has_elf)
		elf_file_release(&f->elf);
	image_identity_release(&f->id);
	file_map_release(&f->map);
	free(f->path);
	free(f->open_path);
	free(f->reason);
	free(f);
}

void merge_joined_release(struct merge_joined *j)
{
	free(j->verdict);
	free(j->is_pinned);
	free(j->weak_verdict);
}

static void image_free(struct merge_image *image)
{
	for (size_t i = 0; i < image->debug.n; i++)
		merge_joined_release(&image->debug.v[i]);
	for (size_t i = 0; i < image->texts.n; i++)
		merge_joined_release(&image->texts.v[i]);
	vec_release(&image->debug);
	vec_release(&image->texts);
	vec_release(&image->anchors);
	free(image->extents);
	for (size_t i = 0; i < image->demangled.n; i++)
		free(image->demangled.v[i].text);
	vec_release(&image->demangled);
	catalog_image_close(image->base);
	for (size_t i = 0; i < image->others.n; i++)
		catalog_image_close(image->others.v[i]);
	vec_release(&image->others);
	image_identity_release(&image->id);
	buf_release(&image->bytes);
	free(image);
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	/* Anchors of an image borrow from files and bases. */
	for (size_t i = 0; i < m->images.n; i++)
		image_free(m->images.v[i]);
	for (size_t i = 0; i < m->files.n; i++)
		file_free(m->files.v[i]);
	vec_release(&m->images);
	vec_release(&m->changed);
	vec_release(&m->files);
	intern_release(&m->paths);
	free(m);
}

void merge_progress(struct merge *m, const char *what, size_t done, size_t of)
{
	if (m->options.progress)
		m->options.progress(m->options.ctx, what, done, of);
}

void merge_file_decide(
	struct merge_file *f, enum merge_verdict verdict, size_t image_i, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	if (f->reason && f->verdict == MERGE_USED)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	free(f->reason);
	f->verdict = verdict;
	f->image_i = image_i;
	f->reason = mem_strdup(text);
}

/* NULL when the path was added before. */
static struct merge_file *add_file(struct merge *m, const char *path, bool was_named)
{
	size_t before = m->paths.n_items;
	struct merge_file *f;

	if (intern_text(&m->paths, path) < before)
		return NULL;
	f = mem_zalloc(sizeof(*f));
	f->path = mem_strdup(path);
	f->was_named = was_named;
	f->image_i = NO_IMAGE;
	vec_push(&m->files, f);
	return f;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Regular files only; a link to a file is left out, since what it points to is found by itself or
 * is not below the folder. */
static void add_folder(struct merge *m, const char *folder, int depth)
{
	struct dirent **entries;
	int n = depth < FOLDER_DEPTH_MAX ? scandir(folder, &entries, NULL, compare_names) : -1;

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		char *path = mem_printf("%s/%s", strcmp(folder, "/") ? folder : "", name);
		struct stat st;

		if (strcmp(name, ".") && strcmp(name, "..") && lstat(path, &st) == 0) {
			if (S_ISDIR(st.st_mode))
				add_folder(m, path, depth + 1);
			else if (S_ISREG(st.st_mode) && st.st_size)
				add_file(m, path, false);
		}
		free(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

int merge_add_path(struct merge *m, const char *path, struct err *err)
{
	char real[PATH_MAX];
	struct stat st;

	if (stat(path, &st) < 0 || !realpath(path, real))
		return err_sys(err, errno, "'%s'", path);
	if (S_ISDIR(st.st_mode)) {
		add_folder(m, real, 0);
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_FORMAT, "'%s': neither a file nor a folder", path);
	add_file(m, real, true);
	return 0;
}

int merge_add_kernel(struct merge *m, struct err *err)
{
	struct merge_file *f;

	if (stat("/proc/kallsyms", &(struct stat){0}) < 0)
		return err_sys(err, errno, "'/proc/kallsyms'");
	f = add_file(m, "/proc/kallsyms", true);
	if (f)
		f->is_live_kernel = true;
	return 0;
}

void merge_add_opened(struct merge *m, const struct merge_input *input)
{
	struct merge_file *f = add_file(m, input->path, false);
	struct file_map map = input->map;

	if (!f) {
		file_map_release(&map);
		return;
	}
	f->open_path = input->opened_as ? mem_strdup(input->opened_as) : NULL;
	f->map = map;
	f->is_open = true;
	f->has_stat = input->st != NULL;
	if (input->st)
		f->st = *input->st;
}

void merge_add_unreadable(struct merge *m, const char *path, const char *why)
{
	struct merge_file *f = add_file(m, path, false);

	if (f)
		merge_file_decide(f, MERGE_REFUSED, NO_IMAGE, "cannot be read: %s", why);
}

/* --- reading --- */

static void keep_candidate(void *ctx, const struct candidate *c)
{
	struct merge_file *f = ctx;

	vec_push(&f->candidates, *c);
}

/* The kinds of text; jitdumps, which are none, are read on their own. */
static const struct text_kind {
	enum symbol_source source;
	int (*read)(struct span text, const struct symbol_sink *sink, struct text_source *out,
		struct err *err);
} text_kinds[SOURCE_KIND_CATALOG] = {
	[SOURCE_KIND_LD_MAP] = {SYMBOL_SOURCE_LD_MAP, ld_map_read},
	[SOURCE_KIND_LLD_MAP] = {SYMBOL_SOURCE_LLD_MAP, lld_map_read},
	[SOURCE_KIND_NM] = {SYMBOL_SOURCE_NM, nm_text_read},
	[SOURCE_KIND_PERF_MAP] = {SYMBOL_SOURCE_PERF_MAP, perf_map_read},
	[SOURCE_KIND_KALLSYMS] = {SYMBOL_SOURCE_KALLSYMS, kallsyms_read},
	[SOURCE_KIND_JITDUMP] = {SYMBOL_SOURCE_JITDUMP, NULL},
};

enum symbol_source merge_text_source(enum source_kind kind)
{
	return text_kinds[kind].source;
}

static int read_text(struct merge_file *f, struct span bytes, struct err *err)
{
	const struct symbol_sink sink = {keep_candidate, f};

	if (f->kind == SOURCE_KIND_JITDUMP)
		return jitdump_init(&f->jitdump, bytes, err);
	return text_kinds[f->kind].read(bytes, &sink, &f->text, err);
}

static int read_elf(struct merge_file *f, struct span bytes, struct err *err)
{
	int rc = elf_file_init(&f->elf, bytes, err);

	if (rc < 0)
		return rc;
	f->has_elf = true;
	image_identity_init_elf(&f->id, &f->elf, f->path, f->has_stat ? &f->st : NULL,
		!elf_file_build_id(&f->elf).n);
	return 0;
}

static void read_file(struct merge_file *f)
{
	struct span bytes;
	struct err err = {0};
	int rc = 0;

	if (f->reason)
		return; /* cannot be read, by whoever tried */
	if (!f->is_open) {
		rc = file_map_open(&f->map, f->path, &err);
		f->has_stat = stat(f->path, &f->st) == 0;
	}
	if (rc < 0) {
		merge_file_decide(f, MERGE_REFUSED, NO_IMAGE, "cannot be read: %s", err.text);
		return;
	}
	bytes = f->map.bytes;
	f->kind = source_kind_of(bytes, f->path);
	if (f->is_live_kernel)
		f->kind = SOURCE_KIND_KALLSYMS;
	if (f->kind == SOURCE_KIND_UNKNOWN)
		merge_file_decide(f, MERGE_NOT_A_SOURCE, NO_IMAGE, "no kind of symbol source");
	else if (f->kind == SOURCE_KIND_ELF_OBJECT)
		merge_file_decide(f, MERGE_NOT_A_SOURCE, NO_IMAGE,
			"an object file has no addresses before it is linked");
	else if (f->kind == SOURCE_KIND_CATALOG && !f->was_named)
		/* It may be what an earlier merge of the folder has made. */
		merge_file_decide(f, MERGE_NOT_A_SOURCE, NO_IMAGE,
			"a merged symbol file; it is joined when it is named itself");
	else if (f->kind == SOURCE_KIND_CATALOG)
		rc = catalog_open(&f->catalog, f->path, &err);
	else if (f->kind == SOURCE_KIND_ELF_IMAGE || f->kind == SOURCE_KIND_ELF_DEBUG)
		rc = read_elf(f, bytes, &err);
	else
		rc = read_text(f, bytes, &err);
	if (rc < 0)
		merge_file_decide(f, MERGE_REFUSED, NO_IMAGE, "%s", err.text);
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(
		(*(struct merge_file *const *)a)->path, (*(struct merge_file *const *)b)->path);
}

int merge_run(struct merge *m, struct err *err)
{
	if (!m->files.n)
		return err_set(err, ERR_NOT_FOUND, "no input: the folders hold no files");
	/* In order of path, so that the result does not depend on the order of the arguments. */
	vec_sort(&m->files, compare_files);
	for (size_t i = 0; i < m->files.n; i++) {
		merge_progress(m, m->files.v[i]->path, i, m->files.n);
		read_file(m->files.v[i]);
	}
	merge_join(m);
	return merge_build(m, err);
}

size_t merge_n_outcomes(const struct merge *m)
{
	return m->files.n;
}

struct merge_outcome merge_get_outcome(const struct merge *m, size_t i)
{
	const struct merge_file *f = m->files.v[i];

	return (struct merge_outcome){.path = f->path,
		.kind = f->kind,
		.verdict = f->verdict,
		.reason = f->reason ? f->reason : "",
		.image_id = f->image_i == NO_IMAGE ? NULL : m->images.v[f->image_i]->catalog_id,
		.was_named = f->was_named};
}

size_t merge_n_images(const struct merge *m)
{
	return m->changed.n;
}

struct span merge_get_image(const struct merge *m, size_t i)
{
	return buf_span(&m->changed.v[i]->bytes);
}
