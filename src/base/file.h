/* SPDX-License-Identifier: MIT */
/* Whole files: mapped read-only, or read into memory (for /proc, which cannot be mapped). */
#ifndef WEIR_BASE_FILE_H
#define WEIR_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path_name.h"
#include "base/span.h"

struct file_map {
	struct span bytes; /* borrowed by users until file_map_release */
	bool mapped;	   /* munmap, else free */
};

/* Regular files are mapped, others read. Fails with a sentence that names `path`. */
int file_map_open(struct file_map *map, const char *path, struct err *err);
/* The same for a file that is open already and stays the caller's. */
int file_map_open_fd(struct file_map *map, int fd, const char *path, struct err *err);
void file_map_release(struct file_map *map);
/* Whether the file was truncated while it was mapped and what is gone was asked for: that reads as
 * zeros (base/map_guard.h). */
bool file_map_is_cut(const struct file_map *map);
#define FILE_CUT_REASON "was truncated while it was read"

/* Appends the content of `path` to `to`, at most `max` bytes. */
int file_read(struct buf *to, const char *path, size_t max, struct err *err);

/* The file gets these bytes and this mode, all at once: whoever opens it sees the old contents or the
 * new ones. A link is followed; a device or pipe is written through. */
int file_replace(const char *path, struct span bytes, unsigned int mode, struct err *err);

/* 0, or -1 and errno. */
int fd_write_all(int fd, struct span bytes);
/* Closes *fd when it is not negative; for __attribute__((cleanup)). */
void fd_cleanup(int *fd);
#define FD_AUTO __attribute__((cleanup(fd_cleanup))) int

#endif
