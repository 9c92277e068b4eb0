/* SPDX-License-Identifier: MIT */
#include "formats/protobuf_read.h"

#include "base/leb128.h"

struct cursor protobuf_read_numbers(const struct protobuf_field *field, uint8_t *one)
{
	if (field->wire == PROTOBUF_READ_BYTES)
		return cursor_of(field->bytes);
	return cursor_of((struct span){one, (size_t)(uleb_put(one, field->value) - one)});
}
