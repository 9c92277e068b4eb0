/* SPDX-License-Identifier: MIT */
/*
 * Catalogs of made-up images for tests of the container: item number k has bytes that follow from k
 * and its version, so that any state can be checked without keeping it.
 */
#ifndef WEIR_TESTS_CATALOG_MAKER_H
#define WEIR_TESTS_CATALOG_MAKER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "symbols/catalog/catalog_file.h"
#include "symbols/catalog/catalog_image_build.h"

static inline uint64_t made_mix(uint64_t v)
{
	v = (v ^ v >> 31) * 0x9e3779b97f4a7c15u;
	v = (v ^ v >> 29) * 0xbf58476d1ce4e5b9u;
	return v ^ v >> 32;
}

static inline size_t made_n_bytes(uint32_t k, uint32_t version)
{
	return k % 7 == 3 ? 0 : made_mix(k * 31u + version) % 5000;
}

static inline uint8_t made_byte(uint32_t k, uint32_t version, size_t i)
{
	return (uint8_t)made_mix((uint64_t)k << 40 ^ (uint64_t)version << 32 ^ i);
}

static inline bool made_bytes_are(struct span bytes, uint32_t k, uint32_t version)
{
	if (bytes.n != made_n_bytes(k, version))
		return false;
	for (size_t i = 0; i < bytes.n; i++)
		if (bytes.p[i] != made_byte(k, version, i))
			return false;
	return true;
}

static inline void made_id(uint32_t k, char id[17])
{
	snprintf(id, 17, "%016llx", (unsigned long long)made_mix(k + 1));
}

/* Free with made_free. Every third image is of a base name that others have, too. */
static inline struct catalog_item made_item(uint32_t k, uint32_t version)
{
	size_t n = made_n_bytes(k, version);
	uint8_t *bytes = mem_alloc(n + 1);
	struct catalog_item item = {.bytes = {bytes, n}};
	struct catalog_entry *e = &item.entry;

	for (size_t i = 0; i < n; i++)
		bytes[i] = made_byte(k, version, i);
	made_id(k, e->id);
	e->path = k % 3 ? mem_printf("/opt/%u/lib%u.so.%u", k % 5, k, version)
			: mem_printf("/usr/lib/%u/libshared.so", k);
	e->bits = k % 2 ? 64 : 32;
	e->machine = (uint16_t)(k % 2 ? 62 : 3);
	if (k % 4)
		e->build_id = (struct span){(const uint8_t *)e->path, 8 + k % 9};
	e->n_symbols = k * 10u;
	e->n_rows = k * 100u;
	return item;
}

static inline void made_free(struct catalog_item *item)
{
	free((void *)item->bytes.p);
	free((void *)item->entry.path);
}

/* Applies images [first, first + n) of a version in one change. */
static inline int made_apply(
	const char *path, uint32_t first, uint32_t n, uint32_t version, struct err *err)
{
	struct catalog_item *items = mem_calloc(n + 1, sizeof(*items));
	struct catalog_change change = {.n_add = n};
	int rc;

	for (uint32_t i = 0; i < n; i++)
		items[i] = made_item(first + i, version);
	rc = catalog_apply_items(path, items, &change, err);
	for (uint32_t i = 0; i < n; i++)
		made_free(&items[i]);
	free(items);
	return rc;
}

/* Does the catalog have image k with the bytes of this version? */
static inline bool made_is_there(const struct catalog *c, uint32_t k, uint32_t version)
{
	struct span bytes;
	char id[17];
	size_t i;

	made_id(k, id);
	i = catalog_find(c, id);
	return i != SIZE_MAX && catalog_image_bytes(c, i, &bytes, NULL) == 0 &&
	       made_bytes_are(bytes, k, version);
}

/* For tests that cannot go on without it. */
static inline struct catalog *open_or_die(const char *path)
{
	struct catalog *c;
	struct err err;

	if (catalog_open(&c, path, &err) == 0)
		return c;
	printf("not ok the catalog opens\n%s\n", err.text);
	exit(1);
}

/* Images [0, n) of version 0 and nothing else. */
static inline bool has_exactly(const struct catalog *c, uint32_t n)
{
	bool ok = catalog_n(c) == n;

	for (uint32_t k = 0; k < n; k++)
		ok = ok && made_is_there(c, k, 0);
	return ok;
}

static inline bool file_has_exactly(const char *path, uint32_t n)
{
	struct catalog *c = open_or_die(path);
	bool ok = has_exactly(c, n);

	catalog_close(c);
	return ok;
}

static inline void read_whole(const char *path, struct buf *to)
{
	buf_reset(to);
	if (file_read(to, path, 1 << 26, NULL) < 0)
		printf("not ok %s can be read\n", path);
}

/* A real image with functions "f0", "f1", ... of 16 bytes each from 0x1000 on. */
static inline int real_image(
	struct buf *to, const char *path, uint8_t version, unsigned n_symbols, struct err *err)
{
	struct image_identity id = {.kind = IMAGE_KIND_ELF,
		.path = (char *)path,
		.machine = 62,
		.bits = 64,
		.build_id_n = 20,
		.build_id = {0x5e, version, 3}};
	struct catalog_source source = {.kind = SYMBOL_SOURCE_SYMTAB,
		.path = path,
		.identity = "itself",
		.verdict = "the image itself"};
	struct image_builder *b = image_builder_new(&id);
	int rc;

	image_builder_source(b, &source);
	for (unsigned i = 0; i < n_symbols; i++) {
		char *name = mem_printf("f%u", i);

		image_builder_symbol(b, &(struct candidate){.name = name,
						.name_bytes = (uint32_t)strlen(name),
						.source = SYMBOL_SOURCE_SYMTAB,
						.start = 0x1000 + 16 * i,
						.size = 16});
		free(name);
	}
	rc = image_builder_finish(b, 1, to, err);
	image_builder_free(b);
	return rc;
}

#endif
