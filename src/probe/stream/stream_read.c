/* SPDX-License-Identifier: MIT */
/*
 * The items of each section of a stream file: docs/format/probe-stream.md. Every number is checked
 * where it is read, against what was read before: sources come first, shapes refer to earlier
 * shapes only, points come behind their clauses. What needs the code is in stream_check.c.
 */
#include <stdarg.h>
#include <stdio.h>

#include "probe/points/point_kind.h"
#include "probe/stream/stream_reader.h"

static int refuse(struct stream_reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "SECTION ITEM: SENTENCE", code ERR_FORMAT. */
static int refuse(struct stream_reader *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(r->err, ERR_FORMAT, "trace stream: section %s, item %u: %s", r->section,
		r->item_i, text);
}

/* Reads fail one by one without a sentence; an item ends with this. */
static int end_item(struct stream_reader *r)
{
	return r->c.failed ? refuse(r, "is cut off or has a wrong text") : 0;
}

/* ---- parts of items ---- */

static const char *take_text(struct stream_reader *r)
{
	uint32_t n = cursor_u32(&r->c);
	struct span bytes = cursor_bytes(&r->c, n);

	if (r->c.failed || (n && memchr(bytes.p, 0, n))) {
		r->c.failed = true;
		return "";
	}
	return arena_strndup(r->s->arena, (const char *)bytes.p, n);
}

static const char *take_optional_text(struct stream_reader *r)
{
	struct cursor ahead = r->c;

	if (cursor_u32(&ahead) != STREAM_NO_TEXT)
		return take_text(r);
	r->c = ahead;
	return NULL;
}

static struct place take_place(struct stream_reader *r)
{
	struct place place;

	place.source_i = cursor_u32(&r->c);
	place.from = cursor_u32(&r->c);
	place.to = cursor_u32(&r->c);
	if (place.source_i >= r->s->sources.v.n || place.from > place.to ||
		place.to > r->s->sources.v.v[place.source_i].n)
		r->c.failed = true;
	return place;
}

static uint8_t take_flags(struct stream_reader *r, uint8_t known)
{
	uint8_t flags = cursor_u8(&r->c);

	if (flags & ~known)
		r->c.failed = true;
	return flags;
}

static struct shape *take_shape(struct stream_reader *r)
{
	static struct shape none;
	uint32_t number = cursor_u32(&r->c);

	if (number < r->n_shapes)
		return r->shapes[number];
	r->c.failed = true;
	return &none;
}

/* ---- facts, sources, strings, clauses ---- */

static int read_facts(struct stream_reader *r)
{
	struct stream *s = r->s;
	struct span id;
	unsigned flags;

	s->self_bytes = cursor_u32(&r->c);
	s->zero_bytes = cursor_u32(&r->c);
	flags = take_flags(r, FACT_USES_STACKS | FACT_HIDES_MAPS | FACT_LIKE_0_17);
	s->uses_stacks = flags & FACT_USES_STACKS;
	s->hides_maps = flags & FACT_HIDES_MAPS;
	s->like = flags & FACT_LIKE_0_17 ? STREAM_LIKE_0_17 : STREAM_LIKE_0_26;
	s->ring_pages = cursor_u32(&r->c);
	s->cat_bytes = cursor_u32(&r->c);
	id = cursor_bytes(&r->c, cursor_u32(&r->c));
	if (id.n > STREAM_BUILD_ID_MAX)
		return refuse(r, "the build-id of the kernel is wrong");
	s->kernel_id_n = (uint8_t)id.n;
	if (id.n)
		memcpy(s->kernel_id, id.p, id.n);
	if (s->ring_pages > STREAM_RING_PAGES_MAX)
		return refuse(r, "the ring is too large");
	if (s->self_bytes % 8 || s->self_bytes > STREAM_VALUE_BYTES_MAX || s->zero_bytes % 8 ||
		s->zero_bytes > STREAM_VALUE_BYTES_MAX)
		return refuse(r, "sizes of values are wrong");
	return end_item(r);
}

static int read_source(struct stream_reader *r)
{
	const char *name = take_text(r);
	struct span text = cursor_bytes(&r->c, cursor_u32(&r->c));

	if (!r->c.failed)
		sources_add(&r->s->sources, name, text);
	return end_item(r);
}

static int read_string(struct stream_reader *r)
{
	vec_push(&r->s->strings, take_text(r));
	return end_item(r);
}

static int read_clause(struct stream_reader *r)
{
	struct stream_clause clause = {.place = take_place(r)};

	clause.has_predicate = take_flags(r, CLAUSE_HAS_PREDICATE) & CLAUSE_HAS_PREDICATE;
	vec_push(&r->s->clauses, clause);
	return end_item(r);
}

/* ---- shapes ---- */

/* As many as the steps of a linear histogram, rounded down or up. */
static bool is_n_steps(const struct shape *shape, uint64_t n)
{
	uint64_t range = (uint64_t)shape->max - (uint64_t)shape->min;

	return shape->step > 0 && shape->max > shape->min &&
	       n - range / (uint64_t)shape->step <= (range % (uint64_t)shape->step > 0);
}

static bool is_size_right(const struct shape *shape)
{
	if (shape->size % 8 || shape->size > STREAM_VALUE_BYTES_MAX)
		return false;
	switch (shape->kind) {
	case SHAPE_STRING:
	case SHAPE_STRUCT:
		return shape->size == shape_padded(shape->n);
	case SHAPE_BYTES:
		return shape->size == shape_padded((uint64_t)shape->n + 8);
	case SHAPE_TUPLE:
		return true;
	case SHAPE_FLOAT:
		return shape->size == 8 && (shape->n == 4 || shape->n == 8);
	case SHAPE_HIST:
		return shape->n <= HIST_BITS_MAX && shape->size == 8 * hist_n_buckets(shape->n);
	case SHAPE_TSERIES:
		return shape->step > 0 && shape->max > 0 && shape->max <= TSERIES_INTERVALS_MAX &&
		       shape->min >= 0 && shape->min < N_TSERIES_FUNCTIONS &&
		       shape->size == (uint64_t)shape->max * sizeof(struct tseries_slot);
	case SHAPE_LHIST:
		return shape->size > 16 && is_n_steps(shape, shape->size / 8 - 2);
	default:
		return shape->size == shape_fixed_size(shape->kind);
	}
}

static bool is_field_inside(const struct shape *shape, const struct shape_field *field)
{
	const struct shape *of = field->shape;
	uint64_t length = field->bytes						 ? field->bytes
			  : of->kind == SHAPE_STRING || of->kind == SHAPE_STRUCT ? of->n
										 : of->size;

	if (field->bit_size)
		length = ((uint64_t)field->bit_offset + field->bit_size + 7) / 8;
	return field->offset + length <= shape->size && field->bytes <= 16 &&
	       field->bit_offset < 8 && field->bit_size <= 64;
}

/* Its weight grows with those of its fields; refused when there is no end in sight. */
static int read_field(struct stream_reader *r, const struct shape *shape, struct shape_field *field,
	uint32_t *weight, uint8_t *depth)
{
	uint32_t number;

	field->name = take_optional_text(r);
	number = cursor_u32(&r->c);
	field->offset = cursor_u32(&r->c);
	field->bytes = cursor_u8(&r->c);
	field->bit_offset = cursor_u8(&r->c);
	field->bit_size = cursor_u8(&r->c);
	if (r->c.failed || number >= r->n_shapes)
		return refuse(r, "a field is cut off or of a later shape");
	field->shape = r->shapes[number];
	if (field->shape->kind == SHAPE_NONE || shape_is_aggregation(field->shape) ||
		!is_field_inside(shape, field))
		return refuse(r, "a field does not fit");
	*weight += r->shape_weights[number];
	if (*depth < r->shape_depths[number] + 1)
		*depth = (uint8_t)(r->shape_depths[number] + 1);
	if (*weight > STREAM_SHAPE_WEIGHT_MAX || *depth > STREAM_SHAPE_DEPTH_MAX)
		return refuse(r, "fields are nested too deeply");
	return 0;
}

static int read_fields(struct stream_reader *r, struct shape *shape)
{
	uint32_t n = cursor_u32(&r->c), weight = 1;
	uint8_t depth = 1;
	bool may_have = shape->kind == SHAPE_STRUCT || shape->kind == SHAPE_TUPLE;

	if (n > (may_have ? STREAM_SHAPE_FIELDS_MAX : 0) || n > cursor_left(&r->c) / 15)
		return refuse(r, "cannot have %u fields", n);
	shape->fields = arena_zalloc(r->s->arena, n * sizeof(shape->fields[0]));
	shape->n_fields = n;
	for (uint32_t i = 0; i < n; i++) {
		int rc = read_field(r, shape, &shape->fields[i], &weight, &depth);

		if (rc < 0)
			return rc;
	}
	r->shapes[r->n_shapes] = shape;
	r->shape_weights[r->n_shapes] = weight;
	r->shape_depths[r->n_shapes++] = depth;
	return end_item(r);
}

static int read_shape(struct stream_reader *r)
{
	struct shape *shape = arena_zalloc(r->s->arena, sizeof(*shape));
	uint8_t kind = cursor_u8(&r->c), flags;

	if (!r->shapes) {
		r->shapes = mem_calloc(r->count, sizeof(r->shapes[0]));
		r->shape_depths = mem_calloc(r->count, sizeof(r->shape_depths[0]));
		r->shape_weights = mem_calloc(r->count, sizeof(r->shape_weights[0]));
	}
	if (kind >= N_SHAPE_KINDS)
		return refuse(r, "kind %u of shapes is not known", kind);
	shape->kind = (enum shape_kind)kind;
	flags = take_flags(r, SHAPE_IS_SIGNED | SHAPE_IS_BOOL);
	shape->is_signed = flags & SHAPE_IS_SIGNED;
	shape->is_bool = flags & SHAPE_IS_BOOL;
	shape->n = cursor_u32(&r->c);
	shape->size = cursor_u32(&r->c);
	shape->min = (int64_t)cursor_u64(&r->c);
	shape->max = (int64_t)cursor_u64(&r->c);
	shape->step = (int64_t)cursor_u64(&r->c);
	shape->enumerators = take_optional_text(r);
	if (!is_size_right(shape))
		return refuse(r, "its size is wrong");
	if (shape->kind != SHAPE_INT && (shape->is_bool || shape->enumerators))
		return refuse(r, "only integers are printed as names");
	return read_fields(r, shape);
}

/* ---- maps, formats ---- */

static int read_map(struct stream_reader *r)
{
	struct stream_map_def map = {.name = take_text(r)};

	map.key = take_shape(r);
	map.value = take_shape(r);
	map.max_entries = cursor_u32(&r->c);
	map.is_lru = take_flags(r, MAP_IS_LRU) & MAP_IS_LRU;
	map.place = take_place(r);
	if (!r->c.failed &&
		(map.name[0] != '@' || shape_is_aggregation(map.key) || !map.value->size ||
			map.max_entries > STREAM_ENTRIES_MAX || map.value->size > r->s->zero_bytes))
		return refuse(r, "its name, shapes or size are wrong");
	vec_push(&r->s->maps, map);
	return end_item(r);
}

static int read_arguments(struct stream_reader *r, struct stream_format *format)
{
	uint64_t bytes = 0;

	format->n_args = cursor_u32(&r->c);
	if (format->n_args > STREAM_ARGS_MAX || format->n_args > cursor_left(&r->c) / 4)
		return refuse(r, "cannot have %u arguments", format->n_args);
	format->args = arena_zalloc(r->s->arena, format->n_args * sizeof(format->args[0]));
	for (uint32_t i = 0; i < format->n_args; i++) {
		format->args[i] = take_shape(r);
		bytes += format->args[i]->size;
		if (format->args[i]->kind == SHAPE_NONE)
			return refuse(r, "argument %u has a wrong shape", i);
	}
	if (bytes > STREAM_VALUE_BYTES_MAX)
		return refuse(r, "its arguments are too long");
	return 0;
}

static int read_format(struct stream_reader *r)
{
	struct stream_format format = {0};
	const struct format_traits *traits;
	uint8_t kind = cursor_u8(&r->c);
	int rc;

	if (kind >= N_FORMAT_KINDS)
		return refuse(r, "kind %u of formats is not known", kind);
	format.kind = (enum format_kind)kind;
	traits = &format_traits[kind];
	format.text = take_optional_text(r);
	format.map_i = cursor_u32(&r->c);
	rc = read_arguments(r, &format);
	if (rc < 0)
		return rc;
	format.place = take_place(r);
	if (traits->has_map ? format.map_i >= r->s->maps.n : format.map_i)
		return refuse(r, "there is no map %u", format.map_i);
	if ((traits->has_text && !format.text) || (traits->has_argument && !format.n_args))
		return refuse(r, "its text or argument is missing");
	vec_push(&r->s->formats, format);
	return end_item(r);
}

/* ---- points ---- */

static bool is_spec_whole(const struct point_spec *spec)
{
	if (point_has(spec->kind, POINT_IS_PERIODIC))
		return spec->period_ns > 0;
	if (point_has(spec->kind, POINT_IS_OURS | POINT_HAS_ERROR))
		return spec->name || (spec->kind != POINT_SELF && spec->kind != POINT_ITER &&
					     spec->kind != POINT_BENCH);
	if (spec->has_address && point_has(spec->kind, POINT_IN_FILES))
		return spec->name || point_has(spec->kind, POINT_IS_FUNCTION);
	return spec->name && (spec->provider || spec->kind != POINT_TRACEPOINT);
}

static int read_spec(struct stream_reader *r, struct point_spec *spec)
{
	uint8_t kind = cursor_u8(&r->c), flags;

	if (kind >= N_POINT_KINDS)
		return refuse(r, "kind %u of points is not known", kind);
	spec->kind = (enum point_kind)kind;
	flags = take_flags(r, POINT_HAS_ADDRESS | POINT_IS_GLOB);
	spec->has_address = flags & POINT_HAS_ADDRESS;
	spec->is_glob = flags & POINT_IS_GLOB;
	spec->text = take_text(r);
	spec->file = take_optional_text(r);
	spec->provider = take_optional_text(r);
	spec->name = take_optional_text(r);
	spec->offset = cursor_u64(&r->c);
	spec->address = cursor_u64(&r->c);
	spec->period_ns = cursor_u64(&r->c);
	spec->count = cursor_u64(&r->c);
	spec->place = take_place(r);
	if (!r->c.failed && !is_spec_whole(spec))
		return refuse(r, "its name or period is missing");
	return end_item(r);
}

static int read_piece(struct stream_reader *r, struct stream_piece *piece)
{
	uint8_t flags = take_flags(r, PIECE_IS_THERE | PIECE_USES_SITE | PIECE_READS_USER);

	piece->is_there = flags & PIECE_IS_THERE;
	piece->uses_site = flags & PIECE_USES_SITE;
	piece->reads_user = flags & PIECE_READS_USER;
	piece->predicate_at = cursor_u32(&r->c);
	piece->predicate_n = cursor_u32(&r->c);
	piece->action_at = cursor_u32(&r->c);
	piece->action_n = cursor_u32(&r->c);
	piece->functions_n = cursor_u32(&r->c);
	piece->scratch_bytes = cursor_u32(&r->c);
	piece->why_not = take_optional_text(r);
	if (piece->scratch_bytes > STREAM_SCRATCH_MAX)
		return refuse(r, "needs too much room: %u bytes", piece->scratch_bytes);
	if (piece->functions_n > piece->action_n)
		return refuse(r, "has more functions than code");
	if (!piece->is_there &&
		(flags || piece->predicate_at || piece->predicate_n || piece->action_at ||
			piece->action_n || piece->scratch_bytes))
		return refuse(r, "code that is not there has a place");
	return end_item(r);
}

static int read_image(struct stream_reader *r, struct stream_image *image)
{
	uint32_t mode, n;
	struct span id;

	image->path = take_text(r);
	mode = cursor_u8(&r->c);
	n = cursor_u32(&r->c);
	if (mode >= N_MODES || n > STREAM_BUILD_ID_MAX)
		return refuse(r, "the mode or build-id of an image is wrong");
	image->mode = (enum mode)mode;
	id = cursor_bytes(&r->c, n);
	image->build_id_n = (uint8_t)id.n;
	if (id.n)
		memcpy(image->build_id, id.p, id.n);
	image->content_hash = cursor_u64(&r->c);
	return end_item(r);
}

static int read_images(struct stream_reader *r, struct stream_point *point)
{
	int rc = 0;

	point->n_images = cursor_u32(&r->c);
	if (point->n_images > STREAM_IMAGES_MAX || point->n_images > cursor_left(&r->c) / 17)
		return refuse(r, "cannot have %u images", point->n_images);
	point->images = arena_zalloc(r->s->arena, point->n_images * sizeof(point->images[0]));
	for (uint32_t i = 0; i < point->n_images && rc == 0; i++)
		rc = read_image(r, &point->images[i]);
	if (rc < 0)
		return rc;
	point->has_site = take_flags(r, SITE_IS_ONLY) & SITE_IS_ONLY;
	point->site_image = cursor_u32(&r->c);
	point->site_addr = cursor_u64(&r->c);
	if (point->has_site ? point->site_image >= point->n_images
			    : point->site_image || point->site_addr)
		return refuse(r, "there is no image %u", point->site_image);
	return end_item(r);
}

static int read_point(struct stream_reader *r)
{
	struct stream_point point = {.clause_i = cursor_u32(&r->c)};
	uint8_t mode;
	int rc = read_spec(r, &point.spec);

	if (rc < 0)
		return rc;
	if (point.clause_i >= r->s->clauses.n)
		return refuse(r, "there is no clause %u", point.clause_i);
	point.operands = take_optional_text(r);
	mode = cursor_u8(&r->c);
	if (mode >= N_MODES)
		return refuse(r, "mode %u is not known", mode);
	point.operands_mode = (enum mode)mode;
	point.name = take_optional_text(r);
	for (int i = 0; i < N_MODES; i++) {
		rc = read_piece(r, &point.pieces[i]);
		if (rc < 0)
			return rc;
	}
	rc = read_images(r, &point);
	if (rc < 0)
		return rc;
	vec_push(&r->s->points, point);
	return 0;
}

/* ---- code and lines ---- */

static int read_insn(struct stream_reader *r)
{
	struct bpf_insn insn;

	cursor_take(&r->c, &insn, sizeof(insn));
	vec_push(&r->s->code[r->mode], insn);
	return end_item(r);
}

static int read_line(struct stream_reader *r)
{
	struct stream_line line = {.insn_i = cursor_u32(&r->c)};
	enum mode mode = r->mode;
	size_t n = r->s->lines[mode].n;

	line.place = take_place(r);
	if (line.insn_i >= r->s->code[mode].n ||
		(n && line.insn_i < r->s->lines[mode].v[n - 1].insn_i))
		return refuse(r, "instruction %u is not in order", line.insn_i);
	vec_push(&r->s->lines[mode], line);
	return end_item(r);
}

static int (*const readers[])(struct stream_reader *r) = {
	[SECTION_FACTS] = read_facts,
	[SECTION_SOURCES] = read_source,
	[SECTION_SHAPES] = read_shape,
	[SECTION_MAPS] = read_map,
	[SECTION_FORMATS] = read_format,
	[SECTION_STRINGS] = read_string,
	[SECTION_CLAUSES] = read_clause,
	[SECTION_POINTS] = read_point,
	[SECTION_CODE_32] = read_insn,
	[SECTION_CODE_64] = read_insn,
	[SECTION_LINES_32] = read_line,
	[SECTION_LINES_64] = read_line,
};

int stream_read_section(struct stream_reader *r, enum stream_section type)
{
	r->mode = type == SECTION_CODE_64 || type == SECTION_LINES_64 ? MODE_64 : MODE_32;
	for (r->item_i = 0; r->item_i < r->count; r->item_i++) {
		int rc = readers[type](r);

		if (rc < 0)
			return rc;
	}
	return 0;
}
