/* SPDX-License-Identifier: MIT */
/* A stream into bytes, section by section: docs/format/probe-stream.md. */
#include <assert.h>

#include "base/crc32c.h"
#include "base/map.h"
#include "probe/stream/stream_file.h"
#include "probe/stream/stream_layout.h"

struct writer {
	const struct stream *s;
	struct buf sections[N_SECTIONS + 1]; /* by type */
	uint32_t counts[N_SECTIONS + 1];
	struct map shapes; /* address of a shape -> its number */
};

static void put_text(struct buf *b, const char *text)
{
	uint32_t n = text ? (uint32_t)strlen(text) : STREAM_NO_TEXT;

	buf_put_u32(b, n);
	if (text)
		buf_put(b, text, n);
}

static void put_place(struct buf *b, struct place place)
{
	buf_put_u32(b, place.source_i);
	buf_put_u32(b, place.from);
	buf_put_u32(b, place.to);
}

static struct buf *begin_item(struct writer *w, enum stream_section type)
{
	w->counts[type]++;
	return &w->sections[type];
}

static void write_facts(struct writer *w)
{
	struct buf *b = begin_item(w, SECTION_FACTS);

	buf_put_u32(b, w->s->self_bytes);
	buf_put_u32(b, w->s->zero_bytes);
	buf_put_u8(b, (uint8_t)((w->s->uses_stacks ? FACT_USES_STACKS : 0) |
				(w->s->hides_maps ? FACT_HIDES_MAPS : 0) |
				(w->s->like == STREAM_LIKE_0_17 ? FACT_LIKE_0_17 : 0)));
	buf_put_u32(b, w->s->ring_pages);
	buf_put_u32(b, w->s->cat_bytes);
	buf_put_u32(b, w->s->kernel_id_n);
	buf_put(b, w->s->kernel_id, w->s->kernel_id_n);
}

static void write_sources(struct writer *w)
{
	for (size_t i = 0; i < w->s->sources.v.n; i++) {
		const struct source *source = &w->s->sources.v.v[i];
		struct buf *b = begin_item(w, SECTION_SOURCES);

		put_text(b, source->name);
		buf_put_u32(b, (uint32_t)source->n);
		buf_put(b, source->text, source->n);
	}
}

/* Fields first, so that a shape refers to smaller numbers only. Fields that are nested deeper than
 * the format allows are left out: such a value is printed as its bytes. */
static uint32_t shape_number(struct writer *w, const struct shape *shape, int deep)
{
	static const struct shape none = {.kind = SHAPE_NONE};
	uint32_t n_fields;
	uint64_t *known;
	struct buf *b;

	if (!shape)
		shape = &none;
	n_fields = deep + 1 < STREAM_SHAPE_DEPTH_MAX ? shape->n_fields : 0;
	known = map_find(&w->shapes, (uintptr_t)shape);
	if (known)
		return (uint32_t)*known;
	for (uint32_t i = 0; i < n_fields; i++)
		shape_number(w, shape->fields[i].shape, deep + 1);
	*map_ensure(&w->shapes, (uintptr_t)shape, NULL) = w->counts[SECTION_SHAPES];
	b = begin_item(w, SECTION_SHAPES);
	buf_put_u8(b, (uint8_t)shape->kind);
	buf_put_u8(
		b, (shape->is_signed ? SHAPE_IS_SIGNED : 0) | (shape->is_bool ? SHAPE_IS_BOOL : 0));
	buf_put_u32(b, shape->n);
	buf_put_u32(b, shape->size);
	buf_put_u64(b, (uint64_t)shape->min);
	buf_put_u64(b, (uint64_t)shape->max);
	buf_put_u64(b, (uint64_t)shape->step);
	put_text(b, shape->enumerators);
	buf_put_u32(b, n_fields);
	for (uint32_t i = 0; i < n_fields; i++) {
		const struct shape_field *field = &shape->fields[i];

		put_text(b, field->name);
		buf_put_u32(b, (uint32_t)*map_find(&w->shapes, (uintptr_t)field->shape));
		buf_put_u32(b, field->offset);
		buf_put_u8(b, field->bytes);
		buf_put_u8(b, field->bit_offset);
		buf_put_u8(b, field->bit_size);
	}
	return w->counts[SECTION_SHAPES] - 1;
}

static void write_maps(struct writer *w)
{
	for (size_t i = 0; i < w->s->maps.n; i++) {
		const struct stream_map_def *map = &w->s->maps.v[i];
		struct buf *b = begin_item(w, SECTION_MAPS);

		put_text(b, map->name);
		buf_put_u32(b, shape_number(w, map->key, 0));
		buf_put_u32(b, shape_number(w, map->value, 0));
		buf_put_u32(b, map->max_entries);
		buf_put_u8(b, map->is_lru ? MAP_IS_LRU : 0);
		put_place(b, map->place);
	}
}

static void write_formats(struct writer *w)
{
	for (size_t i = 0; i < w->s->formats.n; i++) {
		const struct stream_format *format = &w->s->formats.v[i];
		struct buf *b = begin_item(w, SECTION_FORMATS);

		buf_put_u8(b, (uint8_t)format->kind);
		put_text(b, format->text);
		buf_put_u32(b, format->map_i);
		buf_put_u32(b, format->n_args);
		for (uint32_t j = 0; j < format->n_args; j++)
			buf_put_u32(b, shape_number(w, format->args[j], 0));
		put_place(b, format->place);
	}
}

static void write_strings(struct writer *w)
{
	for (size_t i = 0; i < w->s->strings.n; i++)
		put_text(begin_item(w, SECTION_STRINGS), w->s->strings.v[i]);
}

static void write_clauses(struct writer *w)
{
	for (size_t i = 0; i < w->s->clauses.n; i++) {
		struct buf *b = begin_item(w, SECTION_CLAUSES);

		put_place(b, w->s->clauses.v[i].place);
		buf_put_u8(b, w->s->clauses.v[i].has_predicate ? CLAUSE_HAS_PREDICATE : 0);
	}
}

static void put_piece(struct buf *b, const struct stream_piece *piece)
{
	struct stream_piece p = *piece;

	if (!p.is_there)
		p = (struct stream_piece){.why_not = piece->why_not};
	buf_put_u8(b,
		(uint8_t)((p.is_there ? PIECE_IS_THERE : 0) | (p.uses_site ? PIECE_USES_SITE : 0) |
			  (p.reads_user ? PIECE_READS_USER : 0)));
	buf_put_u32(b, p.predicate_at);
	buf_put_u32(b, p.predicate_n);
	buf_put_u32(b, p.action_at);
	buf_put_u32(b, p.action_n);
	buf_put_u32(b, p.functions_n);
	buf_put_u32(b, p.scratch_bytes);
	put_text(b, p.why_not);
}

static void put_images(struct buf *b, const struct stream_point *point)
{
	buf_put_u32(b, point->n_images);
	for (uint32_t i = 0; i < point->n_images; i++) {
		const struct stream_image *image = &point->images[i];

		put_text(b, image->path);
		buf_put_u8(b, (uint8_t)image->mode);
		buf_put_u32(b, image->build_id_n);
		buf_put(b, image->build_id, image->build_id_n);
		buf_put_u64(b, image->content_hash);
	}
	buf_put_u8(b, point->has_site ? SITE_IS_ONLY : 0);
	buf_put_u32(b, point->site_image);
	buf_put_u64(b, point->site_addr);
}

static void write_points(struct writer *w)
{
	for (size_t i = 0; i < w->s->points.n; i++) {
		const struct stream_point *point = &w->s->points.v[i];
		const struct point_spec *spec = &point->spec;
		struct buf *b = begin_item(w, SECTION_POINTS);

		buf_put_u32(b, point->clause_i);
		buf_put_u8(b, (uint8_t)spec->kind);
		buf_put_u8(b, (uint8_t)((spec->has_address ? POINT_HAS_ADDRESS : 0) |
					(spec->is_glob ? POINT_IS_GLOB : 0)));
		put_text(b, spec->text ? spec->text : "");
		put_text(b, spec->file);
		put_text(b, spec->provider);
		put_text(b, spec->name);
		buf_put_u64(b, spec->offset);
		buf_put_u64(b, spec->address);
		buf_put_u64(b, spec->period_ns);
		buf_put_u64(b, spec->count);
		put_place(b, spec->place);
		put_text(b, point->operands);
		buf_put_u8(b, (uint8_t)point->operands_mode);
		put_text(b, point->name);
		for (int mode = 0; mode < N_MODES; mode++)
			put_piece(b, &point->pieces[mode]);
		put_images(b, point);
	}
}

static void write_code(struct writer *w, enum mode mode)
{
	for (size_t i = 0; i < w->s->code[mode].n; i++)
		buf_put(begin_item(w, SECTION_CODE_32 + (int)mode), &w->s->code[mode].v[i],
			sizeof(struct bpf_insn));
	for (size_t i = 0; i < w->s->lines[mode].n; i++) {
		struct buf *b = begin_item(w, SECTION_LINES_32 + (int)mode);

		buf_put_u32(b, w->s->lines[mode].v[i].insn_i);
		put_place(b, w->s->lines[mode].v[i].place);
	}
}

static void put_rows(const struct writer *w, struct buf *table)
{
	uint64_t offset = STREAM_FIRST_OFFSET;

	for (uint32_t type = 1; type <= N_SECTIONS; type++) {
		struct span bytes = buf_span(&w->sections[type]);

		offset = shape_padded(offset);
		buf_put_u32(table, type);
		buf_put_u32(table, bytes.n ? crc32c(0, bytes.p, bytes.n) : 0);
		buf_put_u64(table, offset);
		buf_put_u64(table, bytes.n);
		buf_put_u32(table, w->counts[type]);
		buf_put_u32(table, 0);
		offset += bytes.n;
	}
}

static void assemble(const struct writer *w, struct buf *out)
{
	static const uint8_t zeros[8];
	struct buf table = {0};
	uint64_t total = STREAM_FIRST_OFFSET;
	size_t start = out->n;

	for (int type = 1; type <= N_SECTIONS; type++)
		total = shape_padded(total) + w->sections[type].n;
	put_rows(w, &table);
	buf_put_cstr(out, STREAM_MAGIC);
	buf_put_u16(out, STREAM_MAJOR);
	buf_put_u16(out, STREAM_MINOR);
	buf_put_u16(out, N_SECTIONS);
	buf_put_u64(out, total);
	buf_put_u32(out, crc32c(0, table.p, table.n));
	buf_put_u32(out, crc32c(0, out->p + start, out->n - start));
	buf_put(out, table.p, table.n);
	for (int type = 1; type <= N_SECTIONS; type++) {
		size_t at = out->n - start;

		buf_put(out, zeros, shape_padded(at) - at);
		if (w->sections[type].n)
			buf_put(out, w->sections[type].p, w->sections[type].n);
	}
	assert(out->n - start == total);
	buf_release(&table);
}

void stream_file_write(const struct stream *s, struct buf *out)
{
	struct writer w = {.s = s};

	write_facts(&w);
	write_sources(&w);
	write_maps(&w);
	write_formats(&w);
	write_strings(&w);
	write_clauses(&w);
	write_points(&w);
	for (int mode = 0; mode < N_MODES; mode++)
		write_code(&w, (enum mode)mode);
	assemble(&w, out);
	for (int type = 1; type <= N_SECTIONS; type++)
		buf_release(&w.sections[type]);
	map_release(&w.shapes);
}
