/* SPDX-License-Identifier: MIT */
/* Folders that `uftrace record` writes. */
#ifndef WEIR_FORMATS_FOREIGN_UFTRACE_READ_H
#define WEIR_FORMATS_FOREIGN_UFTRACE_READ_H

#include "formats/foreign/foreign_format.h"

bool uftrace_is_folder(const char *path);
int uftrace_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err);

#endif
