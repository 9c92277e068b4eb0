/* SPDX-License-Identifier: MIT */
/* Recordings of Java Flight Recorder: of the JDK, and of async-profiler. */
#ifndef WEIR_FORMATS_FOREIGN_JFR_READ_H
#define WEIR_FORMATS_FOREIGN_JFR_READ_H

#include "formats/foreign/foreign_format.h"

bool jfr_is(struct span first);
int jfr_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err);

#endif
