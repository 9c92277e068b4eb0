/* SPDX-License-Identifier: MIT */
/*
 * The profile format of callgrind, version 1, as callgrind_annotate and KCachegrind read it. Counts
 * of blocks go to their source lines, and calls are by function; of other traces the call tree is
 * written, by the metric of the profile.
 */
#ifndef WEIR_FORMATS_CALLGRIND_H
#define WEIR_FORMATS_CALLGRIND_H

#include <stdio.h>

#include "base/err.h"
#include "calltree/build.h"

int export_callgrind(const struct profile *profile, FILE *out, struct err *err);

#endif
