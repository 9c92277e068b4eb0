/* SPDX-License-Identifier: MIT */
#include "symbols/catalog/catalog_segments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

/* A byte that no text begins with, and line ends that a careless transfer would change. */
static const uint8_t segment_magic[4] = {'w', 'S', 'E', 'G'};

#define ROOT_CRC_AT    (CATALOG_ROOT_BYTES - 4)
#define SEGMENT_CRC_AT (CATALOG_SEGMENT_BYTES - 4)

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
	struct cursor c;
	struct span magic;
	uint32_t crc;
	uint16_t major;

	if (all_zero(block))
		return CATALOG_ROOT_EMPTY;
	if (block.n < CATALOG_ROOT_BYTES)
		return CATALOG_ROOT_DAMAGED;
	c = cursor_of(span_sub(block, ROOT_CRC_AT, 4));
	crc = cursor_u32(&c);
	c = cursor_of(block);
	magic = cursor_bytes(&c, CATALOG_MAGIC_BYTES);
	if (memcmp(magic.p, CATALOG_MAGIC, CATALOG_MAGIC_BYTES) ||
		crc32c(0, block.p, ROOT_CRC_AT) != crc)
		return CATALOG_ROOT_DAMAGED;
	major = cursor_u16(&c);
	cursor_u16(&c); /* minor: what is new in it can be ignored */
	cursor_u32(&c);
	*out = (struct catalog_root){.generation = cursor_u64(&c)};
	if (major != CATALOG_MAJOR) {
		out->generation = major;
		return CATALOG_ROOT_UNKNOWN;
	}
	out->dir_offset = cursor_u64(&c);
	out->dir_bytes = cursor_u64(&c);
	out->committed_bytes = cursor_u64(&c);
	return out->generation ? CATALOG_ROOT_VALID : CATALOG_ROOT_DAMAGED;
}

/* Fills `to` with `fields`, zeros and the check sum of both at the end. */
static void finish_block(struct buf *fields, uint8_t *to, size_t n)
{
	uint32_t crc;

	memset(to, 0, n);
	memcpy(to, fields->p, fields->n);
	crc = crc32c(0, to, n - 4);
	memcpy(to + n - 4, &crc, 4);
	buf_release(fields);
}

void catalog_root_encode(const struct catalog_root *root, uint8_t to[CATALOG_ROOT_BYTES])
{
	struct buf b = {0};

	buf_put(&b, CATALOG_MAGIC, CATALOG_MAGIC_BYTES);
	buf_put_u16(&b, CATALOG_MAJOR);
	buf_put_u16(&b, CATALOG_MINOR);
	buf_put_u32(&b, 0);
	buf_put_u64(&b, root->generation);
	buf_put_u64(&b, root->dir_offset);
	buf_put_u64(&b, root->dir_bytes);
	buf_put_u64(&b, root->committed_bytes);
	finish_block(&b, to, CATALOG_ROOT_BYTES);
}

/* --- segments --- */

void catalog_segment_encode(
	const struct catalog_segment *segment, uint8_t to[CATALOG_SEGMENT_BYTES])
{
	struct buf b = {0};

	buf_put(&b, segment_magic, sizeof(segment_magic));
	buf_put_u16(&b, (uint16_t)segment->type);
	buf_put_u16(&b, 0);
	buf_put_u64(&b, segment->bytes);
	buf_put_u64(&b, segment->id);
	buf_put_u32(&b, segment->crc);
	finish_block(&b, to, CATALOG_SEGMENT_BYTES);
}

int catalog_segment_find(struct span file, uint64_t offset, struct catalog_segment *expected,
	struct span *payload, struct err *err)
{
	struct span header = span_sub(file, offset, CATALOG_SEGMENT_BYTES);
	struct span bytes;
	struct cursor c = cursor_of(header);
	struct span magic = cursor_bytes(&c, sizeof(segment_magic));
	uint16_t type = cursor_u16(&c);
	uint64_t n, id;
	uint32_t crc;

	cursor_u16(&c);
	n = cursor_u64(&c);
	id = cursor_u64(&c);
	expected->crc = cursor_u32(&c);
	if (c.failed)
		return err_set(err, ERR_FORMAT,
			"the segment at offset %" PRIu64 " lies outside the file", offset);
	memcpy(&crc, header.p + SEGMENT_CRC_AT, 4);
	if (memcmp(magic.p, segment_magic, sizeof(segment_magic)) ||
		crc32c(0, header.p, SEGMENT_CRC_AT) != crc)
		return err_set(err, ERR_FORMAT,
			"the segment header at offset %" PRIu64 " is damaged", offset);
	if (type != expected->type || n != expected->bytes || id != expected->id)
		return err_set(err, ERR_FORMAT,
			"the segment at offset %" PRIu64 " is not the one that is referred to",
			offset);
	bytes = span_sub(file, offset + CATALOG_SEGMENT_BYTES, n);
	if (bytes.n != n)
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
	int d = strcmp(a->entry.base_name, b->entry.base_name);

	if (!d)
		d = strcmp(a->entry.path, b->entry.path);
	if (!d)
		d = a->id < b->id ? -1 : a->id > b->id;
	return d;
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
