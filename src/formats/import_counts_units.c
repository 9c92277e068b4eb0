/* SPDX-License-Identifier: MIT */
/*
 * Units: what the inserter wrote about the text sections of the program. They are read as a
 * sequence; where one is damaged the next is looked for by its magic. No two units share counters
 * and no two functions share blocks, so that the work is bounded by the bytes of the file.
 */
#include "base/order.h"
#include "formats/import_counts_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define UNIT_ALIGN 8
/* Names that functions of a unit may use, for each byte of its name table: many may share one. */
#define NAMES_TIMES   4
#define NAMES_ATLEAST 65536

/* One unit while it is read. */
struct unit_reader {
	struct counts_file *file;
	struct count_unit head;
	struct counts_unit unit;
	struct span functions, blocks, foreign, names, inserted;
	uint64_t names_budget;
	uint64_t n_bad; /* rows that do not fit */
};

/* "" when the unit has no such name. */
static const char *name_at(struct unit_reader *r, uint32_t offset)
{
	struct span rest;
	size_t n;

	if (!offset || offset >= r->names.n)
		return "";
	rest = span_sub(r->names, offset, r->names.n - offset);
	n = strnlen((const char *)rest.p, rest.n);
	if (n == rest.n || n > r->names_budget) {
		r->n_bad++;
		return "";
	}
	r->names_budget -= n;
	return counts_text(r->file, (const char *)rest.p, n);
}

/* An unnamed function is named after the object, so that two of them are told apart. */
static const char *function_name(struct unit_reader *r, const struct count_function *row)
{
	const char *name = name_at(r, row->name);
	char made_up[300];
	int n;

	if (*name)
		return name;
	n = snprintf(made_up, sizeof(made_up), "%.200s+0x%x",
		*r->unit.object ? r->unit.object : "[unnamed]", row->start);
	return counts_text(r->file, made_up, (size_t)n);
}

static bool fits(uint32_t start, uint32_t n, uint32_t size)
{
	return start <= size && n <= size - start;
}

static void own_blocks(
	struct unit_reader *r, uint32_t number, const struct counts_function *function)
{
	for (uint32_t i = 0; i < function->n_blocks; i++)
		r->file->blocks.v[function->first_block + i].function = number;
}

/* Calls of it have a name only, as the callers' units tell it: of two functions a global one is meant. */
static void add_left_alone(struct counts_file *f, const struct counts_function *function)
{
	bool is_new;
	uint64_t *at = map_ensure(&f->left_alone, (uint64_t)(uintptr_t)function->name, &is_new);

	if (is_new || (function->flags & COUNT_FUNCTION_GLOBAL))
		*at = f->functions.n;
}

static void read_functions(struct unit_reader *r)
{
	struct counts_file *f = r->file;
	struct cursor c = cursor_of(r->functions);
	uint32_t next_block = 0;

	for (uint32_t i = 0; i < r->head.n_functions; i++) {
		struct counts_function function = {.unit = (uint32_t)f->units.n};
		struct count_function row;

		cursor_take(&c, &row, sizeof(row));
		if (!fits(row.start, row.bytes, r->head.text_bytes)) {
			r->n_bad++;
			continue;
		}
		function.address = r->unit.text + row.start;
		function.bytes = row.bytes;
		function.name = function_name(r, &row);
		function.reason = row.reason;
		function.flags = row.flags;
		if (row.n_blocks && row.first_block >= next_block &&
			fits(row.first_block, row.n_blocks, r->head.n_blocks)) {
			function.first_block = r->unit.first_block + row.first_block;
			function.n_blocks = row.n_blocks;
			next_block = row.first_block + row.n_blocks;
			own_blocks(r, (uint32_t)f->functions.n, &function);
		} else if (row.n_blocks) {
			r->n_bad++;
		}
		if (row.entry && row.entry <= r->head.text_bytes)
			*map_ensure(&f->entry_of, r->unit.text + row.entry, NULL) = f->functions.n;
		if (row.reason)
			add_left_alone(f, &function);
		vec_push(&f->functions, function);
	}
}

static void read_blocks(struct unit_reader *r)
{
	struct counts_file *f = r->file;
	struct cursor c = cursor_of(r->blocks);
	uint64_t n_saturated = 0;

	r->unit.first_block = (uint32_t)f->blocks.n;
	r->unit.n_blocks = r->head.n_blocks;
	for (uint32_t i = 0; i < r->head.n_blocks; i++) {
		struct counts_block block = {.unit = (uint32_t)f->units.n, .function = COUNTS_NONE};
		struct count_block row;

		cursor_take(&c, &row, sizeof(row));
		if (row.start > row.end || row.end > r->head.text_bytes) {
			r->n_bad++;
			row.end = row.start = 0;
		}
		block.address = r->unit.text + row.start;
		block.bytes = row.end - row.start;
		block.inserted_bytes = row.inserted_bytes;
		block.n_insns = row.n_insns;
		n_saturated += row.n_insns == UINT16_MAX;
		vec_push(&f->blocks, block);
	}
	if (n_saturated)
		counts_note(f, n_saturated,
			"a block has more instructions than can be told: they are counted as %u",
			UINT16_MAX);
}

static void read_foreign(struct unit_reader *r)
{
	struct cursor c = cursor_of(r->foreign);

	for (uint32_t i = 0; i < r->head.n_foreign; i++) {
		struct count_foreign_site row;
		struct counts_foreign foreign = {0};

		cursor_take(&c, &row, sizeof(row));
		if (row.site > r->head.text_bytes) {
			r->n_bad++;
			continue;
		}
		foreign.site = r->unit.text + row.site;
		foreign.name = name_at(r, row.name);
		vec_push(&r->file->foreign, foreign);
	}
}

/* The next stretch, behind the one that ends at *end; false when it leaves the section. */
static bool read_stretch(struct unit_reader *r, struct cursor *c, uint64_t *end)
{
	uint64_t distance = cursor_uleb(c), bytes = cursor_uleb(c), start;

	if (c->failed || distance > r->head.text_bytes - *end ||
		bytes > r->head.text_bytes - *end - distance)
		return false;
	start = *end + distance;
	*end = start + bytes;
	vec_push(&r->file->inserted,
		((struct counts_stretch){r->unit.text + start, r->unit.text + *end}));
	return true;
}

static void read_inserted(struct unit_reader *r)
{
	struct counts_file *f = r->file;
	struct cursor c = cursor_of(r->inserted);
	uint64_t n, end = 0;
	bool is_good = true;

	r->unit.first_inserted = f->inserted.n;
	if (!(r->head.flags & COUNT_UNIT_INSERTED))
		return;
	for (uint32_t i = 0; i < r->unit.n_blocks && is_good; i++) {
		struct counts_block *b = &f->blocks.v[r->unit.first_block + i];
		uint64_t bytes = cursor_uleb(&c);

		is_good = !c.failed && bytes <= b->address - r->unit.text;
		b->front_bytes = (uint32_t)bytes;
	}
	for (n = cursor_uleb(&c); n && is_good; n--)
		is_good = read_stretch(r, &c, &end);
	r->unit.has_inserted = is_good && !c.failed;
	if (!r->unit.has_inserted) {
		f->inserted.n = r->unit.first_inserted;
		r->n_bad++;
	}
	r->unit.n_inserted = f->inserted.n - r->unit.first_inserted;
}

/* They end the unit: how many there are is its last word. */
static void read_calls(struct unit_reader *r, struct span unit)
{
	uint64_t n = 0;
	struct span rows;
	struct cursor c;

	if (!(r->head.flags & COUNT_UNIT_CALLS))
		return;
	memcpy(&n, unit.p + unit.n - sizeof(n), sizeof(n));
	if (n > (unit.n - sizeof(r->head) - sizeof(n)) / sizeof(struct count_call)) {
		r->n_bad++;
		return;
	}
	rows = span_sub(unit, unit.n - sizeof(n) - n * sizeof(struct count_call),
		n * sizeof(struct count_call));
	c = cursor_of(rows);
	for (; n; n--) {
		struct count_call row;

		cursor_take(&c, &row, sizeof(row));
		if (row.end > r->head.text_bytes)
			r->n_bad++;
		else
			vec_push(&r->file->calls,
				((struct counts_call){r->unit.text + row.end, row.length, row.rest,
					(uint32_t)r->file->units.n, 0}));
	}
}

/* The tables behind the head; false when they do not fit into the unit. */
static bool find_tables(struct unit_reader *r, struct span unit)
{
	struct cursor c = cursor_of(unit);

	cursor_skip(&c, sizeof(r->head));
	r->functions =
		cursor_bytes(&c, (uint64_t)r->head.n_functions * sizeof(struct count_function));
	r->blocks = cursor_bytes(&c, (uint64_t)r->head.n_blocks * sizeof(struct count_block));
	r->foreign =
		cursor_bytes(&c, (uint64_t)r->head.n_foreign * sizeof(struct count_foreign_site));
	r->names = cursor_bytes(&c, r->head.names_bytes);
	r->inserted = cursor_bytes(&c, cursor_left(&c));
	return !c.failed;
}

static bool read_unit(struct counts_file *f, struct span unit, uint64_t address)
{
	struct unit_reader r = {.file = f};

	memcpy(&r.head, unit.p, sizeof(r.head));
	if (r.head.version != COUNT_UNIT_VERSION || !find_tables(&r, unit) ||
		f->blocks.n + r.head.n_blocks > UINT32_MAX)
		return false;
	r.names_budget = (uint64_t)NAMES_TIMES * r.names.n + NAMES_ATLEAST;
	r.unit.flags = r.head.flags;
	r.unit.text = address + offsetof(struct count_unit, text) + (uint64_t)(int64_t)r.head.text;
	if (r.head.counters) {
		r.unit.has_counters = true;
		r.unit.counters = address + offsetof(struct count_unit, counters) +
				  (uint64_t)(int64_t)r.head.counters;
	}
	r.unit.object = name_at(&r, r.head.object_name);
	read_blocks(&r);
	read_functions(&r);
	read_foreign(&r);
	read_inserted(&r);
	read_calls(&r, unit);
	vec_push(&f->units, r.unit);
	if (r.n_bad)
		counts_lost(f, r.n_bad, "a row of a unit does not fit into it");
	return true;
}

static void read_area(struct counts_file *f, const struct counts_area *area)
{
	size_t at = 0, n_bad = 0;

	while (area->bytes.n - at >= sizeof(struct count_unit)) {
		struct count_unit head;
		struct span unit;

		memcpy(&head, area->bytes.p + at, sizeof(head));
		unit = span_sub(area->bytes, at, head.bytes);
		if (head.magic == COUNT_UNIT_MAGIC && unit.n >= sizeof(head) &&
			read_unit(f, unit, area->row.first + at)) {
			at += (unit.n + UNIT_ALIGN - 1) / UNIT_ALIGN * UNIT_ALIGN;
			if (at > area->bytes.n)
				break;
			continue;
		}
		n_bad += head.magic == COUNT_UNIT_MAGIC;
		at += UNIT_ALIGN; /* linkers may leave zeros between units */
	}
	if (n_bad)
		counts_lost(f, n_bad, "a unit cannot be read: its functions are missing");
}

static int compare_counters(const void *a, const void *b, void *context)
{
	const struct counts_file *f = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t p = f->units.v[x].counters, q = f->units.v[y].counters;

	return ORDER(p, q) ?: ORDER(x, y);
}

static void order_counters(struct counts_file *f)
{
	uint64_t end = 0, n_shared = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < f->units.n; i++)
		if (f->units.v[i].has_counters && f->units.v[i].n_blocks)
			vec_push(&f->by_counters, i);
	if (f->by_counters.n)
		qsort_r(f->by_counters.v, f->by_counters.n, sizeof(*f->by_counters.v),
			compare_counters, f);
	for (size_t i = 0; i < f->by_counters.n; i++) {
		struct counts_unit *unit = &f->units.v[f->by_counters.v[i]];
		uint64_t bytes = (uint64_t)unit->n_blocks * 8;

		if ((n && unit->counters < end) || unit->counters > UINT64_MAX - bytes) {
			unit->has_counters = false;
			n_shared++;
			continue;
		}
		end = unit->counters + bytes;
		f->by_counters.v[n++] = f->by_counters.v[i];
	}
	f->by_counters.n = n;
	if (n_shared)
		counts_lost(f, n_shared, "two units have the same counters");
}

ORDER_BY(compare_sites, struct counts_foreign, site)

void counts_read_units(struct counts_file *f)
{
	for (size_t i = 0; i < f->units_areas.n; i++)
		read_area(f, &f->units_areas.v[i]);
	order_counters(f);
	vec_sort(&f->foreign, compare_sites);
	if (!f->units.n)
		counts_lost(f, 1, "the file describes no functions");
}

struct counts_foreign *counts_find_foreign(const struct counts_file *f, uint64_t site)
{
	size_t low = SEARCH(0, f->foreign.n, middle, f->foreign.v[middle].site < site);

	return low < f->foreign.n && f->foreign.v[low].site == site ? &f->foreign.v[low] : NULL;
}
