/* SPDX-License-Identifier: MIT */
/* The text of `perf script`, as scripts that draw flame graphs are fed with. */
#ifndef WEIR_FORMATS_FOREIGN_PERF_SCRIPT_READ_H
#define WEIR_FORMATS_FOREIGN_PERF_SCRIPT_READ_H

#include "formats/foreign/foreign_format.h"

bool perf_script_is(struct span first);
int perf_script_read(struct foreign_input *in, const char *path,
	const struct foreign_options *options, struct trace_writer *w, struct err *err);

#endif
