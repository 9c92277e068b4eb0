/* SPDX-License-Identifier: MIT */
#ifndef WEIR_FORMATS_GZIP_H
#define WEIR_FORMATS_GZIP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

/* Appends `bytes` as a gzip file (RFC 1952) to `to`. */
int gzip_pack(struct span bytes, struct buf *to, struct err *err);

#endif
