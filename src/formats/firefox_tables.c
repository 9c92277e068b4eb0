/* SPDX-License-Identifier: MIT */
#include "formats/firefox_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/number_text.h"

#define NONE		 INT64_MIN /* null */
#define RESOURCE_LIBRARY 1
#define ADDRESS_MAX	 UINT32_MAX /* readers keep them in 32 bits */

static const struct trace_reader *reader_of(const struct firefox_tables *t)
{
	return t->stacks->profile->reader;
}

/* ---- collecting ---- */

static void add_library(struct firefox_tables *t, uint32_t image)
{
	if (!image || t->library_of[image])
		return;
	vec_push(&t->images, image);
	t->library_of[image] = (uint32_t)t->images.n;
}

static void add_function(struct firefox_tables *t, const struct export_place *place)
{
	uint32_t image = place->frame ? trace_reader_frame(reader_of(t), place->frame)->image : 0;
	struct firefox_function *known;

	vec_ensure_zero(&t->function_of, place->function + (size_t)1);
	if (!t->function_of.v[place->function]) {
		vec_push(&t->functions,
			((struct firefox_function){.routine = place->function, .image = image}));
		t->function_of.v[place->function] = (uint32_t)t->functions.n;
		add_library(t, image);
	}
	known = &t->functions.v[t->function_of.v[place->function] - 1];
	if (!known->file && place->file) {
		known->file = place->file;
		intern_text(&t->files, place->file);
	}
}

void firefox_tables_init(struct firefox_tables *t, const struct export_stacks *stacks)
{
	*t = (struct firefox_tables){.stacks = stacks};
	t->library_of = mem_calloc(trace_reader_n_images(reader_of(t)), sizeof(*t->library_of));
	for (size_t i = 1; i < stacks->places.n; i++)
		add_function(t, &stacks->places.v[i]);
}

void firefox_tables_release(struct firefox_tables *t)
{
	intern_release(&t->strings);
	intern_release(&t->files);
	vec_release(&t->functions);
	vec_release(&t->function_of);
	vec_release(&t->images);
	free(t->library_of);
}

/* ---- categories and libraries ---- */

void firefox_put_categories(struct json *j)
{
	static const struct {
		const char *name, *color;
	} categories[FIREFOX_N_CATEGORIES] = {
		[FIREFOX_CATEGORY_OTHER] = {"Other", "grey"},
		[FIREFOX_CATEGORY_NATIVE] = {"Native", "blue"},
		[FIREFOX_CATEGORY_KERNEL] = {"Kernel", "orange"},
		[FIREFOX_CATEGORY_JITTED] = {"Jitted", "green"},
		[FIREFOX_CATEGORY_INTERPRETED] = {"Interpreted", "yellow"},
	};

	json_array_begin(j, "categories");
	for (size_t i = 0; i < FIREFOX_N_CATEGORIES; i++) {
		json_object_begin(j, NULL);
		json_string(j, "name", categories[i].name);
		json_string(j, "color", categories[i].color);
		json_array_begin(j, "subcategories");
		json_string(j, NULL, "Other");
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

/* A build-id as Breakpad writes it: the first 16 bytes as a GUID, whose first three parts are little-endian,
 * and the age 0. */
static void put_breakpad_id(struct json *j, const struct trace_image *image)
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	char text[16 * 2 + 2] = "", *p = text;

	for (size_t i = 0; i < 16; i++)
		p += sprintf(
			p, "%02X", order[i] < image->build_id_n ? image->build_id[order[i]] : 0);
	strcpy(p, "0");
	json_string(j, "breakpadId", text);
}

static void put_library(const struct firefox_tables *t, struct json *j, uint32_t id)
{
	const struct trace_image *image = trace_reader_image(reader_of(t), id);
	const char *path = trace_reader_string(reader_of(t), image->path);
	struct buf build_id = {0};

	buf_put_hex(&build_id, (struct span){image->build_id, image->build_id_n});
	json_object_begin(j, NULL);
	json_string(j, "arch", "");
	json_string(j, "name", path_base_name(path));
	json_string(j, "path", path);
	json_string(j, "debugName", path_base_name(path));
	json_string(j, "debugPath", path);
	put_breakpad_id(j, image);
	json_string(j, "codeId", image->build_id_n ? buf_text(&build_id) : NULL);
	json_object_end(j);
	buf_release(&build_id);
}

void firefox_put_libraries(const struct firefox_tables *t, struct json *j)
{
	json_array_begin(j, "libs");
	for (size_t i = 0; i < t->images.n; i++)
		put_library(t, j, t->images.v[i]);
	json_array_end(j);
}

/* ---- columns ---- */

typedef int64_t column_value(struct firefox_tables *t, size_t row);

static void put_column(
	struct firefox_tables *t, struct json *j, const char *name, size_t n, column_value *value)
{
	bool is_next = false;

	json_array_begin(j, name);
	for (size_t i = 0; i < n; i++) {
		int64_t v = value(t, i);

		put_comma(j->out, &is_next);
		if (v == NONE) {
			fputs_unlocked("null", j->out);
			continue;
		}
		if (v < 0)
			putc_unlocked('-', j->out);
		put_number(j->out, v < 0 ? (uint64_t)-v : (uint64_t)v);
	}
	json_array_end(j);
}

static int64_t no_value(struct firefox_tables *t, size_t row)
{
	(void)t;
	(void)row;
	return NONE;
}

static int64_t zero_value(struct firefox_tables *t, size_t row)
{
	(void)t;
	(void)row;
	return 0;
}

static int64_t one_value(struct firefox_tables *t, size_t row)
{
	(void)t;
	(void)row;
	return 1;
}

/* The formats' booleans. */
static void put_false(struct json *j, const char *name, size_t n)
{
	bool is_next = false;

	json_array_begin(j, name);
	for (size_t i = 0; i < n; i++) {
		put_comma(j->out, &is_next);
		fputs_unlocked("false", j->out);
	}
	json_array_end(j);
}

/* ---- stacks ---- */

static int64_t stack_frame(struct firefox_tables *t, size_t row)
{
	return (int64_t)t->stacks->nodes.v[row + 1].place - 1;
}

/* How many rows before this one its caller is; 0 = it has none. */
static int64_t stack_prefix(struct firefox_tables *t, size_t row)
{
	uint32_t parent = t->stacks->nodes.v[row + 1].parent;

	return parent ? (int64_t)(row + 1 - parent) : 0;
}

static void put_stack_table(struct firefox_tables *t, struct json *j)
{
	size_t n = t->stacks->nodes.n - 1;

	json_object_begin(j, "stackTable");
	put_column(t, j, "frame", n, stack_frame);
	put_column(t, j, "prefixOffset", n, stack_prefix);
	json_u64(j, "length", n);
	json_object_end(j);
}

/* ---- frames ---- */

static const struct export_place *place_of(const struct firefox_tables *t, size_t row)
{
	return &t->stacks->places.v[row + 1];
}

/* Within the library; -1 where that means nothing to others. */
static int64_t frame_address(struct firefox_tables *t, size_t row)
{
	const struct export_place *place = place_of(t, row);
	const struct trace_frame *frame;
	uint64_t addr;

	if (!place->frame)
		return -1;
	frame = trace_reader_frame(reader_of(t), place->frame);
	if (!frame->image || trace_reader_image(reader_of(t), frame->image)->kind != IMAGE_KIND_ELF)
		return -1;
	addr = frame->addr - (frame->is_caller && frame->addr ? 1 : 0);
	return addr <= ADDRESS_MAX ? (int64_t)addr : -1;
}

static int64_t frame_inline_depth(struct firefox_tables *t, size_t row)
{
	return place_of(t, row)->depth;
}

/* What is inlined is of the kind of the code that it is in. */
static int64_t frame_category(struct firefox_tables *t, size_t row)
{
	static const enum firefox_category of_kind[] = {
		[FRAME_KIND_NATIVE] = FIREFOX_CATEGORY_NATIVE,
		[FRAME_KIND_KERNEL] = FIREFOX_CATEGORY_KERNEL,
		[FRAME_KIND_INTERPRETED] = FIREFOX_CATEGORY_INTERPRETED,
		[FRAME_KIND_JITTED] = FIREFOX_CATEGORY_JITTED,
		[FRAME_KIND_INLINE] = FIREFOX_CATEGORY_NATIVE,
		[FRAME_KIND_MARKER] = FIREFOX_CATEGORY_OTHER,
	};
	const struct export_place *place = place_of(t, row);

	return place->depth
		       ? NONE
		       : (int64_t)of_kind[export_stacks_routine(t->stacks, place->function)->kind];
}

static int64_t frame_subcategory(struct firefox_tables *t, size_t row)
{
	return place_of(t, row)->depth ? NONE : 0;
}

static int64_t frame_function(struct firefox_tables *t, size_t row)
{
	return (int64_t)t->function_of.v[place_of(t, row)->function] - 1;
}

static int64_t frame_line(struct firefox_tables *t, size_t row)
{
	uint32_t line = place_of(t, row)->line;

	return line ? (int64_t)line : NONE;
}

static void put_frame_table(struct firefox_tables *t, struct json *j)
{
	size_t n = t->stacks->places.n - 1;

	json_object_begin(j, "frameTable");
	put_column(t, j, "address", n, frame_address);
	put_column(t, j, "inlineDepth", n, frame_inline_depth);
	put_column(t, j, "category", n, frame_category);
	put_column(t, j, "subcategory", n, frame_subcategory);
	put_column(t, j, "func", n, frame_function);
	put_column(t, j, "nativeSymbol", n, no_value);
	put_column(t, j, "innerWindowID", n, zero_value);
	put_column(t, j, "line", n, frame_line);
	put_column(t, j, "column", n, no_value);
	put_column(t, j, "originalLocation", n, no_value);
	json_u64(j, "length", n);
	json_object_end(j);
}

/* ---- functions ---- */

static int64_t function_name(struct firefox_tables *t, size_t row)
{
	return intern_text(
		&t->strings, export_stacks_routine(t->stacks, t->functions.v[row].routine)->name);
}

static int64_t function_resource(struct firefox_tables *t, size_t row)
{
	uint32_t image = t->functions.v[row].image;

	return image ? (int64_t)t->library_of[image] - 1 : -1;
}

static int64_t function_source(struct firefox_tables *t, size_t row)
{
	const char *file = t->functions.v[row].file;

	return file ? (int64_t)intern_text(&t->files, file) : NONE;
}

static void put_function_table(struct firefox_tables *t, struct json *j)
{
	size_t n = t->functions.n;

	json_object_begin(j, "funcTable");
	put_column(t, j, "name", n, function_name);
	put_false(j, "isJS", n);
	put_false(j, "relevantForJS", n);
	put_column(t, j, "resource", n, function_resource);
	put_column(t, j, "source", n, function_source);
	put_column(t, j, "lineNumber", n, no_value);
	put_column(t, j, "columnNumber", n, no_value);
	put_column(t, j, "originalLocation", n, no_value);
	json_u64(j, "length", n);
	json_object_end(j);
}

/* ---- resources and source files ---- */

static int64_t resource_library(struct firefox_tables *t, size_t row)
{
	(void)t;
	return (int64_t)row;
}

static int64_t resource_name(struct firefox_tables *t, size_t row)
{
	const struct trace_image *image = trace_reader_image(reader_of(t), t->images.v[row]);

	return intern_text(
		&t->strings, path_base_name(trace_reader_string(reader_of(t), image->path)));
}

static int64_t resource_type(struct firefox_tables *t, size_t row)
{
	(void)t;
	(void)row;
	return RESOURCE_LIBRARY;
}

static void put_resource_table(struct firefox_tables *t, struct json *j)
{
	size_t n = t->images.n;

	json_object_begin(j, "resourceTable");
	put_column(t, j, "lib", n, resource_library);
	put_column(t, j, "name", n, resource_name);
	put_column(t, j, "host", n, no_value);
	put_column(t, j, "type", n, resource_type);
	json_u64(j, "length", n);
	json_object_end(j);
}

static int64_t source_file(struct firefox_tables *t, size_t row)
{
	return intern_text(&t->strings, intern_get(&t->files, (uint32_t)row));
}

static void put_sources(struct firefox_tables *t, struct json *j)
{
	size_t n = t->files.n_items;

	json_object_begin(j, "sources");
	put_column(t, j, "id", n, no_value);
	put_column(t, j, "filename", n, source_file);
	put_column(t, j, "startLine", n, one_value);
	put_column(t, j, "startColumn", n, one_value);
	put_column(t, j, "sourceMapURL", n, no_value);
	put_column(t, j, "content", n, no_value);
	json_u64(j, "length", n);
	json_object_end(j);
}

/* A table that is there, without rows. */
static void put_empty(struct json *j, const char *name, const char *const *columns)
{
	json_object_begin(j, name);
	for (; *columns; columns++) {
		json_array_begin(j, *columns);
		json_array_end(j);
	}
	json_u64(j, "length", 0);
	json_object_end(j);
}

void firefox_put_shared(struct firefox_tables *t, struct json *j)
{
	static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};
	static const char *const locations[] = {"source", "line", "column", NULL};

	json_object_begin(j, "shared");
	put_stack_table(t, j);
	put_frame_table(t, j);
	put_function_table(t, j);
	put_resource_table(t, j);
	put_sources(t, j);
	put_empty(j, "nativeSymbols", symbols);
	put_empty(j, "sourceLocationTable", locations);
	json_array_begin(j, "stringArray");
	for (size_t i = 0; i < t->strings.n_items; i++)
		json_string(j, NULL, intern_get(&t->strings, (uint32_t)i));
	json_array_end(j);
	json_object_end(j);
}
