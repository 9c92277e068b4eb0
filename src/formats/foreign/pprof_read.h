/* SPDX-License-Identifier: MIT */
/* Profiles of the pprof tools (profile.proto), as Go, gperftools and many others write them. */
#ifndef WEIR_FORMATS_FOREIGN_PPROF_READ_H
#define WEIR_FORMATS_FOREIGN_PPROF_READ_H

#include "formats/foreign/foreign_format.h"

bool pprof_is(struct span first);
int pprof_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err);

#endif
