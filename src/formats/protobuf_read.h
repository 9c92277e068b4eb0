/* SPDX-License-Identifier: MIT */
/* Reading the protobuf wire format without trust: fields one by one, of a message that is in memory. */
#ifndef WEIR_FORMATS_PROTOBUF_READ_H
#define WEIR_FORMATS_PROTOBUF_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum protobuf_read_wire {
	PROTOBUF_READ_VARINT = 0,
	PROTOBUF_READ_FIXED64 = 1,
	PROTOBUF_READ_BYTES = 2,
	PROTOBUF_READ_FIXED32 = 5
};

struct protobuf_field {
	uint32_t number;
	enum protobuf_read_wire wire;
	uint64_t value;	   /* of numbers */
	struct span bytes; /* of texts, messages and packed numbers */
};

/* The tag of a field. False: it is none, or not all of it is there. */
static inline bool protobuf_read_tag(struct cursor *c, struct protobuf_field *field)
{
	uint64_t tag = cursor_uleb(c);

	field->number = (uint32_t)(tag >> 3);
	field->wire = (enum protobuf_read_wire)(tag & 7);
	return !c->failed && tag >> 3 && tag >> 3 <= UINT32_MAX >> 3;
}

/* The next field of a message. False: it is over, or (c->failed) damaged. */
static inline bool protobuf_read_field(struct cursor *c, struct protobuf_field *field)
{
	*field = (struct protobuf_field){0};
	if (!cursor_left(c) || c->failed)
		return false;
	if (!protobuf_read_tag(c, field))
		c->failed = true;
	else if (field->wire == PROTOBUF_READ_VARINT)
		field->value = cursor_uleb(c);
	else if (field->wire == PROTOBUF_READ_FIXED64)
		field->value = cursor_u64(c);
	else if (field->wire == PROTOBUF_READ_BYTES)
		field->bytes = cursor_bytes(c, cursor_uleb(c));
	else if (field->wire == PROTOBUF_READ_FIXED32)
		field->value = cursor_u32(c);
	else
		c->failed = true;
	return !c->failed;
}

/* The numbers of a repeated field, packed or alone: for (c = protobuf_read_numbers(&f, one); cursor_left(&c);)
 * n = cursor_uleb(&c). `one` has room for a number of ULEB_BYTES_MAX bytes. */
struct cursor protobuf_read_numbers(const struct protobuf_field *field, uint8_t *one);

#endif
