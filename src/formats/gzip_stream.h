/* SPDX-License-Identifier: MIT */
/* A gzip file (RFC 1952) that is made while it is written. */
#ifndef WEIR_FORMATS_GZIP_STREAM_H
#define WEIR_FORMATS_GZIP_STREAM_H

#include <stdio.h>

#include "base/err.h"

/* Quick: exports are large, and what reads them unpacks at once. */
#define GZIP_STREAM_QUICK 2
#define GZIP_STREAM_USUAL 6

/* What is written to *stream goes to `out`, packed; fclose() of it ends the file and leaves `out` open.
 * A failure of `out` is one of the stream, too. */
int gzip_stream_open(FILE **stream, FILE *out, int level, struct err *err);

#endif
