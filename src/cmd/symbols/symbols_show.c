/* SPDX-License-Identifier: MIT */
/* weir symbols show: everything that is known about one image. */
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cmd/symbols/symbols_verbs.h"

static size_t n_symbols_shown(const struct symbols_call *call, const struct catalog_image *image)
{
	size_t n = catalog_image_n_symbols(image);

	return call->args->limit < n ? (size_t)call->args->limit : n;
}

static void print_line(const char *key, const char *value)
{
	if (value && *value)
		printf("%-14s %s\n", key, value);
}

static void print_hex(const char *key, uint64_t value)
{
	if (value)
		printf("%-14s 0x%" PRIx64 "\n", key, value);
}

static void print_identity(struct catalog_image *image)
{
	const struct image_identity *id = catalog_image_identity(image);
	struct buf b = {0};
	time_t seconds = (time_t)(id->mtime_ns / 1000000000u);
	char when[64];
	struct tm tm;

	print_line("Image", catalog_image_id(image));
	print_line("Path", id->path);
	print_line("Kind", image_kind_name(id->kind));
	if (id->machine)
		printf("%-14s %s, %u bit\n", "Machine", symbols_machine(id->machine, &b), id->bits);
	print_line("Build-id", symbols_hex((struct span){id->build_id, id->build_id_n}, &b));
	print_hex("Content-hash", id->content_hash);
	print_hex("Debuglink-crc", id->debuglink_crc);
	print_hex("File-crc", id->file_crc);
	if (id->file_bytes)
		printf("%-14s %" PRIu64 " bytes\n", "File", id->file_bytes);
	if (id->mtime_ns && gmtime_r(&seconds, &tm) &&
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		printf("%-14s %s.%09" PRIu64 " UTC\n", "Time", when, id->mtime_ns % 1000000000u);
	if (id->pid)
		printf("%-14s %" PRIu32 "\n", "Process", id->pid);
	printf("%-14s %zu\n%-14s %zu\n%-14s %zu\n", "Symbols", catalog_image_n_symbols(image),
		"Lines", catalog_image_n_rows(image), "Inline-sites", catalog_image_n_sites(image));
	buf_release(&b);
}

static void begin_table(struct table *t, const char *heads)
{
	table_line(t, "");
	symbols_table_head(t, heads);
}

static void print_segments(struct catalog_image *image)
{
	const struct image_identity *id = catalog_image_identity(image);
	struct table t = {0};

	begin_table(&t, "Segment Offset Bytes Memory Flags");
	for (size_t i = 0; i < id->n_segments; i++) {
		const struct image_segment *s = &id->segments[i];

		table_row(&t, TABLE_STYLE_PLAIN);
		table_cellf(&t, "0x%" PRIx64, s->addr);
		table_cellf(&t, "0x%" PRIx64, s->offset);
		table_number(&t, s->file_bytes);
		table_number(&t, s->mem_bytes);
		table_cellf(&t, "%s%s%s", s->flags & PF_R ? "r" : "-", s->flags & PF_W ? "w" : "-",
			s->flags & PF_X ? "x" : "-");
	}
	symbols_table_end(&t, id->n_segments);
}

static void print_sections(struct catalog_image *image)
{
	struct table t = {.left_columns = 0x4};

	begin_table(&t, "Section Bytes Flags Name");
	for (size_t i = 0; i < catalog_image_n_sections(image); i++) {
		struct catalog_section s = catalog_image_section(image, i);

		table_row(&t, TABLE_STYLE_PLAIN);
		table_cellf(&t, "0x%" PRIx64, s.addr);
		table_number(&t, s.bytes);
		table_cellf(&t, "%s%s%s", s.flags & SHF_ALLOC ? "a" : "-",
			s.flags & SHF_WRITE ? "w" : "-", s.flags & SHF_EXECINSTR ? "x" : "-");
		table_cell(&t, s.name);
	}
	symbols_table_end(&t, catalog_image_n_sections(image));
}

static void print_sources(struct catalog_image *image)
{
	struct table t = {.left_columns = 0x19};

	begin_table(&t, "Source Offered Accepted Path Identity Verdict");
	for (size_t i = 0; i < catalog_image_n_sources(image); i++) {
		struct catalog_source s = catalog_image_source(image, i);

		table_row(&t, TABLE_STYLE_PLAIN);
		table_cell(&t, symbol_source_name(s.kind));
		table_number(&t, s.n_offered);
		table_number(&t, s.n_accepted);
		table_cell(&t, s.path && *s.path ? s.path : ".");
		table_cell(&t, s.identity && *s.identity ? s.identity : ".");
		table_cell(&t, s.verdict && *s.verdict ? s.verdict : ".");
	}
	symbols_table_end(&t, true);
}

static void print_symbols(struct catalog_image *image, size_t n)
{
	struct table t = {.left_columns = 0x4};
	struct buf name = {0};

	begin_table(&t, "Address Size Source Name");
	for (size_t i = 0; i < n; i++) {
		struct catalog_symbol s = catalog_image_symbol(image, i);

		table_row(&t, TABLE_STYLE_PLAIN);
		table_cellf(&t, "0x%" PRIx64, s.start);
		table_number(&t, s.size);
		table_cell(&t, symbol_source_name(s.kind));
		buf_reset(&name);
		buf_put_cstr(&name, s.name);
		for (uint32_t k = 0; k < s.n_aliases; k++)
			buf_printf(&name, "%s%s", k ? ", " : "  = ",
				catalog_image_alias(image, s.first_alias + k));
		table_cell(&t, buf_text(&name));
	}
	symbols_table_end(&t, true);
	buf_release(&name);
}

static void show_text(const struct symbols_call *call, struct catalog_image *image)
{
	const char *notes = catalog_image_notes(image);

	print_identity(image);
	print_segments(image);
	print_sections(image);
	print_sources(image);
	if (*notes)
		printf("\nNotes\n%s%s", notes, notes[strlen(notes) - 1] == '\n' ? "" : "\n");
	if (call->args->symbols)
		print_symbols(image, n_symbols_shown(call, image));
}

static void json_hex_or_null(struct json *j, const char *key, uint64_t value)
{
	if (value)
		json_address(j, key, value);
	else
		json_null(j, key);
}

static void json_identity(struct json *j, struct catalog_image *image)
{
	const struct image_identity *id = catalog_image_identity(image);
	const struct catalog_entry entry = catalog_image_entry(image);

	symbols_json_entry(j, &entry);
	json_u64(j, "sites", catalog_image_n_sites(image));
	json_string(j, "image_kind", image_kind_name(id->kind));
	json_hex_or_null(j, "content_hash", id->content_hash);
	json_hex_or_null(j, "debuglink_crc", id->debuglink_crc);
	json_hex_or_null(j, "file_crc", id->file_crc);
	json_u64_if(j, "file_bytes", id->file_bytes, id->file_bytes);
	json_u64_if(j, "mtime_ns", id->mtime_ns, id->mtime_ns);
	json_u64_if(j, "pid", id->pid, id->pid);
	json_array_begin(j, "segments");
	for (size_t i = 0; i < id->n_segments; i++) {
		const struct image_segment *s = &id->segments[i];

		json_object_begin(j, NULL);
		symbols_json_text(j, "name", s->name);
		json_address(j, "address", s->addr);
		json_address(j, "offset", s->offset);
		json_u64(j, "file_bytes", s->file_bytes);
		json_u64(j, "memory_bytes", s->mem_bytes);
		json_u64(j, "flags", s->flags);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_sections(struct json *j, struct catalog_image *image)
{
	json_array_begin(j, "sections");
	for (size_t i = 0; i < catalog_image_n_sections(image); i++) {
		struct catalog_section s = catalog_image_section(image, i);

		json_object_begin(j, NULL);
		json_string(j, "name", s.name);
		json_address(j, "address", s.addr);
		json_u64(j, "bytes", s.bytes);
		json_u64(j, "flags", s.flags);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_symbol(struct json *j, struct catalog_image *image, size_t i)
{
	struct catalog_symbol s = catalog_image_symbol(image, i);

	json_newline(j);
	json_object_begin(j, NULL);
	json_address(j, "address", s.start);
	json_u64(j, "size", s.size);
	json_string(j, "name", s.name);
	json_string(j, "linkage_name", s.linkage_name);
	json_string(j, "source", symbol_source_name(s.kind));
	json_array_begin(j, "aliases");
	for (uint32_t k = 0; k < s.n_aliases; k++)
		json_string(j, NULL, catalog_image_alias(image, s.first_alias + k));
	json_array_end(j);
	json_object_end(j);
}

static void json_notes(struct json *j, const char *notes)
{
	json_array_begin(j, "notes");
	while (*notes) {
		size_t n = strcspn(notes, "\n");
		char *note = mem_strndup(notes, n);

		json_string(j, NULL, note);
		free(note);
		notes += notes[n] ? n + 1 : n;
	}
	json_array_end(j);
}

static void show_json(const struct symbols_call *call, struct catalog_image *image)
{
	struct json j;

	symbols_json_begin(&j, call);
	json_string(&j, "catalog", call->catalog_path);
	json_identity(&j, image);
	json_newline(&j);
	json_sections(&j, image);
	json_newline(&j);
	symbols_json_sources(&j, "sources", image);
	json_notes(&j, catalog_image_notes(image));
	if (call->args->symbols) {
		json_newline(&j);
		json_array_begin(&j, "rows");
		for (size_t i = 0; i < n_symbols_shown(call, image); i++)
			json_symbol(&j, image, i);
		json_array_end(&j);
	}
	json_object_end(&j);
}

int symbols_show(const struct symbols_call *call, struct err *err)
{
	struct catalog_image *image;
	size_t i = 0;
	int rc = symbols_catalog_choose(call->catalog, call->operands[0], &i, err);

	if (rc == 0)
		rc = catalog_open_image(call->catalog, i, &image, err);
	if (rc < 0)
		return rc;
	if (call->args->json)
		show_json(call, image);
	else
		show_text(call, image);
	catalog_image_close(image);
	return STATUS_DONE;
}
