/* SPDX-License-Identifier: MIT */
/*
 * What reading and writing the merged symbol file share, and the seam where tests make a write
 * fail or end the process.
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_FILE_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_FILE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "symbols/catalog/catalog_segments.h"

struct catalog {
	char *name;	   /* for sentences; owned */
	struct span bytes; /* of the whole file when it was opened */
	bool mapped;	   /* bytes are ours to unmap */
	uint64_t file_bytes;
	struct catalog_root root; /* the one in use */
	unsigned slot;		  /* where it is: 0 or 1 */
	uint64_t newest;	  /* generation of the newest root, usable or not */
	uint64_t end;		  /* what lies before it may be referred to by some root */
	struct catalog_dir dir;
	/* One an image: its check sum was right. Set by any thread, pairs with itself: the bytes
	 * were there before and never change. */
	_Atomic bool *is_checked;
	char *notes; /* owned; NULL = none */
};

/* Like catalog_open, but of an open file; `fd` stays the caller's. */
int catalog_open_fd(struct catalog **out, int fd, const char *name, struct err *err);

/* --- writing --- */

/* Every call that changes a file goes through this table; sync is fdatasync. */
struct catalog_io {
	ssize_t (*write_at)(int fd, const void *p, size_t n, off_t offset);
	int (*sync)(int fd);
	int (*rename)(const char *from, const char *to);
};
/* NULL brings the real ones back. For tests; not for use by several threads. */
void catalog_set_io(const struct catalog_io *io);

/* Opens the file for writing and waits for the writers' lock, which lasts until the fd is closed.
 * A file that was replaced in the meantime is opened anew. ERR_NOT_FOUND when there is none. */
int catalog_lock(const char *path, int *out, struct err *err);
/* The same for the file beside it that will replace it; it is made, and emptied once the lock is
 * ours. Whoever creates or replaces the catalog holds this lock, so that two do not fill one file.
 */
int catalog_lock_new(const char *path, int *out, struct err *err);
/* Puts the new file in place, durably. */
int catalog_replace(const char *path, struct err *err);
/* Removes the new file when it is not wanted any more; its lock must still be held. */
void catalog_discard_new(const char *path);
/* Makes the folders above `path`. */
int catalog_make_folder(const char *path, struct err *err);
int catalog_write_at(int fd, struct span bytes, uint64_t offset, const char *name, struct err *err);
int catalog_sync(int fd, const char *name, struct err *err);

/* catalog_apply and catalog_write_new with what the directory says of each image already known, so
 * that the container is tested with any bytes. entry.base_name and entry.bytes are not looked at.
 */
struct catalog_item {
	struct catalog_entry entry;
	struct span bytes;
};
int catalog_apply_items(const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err);
int catalog_write_new_items(const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err);

#endif
