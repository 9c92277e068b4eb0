/* SPDX-License-Identifier: MIT */
/* Any bytes as the format file of a tracepoint; the first one picks the mode. */
#include <stdlib.h>

#include "probe/points/tracepoint_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct types *t = types_new(n && data[0] & 1 ? MODE_64 : MODE_32);
	const struct type *s = NULL;
	struct err err = {0};
	struct buf text = {0};
	uint32_t id;
	int rc = tracepoint_format_parse(t, (struct span){data, n}, &s, &id, &err);

	if (rc < 0 ? !err.text[0] || s : !s || !s->n_fields)
		abort();
	for (uint32_t i = 0; rc == 0 && i < s->n_fields; i++) {
		const struct type_field *f = &s->fields[i];

		/* Named, and inside the record. */
		if (!f->name || !*f->name || f->offset + f->type->size > s->size)
			abort();
		type_print(f->type, &text);
	}
	buf_release(&text);
	types_free(t);
	return 0;
}
