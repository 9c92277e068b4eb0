/* SPDX-License-Identifier: MIT */
/*
 * The profile format of the pprof tools: a gzipped protobuf message (profile.proto). Samples keep
 * their addresses, images and lines; a trace with events alone is exported from its tree, without
 * addresses.
 */
#ifndef WEIR_FORMATS_PPROF_H
#define WEIR_FORMATS_PPROF_H

#include <stdio.h>

#include "base/err.h"
#include "calltree/build.h"

/* Writes the gzipped message. */
int export_pprof(const struct profile *profile, FILE *out, struct err *err);

#endif
