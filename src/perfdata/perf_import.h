/* SPDX-License-Identifier: MIT */
/*
 * perf.data, as a file or as what perf writes into a pipe: its records become a session's (record/session.h), as if
 * they came out of rings of ours.
 *
 *   records --> (unpacked) --> collected.h --> session: sorted, processes, images, stacks walked --> trace
 */
#ifndef WEIR_PERFDATA_PERF_IMPORT_H
#define WEIR_PERFDATA_PERF_IMPORT_H

#include "formats/foreign/foreign_format.h"

bool perfdata_is(struct span first);
int perfdata_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err);

#endif
