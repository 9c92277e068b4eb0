/* SPDX-License-Identifier: MIT */
/*
 * The executed instructions of a trace as text, one a line, for grep, awk and diff. The columns,
 * separated by tabs, are described in weir-export(1).
 */
#ifndef WEIR_STEPS_STREAM_EXPORT_TEXT_H
#define WEIR_STEPS_STREAM_EXPORT_TEXT_H

#include "steps/stream/export_stream.h"

/* As export_step_stream(); thread by thread. */
int export_step_text(const struct trace_reader *r, const struct step_export_options *options,
	FILE *out, struct step_export_result *result, struct err *err);

#endif
