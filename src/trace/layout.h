/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a trace file that are fixed: header, chunk header, trailer, codes and limits.
 * docs/format/trace.md is the text to this; both change together. Inside src/trace only.
 */
#ifndef WEIR_TRACE_LAYOUT_H
#define WEIR_TRACE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/leb128.h"
#include "base/span.h"

#define TRACE_MAGIC	    "\x89weir\r\n\x1a"
#define TRACE_MAGIC_BYTES   8
#define TRACE_VERSION_MAJOR 1
#define TRACE_VERSION_MINOR 2
#define TRACE_HEADER_BYTES  16
#define TRACE_END_MAGIC	    "\x1a\n\rriew\x89"
#define TRACE_TRAILER_BYTES 24
#define CHUNK_MAGIC	    0x4b484377u /* "wCHK" */
#define CHUNK_HEADER_BYTES  48
#define CHUNK_FLAG_ZSTD	    1u
#define CHUNK_CRC_OFFSET    44

/* Limits: a file that passes one of them is refused, and the writer keeps them. */
#define CHUNK_RAW_BYTES_MAX    (16u << 20)
#define CHUNK_STORED_BYTES_MAX CHUNK_RAW_BYTES_MAX
#define RECORD_BYTES_MAX       (1u << 20)
#define STRING_BYTES_MAX       (1u << 20)
#define TABLE_ENTRIES_MAX      (1u << 28)
#define IMAGE_FUNCTIONS_MAX    (1u << 24) /* of one image */

/* Where the writer cuts. */
#define RECORDS_CUT_BYTES   (64u << 10)
#define TABLE_CUT_BYTES	    (256u << 10)
#define INDEX_CUT_BYTES	    (8u << 20)
#define FUNCTIONS_CUT_BYTES (1u << 20)
#define ADDRESSES_CUT_BYTES (1u << 20)

enum chunk_type {
	CHUNK_TYPE_META = 1,
	CHUNK_TYPE_STRINGS = 2,
	CHUNK_TYPE_METRICS = 3,
	CHUNK_TYPE_STREAMS = 4,
	CHUNK_TYPE_IMAGES = 5,
	CHUNK_TYPE_THREADS = 6,
	CHUNK_TYPE_FRAMES = 7,
	CHUNK_TYPE_STACKS = 8,
	CHUNK_TYPE_KINDS = 9,
	CHUNK_TYPE_SYMBOLS = 10,
	CHUNK_TYPE_RECORDS = 11,
	CHUNK_TYPE_INDEX = 12,
	CHUNK_TYPE_IMAGE_FACTS = 13,
	CHUNK_TYPE_MATCHES = 14,
	CHUNK_TYPE_FUNCTIONS = 15,
	CHUNK_TYPE_ADDRESSES = 16,
	CHUNK_N_TYPES
};

/* The tag byte of a frame. */
#define FRAME_TAG_KIND	 0x0fu
#define FRAME_TAG_CALLER 0x10u
#define FRAME_TAG_IMAGE	 0x20u
#define FRAME_TAG_NAME	 0x40u
#define FRAME_TAG_ZERO	 0x80u

/* The tag byte of a row of the address index. */
#define SPAN_TAG_ENDED	  0x0fu
#define SPAN_TAG_AT_START 0x10u
#define SPAN_TAG_USED	  0x20u
#define SPAN_TAG_ZERO	  0xc0u

/* The least bytes that an entry has: counts are checked by it before anything is allocated. */
#define FUNCTION_BYTES_MIN 3
#define SEGMENT_BYTES_MIN  5

/* The bytes of the file, in their order. */
struct chunk_header {
	uint32_t magic; /* of this and of crc: set when it is encoded */
	uint16_t type;	/* enum chunk_type, or one that is not known */
	uint16_t flags;
	uint32_t stream; /* of RECORDS; the image of FUNCTIONS; else 0 */
	uint32_t stored_bytes;
	uint32_t raw_bytes;
	uint32_t count;
	uint64_t first_time, last_time;
	uint32_t zero;
	uint32_t crc;
};
_Static_assert(sizeof(struct chunk_header) == CHUNK_HEADER_BYTES &&
		       offsetof(struct chunk_header, crc) == CHUNK_CRC_OFFSET,
	"a chunk header is copied as it is");

/* What the index knows of a chunk. */
struct chunk_entry {
	uint64_t offset;
	uint32_t type;
	uint32_t stream;
	uint32_t count;
	uint64_t first_time, last_time;
};

/* Likewise. */
struct trailer {
	uint64_t index_offset;
	uint32_t n_chunks;
	uint32_t crc;
	char magic[TRACE_MAGIC_BYTES];
};
_Static_assert(sizeof(struct trailer) == TRACE_TRAILER_BYTES, "a trailer is copied as it is");

void trace_header_encode(uint8_t to[TRACE_HEADER_BYTES]);
/* Computes the CRC over header and `payload` and stores it. */
void chunk_header_encode(
	uint8_t to[CHUNK_HEADER_BYTES], const struct chunk_header *h, struct span payload);
/* False when the magic is not there. */
bool chunk_header_decode(struct chunk_header *h, const uint8_t from[CHUNK_HEADER_BYTES]);
uint32_t chunk_crc(const uint8_t header[CHUNK_HEADER_BYTES], struct span payload);
void trailer_encode(uint8_t to[TRACE_TRAILER_BYTES], const struct trailer *t);
/* False when it is not a trailer, or (with check_crc) its CRC is wrong. */
bool trailer_decode(struct trailer *t, const uint8_t from[TRACE_TRAILER_BYTES], bool check_crc);

/* "STRINGS", ...; "?" for types that are not known. */
const char *chunk_type_name(uint32_t type);

/* Reads an unsigned LEB128 from [p, end) and returns the place behind it; NULL when it is cut off
 * or has more than 64 bits. One and two bytes are the common case. cursor_uleb does the same where
 * speed does not matter. */
static inline const uint8_t *uleb_get(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	uint64_t value = 0;

	if (end - p >= 2) {
		if (p[0] < 0x80) {
			*v = p[0];
			return p + 1;
		}
		if (p[1] < 0x80) {
			*v = (p[0] & 0x7fu) | (unsigned)p[1] << 7;
			return p + 2;
		}
	}
	for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
		uint64_t bits = *p & 0x7f;

		if (shift == 63 && bits > 1)
			return NULL;
		value |= bits << shift;
		if (!(*p++ & 0x80)) {
			*v = value;
			return p;
		}
	}
	return NULL;
}

#endif
