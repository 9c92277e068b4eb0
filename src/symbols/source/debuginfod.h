/* SPDX-License-Identifier: MIT */
/*
 * Debug files and executables from debuginfod servers, through libdebuginfod when it is installed
 * (loaded at run time, never linked). Asked only when $DEBUGINFOD_URLS is set. Results are kept by
 * the library's own cache.
 */
#ifndef WEIR_SYMBOLS_SOURCE_DEBUGINFOD_H
#define WEIR_SYMBOLS_SOURCE_DEBUGINFOD_H

#include "base/err.h"
#include "base/span.h"

enum debuginfod_what { DEBUGINFOD_DEBUG_FILE, DEBUGINFOD_EXECUTABLE };

struct debuginfod_options {
	long timeout_s; /* for one file in all; 0 = 90 */
	long max_mb;	/* files larger than this are refused; 0 = 2,000 */
	/* Called now and then while waiting; a non-zero return gives up. May be NULL. */
	int (*progress)(void *ctx, long have, long of);
	void *ctx;
};

/* The path of the file in the cache, which the caller frees. ERR_NOT_FOUND: the servers do not have
 * it; ERR_UNSUPPORTED: no library, or no $DEBUGINFOD_URLS (with the sentence that says what to do).
 */
int debuginfod_find(enum debuginfod_what what, struct span build_id,
	const struct debuginfod_options *options, char **path, struct err *err);

#endif
