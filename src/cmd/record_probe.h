/* SPDX-License-Identifier: MIT */
/* `weir record --probe SCRIPT`: a trace script runs beside the recording, and what it prints and
 * counts becomes part of the trace (records 0x56). */
#ifndef WEIR_CMD_RECORD_PROBE_H
#define WEIR_CMD_RECORD_PROBE_H

#include "base/err.h"
#include "cmd/options.h"
#include "record/recorder.h"

struct record_probe;

/* Compiles the scripts for what `options` records (command or processes) and fills in `companion`,
 * which lives as long as the result. NULL: messages were printed, and *status is to be returned. */
struct record_probe *record_probe_new(const struct option_texts *scripts,
	const struct recorder_options *options, struct recorder_companion *companion, int *status);
void record_probe_free(struct record_probe *p);

#endif
