/* SPDX-License-Identifier: MIT */
/* What the reader of a report has before him: a terminal with its columns and signs, or a pipe. */
#ifndef WEIR_CMD_REPORT_TERMINAL_H
#define WEIR_CMD_REPORT_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"

/* Zero: a pipe or a file, where text is as long as it is and made of plain signs. */
struct terminal {
	bool is_there;
	bool has_color;
	bool is_utf8; /* the locale has more than ASCII */
	size_t width; /* columns; 0 = not known */
};

struct terminal terminal_of(FILE *out);

/* Columns that a text takes, near enough: bytes that do not continue a UTF-8 sequence. */
size_t text_width(const char *text);
/* Cuts what stands in the buffer from `from` on to the terminal's width, with a sign that it was. */
void terminal_cut(const struct terminal *t, struct buf *b, size_t from);
/* "..." as the terminal has it. */
const char *terminal_dots(const struct terminal *t);

#endif
