/* SPDX-License-Identifier: MIT */
#include "formats/foreign/firefox_columns.h"

#include <stddef.h>

void firefox_column_take(struct firefox_column *c, struct json_reader *j)
{
	c->v.n = 0;
	if (!json_enter(j, JSON_ARRAY))
		return;
	while (json_next_item(j)) {
		double value = json_take_number(j, FIREFOX_NULL);

		if (c->v.n == FIREFOX_ENTRIES_MAX) {
			json_reader_wrong(j, "has a table that is too long");
			return;
		}
		vec_push(&c->v, value);
	}
}

double firefox_column_get(const struct firefox_column *c, double row)
{
	return row >= 0 && row < (double)c->v.n ? c->v.v[(size_t)row] : FIREFOX_NULL;
}

struct span firefox_columns_string(const struct firefox_columns *t, double number)
{
	const struct intern_item *item;

	if (!(number >= 0 && number < (double)t->strings.n))
		return (struct span){0};
	item = &t->texts.items[t->strings.v[(size_t)number]];
	return (struct span){(const uint8_t *)item->p, item->n};
}

static void take_strings(struct firefox_columns *t, struct json_reader *j)
{
	t->strings.n = 0;
	if (!json_enter(j, JSON_ARRAY))
		return;
	while (json_next_item(j)) {
		struct span text = json_take_text(j);

		if (t->strings.n == FIREFOX_ENTRIES_MAX) {
			json_reader_wrong(j, "has a table that is too long");
			return;
		}
		vec_push(&t->strings,
			intern_bytes(&t->texts, text.n ? (const void *)text.p : "", text.n));
	}
}

#define COLUMN(table, name, member)                                                                \
	{                                                                                          \
		table, name, offsetof(struct firefox_columns, member)                              \
	}
static const struct column_place {
	const char *table, *name;
	size_t offset;
} places[] = {
	COLUMN("frameTable", "func", frame_func),
	COLUMN("frameTable", "line", frame_line),
	COLUMN("frameTable", "address", frame_address),
	COLUMN("funcTable", "name", func_name),
	COLUMN("funcTable", "fileName", func_file),
	COLUMN("funcTable", "resource", func_resource),
	COLUMN("resourceTable", "lib", resource_lib),
	COLUMN("resourceTable", "name", resource_name),
	COLUMN("stackTable", "frame", stack_frame),
	COLUMN("stackTable", "prefix", stack_prefix),
	COLUMN("stackTable", "prefixOffset", stack_offset),
};
#define N_PLACES (sizeof(places) / sizeof(places[0]))

static const struct column_place *find(const char *table, struct span name)
{
	for (size_t i = 0; i < N_PLACES; i++)
		if (!strcmp(places[i].table, table) && json_key_is(name, places[i].name))
			return &places[i];
	return NULL;
}

static void take_table(struct firefox_columns *t, struct json_reader *j, const char *table)
{
	struct span key;

	if (!json_enter(j, JSON_OBJECT))
		return;
	while (json_next_key(j, &key)) {
		const struct column_place *place = find(table, key);

		if (place)
			firefox_column_take(
				(struct firefox_column *)(void *)((char *)t + place->offset), j);
		else
			json_skip(j);
	}
}

bool firefox_columns_take(struct firefox_columns *t, struct json_reader *j, struct span key)
{
	if (json_key_is(key, "stringArray") || json_key_is(key, "stringTable")) {
		take_strings(t, j);
		return true;
	}
	for (size_t i = 0; i < N_PLACES; i++)
		if (json_key_is(key, places[i].table)) {
			take_table(t, j, places[i].table);
			return true;
		}
	return false;
}

void firefox_columns_release(struct firefox_columns *t)
{
	intern_release(&t->texts);
	vec_release(&t->strings);
	for (size_t i = 0; i < N_PLACES; i++) {
		struct firefox_column *c =
			(struct firefox_column *)(void *)((char *)t + places[i].offset);

		vec_release(&c->v);
	}
}
