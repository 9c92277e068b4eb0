/* SPDX-License-Identifier: MIT */
/*
 * Inserted copies of objects and archives, by content. An entry is a folder named by the hash of
 * everything that the copy depends on:
 *
 *	FOLDER/ab/cdef.../.object   the copy
 *	FOLDER/ab/cdef.../.report   what was done (insert_report.c)
 *	FOLDER/ab/cdef.../libz.a    a link to .object: linkers name files in their messages
 *
 * Entries appear by renaming, so that links that run at the same time see all of one or nothing;
 * those made twice are the same. The oldest go when the whole is too large.
 */
#ifndef WEIR_INSERT_OBJECT_CACHE_H
#define WEIR_INSERT_OBJECT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "base/temporary_folder.h"

#define CACHE_BYTES_MAX (2ull << 30)
#define CACHE_KEEP_S	3600 /* an entry used within this time is not removed */
#define CACHE_TRIM_S	600  /* the folder is not measured more often than this */

struct object_cache {
	char *folder;			   /* owned */
	struct temporary_folder temporary; /* its path is the folder; mostly there is none */
};

/* $WEIR_CACHE, $XDG_CACHE_HOME/weir/count or ~/.cache/weir/count, made when missing; a temporary
 * folder when none of them can be had, or `is_temporary`. */
int object_cache_open(struct object_cache *cache, bool is_temporary, struct err *err);
void object_cache_close(struct object_cache *cache);

/* The entry of this hash: its path, ending in `name`, for the caller to free, and its report
 * appended to `report`. NULL when there is none. It counts as used now. */
char *object_cache_find(
	const struct object_cache *cache, const char *hash, const char *name, struct buf *report);
int object_cache_store(const struct object_cache *cache, const char *hash, struct span object,
	struct span report, struct err *err);
/* Removes the entries used longest ago until `max_bytes` are left, unless that was done lately. */
void object_cache_trim(const struct object_cache *cache, uint64_t max_bytes);

#endif
