/* SPDX-License-Identifier: MIT */
/* Which inputs belong to one version of one image. */
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "symbols/catalog/merge_internal.h"
#include "symbols/elf_tables.h"

static struct merge_image *add_image(
	struct merge *m, const struct image_identity *id, size_t file_i, size_t base_i)
{
	struct merge_image *image = mem_zalloc(sizeof(*image));

	image_identity_copy(&image->id, id);
	image->file_i = file_i;
	image->base_i = base_i;
	vec_push(&m->images, image);
	return image;
}

struct catalog_image *merge_image_base(struct merge *m, struct merge_image *image)
{
	if (!image->base && image->base_i != NO_IMAGE)
		catalog_open_image(m->options.base, image->base_i, &image->base, NULL);
	return image->base;
}

/* --- images --- */

static void add_elf_images(struct merge *m)
{
	for (size_t i = 0; i < m->files.n; i++) {
		struct merge_file *f = m->files.v[i];

		if (f->kind != SOURCE_KIND_ELF_IMAGE || !f->has_elf)
			continue;
		add_image(m, &f->id, i, NO_IMAGE);
		merge_file_decide(f, MERGE_USED, m->images.n - 1, "is an image");
	}
}

/* An image that is named again under the same path and identity is the one of the base. */
static struct merge_image *find_same(struct merge *m, const struct image_identity *id)
{
	for (size_t i = 0; i < m->images.n; i++) {
		struct merge_image *image = m->images.v[i];
		const struct image_identity *other = &image->id;

		if (strcmp(other->path ? other->path : "", id->path ? id->path : ""))
			continue;
		if (image_identity_has_build_id(id)
				? image_identity_same_build_id(other, id)
				: id->content_hash && other->content_hash == id->content_hash)
			return image;
	}
	return NULL;
}

static void add_base_images(struct merge *m)
{
	for (size_t i = 0; m->options.base && i < catalog_n(m->options.base); i++) {
		struct catalog_image *base;
		struct merge_image *same;

		if (catalog_open_image(m->options.base, i, &base, NULL) < 0)
			continue;
		same = find_same(m, catalog_image_identity(base));
		if (same)
			same->base_i = i;
		else
			same = add_image(m, catalog_image_identity(base), NO_IMAGE, i);
		same->base = base;
		memcpy(same->catalog_id, catalog_image_id(base), sizeof(same->catalog_id));
	}
}

/* The same image in two catalogs has the same id; one that is made of a file here has none yet. */
static struct merge_image *find_joined(struct merge *m, struct catalog_image *image)
{
	for (size_t i = 0; i < m->images.n; i++)
		if (!strcmp(m->images.v[i]->catalog_id, catalog_image_id(image)))
			return m->images.v[i];
	return find_same(m, catalog_image_identity(image));
}

static size_t index_of(const struct merge *m, const struct merge_image *image)
{
	size_t i = 0;

	while (m->images.v[i] != image)
		i++;
	return i;
}

/* Equal in id, but not in content: a kernel that was started at another address, a file that was
 * rewritten after linking. A catalog has room for one of them. */
static bool is_in_conflict(const struct merge_image *there, const struct catalog_image *image)
{
	uint64_t a = there->id.content_hash, b = catalog_image_identity(image)->content_hash;

	return a && b && a != b;
}

/* True unless there is no room for it. Takes over the image. */
static bool join_image(struct merge *m, struct catalog_image *image, size_t *image_i)
{
	struct merge_image *same = find_joined(m, image);

	if (same && is_in_conflict(same, image)) {
		catalog_image_close(image);
		return false;
	}
	if (same) {
		vec_push(&same->others, image);
	} else {
		same = add_image(m, catalog_image_identity(image), NO_IMAGE, NO_IMAGE);
		same->base = image;
		same->is_joined = true;
		memcpy(same->catalog_id, catalog_image_id(image), sizeof(same->catalog_id));
	}
	*image_i = index_of(m, same);
	return true;
}

static void join_catalog(struct merge *m, struct merge_file *f)
{
	size_t n = catalog_n(f->catalog), image_i = NO_IMAGE;
	struct err err = {0};

	for (size_t i = 0; i < n; i++) {
		struct catalog_image *image;

		if (catalog_open_image(f->catalog, i, &image, &err) == 0 &&
			!join_image(m, image, &image_i))
			err_set(&err, ERR_FORMAT,
				"'%s' is here already under the same id, with other content",
				catalog_get(f->catalog, i).path);
	}
	if (err.code)
		merge_file_decide(
			f, MERGE_REFUSED, image_i, "not all of its %zu images: %s", n, err.text);
	else
		merge_file_decide(f, MERGE_USED, image_i, "its %zu images", n);
}

/* --- debug files --- */

static void join_debug(struct merge *m, size_t file_i, size_t image_i, char *verdict)
{
	vec_push(&m->images.v[image_i]->debug,
		((struct merge_joined){.file_i = file_i, .verdict = verdict}));
	merge_file_decide(m->files.v[file_i], MERGE_USED, image_i, "debug file of '%s': %s",
		m->images.v[image_i]->id.path, verdict);
}

/* True when the debuglink of an image gives this file's CRC. */
static bool debuglink_fits(const struct merge_image *image, struct merge_file *f)
{
	if (!image->id.debuglink_crc)
		return false;
	if (!f->id.file_crc)
		f->id.file_crc = (uint32_t)crc32_z(0, f->map.bytes.p, f->map.bytes.n);
	return image->id.debuglink_crc == f->id.file_crc;
}

/* The base's image of a debug file that was kept alone before. */
static size_t find_alone(struct merge *m, const struct merge_file *f)
{
	for (size_t i = 0; i < m->images.n; i++) {
		const struct image_identity *id = &m->images.v[i]->id;

		if (m->images.v[i]->base_i != NO_IMAGE && id->file_crc &&
			id->file_crc == f->id.file_crc && id->path && !strcmp(id->path, f->path))
			return i;
	}
	return NO_IMAGE;
}

/* The image that a person would think it belongs to, for the sentence. */
static const struct merge_image *find_namesake(struct merge *m, const struct merge_file *f)
{
	struct buf a = {0}, b = {0};
	const struct merge_image *found = NULL;

	image_base_name(f->path, &a);
	for (size_t i = 0; i < m->images.n && !found; i++)
		if (m->images.v[i]->id.path && m->images.v[i]->file_i != NO_IMAGE &&
			!strcmp(buf_text(&a), image_base_name(m->images.v[i]->id.path, &b)))
			found = m->images.v[i];
	buf_release(&a);
	buf_release(&b);
	return found;
}

static void keep_alone(struct merge *m, size_t file_i)
{
	struct merge_file *f = m->files.v[file_i];
	const struct merge_image *namesake = find_namesake(m, f);
	struct buf own = {0}, other = {0};
	size_t alone = find_alone(m, f);

	if (alone != NO_IMAGE) {
		merge_file_decide(f, MERGE_KNOWN, alone, "is an image of its own already");
		return;
	}

	image_identity_text(&f->id, &own);
	if (namesake)
		image_identity_text(&namesake->id, &other);
	add_image(m, &f->id, file_i, NO_IMAGE);
	if (namesake)
		merge_file_decide(f, MERGE_USED, m->images.n - 1,
			"does not belong to '%s': %s here, %s there; kept as an image of its own",
			namesake->id.path, buf_text(&own), buf_text(&other));
	else
		merge_file_decide(f, MERGE_USED, m->images.n - 1,
			"no image here has its %s; kept as an image of its own", buf_text(&own));
	buf_release(&own);
	buf_release(&other);
}

static void place_debug_file(struct merge *m, size_t file_i)
{
	struct merge_file *f = m->files.v[file_i];
	size_t n_images = m->images.n;
	bool joined = false;

	for (size_t i = 0; i < n_images; i++) {
		struct merge_image *image = m->images.v[i];

		if (image->id.bits != f->id.bits || image->id.machine != f->id.machine)
			continue;
		if (image_identity_has_build_id(&f->id) &&
			image_identity_same_build_id(&image->id, &f->id))
			join_debug(m, file_i, i, mem_strdup("build-id equal"));
		else if (!(image->id.build_id_n && f->id.build_id_n) && debuglink_fits(image, f))
			join_debug(m, file_i, i,
				mem_printf("debuglink CRC 0x%08x equal", f->id.file_crc));
		else
			continue;
		joined = true;
	}
	if (!joined)
		keep_alone(m, file_i);
}

/* --- run-time code and the kernel --- */

static uint32_t pid_of_name(const char *path)
{
	unsigned pid = 0;

	if (sscanf(path_base_name(path), "perf-%u.map", &pid) != 1)
		sscanf(path_base_name(path), "jit-%u.dump", &pid);
	return pid;
}

static struct merge_image *find_jit(struct merge *m, uint32_t pid, size_t *image_i)
{
	for (size_t i = 0; i < m->images.n; i++)
		if (pid && m->images.v[i]->id.kind == IMAGE_KIND_JIT &&
			m->images.v[i]->id.pid == pid) {
			*image_i = i;
			return m->images.v[i];
		}
	return NULL;
}

static void place_jit(struct merge *m, size_t file_i)
{
	struct merge_file *f = m->files.v[file_i];
	uint32_t pid = f->kind == SOURCE_KIND_JITDUMP ? f->jitdump.pid : pid_of_name(f->path);
	size_t image_i;
	struct merge_image *image = find_jit(m, pid, &image_i);

	if (!image) {
		struct image_identity id = {.kind = IMAGE_KIND_JIT, .path = f->path, .pid = pid};

		image = add_image(m, &id, NO_IMAGE, NO_IMAGE);
		image_i = m->images.n - 1;
	}
	vec_push(&image->texts, ((struct merge_joined){.file_i = file_i,
					.verdict = mem_printf("code of process %u", pid)}));
	merge_file_decide(f, MERGE_USED, image_i, "run-time code of process %u", pid);
}

static void place_kernel(struct merge *m, size_t file_i)
{
	struct merge_file *f = m->files.v[file_i];
	struct image_identity other = {.kind = IMAGE_KIND_KERNEL, .path = f->path, .bits = 64};
	struct image_identity running;
	struct merge_image *image;

	kernel_identity(&running);
	image = add_image(m, f->is_live_kernel ? &running : &other, NO_IMAGE, NO_IMAGE);
	image_identity_release(&running);
	vec_push(&image->texts,
		((struct merge_joined){.file_i = file_i,
			.verdict = mem_strdup(f->is_live_kernel ? "the running kernel"
								: "a list of kernel symbols")}));
	merge_file_decide(f, MERGE_USED, m->images.n - 1, "symbols of the kernel");
}

void merge_join(struct merge *m)
{
	size_t n = m->files.n;

	add_elf_images(m);
	add_base_images(m);
	for (size_t i = 0; i < n; i++)
		if (m->files.v[i]->catalog)
			join_catalog(m, m->files.v[i]);
	for (size_t i = 0; i < n; i++)
		if (m->files.v[i]->kind == SOURCE_KIND_ELF_DEBUG && m->files.v[i]->has_elf)
			place_debug_file(m, i);
	for (size_t i = 0; i < n; i++) {
		struct merge_file *f = m->files.v[i];

		if (f->reason)
			continue;
		if (f->kind == SOURCE_KIND_LD_MAP || f->kind == SOURCE_KIND_LLD_MAP ||
			f->kind == SOURCE_KIND_NM)
			merge_place_text(m, i);
		else if (f->kind == SOURCE_KIND_PERF_MAP || f->kind == SOURCE_KIND_JITDUMP)
			place_jit(m, i);
		else if (f->kind == SOURCE_KIND_KALLSYMS)
			place_kernel(m, i);
	}
}
