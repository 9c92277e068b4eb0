/* SPDX-License-Identifier: MIT */
/* Processed profiles of the Firefox Profiler, as samply and others write them. */
#ifndef WEIR_FORMATS_FOREIGN_FIREFOX_READ_H
#define WEIR_FORMATS_FOREIGN_FIREFOX_READ_H

#include "formats/foreign/foreign_format.h"

bool firefox_is(struct span first);
int firefox_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err);

#endif
