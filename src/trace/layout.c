/* SPDX-License-Identifier: MIT */
#include "trace/layout.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/order.h"
#include "trace/defs.h"

_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian and so are we");

void trace_header_encode(uint8_t to[TRACE_HEADER_BYTES])
{
	const uint16_t version[] = {TRACE_VERSION_MAJOR, TRACE_VERSION_MINOR};

	memset(to, 0, TRACE_HEADER_BYTES);
	memcpy(to, TRACE_MAGIC, TRACE_MAGIC_BYTES);
	memcpy(to + TRACE_MAGIC_BYTES, version, sizeof(version));
}

uint32_t chunk_crc(const uint8_t header[CHUNK_HEADER_BYTES], struct span payload)
{
	return crc32c(crc32c(0, header, CHUNK_CRC_OFFSET), payload.p, payload.n);
}

void chunk_header_encode(
	uint8_t to[CHUNK_HEADER_BYTES], const struct chunk_header *h, struct span payload)
{
	struct chunk_header made = *h;

	made.magic = CHUNK_MAGIC;
	made.zero = 0;
	made.crc = chunk_crc((const uint8_t *)&made, payload);
	memcpy(to, &made, sizeof(made));
}

bool chunk_header_decode(struct chunk_header *h, const uint8_t from[CHUNK_HEADER_BYTES])
{
	memcpy(h, from, sizeof(*h));
	return h->magic == CHUNK_MAGIC;
}

void trailer_encode(uint8_t to[TRACE_TRAILER_BYTES], const struct trailer *t)
{
	struct trailer made = *t;

	made.crc = crc32c(0, &made, offsetof(struct trailer, crc));
	memcpy(made.magic, TRACE_END_MAGIC, sizeof(made.magic));
	memcpy(to, &made, sizeof(made));
}

bool trailer_decode(struct trailer *t, const uint8_t from[TRACE_TRAILER_BYTES], bool check_crc)
{
	memcpy(t, from, sizeof(*t));
	return !memcmp(t->magic, TRACE_END_MAGIC, sizeof(t->magic)) &&
	       (!check_crc || t->crc == crc32c(0, from, offsetof(struct trailer, crc)));
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

int trace_module_span_compare(const void *pa, const void *pb)
{
	const struct trace_module_span *a = pa, *b = pb;

	return ORDER(a->pid, b->pid) ?: ORDER(a->process_start, b->process_start) ?:
	       ORDER(a->start, b->start) ?: ORDER(a->from, b->from) ?: ORDER(a->to, b->to) ?:
	       ORDER(a->end, b->end);
}
