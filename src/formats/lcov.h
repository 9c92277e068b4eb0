/* SPDX-License-Identifier: MIT */
/* Coverage as lcov's tools read it (genhtml, lcov --summary, editors): a tracefile of geninfo(1).
 */
#ifndef WEIR_FORMATS_LCOV_H
#define WEIR_FORMATS_LCOV_H

#include <stdio.h>

#include "base/err.h"
#include "calltree/build.h"

/* Fails when the trace has no counts of blocks, or none with source lines. */
int export_lcov(const struct profile *profile, FILE *out, struct err *err);

#endif
