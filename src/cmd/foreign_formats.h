/* SPDX-License-Identifier: MIT */
/* Files of other tools, as traces: which formats there are, and which one a file is. */
#ifndef WEIR_CMD_FOREIGN_FORMATS_H
#define WEIR_CMD_FOREIGN_FORMATS_H

#include <stddef.h>

#include "formats/foreign/foreign_format.h"

/* In the order in which they are tried: what is told by less comes later. */
extern const struct foreign_format foreign_formats[];
extern const size_t foreign_n_formats;

/* By its first bytes, packed or not; NULL: none, or a trace or count file, or it cannot be read. */
const struct foreign_format *foreign_format_of(const char *path);
/* By bytes from the beginning that are not all of it. */
const struct foreign_format *foreign_format_of_bytes(struct span first);

/* Makes the trace; the writer stays the caller's. `name` is for sentences. */
int foreign_format_read(const struct foreign_format *format, const char *path, const char *name,
	const struct foreign_options *options, struct trace_writer *w, struct err *err);

#endif
