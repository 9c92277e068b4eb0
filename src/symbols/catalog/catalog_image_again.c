/* SPDX-License-Identifier: MIT */
/*
 * Adds an image that was made before to one that is being made, so that further sources can join
 * it. Everything is offered as it was found to be, so an image with nothing added has the same
 * bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "symbols/catalog/catalog_image_build_internal.h"

struct again {
	struct image_builder *b;
	struct catalog_image *image;
	uint32_t source_of[IMAGE_SOURCES_MAX];
	uint32_t *texts; /* of the image to the builder's; 0 = not asked for */
	uint32_t *sites;
};

static uint32_t text_of(struct again *a, uint32_t id)
{
	if (!a->texts[id]) {
		const char *text = image_text_of(a->image, id)->linkage;

		a->texts[id] = builder_text(a->b, text, strlen(text));
	}
	return a->texts[id];
}

static uint32_t file_of(struct again *a, uint32_t file)
{
	return file ? text_of(a, image_file_of(a->image, file)->text) : 0;
}

static void add_sources(struct again *a)
{
	const struct catalog_image *image = a->image;

	for (size_t i = 0; i < image->n_sources; i++) {
		const struct catalog_source *s = &image->sources[i];
		uint32_t source = builder_source(a->b, s);

		a->source_of[i] = source;
		if (a->b->n_before[source] < s->n_offered)
			a->b->n_before[source] = s->n_offered;
		a->b->current = source;
	}
}

static uint64_t sources_of(const struct again *a, uint32_t set)
{
	uint64_t old = a->image->source_sets[set], made = 0;

	for (size_t i = 0; i < a->image->n_sources; i++)
		if (old >> i & 1)
			made |= (uint64_t)1 << a->source_of[i];
	return made;
}

/* `file` is a text of the builder. */
static void add_name(struct again *a, const struct image_symbol *s, uint32_t text, uint32_t set,
	uint8_t flags, uint32_t file)
{
	bool is_sized = s->flags & NAME_IS_SIZED;

	if (!text)
		return;
	vec_push(&a->b->names, ((struct offered_name){
				       .start = s->start,
				       .size = is_sized ? s->size : 0,
				       .room = is_sized ? 0 : s->size,
				       .sources = sources_of(a, set),
				       .text = text_of(a, text),
				       .file = file,
				       .kind = flags & NAME_KIND_MASK,
				       .bind = flags >> NAME_BIND_SHIFT & NAME_BIND_MASK,
			       }));
}

static void add_symbol(struct again *a, uint32_t i)
{
	const struct image_symbol s = *image_symbol_of(a->image, i);
	const char *file = image_symbol_file_of(a->image, i);

	if (s.text && s.flags & NAME_IS_FILLER) {
		vec_push(&a->b->pieces, ((struct offered_piece){s.start, s.start + s.size,
						sources_of(a, s.sources), text_of(a, s.text)}));
		return;
	}
	add_name(a, &s, s.text, s.sources, s.flags,
		file ? builder_text(a->b, file, strlen(file)) : 0);
	for (uint32_t k = 0; k < s.n_aliases; k++) {
		const struct image_alias *alias = image_alias_of(a->image, s.first_alias + k);

		add_name(a, &s, alias->text, alias->sources, alias->flags, 0);
	}
}

/* By address, or in the order in which they paint over each other. */
static void add_symbols(struct again *a)
{
	size_t n = catalog_image_n_symbols(a->image);
	struct sort_pair *order = mem_calloc(n, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = (struct sort_pair){
			image_symbol_of(a->image, (uint32_t)i)->order, (uint32_t)i};
	sort_pairs(order, n);
	for (size_t i = 0; i < n; i++)
		add_symbol(a, order[i].i);
	free(order);
	if (a->image->symbols.extra & SYMBOLS_LATER_WINS)
		image_builder_set_later_wins(a->b);
}

static void add_data(struct again *a)
{
	for (size_t i = 0; i < catalog_image_n_data(a->image); i++) {
		const struct image_datum *d = image_datum_of(a->image, (uint32_t)i);

		if (d->text && d->size)
			vec_push(&a->b->data, ((struct built_datum){d->start, d->size,
						      text_of(a, d->text), d->bind}));
	}
}

static void add_sites(struct again *a)
{
	for (uint32_t site = 1; site <= a->image->sites.n_items; site++) {
		uint32_t i;
		const struct site_chunk *c = image_sites_of(a->image, site, &i);
		struct built_site made = {.parent = a->sites[c->sites[i].parent],
			.text = text_of(a, c->ids[i].text),
			.call_file = file_of(a, c->ids[i].call_file),
			.call_line = c->sites[i].call_line};

		a->sites[site] = builder_site(a->b, &made);
	}
}

/* A row for each column of the range. */
static void add_row(struct again *a, struct run_maker *maker, const struct catalog_range *r)
{
	struct built_row row = {.addr = r->start,
		.file = file_of(a, r->file),
		.line = r->line,
		.site = a->sites[r->site]};
	uint64_t end;

	if (!(row.file | row.line | row.site)) {
		run_maker_end(maker, r->start);
		return;
	}
	for (; row.addr < r->end; row.addr = end) {
		row.column = image_column_at(a->image, row.addr, &end);
		run_maker_add(maker, &row);
	}
}

static void add_rows(struct again *a)
{
	struct run_maker maker = {a->b, SIZE_MAX};
	struct catalog_range r = {0};

	for (size_t chunk = 0; chunk < a->image->ranges.n_chunks; chunk++) {
		uint64_t end = a->image->range_keys[chunk + 1];

		r.end = a->image->range_keys[chunk];
		do {
			image_range_at(a->image, chunk, r.end, &r);
			add_row(a, &maker, &r);
		} while (r.end != end);
	}
	run_maker_end(&maker, r.end);
}

void image_builder_image(struct image_builder *b, struct catalog_image *image)
{
	struct again a = {
		.b = b,
		.image = image,
		.texts = mem_calloc(image->texts.n_items, sizeof(uint32_t)),
		.sites = mem_calloc(image->sites.n_items + 1, sizeof(uint32_t)),
	};

	add_sources(&a);
	for (size_t i = 0; i < image->n_sections; i++)
		image_builder_section(b, &image->sections[i]);
	add_symbols(&a);
	add_data(&a);
	add_sites(&a);
	add_rows(&a);
	image_builder_notes(b, image->notes);
	free(a.texts);
	free(a.sites);
}
