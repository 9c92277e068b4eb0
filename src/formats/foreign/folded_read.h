/* SPDX-License-Identifier: MIT */
/* Folded stacks, one line a stack: "outer;...;inner COUNT". */
#ifndef WEIR_FORMATS_FOREIGN_FOLDED_READ_H
#define WEIR_FORMATS_FOREIGN_FOLDED_READ_H

#include "formats/foreign/foreign_format.h"

bool folded_is(struct span first);
int folded_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err);

#endif
