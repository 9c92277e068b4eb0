/* SPDX-License-Identifier: MIT */
#include "trace/layout.h"

#include <string.h>

#include "base/crc32c.h"
#include "trace/defs.h"

_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian and so are we");

static void put(uint8_t **p, const void *v, size_t n)
{
	memcpy(*p, v, n);
	*p += n;
}

static void get(const uint8_t **p, void *v, size_t n)
{
	memcpy(v, *p, n);
	*p += n;
}

void trace_header_encode(uint8_t to[TRACE_HEADER_BYTES])
{
	const uint16_t major = TRACE_VERSION_MAJOR, minor = TRACE_VERSION_MINOR;
	const uint32_t zero = 0;

	put(&to, TRACE_MAGIC, TRACE_MAGIC_BYTES);
	put(&to, &major, 2);
	put(&to, &minor, 2);
	put(&to, &zero, 4);
}

uint32_t chunk_crc(const uint8_t header[CHUNK_HEADER_BYTES], struct span payload)
{
	return crc32c(crc32c(0, header, CHUNK_CRC_OFFSET), payload.p, payload.n);
}

void chunk_header_encode(
	uint8_t to[CHUNK_HEADER_BYTES], const struct chunk_header *h, struct span payload)
{
	const uint32_t magic = CHUNK_MAGIC, zero = 0;
	uint8_t *p = to;
	uint32_t crc;

	put(&p, &magic, 4);
	put(&p, &h->type, 2);
	put(&p, &h->flags, 2);
	put(&p, &h->stream, 4);
	put(&p, &h->stored_bytes, 4);
	put(&p, &h->raw_bytes, 4);
	put(&p, &h->count, 4);
	put(&p, &h->first_time, 8);
	put(&p, &h->last_time, 8);
	put(&p, &zero, 4);
	crc = chunk_crc(to, payload);
	put(&p, &crc, 4);
}

bool chunk_header_decode(struct chunk_header *h, const uint8_t from[CHUNK_HEADER_BYTES])
{
	uint32_t magic, reserved;

	get(&from, &magic, 4);
	get(&from, &h->type, 2);
	get(&from, &h->flags, 2);
	get(&from, &h->stream, 4);
	get(&from, &h->stored_bytes, 4);
	get(&from, &h->raw_bytes, 4);
	get(&from, &h->count, 4);
	get(&from, &h->first_time, 8);
	get(&from, &h->last_time, 8);
	get(&from, &reserved, 4);
	get(&from, &h->crc, 4);
	return magic == CHUNK_MAGIC;
}

void trailer_encode(uint8_t to[TRACE_TRAILER_BYTES], const struct trailer *t)
{
	uint8_t *p = to;
	uint32_t crc;

	put(&p, &t->index_offset, 8);
	put(&p, &t->n_chunks, 4);
	crc = crc32c(0, to, 12);
	put(&p, &crc, 4);
	put(&p, TRACE_END_MAGIC, TRACE_MAGIC_BYTES);
}

bool trailer_decode(struct trailer *t, const uint8_t from[TRACE_TRAILER_BYTES], bool check_crc)
{
	const uint8_t *p = from;
	uint32_t crc;

	get(&p, &t->index_offset, 8);
	get(&p, &t->n_chunks, 4);
	get(&p, &crc, 4);
	if (memcmp(p, TRACE_END_MAGIC, TRACE_MAGIC_BYTES))
		return false;
	return !check_crc || crc == crc32c(0, from, 12);
}

const char *chunk_type_name(uint32_t type)
{
	static const char *const names[CHUNK_N_TYPES] = {
		[CHUNK_TYPE_META] = "META",
		[CHUNK_TYPE_STRINGS] = "STRINGS",
		[CHUNK_TYPE_METRICS] = "METRICS",
		[CHUNK_TYPE_STREAMS] = "STREAMS",
		[CHUNK_TYPE_IMAGES] = "IMAGES",
		[CHUNK_TYPE_THREADS] = "THREADS",
		[CHUNK_TYPE_FRAMES] = "FRAMES",
		[CHUNK_TYPE_STACKS] = "STACKS",
		[CHUNK_TYPE_KINDS] = "KINDS",
		[CHUNK_TYPE_SYMBOLS] = "SYMBOLS",
		[CHUNK_TYPE_RECORDS] = "RECORDS",
		[CHUNK_TYPE_INDEX] = "INDEX",
		[CHUNK_TYPE_IMAGE_FACTS] = "IMAGE_FACTS",
		[CHUNK_TYPE_MATCHES] = "MATCHES",
		[CHUNK_TYPE_FUNCTIONS] = "FUNCTIONS",
		[CHUNK_TYPE_ADDRESSES] = "ADDRESSES",
	};

	return type < CHUNK_N_TYPES && names[type] ? names[type] : "?";
}

const char *image_kind_name(enum image_kind kind)
{
	static const char *const names[] = {
		[IMAGE_KIND_ELF] = "elf",
		[IMAGE_KIND_KERNEL] = "kernel",
		[IMAGE_KIND_VDSO] = "vdso",
		[IMAGE_KIND_JIT] = "jit",
		[IMAGE_KIND_OTHER] = "other",
	};

	return kind >= IMAGE_KIND_ELF && kind <= IMAGE_KIND_OTHER ? names[kind] : "?";
}
