/* SPDX-License-Identifier: MIT */
/* /etc/ld.so.cache: which files the loader knows for a library's name. */
#ifndef WEIR_PROBE_POINTS_LIBRARY_CACHE_H
#define WEIR_PROBE_POINTS_LIBRARY_CACHE_H

#include "base/err.h"
#include "base/span.h"
#include "probe/script/ast.h"

#define LIBRARY_CACHE_PATH "/etc/ld.so.cache"

/* Calls `each` with name ("libc.so.6"), path and mode of every x86 library; x32 and other
 * processors are left out. Names and paths are borrowed from `bytes`. Fails with a sentence without
 * subject when it is no such cache. */
int library_cache_each(struct span bytes,
	void (*each)(void *ctx, const char *name, const char *path, enum mode mode), void *ctx,
	struct err *err);

/* "libc", "c" and "libc.so.6" mean "libc.so.6"; "libc-2.31.so" is an older spelling of libc's file.
 * Also a pattern ("libstd*") may be asked for. */
bool library_name_is(const char *asked, const char *file_name);

#endif
