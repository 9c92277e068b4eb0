/* SPDX-License-Identifier: MIT */
/* Folded stacks, one line a call path: "comm;outer;...;inner COUNT". */
#ifndef WEIR_FORMATS_FOLDED_H
#define WEIR_FORMATS_FOLDED_H

#include <stdio.h>

#include "calltree/build.h"

/* The count is the base of the path in the profile's metric; paths without base have no line. Where
 * samples hang below events their part is taken out of the event's base, so that all add up.
 * Threads of the same name are added up. The middle of a path of more than 1024 names is left out.
 * ';' and line ends in names become ':' and blanks. Does not fail. */
int export_folded(const struct profile *profile, FILE *out, struct err *err);

#endif
