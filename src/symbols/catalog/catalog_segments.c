/* SPDX-License-Identifier: MIT */
#include "symbols/catalog/catalog_segments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/order.h"

/* A byte that no text begins with, and line ends that a careless transfer would change. */
static const uint8_t segment_magic[4] = {'w', 'S', 'E', 'G'};

/* The bytes of the file, in their order. */
struct root_block {
	char magic[CATALOG_MAGIC_BYTES];
	uint16_t major, minor; /* what is new in a minor version can be ignored */
	uint32_t zero;
	struct catalog_root root;
	uint8_t unused[CATALOG_ROOT_BYTES - 52];
	uint32_t crc; /* of all before it */
};
_Static_assert(sizeof(struct root_block) == CATALOG_ROOT_BYTES, "a root is copied as it is");

struct segment_block {
	uint8_t magic[4];
	uint16_t type, zero;
	uint64_t bytes, id;
	uint32_t payload_crc;
	uint8_t unused[CATALOG_SEGMENT_BYTES - 32];
	uint32_t crc; /* of all before it */
};
_Static_assert(sizeof(struct segment_block) == CATALOG_SEGMENT_BYTES, "so is a segment's header");

/* --- roots --- */

static bool all_zero(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i])
			return false;
	return true;
}

enum catalog_root_state catalog_root_decode(struct span block, struct catalog_root *out)
{
	struct root_block b;

	if (all_zero(block))
		return CATALOG_ROOT_EMPTY;
	if (block.n < sizeof(b))
		return CATALOG_ROOT_DAMAGED;
	memcpy(&b, block.p, sizeof(b));
	if (memcmp(b.magic, CATALOG_MAGIC, sizeof(b.magic)) ||
		crc32c(0, &b, offsetof(struct root_block, crc)) != b.crc)
		return CATALOG_ROOT_DAMAGED;
	*out = b.root;
	if (b.major != CATALOG_MAJOR) {
		*out = (struct catalog_root){.generation = b.major};
		return CATALOG_ROOT_UNKNOWN;
	}
	return out->generation ? CATALOG_ROOT_VALID : CATALOG_ROOT_DAMAGED;
}

void catalog_root_encode(const struct catalog_root *root, uint8_t to[CATALOG_ROOT_BYTES])
{
	struct root_block b = {.major = CATALOG_MAJOR, .minor = CATALOG_MINOR, .root = *root};

	memcpy(b.magic, CATALOG_MAGIC, sizeof(b.magic));
	b.crc = crc32c(0, &b, offsetof(struct root_block, crc));
	memcpy(to, &b, sizeof(b));
}

/* --- segments --- */

void catalog_segment_encode(
	const struct catalog_segment *segment, uint8_t to[CATALOG_SEGMENT_BYTES])
{
	struct segment_block b = {.type = (uint16_t)segment->type,
		.bytes = segment->bytes,
		.id = segment->id,
		.payload_crc = segment->crc};

	memcpy(b.magic, segment_magic, sizeof(b.magic));
	b.crc = crc32c(0, &b, offsetof(struct segment_block, crc));
	memcpy(to, &b, sizeof(b));
}

int catalog_segment_find(struct span file, uint64_t offset, struct catalog_segment *expected,
	struct span *payload, struct err *err)
{
	struct span header = span_sub(file, offset, CATALOG_SEGMENT_BYTES), bytes;
	struct segment_block b;

	if (!header.n)
		return err_set(err, ERR_FORMAT,
			"the segment at offset %" PRIu64 " lies outside the file", offset);
	memcpy(&b, header.p, sizeof(b));
	expected->crc = b.payload_crc;
	if (memcmp(b.magic, segment_magic, sizeof(b.magic)) ||
		crc32c(0, &b, offsetof(struct segment_block, crc)) != b.crc)
		return err_set(err, ERR_FORMAT,
			"the segment header at offset %" PRIu64 " is damaged", offset);
	if (b.type != expected->type || b.bytes != expected->bytes || b.id != expected->id)
		return err_set(err, ERR_FORMAT,
			"the segment at offset %" PRIu64 " is not the one that is referred to",
			offset);
	bytes = span_sub(file, offset + CATALOG_SEGMENT_BYTES, b.bytes);
	if (bytes.n != b.bytes)
		return err_set(err, ERR_FORMAT,
			"the segment at offset %" PRIu64 " reaches beyond the file", offset);
	*payload = bytes;
	return 0;
}

/* --- directory --- */

void catalog_dir_release(struct catalog_dir *dir)
{
	vec_release(&dir->facts);
	vec_release(&dir->bases);
	vec_release(&dir->rows);
}

int catalog_row_compare(const struct catalog_row *a, const struct catalog_row *b)
{
	return strcmp(a->entry.base_name, b->entry.base_name) ?: strcmp(a->entry.path, b->entry.path) ?:
	       ORDER(a->id, b->id);
}

bool catalog_id_parse(const char *text, uint64_t *id)
{
	uint64_t v = 0;

	for (int i = 0; i < 16; i++) {
		const char *digits = "0123456789abcdef",
			   *d = text[i] ? strchr(digits, text[i]) : NULL;

		if (!d)
			return false;
		v = v << 4 | (uint64_t)(d - digits);
	}
	if (text[16])
		return false;
	*id = v;
	return true;
}

static int decode_facts(struct catalog_dir *dir, struct cursor *c, struct err *err)
{
	uint32_t n = cursor_u32(c);

	for (uint32_t i = 0; i < n && !c->failed; i++) {
		struct catalog_fact_pair fact;

		fact.key = cursor_cstr(c);
		fact.value = cursor_cstr(c);
		if (c->failed)
			break;
		if (i && strcmp(dir->facts.v[i - 1].key, fact.key) >= 0)
			return err_set(
				err, ERR_FORMAT, "the facts of the directory are not in order");
		vec_push(&dir->facts, fact);
	}
	return 0;
}

static int decode_row(
	struct catalog_dir *dir, struct cursor *c, uint64_t committed_bytes, struct err *err)
{
	const struct catalog_base *base = &dir->bases.v[dir->bases.n - 1];
	struct catalog_row row = {.entry.base_name = base->name};
	struct catalog_entry *e = &row.entry;
	uint8_t build_id_n;

	row.id = cursor_u64(c);
	row.offset = cursor_u64(c);
	e->bytes = cursor_u64(c);
	row.crc = cursor_u32(c);
	e->machine = cursor_u16(c);
	e->bits = cursor_u8(c);
	build_id_n = cursor_u8(c);
	e->n_symbols = cursor_u64(c);
	e->n_rows = cursor_u64(c);
	e->build_id = cursor_bytes(c, build_id_n);
	e->path = cursor_cstr(c);
	if (c->failed)
		return 0; /* the caller says so */
	snprintf(e->id, sizeof(e->id), "%016" PRIx64, row.id);
	if (build_id_n > BUILD_ID_MAX || (e->bits != 0 && e->bits != 32 && e->bits != 64))
		return err_set(
			err, ERR_FORMAT, "the directory says impossible things of image %s", e->id);
	if (row.offset < CATALOG_BODY_OFFSET || row.offset % CATALOG_SEGMENT_BYTES ||
		row.offset > committed_bytes ||
		committed_bytes - row.offset < CATALOG_SEGMENT_BYTES ||
		e->bytes > committed_bytes - row.offset - CATALOG_SEGMENT_BYTES)
		return err_set(err, ERR_FORMAT, "image %s lies outside the file", e->id);
	if (dir->rows.n > base->first &&
		catalog_row_compare(&dir->rows.v[dir->rows.n - 1], &row) >= 0)
		return err_set(err, ERR_FORMAT, "the images of the directory are not in order");
	vec_push(&dir->rows, row);
	return 0;
}

static int decode_base(
	struct catalog_dir *dir, struct cursor *c, uint64_t committed_bytes, struct err *err)
{
	struct catalog_base base = {.first = (uint32_t)dir->rows.n};
	int rc = 0;

	base.name = cursor_cstr(c);
	base.n = cursor_u32(c);
	if (c->failed)
		return 0;
	if (!base.n || base.n > UINT32_MAX - base.first)
		return err_set(err, ERR_FORMAT,
			"a base name of the directory has %" PRIu32 " images", base.n);
	if (dir->bases.n && strcmp(dir->bases.v[dir->bases.n - 1].name, base.name) >= 0)
		return err_set(err, ERR_FORMAT, "the base names of the directory are not in order");
	vec_push(&dir->bases, base);
	for (uint32_t i = 0; i < base.n && !c->failed && !rc; i++)
		rc = decode_row(dir, c, committed_bytes, err);
	return rc;
}

int catalog_dir_decode(
	struct catalog_dir *dir, struct span payload, uint64_t committed_bytes, struct err *err)
{
	struct cursor c = cursor_of(payload);
	uint32_t n_bases;
	int rc;

	*dir = (struct catalog_dir){0};
	rc = decode_facts(dir, &c, err);
	if (rc < 0)
		return rc;
	n_bases = cursor_u32(&c);
	for (uint32_t i = 0; i < n_bases && !c.failed && !rc; i++)
		rc = decode_base(dir, &c, committed_bytes, err);
	if (rc < 0)
		return rc;
	if (c.failed)
		return err_set(err, ERR_FORMAT, "the directory is cut off");
	if (cursor_left(&c))
		return err_set(
			err, ERR_FORMAT, "the directory has %zu bytes too many", cursor_left(&c));
	return 0;
}

static void encode_row(const struct catalog_row *row, struct buf *to)
{
	const struct catalog_entry *e = &row->entry;

	buf_put_u64(to, row->id);
	buf_put_u64(to, row->offset);
	buf_put_u64(to, e->bytes);
	buf_put_u32(to, row->crc);
	buf_put_u16(to, e->machine);
	buf_put_u8(to, e->bits);
	buf_put_u8(to, (uint8_t)e->build_id.n);
	buf_put_u64(to, e->n_symbols);
	buf_put_u64(to, e->n_rows);
	if (e->build_id.n)
		buf_put(to, e->build_id.p, e->build_id.n);
	buf_put_text(to, e->path);
}

/* Rows [first, return) have the same base name. */
static size_t base_end(const struct catalog_dir *dir, size_t first)
{
	size_t end = first + 1;

	while (end < dir->rows.n &&
		strcmp(dir->rows.v[end].entry.base_name, dir->rows.v[first].entry.base_name) == 0)
		end++;
	return end;
}

int catalog_dir_encode(const struct catalog_dir *dir, struct buf *to, struct err *err)
{
	uint32_t n_bases = 0;

	if (dir->rows.n >= UINT32_MAX || dir->facts.n >= UINT32_MAX)
		return err_set(err, ERR_LIMIT, "a catalog cannot have %zu images", dir->rows.n);
	buf_put_u32(to, (uint32_t)dir->facts.n);
	for (size_t i = 0; i < dir->facts.n; i++) {
		buf_put_text(to, dir->facts.v[i].key);
		buf_put_text(to, dir->facts.v[i].value);
	}
	for (size_t i = 0; i < dir->rows.n; i = base_end(dir, i))
		n_bases++;
	buf_put_u32(to, n_bases);
	for (size_t i = 0; i < dir->rows.n;) {
		size_t end = base_end(dir, i);

		buf_put_text(to, dir->rows.v[i].entry.base_name);
		buf_put_u32(to, (uint32_t)(end - i));
		for (; i < end; i++)
			encode_row(&dir->rows.v[i], to);
	}
	return 0;
}
