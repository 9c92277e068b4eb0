/* SPDX-License-Identifier: MIT */
#include "probe/types/btf_data.h"

#include <stdlib.h>
#include <string.h>

#define BTF_MAGIC      0xeb9f
#define RECORD_BYTES   12
#define BYTES_MAX      ((uint64_t)1 << 31)
#define QUALIFIERS_MAX 64   /* typedefs, const, ... in front of one type */
#define NAME_BYTES_MAX 1024 /* the kernel has no longer names than 512 */

/* Bytes behind a record's first 12; -1 for kinds that are not known. */
static int64_t rest_bytes(enum btf_kind kind, uint32_t n)
{
	switch (kind) {
	case BTF_INT:
	case BTF_VAR:
	case BTF_DECL_TAG:
		return 4;
	case BTF_ARRAY:
		return 12;
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_DATASEC:
	case BTF_ENUM64:
		return (int64_t)n * 12;
	case BTF_ENUM:
	case BTF_FUNC_PROTO:
		return (int64_t)n * 8;
	case BTF_PTR:
	case BTF_FWD:
	case BTF_TYPEDEF:
	case BTF_VOLATILE:
	case BTF_CONST:
	case BTF_RESTRICT:
	case BTF_FUNC:
	case BTF_FLOAT:
	case BTF_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

static int read_records(struct btf_data *d, struct err *err)
{
	uint64_t at = 0;

	vec_push(&d->offsets, 0);
	while (at < d->types.n) {
		int64_t rest = -1;

		if (d->types.n - at >= RECORD_BYTES) {
			uint32_t info = btf_word(d->types.p + at, 1);

			rest = rest_bytes(info >> 24 & 0x1f, info & 0xffff);
		}
		if (rest < 0 || (uint64_t)rest > d->types.n - at - RECORD_BYTES)
			return err_set(err, ERR_FORMAT,
				"BTF: type %zu at 0x%llx is of a kind that is not known, or is cut",
				d->offsets.n, (unsigned long long)at);
		vec_push(&d->offsets, (uint32_t)at);
		at += RECORD_BYTES + (uint64_t)rest;
	}
	return 0;
}

int btf_data_init(struct btf_data *d, struct span bytes, struct err *err)
{
	struct cursor c = cursor_of(bytes);
	uint32_t header, type_at, type_n, text_at, text_n;
	uint16_t magic = cursor_u16(&c);
	uint8_t version = cursor_u8(&c);
	int rc;

	*d = (struct btf_data){0};
	cursor_u8(&c); /* flags */
	header = cursor_u32(&c);
	type_at = cursor_u32(&c);
	type_n = cursor_u32(&c);
	text_at = cursor_u32(&c);
	text_n = cursor_u32(&c);
	if (c.failed || magic != BTF_MAGIC || version != 1)
		return err_set(err, ERR_FORMAT, "BTF: the header is not one of version 1");
	d->types = span_sub(bytes, (uint64_t)header + type_at, type_n);
	d->texts = span_sub(bytes, (uint64_t)header + text_at, text_n);
	if (bytes.n > BYTES_MAX || (type_n && !d->types.p) || !d->texts.n ||
		d->texts.p[d->texts.n - 1])
		return err_set(err, ERR_FORMAT, "BTF: the header names parts that are not there");
	rc = read_records(d, err);
	if (rc < 0)
		btf_data_release(d);
	return rc;
}

void btf_data_release(struct btf_data *d)
{
	vec_release(&d->offsets);
	for (int i = 0; i < BTF_N_GROUPS; i++)
		map_release(&d->names[i]);
}

const char *btf_data_text(const struct btf_data *d, uint32_t offset)
{
	size_t n = offset < d->texts.n ? d->texts.n - offset : 0;

	if (n > NAME_BYTES_MAX)
		n = NAME_BYTES_MAX;
	return n && memchr(d->texts.p + offset, 0, n) ? (const char *)d->texts.p + offset : "";
}

struct btf_record btf_data_get(const struct btf_data *d, uint32_t id)
{
	struct btf_record r = {.kind = BTF_VOID, .name = ""};
	const uint8_t *p;
	uint32_t info;

	if (!id || id >= d->offsets.n)
		return r;
	p = d->types.p + d->offsets.v[id];
	info = btf_word(p, 1);
	r.kind = info >> 24 & 0x1f;
	r.flag = info >> 31;
	r.n = (uint16_t)info;
	r.size = btf_word(p, 2);
	r.name = btf_data_text(d, btf_word(p, 0));
	r.rest = p + RECORD_BYTES;
	return r;
}

static enum btf_group group_of(enum btf_kind kind)
{
	switch (kind) {
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_ENUM:
	case BTF_ENUM64:
		return BTF_GROUP_TAGS;
	case BTF_TYPEDEF:
	case BTF_INT:
	case BTF_FLOAT:
		return BTF_GROUP_NAMES;
	case BTF_FUNC:
		return BTF_GROUP_FUNCTIONS;
	default:
		return BTF_N_GROUPS;
	}
}

/* The kind alone; 0 < id < n. */
static enum btf_kind kind_of(const struct btf_data *d, uint32_t id)
{
	return btf_word(d->types.p + d->offsets.v[id], 1) >> 24 & 0x1f;
}

static uint64_t key_of(enum btf_kind kind, const char *name)
{
	return map_hash_mix(map_hash_bytes(name, strlen(name)), kind);
}

static void read_names(struct btf_data *d, enum btf_group group)
{
	d->has_names[group] = true;
	for (uint32_t id = 1; id < d->offsets.n; id++) {
		struct btf_record r;
		uint64_t *first;
		bool is_new;

		if (group_of(kind_of(d, id)) != group)
			continue;
		r = btf_data_get(d, id);
		first = r.name[0] ? map_ensure(&d->names[group], key_of(r.kind, r.name), &is_new)
				  : NULL;
		if (first && is_new)
			*first = id;
	}
}

uint32_t btf_data_find(struct btf_data *d, enum btf_kind kind, const char *name)
{
	enum btf_group group = group_of(kind);
	const uint64_t *found;

	if (group == BTF_N_GROUPS || !name[0])
		return 0;
	if (!d->has_names[group])
		read_names(d, group);
	found = map_find(&d->names[group], key_of(kind, name));
	/* Two names may have one hash. */
	return found && !strcmp(btf_data_get(d, (uint32_t)*found).name, name) ? (uint32_t)*found
									      : 0;
}

struct btf_member btf_data_member(
	const struct btf_data *d, const struct btf_record *record, uint32_t i)
{
	const uint8_t *p = record->rest + (size_t)i * 12;
	uint32_t place = btf_word(p, 2);
	struct btf_member m = {btf_data_text(d, btf_word(p, 0)), btf_word(p, 1), place, 0};
	struct btf_record type;
	uint32_t data;

	if (record->flag) {
		m.bit = place & 0xffffff;
		m.bits = place >> 24;
		return m;
	}
	/* Before kind_flag the integer says that it is narrower than its bytes. */
	type = btf_data_get(d, btf_data_strip(d, m.type));
	if (type.kind != BTF_INT)
		return m;
	data = btf_word(type.rest, 0);
	if ((data & 0xff) != (uint64_t)type.size * 8 || (data >> 16 & 0xff)) {
		m.bit += data >> 16 & 0xff;
		m.bits = data & 0xff;
	}
	return m;
}

uint32_t btf_data_strip(const struct btf_data *d, uint32_t id)
{
	for (int i = 0; i < QUALIFIERS_MAX; i++) {
		struct btf_record r = btf_data_get(d, id);

		switch (r.kind) {
		case BTF_TYPEDEF:
		case BTF_VOLATILE:
		case BTF_CONST:
		case BTF_RESTRICT:
		case BTF_TYPE_TAG:
			id = r.size;
			break;
		default:
			return id;
		}
	}
	return 0;
}
