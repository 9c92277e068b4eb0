/* SPDX-License-Identifier: MIT */
/* The frame of a stream file: header, section table, checksums. Items: stream_read.c. */
#include "probe/stream/stream_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "probe/stream/stream_reader.h"

static const struct {
	const char *name;
	uint32_t min, max; /* items */
	uint32_t least;	   /* bytes of the shortest item */
} sections[N_SECTIONS + 1] = {
	[SECTION_FACTS] = {"facts", 1, 1, 21},
	[SECTION_SOURCES] = {"sources", 1, STREAM_SOURCES_MAX, 8},
	[SECTION_SHAPES] = {"shapes", 0, STREAM_SHAPES_MAX, 38},
	[SECTION_MAPS] = {"maps", 0, STREAM_SCRIPT_MAPS_MAX, 28},
	[SECTION_FORMATS] = {"formats", 0, STREAM_FORMATS_MAX, 25},
	[SECTION_STRINGS] = {"strings", 0, STREAM_STRINGS_MAX, 4},
	[SECTION_CLAUSES] = {"clauses", 0, STREAM_CLAUSES_MAX, 13},
	[SECTION_POINTS] = {"points", 0, STREAM_POINTS_MAX, 125},
	[SECTION_CODE_32] = {"code32", 0, STREAM_INSNS_MAX, 8},
	[SECTION_CODE_64] = {"code64", 0, STREAM_INSNS_MAX, 8},
	[SECTION_LINES_32] = {"lines32", 0, STREAM_LINES_MAX, 16},
	[SECTION_LINES_64] = {"lines64", 0, STREAM_LINES_MAX, 16},
};

bool stream_file_is(struct span bytes)
{
	size_t n = strlen(STREAM_MAGIC);

	return bytes.n >= n && !memcmp(bytes.p, STREAM_MAGIC, n);
}

static int check_header(struct span bytes, struct err *err)
{
	struct span table =
		span_sub(bytes, STREAM_HEADER_BYTES, (uint64_t)N_SECTIONS * STREAM_ROW_BYTES);
	struct cursor c = cursor_of(bytes);
	uint16_t major, minor, n;
	uint64_t length;
	uint32_t table_crc, crc;

	if (!stream_file_is(bytes))
		return err_set(err, ERR_FORMAT, "is not a trace stream");
	if (!table.p)
		return err_set(err, ERR_FORMAT, "trace stream: cut off in its header");
	cursor_skip(&c, strlen(STREAM_MAGIC));
	major = cursor_u16(&c);
	minor = cursor_u16(&c);
	n = cursor_u16(&c);
	length = cursor_u64(&c);
	table_crc = cursor_u32(&c);
	crc = cursor_u32(&c);
	if (crc32c(0, bytes.p, STREAM_HEADER_BYTES - 4) != crc)
		return err_set(err, ERR_FORMAT, "trace stream: its header is damaged");
	if (major != STREAM_MAJOR || minor != STREAM_MINOR)
		return err_set(err, ERR_UNSUPPORTED,
			"trace stream: version %u.%u is not known (this is version %d.%d): compile "
			"the script again",
			major, minor, STREAM_MAJOR, STREAM_MINOR);
	if (n != N_SECTIONS)
		return err_set(err, ERR_FORMAT, "trace stream: has %u sections instead of %d", n,
			N_SECTIONS);
	if (length != bytes.n || length > STREAM_FILE_MAX)
		return err_set(err, ERR_FORMAT, "trace stream: has %zu bytes, its header says %llu",
			bytes.n, (unsigned long long)length);
	if (crc32c(0, table.p, table.n) != table_crc)
		return err_set(err, ERR_FORMAT, "trace stream: its section table is damaged");
	return 0;
}

struct row {
	uint32_t crc, count;
	uint64_t offset;
	struct span bytes;
};

static int take_row(
	struct cursor *table, struct span file, uint32_t type, struct row *row, struct err *err)
{
	const char *name = sections[type].name;
	uint32_t is = cursor_u32(table);
	uint64_t length;

	row->crc = cursor_u32(table);
	row->offset = cursor_u64(table);
	length = cursor_u64(table);
	row->count = cursor_u32(table);
	row->bytes = span_sub(file, row->offset, length);
	if (is != type || cursor_u32(table) || !row->bytes.p)
		return err_set(err, ERR_FORMAT, "trace stream: section %s: wrong row", name);
	if (row->count < sections[type].min || row->count > sections[type].max ||
		row->count > length / sections[type].least)
		return err_set(err, ERR_FORMAT, "trace stream: section %s: cannot have %u items",
			name, row->count);
	if (crc32c(0, row->bytes.p, row->bytes.n) != row->crc)
		return err_set(err, ERR_FORMAT, "trace stream: section %s: is damaged", name);
	return 0;
}

/* The section begins at the next multiple of 8, with zeros between. */
static bool is_next(struct span file, uint64_t end, uint64_t offset)
{
	if (offset != ((end + 7) & ~(uint64_t)7))
		return false;
	while (end < offset)
		if (file.p[end++])
			return false;
	return true;
}

static int read_sections(struct stream_reader *r, struct span file)
{
	struct cursor table = cursor_of(
		span_sub(file, STREAM_HEADER_BYTES, (uint64_t)N_SECTIONS * STREAM_ROW_BYTES));
	uint64_t end = STREAM_FIRST_OFFSET;
	struct row row;
	int rc;

	for (uint32_t type = 1; type <= N_SECTIONS; type++) {
		rc = take_row(&table, file, type, &row, r->err);
		if (rc < 0)
			return rc;
		r->section = sections[type].name;
		if (!is_next(file, end, row.offset))
			return err_set(r->err, ERR_FORMAT,
				"trace stream: section %s: is not at its place", r->section);
		end = row.offset + row.bytes.n;
		r->c = cursor_of(row.bytes);
		r->count = row.count;
		r->item_i = 0;
		rc = stream_read_section(r, (enum stream_section)type);
		if (rc < 0)
			return rc;
		if (cursor_left(&r->c))
			return err_set(r->err, ERR_FORMAT,
				"trace stream: section %s: bytes are left over", r->section);
	}
	if (end != file.n)
		return err_set(r->err, ERR_FORMAT, "trace stream: bytes behind its last section");
	return 0;
}

int stream_file_read(struct span bytes, struct stream **out, struct err *err)
{
	struct stream_reader r = {.err = err};
	int rc = check_header(bytes, err);

	if (rc < 0)
		return rc;
	r.s = stream_new();
	rc = read_sections(&r, bytes);
	for (int mode = 0; mode < N_MODES && rc >= 0; mode++)
		rc = stream_check_code(r.s, (enum mode)mode, err);
	free(r.shapes);
	free(r.shape_depths);
	free(r.shape_weights);
	if (rc < 0) {
		stream_free(r.s);
		return rc;
	}
	*out = r.s;
	return 0;
}
