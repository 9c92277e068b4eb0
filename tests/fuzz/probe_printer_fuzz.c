/* SPDX-License-Identifier: MIT */
/*
 * Any shapes, format texts, records and maps through the printer, as text and as JSON: it may not
 * crash or print without end, and what it calls JSON must be JSON, a value a line.
 *
 * Input: u8 kind, u8 top, u8 div, text up to a NUL, a shape for each of: argument 1, argument 2,
 * key, value; the rest is the record, the key and the value at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "probe/print/printer.h"

#define SHAPES_MAX 64
#define OUT_MAX	   ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct maker {
	struct cursor c;
	struct arena *arena;
	unsigned n_shapes;
};

static struct shape *make_shape(struct maker *m, unsigned depth)
{
	struct shape *s = arena_zalloc(m->arena, sizeof(*s));

	m->n_shapes++;
	s->kind = (enum shape_kind)(cursor_u8(&m->c) % N_SHAPE_KINDS);
	s->is_signed = cursor_u8(&m->c) & 1;
	s->n = cursor_u8(&m->c);
	s->size = cursor_u16(&m->c);
	if (s->kind == SHAPE_LHIST || s->kind == SHAPE_TSERIES) {
		s->min = (int64_t)cursor_u64(&m->c);
		s->max = (int64_t)cursor_u64(&m->c);
		s->step = (int64_t)cursor_u64(&m->c);
	}
	if (s->kind != SHAPE_STRUCT && s->kind != SHAPE_TUPLE)
		return s;
	s->n_fields = cursor_u8(&m->c) % 5;
	s->fields = arena_zalloc(m->arena, (s->n_fields + 1) * sizeof(*s->fields));
	for (uint32_t i = 0; i < s->n_fields; i++) {
		struct shape_field *f = &s->fields[i];
		uint8_t how = cursor_u8(&m->c);

		f->name = how & 1 ? "a\"b" : NULL;
		f->offset = how & 2 ? cursor_u32(&m->c) : cursor_u8(&m->c);
		f->bytes = cursor_u8(&m->c);
		f->bit_offset = cursor_u8(&m->c);
		f->bit_size = cursor_u8(&m->c);
		f->shape = depth < 60 && m->n_shapes < SHAPES_MAX
				   ? make_shape(m, depth + 1)
				   : arena_zalloc(m->arena, sizeof(*s));
		if (how & 4 && i) /* the same shape again */
			f->shape = s->fields[i - 1].shape;
	}
	return s;
}

/* --- is it JSON? ------------------------------------------------------------------------------ */

static const uint8_t *json_value(const uint8_t *p, const uint8_t *end, int depth);

static const uint8_t *json_text(const uint8_t *p, const uint8_t *end)
{
	if (p >= end || *p++ != '"')
		abort();
	for (; p < end && *p != '"'; p++) {
		if (*p < 0x20)
			abort();
		if (*p == '\\' && (++p >= end || !strchr("\"\\nrtu", *p)))
			abort();
	}
	if (p >= end)
		abort();
	return p + 1;
}

static const uint8_t *json_blanks(const uint8_t *p, const uint8_t *end)
{
	while (p < end && *p == ' ')
		p++;
	return p;
}

static const uint8_t *json_items(const uint8_t *p, const uint8_t *end, char close, int depth)
{
	p = json_blanks(p, end);
	for (bool first = true; p < end && *p != (uint8_t)close; first = false) {
		if (!first && *p++ != ',')
			abort();
		p = json_blanks(p, end);
		if (close == '}') {
			p = json_text(p, end);
			if (p >= end || *p++ != ':')
				abort();
			p = json_blanks(p, end);
		}
		p = json_blanks(json_value(p, end, depth + 1), end);
	}
	if (p >= end)
		abort();
	return p + 1;
}

static const uint8_t *json_value(const uint8_t *p, const uint8_t *end, int depth)
{
	const uint8_t *start = p;

	if (p >= end || depth > 80)
		abort();
	if (*p == '"')
		return json_text(p, end);
	if (*p == '{' || *p == '[')
		return json_items(p + 1, end, *p == '{' ? '}' : ']', depth);
	if (end - p >= 4 && !memcmp(p, "null", 4))
		return p + 4;
	while (p < end && *p && strchr("+-.0123456789eE", *p))
		p++;
	if (p == start)
		abort();
	return p;
}

static void check_json(const struct buf *out)
{
	const uint8_t *p = out->p, *end = out->p + out->n;

	while (p < end) {
		if (*p != '{')
			abort();
		p = json_value(p, end, 0);
		if (p >= end || *p++ != '\n')
			abort();
	}
}

/* --- */

static size_t fuzz_stack(
	void *ctx, uint64_t id, uint64_t *addresses, size_t max, const char **reason)
{
	size_t n = (size_t)id % (max + 1);

	(void)ctx;
	for (size_t i = 0; i < n; i++)
		addresses[i] = id + i;
	if (n & 1)
		*reason = "cut";
	return n;
}

/* Many stacks are the same. */
static uint64_t fuzz_stack_id(void *ctx, uint64_t id)
{
	(void)ctx;
	return id & 3;
}

static size_t fuzz_places(void *ctx, uint32_t pid, uint32_t bits, uint64_t address,
	struct printer_place *out, size_t max)
{
	size_t n = address % (max + 1);

	(void)ctx;
	for (size_t i = 0; i < n; i++)
		out[i] = (struct printer_place){.file = i & 1 ? "f\x80" : NULL,
			.line = bits,
			.inlined = pid & 1 ? "g\"" : NULL};
	return n;
}

static bool fuzz_symbol(void *ctx, uint64_t address, struct printer_symbol *out)
{
	(void)ctx;
	*out = (struct printer_symbol){.name = "f\x80\"", .offset = address};
	return address & 1;
}

static void print_all(
	struct stream *s, enum printer_format format, struct span bytes, const uint8_t *numbers)
{
	static const struct printer_names names = {.stack = fuzz_stack,
		.stack_id = fuzz_stack_id,
		.user_places = fuzz_places,
		.kernel_symbol = fuzz_symbol};
	struct stream_record r = {.time_ns = 1};
	struct printer *p = printer_new(s, format, &names);
	struct buf out = {0};

	printer_record(p, &r, bytes, &out);
	printer_map_begin(p, 0);
	for (size_t at = 0; at < bytes.n && at < 64; at += 16)
		printer_map_add(p, span_sub(bytes, at, bytes.n - at), span_sub(bytes, 0, at));
	printer_map_end(p, numbers[0], numbers[1], &out);
	if (out.n > OUT_MAX)
		abort();
	if (format == PRINTER_JSON)
		check_json(&out);
	buf_release(&out);
	printer_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct maker m = {.c = cursor_of((struct span){data, n}), .arena = arena_new()};
	static const enum format_kind kinds[] = {
		FORMAT_PRINTF, FORMAT_PRINT, FORMAT_JOIN, FORMAT_TIME};
	const char *strings[] = {"%H:%M:%S %f"};
	struct shape *args[2];
	struct stream_map_def map = {.name = "@m"};
	struct stream_format format = {.args = args, .n_args = 2};
	struct stream s = {.formats = {.v = &format, .n = 1},
		.maps = {.v = &map, .n = 1},
		.strings = {.v = strings, .n = 1}};
	uint8_t numbers[2];
	struct span rest;

	format.kind = kinds[cursor_u8(&m.c) % 4];
	numbers[0] = cursor_u8(&m.c);
	numbers[1] = cursor_u8(&m.c);
	format.text = cursor_cstr(&m.c);
	args[0] = make_shape(&m, 0);
	args[1] = make_shape(&m, 0);
	map.key = make_shape(&m, 0);
	map.value = make_shape(&m, 0);
	rest = m.c.failed ? (struct span){NULL, 0} : (struct span){m.c.p, cursor_left(&m.c)};
	for (s.like = 0; s.like < N_STREAM_LIKES; s.like++) {
		print_all(&s, PRINTER_TEXT, rest, numbers);
		print_all(&s, PRINTER_JSON, rest, numbers);
	}
	arena_free(m.arena);
	return 0;
}
