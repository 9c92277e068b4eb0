/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a catalog image: opens it, asks for everything, and adds it to an image that is
 * being made. Small images are not packed, so the files of the corpus lead into the chunks
 * themselves.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/catalog/catalog_image_build.h"

/* What one run may look at; a chunk unpacks to many times its bytes. */
#define ITEMS_MAX	20000
#define AGAIN_BYTES_MAX 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink; /* keeps the reads */

static void look_up(struct catalog_image *image, uint64_t addr)
{
	struct catalog_level levels[5];
	struct catalog_range r;
	size_t n;

	if (!catalog_image_find_range(image, (struct iaddr){addr}, &r))
		return;
	if (addr < r.start || addr >= r.end)
		abort();
	n = catalog_image_levels(image, &r, levels, 1 + addr % 5);
	if (!n || n > 1 + addr % 5 || levels[n - 1].is_inline)
		abort();
	for (size_t i = 0; i < n; i++) {
		sink += levels[i].name ? strlen(levels[i].name) : 0;
		sink += levels[i].linkage_name ? strlen(levels[i].linkage_name) : 0;
		sink += levels[i].file ? strlen(levels[i].file) : 0;
	}
}

static void ask_for_facts(struct catalog_image *image)
{
	const struct image_identity *id = catalog_image_identity(image);

	sink += strlen(id->path) + strlen(catalog_image_id(image));
	sink += strlen(catalog_image_notes(image)) + catalog_image_n_rows(image);
	for (size_t i = 0; i < id->n_segments; i++)
		sink += strlen(id->segments[i].name);
	for (size_t i = 0; i < catalog_image_n_sources(image); i++) {
		struct catalog_source s = catalog_image_source(image, i);

		sink += strlen(s.path) + strlen(s.identity) + strlen(s.verdict);
		sink += strlen(symbol_source_name(s.kind));
		if (s.rung == MATCH_NONE || s.rung >= MATCH_N_RUNGS)
			abort();
	}
	for (size_t i = 0; i < catalog_image_n_sections(image); i++)
		sink += strlen(catalog_image_section(image, i).name);
}

static void ask_for_symbols(struct catalog_image *image)
{
	size_t n_names = 0;

	for (size_t i = 0; i < catalog_image_n_symbols(image) && i < ITEMS_MAX; i++) {
		struct catalog_symbol s = catalog_image_symbol(image, i);

		sink += catalog_image_column(image, (struct iaddr){s.start});
		sink += strlen(s.name) + strlen(s.linkage_name) + (s.file ? strlen(s.file) : 0);
		if (s.rung < MATCH_BUILD_ID &&
			catalog_image_symbol_source(image, i) >= catalog_image_n_sources(image))
			abort();
		for (uint32_t k = 0; k < s.n_aliases && n_names++ < ITEMS_MAX; k++)
			sink += strlen(catalog_image_alias(image, s.first_alias + k));
		look_up(image, s.start);
		look_up(image, s.start + s.size);
		look_up(image, s.start + s.size / 2);
	}
}

static void ask_for_data(struct catalog_image *image)
{
	for (size_t i = 0; i < catalog_image_n_data(image) && i < ITEMS_MAX; i++) {
		struct catalog_datum d = catalog_image_datum(image, i), found;

		sink += strlen(d.name) + strlen(d.linkage_name);
		if (catalog_image_find_datum(image, (struct iaddr){d.start}, &found))
			sink += found.size;
	}
}

/* What is added again must come out again, and be an image. */
static void add_again(struct catalog_image *image)
{
	struct image_builder *b = image_builder_new(catalog_image_identity(image));
	struct catalog_image *again;
	struct buf bytes = {0};

	image_builder_image(b, image);
	if (image_builder_finish(b, 1, &bytes, NULL) < 0 ||
		catalog_image_open(&again, buf_span(&bytes), NULL) < 0)
		abort();
	ask_for_symbols(again);
	ask_for_data(again);
	if (catalog_image_n_damaged(again))
		abort();
	catalog_image_close(again);
	image_builder_free(b);
	buf_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct catalog_image *image;
	uint64_t addr = 0;

	if (catalog_image_open(&image, (struct span){data, n}, NULL) < 0)
		return 0;
	ask_for_facts(image);
	ask_for_symbols(image);
	ask_for_data(image);
	for (size_t i = 0; i < 256; i++)
		look_up(image, 0x1000 + i);
	for (size_t i = 0; i + 8 <= n && i < ITEMS_MAX; i += 8) {
		memcpy(&addr, data + i, sizeof(addr));
		look_up(image, addr);
		look_up(image, addr & 0xffff);
	}
	look_up(image, UINT64_MAX);
	if (n < AGAIN_BYTES_MAX)
		add_again(image);
	catalog_image_close(image);
	return 0;
}
