/* SPDX-License-Identifier: MIT */
/* Files of speedscope: sampled and evented profiles. */
#ifndef WEIR_FORMATS_FOREIGN_SPEEDSCOPE_READ_H
#define WEIR_FORMATS_FOREIGN_SPEEDSCOPE_READ_H

#include "formats/foreign/foreign_format.h"

bool speedscope_is(struct span first);
int speedscope_read(struct foreign_input *in, const char *path,
	const struct foreign_options *options, struct trace_writer *w, struct err *err);

#endif
