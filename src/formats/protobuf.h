/* SPDX-License-Identifier: MIT */
/* Writing the protobuf wire format: varints, texts, messages in messages. Zero values are left
 * out, as proto3 has it. */
#ifndef WEIR_FORMATS_PROTOBUF_H
#define WEIR_FORMATS_PROTOBUF_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

enum protobuf_wire { PROTOBUF_WIRE_VARINT = 0, PROTOBUF_WIRE_FIXED64 = 1, PROTOBUF_WIRE_BYTES = 2 };

static inline void protobuf_tag(struct buf *b, uint32_t field, enum protobuf_wire wire)
{
	buf_put_uleb(b, (uint64_t)field << 3 | wire);
}

static inline void protobuf_number(struct buf *b, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	protobuf_tag(b, field, PROTOBUF_WIRE_VARINT);
	buf_put_uleb(b, value);
}

static inline void protobuf_bytes(struct buf *b, uint32_t field, const void *p, size_t n)
{
	protobuf_tag(b, field, PROTOBUF_WIRE_BYTES);
	buf_put_uleb(b, n);
	buf_put(b, p, n);
}

static inline void protobuf_fixed64(struct buf *b, uint32_t field, uint64_t value)
{
	protobuf_tag(b, field, PROTOBUF_WIRE_FIXED64);
	buf_put_u64(b, value);
}

/* A string, which readers may refuse when it is not UTF-8: bytes that are not become U+FFFD. */
static inline void protobuf_text(struct buf *b, uint32_t field, const char *text)
{
	static const char bad[] = "\xef\xbf\xbd";
	size_t n = 0;

	for (const char *p = text; *p;) {
		size_t bytes = utf8_bytes(p, strnlen(p, 4));

		n += bytes ? bytes : sizeof(bad) - 1;
		p += bytes ? bytes : 1;
	}
	protobuf_tag(b, field, PROTOBUF_WIRE_BYTES);
	buf_put_uleb(b, n);
	for (const char *p = text; *p;) {
		size_t bytes = utf8_bytes(p, strnlen(p, 4));

		buf_put(b, bytes ? p : bad, bytes ? bytes : sizeof(bad) - 1);
		p += bytes ? bytes : 1;
	}
}

static inline void protobuf_message(struct buf *b, uint32_t field, const struct buf *message)
{
	protobuf_bytes(b, field, message->p, message->n);
}

#endif
