/* SPDX-License-Identifier: MIT */
#include "jvm/bytecode_lines.h"

#include "jvm/unsigned5.h"

#define END	    0
#define LONG_ENTRY  0xff /* two signed numbers follow; else 5 bits of bytecodes, 3 of lines */
#define ENTRIES_MAX 65536

void line_entries_read(struct line_entries *to, struct span stream, unsigned least)
{
	struct cursor c = cursor_of(stream);
	int64_t bci = 0, line = 0;

	while (to->n < ENTRIES_MAX) {
		uint8_t byte = cursor_u8(&c);

		if (c.failed || byte == END)
			return;
		if (byte == LONG_ENTRY) {
			bci += unsigned5_read_signed(&c, least);
			line += unsigned5_read_signed(&c, least);
		} else {
			bci += byte >> 3;
			line += byte & 7;
		}
		if (c.failed || bci < 0 || bci > UINT16_MAX || line < 0 || line > UINT16_MAX)
			return;
		vec_push(to, ((struct line_entry){(uint16_t)bci, (uint16_t)line}));
	}
}

uint32_t line_entries_find(const struct line_entries *lines, uint32_t bci)
{
	uint32_t best = 0, line = 0;

	for (size_t i = 0; i < lines->n; i++) {
		const struct line_entry *e = &lines->v[i];

		if (e->bci == bci)
			return e->line;
		if (e->bci < bci && e->bci >= best) {
			best = e->bci;
			line = e->line;
		}
	}
	return line;
}
