/* SPDX-License-Identifier: MIT */
/* weir symbols show: everything that is known about one image. */
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cmd/symbols/symbols_verbs.h"

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

/* An array in JSON; in text a table below an empty line. */
static void open_list(struct rows *r, const char *key, const struct column *columns)
{
	if (!r->is_json)
		putchar('\n');
	rows_open(r, key, columns);
}

/* A number in JSON, letters in text. */
static void put_flags(struct rows *r, uint64_t flags, const uint64_t bits[3], const char *letters)
{
	if (r->is_json)
		json_u64(&r->json, "flags", flags);
	row_showf(r, "flags", "%c%c%c", flags & bits[0] ? letters[0] : '-',
		flags & bits[1] ? letters[1] : '-', flags & bits[2] ? letters[2] : '-');
}

static void put_segments(struct rows *r, const struct image_identity *id)
{
	static const struct column columns[] = {
		{"address", "Segment", 0},
		{"offset", "Offset", 0},
		{"file_bytes", "Bytes", 0},
		{"memory_bytes", "Memory", 0},
		{"flags", "Flags", 0},
		{0},
	};
	static const uint64_t flags[] = {PF_R, PF_W, PF_X};

	if (!id->n_segments && !r->is_json)
		return;
	open_list(r, "segments", columns);
	for (size_t i = 0; i < id->n_segments; i++) {
		const struct image_segment *s = &id->segments[i];

		row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
		row_text(r, "name", s->name);
		row_address(r, "address", s->addr);
		row_address(r, "offset", s->offset);
		row_number(r, "file_bytes", s->file_bytes);
		row_number(r, "memory_bytes", s->mem_bytes);
		put_flags(r, s->flags, flags, "rwx");
		row_end(r);
	}
	rows_close(r);
}

static void put_sections(struct rows *r, struct catalog_image *image)
{
	static const struct column columns[] = {
		{"address", "Section", 0},
		{"bytes", "Bytes", 0},
		{"flags", "Flags", COLUMN_LEFT},
		{"name", "Name", 0},
		{0},
	};
	static const uint64_t flags[] = {SHF_ALLOC, SHF_WRITE, SHF_EXECINSTR};

	if (!catalog_image_n_sections(image) && !r->is_json)
		return;
	open_list(r, "sections", columns);
	for (size_t i = 0; i < catalog_image_n_sections(image); i++) {
		struct catalog_section s = catalog_image_section(image, i);

		row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
		row_string(r, "name", s.name);
		row_address(r, "address", s.addr);
		row_number(r, "bytes", s.bytes);
		put_flags(r, s.flags, flags, "awx");
		row_end(r);
	}
	rows_close(r);
}

static void put_sources(struct rows *r, struct catalog_image *image)
{
	static const struct column columns[] = {
		{"kind", "Source", COLUMN_LEFT},
		{"offered", "Offered", 0},
		{"accepted", "Accepted", 0},
		{"match", "Match", COLUMN_LEFT},
		{"path", "Path", COLUMN_LEFT},
		{"identity", "Identity", COLUMN_LEFT},
		{"verdict", "Verdict", 0},
		{0},
	};

	open_list(r, "sources", columns);
	symbols_put_sources(r, image);
	rows_close(r);
}

/* In text with its aliases behind the name. */
static void put_symbol(struct rows *r, struct catalog_image *image, size_t i)
{
	struct catalog_symbol s = catalog_image_symbol(image, i);
	struct buf name = {0};

	row_begin(r, TABLE_STYLE_PLAIN);
	row_address(r, "address", s.start);
	row_number(r, "size", s.size);
	row_string(r, "name", s.name);
	row_string(r, "linkage_name", s.linkage_name);
	row_string(r, "source", symbol_source_name(s.kind));
	row_string(r, "match", match_rung_name(s.rung));
	if (r->is_json) {
		report_json_text(&r->json, "file", s.file);
		json_array_begin(&r->json, "aliases");
	}
	buf_put_cstr(&name, s.name);
	for (uint32_t k = 0; k < s.n_aliases; k++) {
		const char *alias = catalog_image_alias(image, s.first_alias + k);

		if (r->is_json)
			json_string(&r->json, NULL, alias);
		buf_printf(&name, "%s%s", k ? ", " : "  = ", alias);
	}
	if (r->is_json)
		json_array_end(&r->json);
	row_show(r, "Names", buf_text(&name));
	row_end(r);
	buf_release(&name);
}

static void put_symbols(
	struct rows *r, const struct symbols_call *call, struct catalog_image *image)
{
	static const struct column columns[] = {
		{"address", "Address", 0},
		{"size", "Size", 0},
		{"source", "Source", COLUMN_LEFT},
		{"Names", "Name", 0},
		{0},
	};
	size_t n = catalog_image_n_symbols(image);

	open_list(r, "rows", columns);
	for (size_t i = 0; i < n && i < call->args->limit; i++)
		put_symbol(r, image, i);
	rows_close(r);
}

static void json_identity(struct json *j, struct catalog_image *image)
{
	const struct image_identity *id = catalog_image_identity(image);

	json_u64(j, "sites", catalog_image_n_sites(image));
	json_string(j, "image_kind", image_kind_name(id->kind));
	symbols_json_address(j, "content_hash", id->content_hash, id->content_hash);
	symbols_json_address(j, "debuglink_crc", id->debuglink_crc, id->debuglink_crc);
	symbols_json_address(j, "file_crc", id->file_crc, id->file_crc);
	json_u64_if(j, "file_bytes", id->file_bytes, id->file_bytes);
	json_u64_if(j, "mtime_ns", id->mtime_ns, id->mtime_ns);
	json_u64_if(j, "pid", id->pid, id->pid);
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

static void show(const struct symbols_call *call, struct catalog_image *image)
{
	const struct catalog_entry entry = catalog_image_entry(image);
	const char *notes = catalog_image_notes(image);
	struct rows r;

	symbols_rows_begin(&r, call, call->catalog_path);
	if (r.is_json) {
		symbols_put_entry(&r, &entry);
		json_identity(&r.json, image);
	} else {
		print_identity(image);
	}
	put_segments(&r, catalog_image_identity(image));
	if (r.is_json)
		json_newline(&r.json);
	put_sections(&r, image);
	if (r.is_json)
		json_newline(&r.json);
	put_sources(&r, image);
	if (r.is_json)
		json_notes(&r.json, notes);
	else if (*notes)
		printf("\nNotes\n%s%s", notes, notes[strlen(notes) - 1] == '\n' ? "" : "\n");
	if (call->args->symbols)
		put_symbols(&r, call, image);
	rows_end(&r);
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
	show(call, image);
	catalog_image_close(image);
	return STATUS_DONE;
}
