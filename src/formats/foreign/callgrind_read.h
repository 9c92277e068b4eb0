/* SPDX-License-Identifier: MIT */
/* Profiles of callgrind and cachegrind. */
#ifndef WEIR_FORMATS_FOREIGN_CALLGRIND_READ_H
#define WEIR_FORMATS_FOREIGN_CALLGRIND_READ_H

#include "formats/foreign/foreign_format.h"

bool callgrind_is(struct span first);
int callgrind_read(struct foreign_input *in, const char *path,
	const struct foreign_options *options, struct trace_writer *w, struct err *err);

#endif
