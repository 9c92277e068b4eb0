/* SPDX-License-Identifier: MIT */
/* Units of debug information made by hand, and images opened from what a builder holds. */
#ifndef WEIR_TESTS_CATALOG_IMAGE_MAKER_H
#define WEIR_TESTS_CATALOG_IMAGE_MAKER_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "symbols/catalog/catalog_image_build.h"

static inline void unit_begin(struct dwarf_unit_map *u)
{
	*u = (struct dwarf_unit_map){0};
	vec_push(&u->names, ((struct dwarf_text){"", 0}));
	vec_push(&u->files, ((struct dwarf_text){"", 0}));
	vec_push(&u->sites, ((struct dwarf_site){0}));
}

/* Names and files of a unit are few, so they are looked for one by one. `text` is borrowed. */
static inline uint32_t unit_name(struct dwarf_unit_map *u, const char *text)
{
	for (size_t i = 0; i < u->names.n; i++)
		if (u->names.v[i].n == strlen(text) && !memcmp(u->names.v[i].p, text, strlen(text)))
			return (uint32_t)i;
	vec_push(&u->names, ((struct dwarf_text){text, (uint32_t)strlen(text)}));
	return (uint32_t)u->names.n - 1;
}

static inline uint32_t unit_file(struct dwarf_unit_map *u, const char *text)
{
	for (size_t i = 0; i < u->files.n; i++)
		if (u->files.v[i].n == strlen(text) && !memcmp(u->files.v[i].p, text, strlen(text)))
			return (uint32_t)i;
	vec_push(&u->files, ((struct dwarf_text){text, (uint32_t)strlen(text)}));
	return (uint32_t)u->files.n - 1;
}

static inline void unit_function(
	struct dwarf_unit_map *u, const char *name, uint64_t start, uint64_t end, bool is_entry)
{
	vec_push(&u->functions, ((struct dwarf_function){.start = start,
					.end = end,
					.name = unit_name(u, name),
					.is_entry = is_entry}));
}

static inline uint32_t unit_site(struct dwarf_unit_map *u, uint32_t parent, const char *name,
	const char *call_file, uint32_t call_line)
{
	vec_push(&u->sites, ((struct dwarf_site){parent, unit_name(u, name),
				    unit_file(u, call_file), call_line}));
	return (uint32_t)u->sites.n - 1;
}

static inline void unit_row(
	struct dwarf_unit_map *u, uint64_t addr, const char *file, uint32_t line, uint32_t site)
{
	vec_push(&u->rows,
		((struct dwarf_row){
			.addr = addr, .file = unit_file(u, file), .line = line, .site = site}));
}

static inline void unit_hole(struct dwarf_unit_map *u, uint64_t addr)
{
	vec_push(&u->rows, ((struct dwarf_row){.addr = addr, .is_hole = true}));
}

static inline void unit_end(struct dwarf_unit_map *u)
{
	vec_release(&u->names);
	vec_release(&u->files);
	vec_release(&u->functions);
	vec_release(&u->sites);
	vec_release(&u->rows);
}

static inline struct image_builder *builder_begin(const char *path)
{
	struct image_identity id = {.kind = IMAGE_KIND_ELF,
		.path = (char *)path,
		.bits = 64,
		.machine = 62,
		.build_id_n = 20,
		.build_id = {0x5e, 0x3f, 1, 2, 3}};

	return image_builder_new(&id);
}

static inline void builder_source_begin(
	struct image_builder *b, enum symbol_source kind, const char *path)
{
	image_builder_source(b,
		&(struct catalog_source){.kind = kind, .path = path, .verdict = "made by a test"});
}

static inline void builder_symbol(
	struct image_builder *b, const char *name, uint64_t start, uint64_t size)
{
	image_builder_symbol(b, &(struct candidate){.name = name,
					.name_bytes = (uint32_t)strlen(name),
					.start = start,
					.size = size});
}

/* Finishes and frees the builder; `bytes` holds the image. */
static inline struct catalog_image *builder_open(struct image_builder *b, struct buf *bytes)
{
	struct catalog_image *image = NULL;
	struct err err = {0};

	CHECK_EQ(image_builder_finish(b, 1, bytes, &err), 0);
	image_builder_free(b);
	CHECK_EQ(catalog_image_open(&image, buf_span(bytes), &err), 0);
	if (!image) {
		printf("%s\n", err.text);
		exit(1);
	}
	return image;
}

/* Whether an image that is added to an empty builder comes out with the same bytes. */
static inline bool comes_out_equal(struct catalog_image *image, struct span bytes)
{
	struct image_builder *b = image_builder_new(catalog_image_identity(image));
	struct buf again = {0};
	bool equal;

	image_builder_image(b, image);
	CHECK_EQ(image_builder_finish(b, 2, &again, NULL), 0);
	equal = again.n == bytes.n && !memcmp(again.p, bytes.p, bytes.n);
	image_builder_free(b);
	buf_release(&again);
	return equal;
}

/* The chain at an address as "name file:line < name file:line", innermost first; "-" when there is
 * none. Overwritten by the next call. */
static inline const char *chain_at(struct catalog_image *image, uint64_t addr)
{
	static char text[4096];
	struct catalog_level levels[64];
	struct catalog_range r;
	size_t n, at = 0;

	if (!catalog_image_find_range(image, (struct iaddr){addr}, &r))
		return "-";
	CHECK(r.start <= addr && addr < r.end);
	n = catalog_image_levels(image, &r, levels, 64);
	CHECK(n && !levels[n - 1].is_inline);
	for (size_t i = 0; i < n; i++) {
		CHECK(i + 1 == n || levels[i].is_inline);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %s:%u", i ? " < " : "",
			levels[i].name ? levels[i].name : "?",
			levels[i].file ? levels[i].file : "?", levels[i].line);
	}
	return text;
}

#endif
