/* SPDX-License-Identifier: MIT */
/* Trace events in JSON, as Chrome and many tracers write them. */
#ifndef WEIR_FORMATS_FOREIGN_CHROME_READ_H
#define WEIR_FORMATS_FOREIGN_CHROME_READ_H

#include "formats/foreign/foreign_format.h"

bool chrome_is(struct span first);
int chrome_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err);

#endif
