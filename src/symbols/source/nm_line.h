/* SPDX-License-Identifier: MIT */
/* One line of the output of nm, in its three formats. For use by nm_text.c and source_kind.c only.
 */
#ifndef WEIR_SYMBOLS_SOURCE_NM_LINE_H
#define WEIR_SYMBOLS_SOURCE_NM_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum nm_format {
	NM_FORMAT_BSD,	 /* VALUE [SIZE] TYPE NAME */
	NM_FORMAT_POSIX, /* NAME TYPE [VALUE [SIZE]] */
	NM_FORMAT_SYSV	 /* NAME|VALUE|CLASS|TYPE|SIZE|LINE|SECTION */
};
#define NM_N_FORMATS 3

struct nm_line {
	struct span image; /* in front of the line with -A; empty = not said */
	struct span name;  /* never empty */
	char type;	   /* 'T', 't', 'U', ... */
	bool is_defined;   /* it has a value */
	bool is_data;	   /* the line says so (sysv format) */
	bool is_label;	   /* the line says that it is no function (sysv format) */
	uint64_t value, size;
};

bool nm_line_parse(enum nm_format format, struct span line, struct nm_line *out);
/* "a.o:" or "Symbols from a.o:" or "Undefined symbols from ...": the image of the lines that
 * follow. False when the line is no heading. */
bool nm_line_is_heading(enum nm_format format, struct span line, struct span *image);

#endif
