/* SPDX-License-Identifier: MIT */
/*
 * A map with all its entries: sorted by value where that is a number (of averages the average, of
 * statistics the total, of histograms the number of values), then by key, ascending. A blank line
 * follows a map with keys, and every histogram. A map with nothing in it is an empty line, as
 * bpftrace has it, so that printf("now: "); print(@x) ends its line.
 */
#include <stdlib.h>
#include <string.h>

#include "probe/print/print_internal.h"

static const struct shape nothing = {.kind = SHAPE_NONE};

/* Forgets the map before. */
static void begin(struct printer *p, const struct stream_map_def *map)
{
	arena_free(p->arena);
	p->arena = map ? arena_new() : NULL;
	p->entries.n = 0;
	map_reset(&p->entry_of_key);
	p->map = map;
}

void printer_map_begin(struct printer *p, uint32_t map_i)
{
	begin(p, p->stream && map_i < p->stream->maps.n ? &p->stream->maps.v[map_i] : NULL);
}

static struct span keep(struct printer *p, struct span s)
{
	return (struct span){s.n ? arena_dup(p->arena, s.p, s.n) : NULL, s.n};
}

/* Stacks that the code knew by ids of their own get that of all equal ones; false when there are
 * none. */
static bool name_stacks(
	struct printer *p, const struct shape *s, uint8_t *bytes, size_t n, unsigned depth)
{
	bool has_some = false;
	uint64_t id;

	if (s->kind == SHAPE_USTACK && p->names.stack_id && n >= sizeof(id)) {
		memcpy(&id, bytes, sizeof(id));
		id = p->names.stack_id(p->names.ctx, id);
		memcpy(bytes, &id, sizeof(id));
		return true;
	}
	for (uint32_t i = 0; s->kind == SHAPE_TUPLE && i < s->n_fields && depth < PRINT_DEPTH_MAX;
		i++)
		if (s->fields[i].offset < n)
			has_some |= name_stacks(p, s->fields[i].shape, bytes + s->fields[i].offset,
				n - s->fields[i].offset, depth + 1);
	return has_some;
}

/* The entry with the same key, or NULL. */
static struct printed_entry *find_entry(struct printer *p, struct span key)
{
	bool is_new;
	uint64_t *at = map_ensure(&p->entry_of_key, map_hash_bytes(key.p, key.n), &is_new);
	struct printed_entry *e = is_new ? NULL : &p->entries.v[*at];

	if (is_new)
		*at = p->entries.n;
	return e && e->key.n == key.n && !memcmp(e->key.p, key.p, key.n) ? e : NULL;
}

void printer_map_add(struct printer *p, struct span key, struct span value)
{
	const struct shape *of_key = p->map ? p->map->key : NULL,
			   *of_value = p->map ? p->map->value : NULL;
	struct printed_entry *same = NULL, e;

	if (!p->map)
		return;
	e = (struct printed_entry){keep(p, key), keep(p, value)};
	if (of_key && name_stacks(p, of_key, (uint8_t *)(uintptr_t)e.key.p, key.n, 0) && of_value &&
		shape_is_aggregation(of_value) && value.n >= of_value->size)
		same = find_entry(p, e.key);
	if (same)
		shape_add_value(of_value, (uint64_t *)(uintptr_t)same->value.p,
			(const uint64_t *)(const void *)e.value.p);
	else
		vec_push(&p->entries, e);
}

/* --- order ------------------------------------------------------------------------------------ */

static int compare_bytes(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Bits of a double as a number of the same order, so that NaNs have a place in it, too. */
static struct print_number real_rank(double real)
{
	uint64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	bits = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
	return (struct print_number){bits, false};
}

static int compare_keys(const struct shape *s, struct span a, struct span b, unsigned depth)
{
	struct print_number x, y;

	switch (s->kind) {
	case SHAPE_INT:
	case SHAPE_POINTER:
		print_number_of(s, a, &x);
		print_number_of(s, b, &y);
		return print_number_compare(x, y);
	case SHAPE_FLOAT:
		return print_number_compare(
			real_rank(print_float_of(s, a)), real_rank(print_float_of(s, b)));
	case SHAPE_STRING:
	case SHAPE_BYTES:
		return compare_bytes(print_chars(s, a), print_chars(s, b));
	case SHAPE_TUPLE:
		for (uint32_t i = 0; i < s->n_fields && depth < PRINT_DEPTH_MAX; i++) {
			struct print_part of_a, of_b;
			int order;

			print_part_of(s, i, a, &of_a);
			print_part_of(s, i, b, &of_b);
			order = compare_keys(of_a.shape, of_a.value, of_b.value, depth + 1);
			if (order)
				return order;
		}
		return 0;
	case SHAPE_USTACK:
	case SHAPE_KSTACK:
	case SHAPE_USYM:
	case SHAPE_KSYM:
	case SHAPE_PROBE:
	case SHAPE_FUNC:
	case SHAPE_TIME:
	case SHAPE_NAME:
		x = (struct print_number){print_word(a, 0), false};
		y = (struct print_number){print_word(b, 0), false};
		return print_number_compare(x, y);
	default:
		return compare_bytes(a, b);
	}
}

static int compare_entries(const void *left, const void *right, void *ctx)
{
	const struct printed_entry *a = left, *b = right;
	const struct stream_map_def *map = ctx;
	struct print_number x, y;
	int order = 0;

	if (map->value && print_number_of(map->value, a->value, &x) &&
		print_number_of(map->value, b->value, &y))
		order = print_number_compare(x, y);
	if (!order && map->key)
		order = compare_keys(map->key, a->key, b->key, 0);
	/* The rest makes the order of equal texts the same in every run. */
	return order ? order : compare_bytes(a->key, b->key);
}

/* --- text ------------------------------------------------------------------------------------- */

static bool has_keys(const struct stream_map_def *map)
{
	return map->key && map->key->kind != SHAPE_NONE;
}

static bool is_hist(const struct shape *s)
{
	return s->kind == SHAPE_HIST || s->kind == SHAPE_LHIST;
}

/* Whether values are drawn, each with a blank line behind it. */
static bool is_drawn(const struct shape *s)
{
	return is_hist(s) || s->kind == SHAPE_TSERIES;
}

static bool is_stack(const struct shape *s)
{
	return s->kind == SHAPE_USTACK || s->kind == SHAPE_KSTACK;
}

/* Where all series of the map end. */
static uint64_t last_interval(const struct printer *p)
{
	uint64_t all = 0, last = 0;

	for (size_t i = 0; i < p->entries.n; i++)
		if (print_series_last(p->map->value, p->entries.v[i].value, &last) && last > all)
			all = last;
	return all;
}

/* Keys of several parts have no brackets of their own. */
static void put_key(struct printer *p, const struct shape *key, struct span value,
	const char *separator, struct buf *out)
{
	if (key->kind != SHAPE_TUPLE || shape_is_record(key)) {
		print_value(p, key, value, PRINT_INDENT_KEY, 1, out);
		return;
	}
	for (uint32_t i = 0; i < key->n_fields; i++) {
		struct print_part part;

		print_part_of(key, i, value, &part);
		if (i)
			buf_put_cstr(out, separator);
		print_value(p, part.shape, part.value, PRINT_INDENT_KEY, 1, out);
	}
}

static void put_entry(
	struct printer *p, const struct printed_entry *e, uint64_t div, struct buf *out)
{
	const struct shape *value = p->map->value ? p->map->value : &nothing;

	buf_put_cstr(out, p->map->name ? p->map->name : "@");
	if (has_keys(p->map)) {
		buf_put_u8(out, '[');
		put_key(p, p->map->key, e->key, ", ", out);
		buf_put_u8(out, ']');
	}
	if (is_hist(value)) {
		buf_put_cstr(out, p->manner->has_blank_after_name ? ": \n" : ":\n");
		print_hist(value, e->value, div, out);
	} else if (value->kind == SHAPE_TSERIES) {
		buf_put_cstr(out, ":\n");
		print_series(value, e->value, last_interval(p), div, out);
	} else {
		buf_put_cstr(out, ": ");
		print_value(p, value, e->value, PRINT_INDENT_VALUE, div, out);
	}
	if (!p->manner->has_blank_averages || !is_stack(value))
		buf_put_u8(out, '\n');
}

/* A blank line behind all entries. Each of a drawn map has one already, and so has an empty map. */
static bool has_blank_line(const struct printer *p)
{
	const struct shape *value = p->map->value ? p->map->value : &nothing;

	if (!p->entries.n)
		return true;
	if (p->manner->has_blank_averages)
		return value->kind == SHAPE_AVG || value->kind == SHAPE_STATS || is_stack(value);
	return has_keys(p->map) && !is_drawn(value);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static const char *json_type(const struct shape *value)
{
	if (is_hist(value))
		return "hist";
	if (value->kind == SHAPE_TSERIES)
		return "tseries";
	return value->kind == SHAPE_STATS || value->kind == SHAPE_AVG ? "stats" : "map";
}

static void put_json_key(struct printer *p, const struct printed_entry *e, struct buf *out)
{
	struct buf text = {0};

	put_key(p, p->map->key, e->key, ",", &text);
	print_json_string(buf_span(&text), out);
	buf_put_cstr(out, ": ");
	buf_release(&text);
}

static void put_json_map(struct printer *p, size_t first, uint64_t div, struct buf *out)
{
	const struct shape *value = p->map->value ? p->map->value : &nothing;
	const char *name = p->map->name ? p->map->name : "@";
	bool keys = has_keys(p->map);

	if ((!keys || p->manner->has_empty_maps) && first >= p->entries.n)
		return; /* a scalar that was never assigned */
	buf_printf(out, "{\"type\": \"%s\", \"data\": {", json_type(value));
	print_json_string((struct span){(const uint8_t *)name, strlen(name)}, out);
	buf_put_cstr(out, keys ? ": {" : ": ");
	for (size_t i = first; i < p->entries.n; i++) {
		const struct printed_entry *e = &p->entries.v[i];

		if (i > first && !keys)
			break;
		if (i > first)
			buf_put_cstr(out, ", ");
		if (keys)
			put_json_key(p, e, out);
		print_value_json(p, value, e->value, div, out);
	}
	buf_put_cstr(out, keys ? "}}}\n" : "}}\n");
}

/* A count() without a key was always there in older versions. */
static void add_missing(struct printer *p)
{
	static const uint64_t zero;

	if (p->manner->has_empty_maps && !p->entries.n && !has_keys(p->map) && p->map->value &&
		p->map->value->kind == SHAPE_COUNT)
		printer_map_add(p, (struct span){NULL, 0},
			(struct span){(const uint8_t *)&zero, sizeof(zero)});
}

void printer_map_end(struct printer *p, uint64_t top, uint64_t div, struct buf *out)
{
	size_t first;

	if (!p->map)
		return;
	add_missing(p);
	if (p->entries.n > 1)
		qsort_r(p->entries.v, p->entries.n, sizeof(*p->entries.v), compare_entries,
			(void *)(uintptr_t)p->map);
	first = top && top < p->entries.n ? p->entries.n - (size_t)top : 0;
	if (p->format == PRINTER_JSON) {
		put_json_map(p, first, div, out);
	} else {
		for (size_t i = first; i < p->entries.n; i++)
			put_entry(p, &p->entries.v[i], div, out);
		if (has_blank_line(p))
			buf_put_u8(out, '\n');
	}
	begin(p, NULL);
}
