/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a merged symbol file: as they are, and again with all check sums put right, since a
 * change that a check sum catches says nothing about the code behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "symbols/catalog/catalog_file.h"

#define IMAGES_MAX 64 /* looked at; finding by id goes through all */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void look_at_image(const struct catalog *c, size_t i)
{
	struct catalog_entry e = catalog_get(c, i);
	struct catalog_image *image;
	struct span bytes;
	size_t first, n = catalog_find_base(c, e.base_name, &first);

	require(i >= first && i < first + n);
	require(catalog_find(c, e.id) <= i);
	require(catalog_find(c, e.path) <= i || !*e.path);
	if (catalog_image_bytes(c, i, &bytes, NULL) < 0)
		return;
	require(bytes.n == e.bytes && crc32c(0, bytes.p, bytes.n) == c->dir.rows.v[i].crc);
	if (catalog_open_image(c, i, &image, NULL) == 0) {
		require(strcmp(catalog_image_id(image), e.id) == 0);
		catalog_image_close(image);
	}
}

static void look_at(struct span bytes)
{
	const char *key;
	struct catalog *c;
	struct catalog_stats s;
	struct err err;

	if (catalog_open_bytes(&c, bytes, "fuzz", &err) < 0) {
		require(*err.text);
		return;
	}
	for (size_t i = 0; catalog_fact(c, i, &key); i++)
		require(catalog_find_fact(c, key) != NULL);
	for (size_t i = 0; i < catalog_n(c) && i < IMAGES_MAX; i++)
		look_at_image(c, i);
	for (size_t i = 1; i < catalog_n(c); i++)
		require(catalog_row_compare(&c->dir.rows.v[i - 1], &c->dir.rows.v[i]) < 0);
	s = catalog_stats(c);
	require(s.live_bytes + s.dead_bytes == bytes.n && s.n_images == catalog_n(c));
	require(s.n_images * 41 <= bytes.n); /* an image takes that many bytes of the directory */
	catalog_close(c);
}

/* --- right check sums --- */

static void put_u32(uint8_t *to, uint32_t v)
{
	memcpy(to, &v, 4);
}

static void repair_segment(uint8_t *p, size_t n, uint64_t offset, uint64_t bytes)
{
	if (offset > n || n - offset < CATALOG_SEGMENT_BYTES ||
		bytes > n - offset - CATALOG_SEGMENT_BYTES)
		return;
	put_u32(p + offset + 24, crc32c(0, p + offset + CATALOG_SEGMENT_BYTES, bytes));
	put_u32(p + offset + 60, crc32c(0, p + offset, 60));
}

static void repair_root(uint8_t *p, size_t n, size_t at)
{
	uint64_t dir_offset, dir_bytes;

	if (n < at + CATALOG_ROOT_BYTES || p[at] != 0x89)
		return;
	memcpy(&dir_offset, p + at + 24, 8);
	memcpy(&dir_bytes, p + at + 32, 8);
	repair_segment(p, n, dir_offset, dir_bytes);
	put_u32(p + at + 508, crc32c(0, p + at, 508));
}

/* The images of the directory that is in use, and then that directory anew. */
static void repair_images(uint8_t *p, size_t n)
{
	struct catalog *c;

	if (catalog_open_bytes(&c, (struct span){p, n}, "fuzz", NULL) < 0)
		return;
	for (size_t i = 0; i < c->dir.rows.n && i < IMAGES_MAX; i++) {
		const struct catalog_row *row = &c->dir.rows.v[i];
		uint8_t *crc =
			p + ((const uint8_t *)row->entry.path - p) - row->entry.build_id.n - 24;

		repair_segment(p, n, row->offset, row->entry.bytes);
		put_u32(crc, crc32c(0, p + row->offset + CATALOG_SEGMENT_BYTES, row->entry.bytes));
	}
	repair_segment(p, n, c->root.dir_offset, c->root.dir_bytes);
	catalog_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *copy = mem_dup(data, n);

	look_at((struct span){data, n});
	repair_root(copy, n, 0);
	repair_root(copy, n, CATALOG_BLOCK_BYTES);
	look_at((struct span){copy, n});
	repair_images(copy, n);
	look_at((struct span){copy, n});
	free(copy);
	return 0;
}
