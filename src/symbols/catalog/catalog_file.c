/* SPDX-License-Identifier: MIT */
/* The operating system's side of writing the merged symbol file: locks, whole writes, replacement.
 */
#include "symbols/catalog/catalog_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "symbols/catalog/catalog_segments.h"

#define NEW_SUFFIX ".new"
/* Each time another writer replaced the file while we waited. */
#define LOCK_TRIES_MAX 1000

static ssize_t real_write_at(int fd, const void *p, size_t n, off_t offset)
{
	return pwrite(fd, p, n, offset);
}

static const struct catalog_io real_io = {real_write_at, fdatasync, rename};
static const struct catalog_io *current_io = &real_io;

void catalog_set_io(const struct catalog_io *io)
{
	current_io = io ? io : &real_io;
}

int catalog_write_at(int fd, struct span bytes, uint64_t offset, const char *name, struct err *err)
{
	size_t done = 0;

	while (done < bytes.n) {
		ssize_t n = current_io->write_at(
			fd, bytes.p + done, bytes.n - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(err, n < 0 ? errno : ENOSPC, "'%s': cannot write", name);
		done += (size_t)n;
	}
	return 0;
}

int catalog_sync(int fd, const char *name, struct err *err)
{
	return current_io->sync(fd) < 0 ? err_sys(err, errno, "'%s': cannot write to the disk", name) : 0;
}

/* --- locks --- */

/*
 * A lock of the open file description: unlike the older F_SETLKW it also keeps threads of one
 * process apart, and closing another descriptor of the file does not drop it. Kernels and file
 * systems without it say EINVAL; there flock, which has the same two properties, takes its place
 * for all writers alike.
 */
static int wait_for_lock(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int rc;

	do
		rc = fcntl(fd, F_OFD_SETLKW, &all);
	while (rc < 0 && errno == EINTR);
	if (rc == 0 || errno != EINVAL)
		return rc;
	do
		rc = flock(fd, LOCK_EX);
	while (rc < 0 && errno == EINTR);
	return rc;
}

static bool is_same_file(int fd, const char *path)
{
	struct stat open_one, named;

	return fstat(fd, &open_one) == 0 && stat(path, &named) == 0 &&
	       open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

static int open_locked(const char *path, int flags, int *out, struct err *err)
{
	struct stat st;

	for (int i = 0; i < LOCK_TRIES_MAX; i++) {
		FD_AUTO fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NONBLOCK, 0666);

		if (fd < 0)
			return err_sys(err, errno, "'%s': cannot open for writing", path);
		if (fstat(fd, &st) < 0)
			return err_sys(err, errno, "'%s': cannot stat", path);
		if (!S_ISREG(st.st_mode))
			return err_set(err, ERR_FAILED, "'%s': is not a regular file", path);
		if (wait_for_lock(fd) < 0)
			return err_sys(err, errno, "'%s': cannot lock", path);
		if (is_same_file(fd, path)) {
			*out = fd;
			fd = -1;
			return 0;
		}
	}
	return err_set(err, ERR_FAILED, "'%s': is replaced again and again", path);
}

int catalog_lock(const char *path, int *out, struct err *err)
{
	return open_locked(path, 0, out, err);
}

static char *new_path(const char *path)
{
	return mem_printf("%s" NEW_SUFFIX, path);
}

/* Whether a file was begun by a writer of ours that was killed: its first block is written last. */
static bool is_left_over(int fd)
{
	static const uint8_t nothing[CATALOG_MAGIC_BYTES];
	uint8_t first[CATALOG_MAGIC_BYTES];
	ssize_t n = pread(fd, first, sizeof(first), 0);

	return n == 0 || (n == (ssize_t)sizeof(first) &&
				 (!memcmp(first, nothing, sizeof(first)) ||
					 !memcmp(first, CATALOG_MAGIC, sizeof(first))));
}

int catalog_lock_new(const char *path, int *out, struct err *err)
{
	char *beside = new_path(path);
	FD_AUTO fd = -1;
	struct stat st;
	int rc = open_locked(beside, O_CREAT | O_NOFOLLOW, &fd, err);

	/* It becomes the catalog: nobody else may own it or have it under another name. */
	if (rc == 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_nlink != 1 ||
			       !is_left_over(fd)))
		rc = err_set(err, ERR_PERMISSION,
			"'%s': is in the way and not a left-over of ours; remove it", beside);
	if (rc == 0 && ftruncate(fd, 0) < 0)
		rc = err_sys(err, errno, "'%s': cannot empty", beside);
	free(beside);
	if (rc < 0)
		return rc;
	*out = fd;
	fd = -1;
	return 0;
}

/* --- names --- */

static char *folder_of(const char *path)
{
	char *copy = mem_strdup(path);
	char *folder = mem_strdup(dirname(copy));

	free(copy);
	return folder;
}

int catalog_replace(const char *path, struct err *err)
{
	char *beside = new_path(path), *folder = folder_of(path);
	FD_AUTO fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (current_io->rename(beside, path) < 0)
		rc = err_sys(err, errno, "'%s': cannot put in place of '%s'", beside, path);
	/* Some file systems cannot sync a folder (EINVAL): then the name is as durable as it gets.
	 */
	else if (fd >= 0 && fsync(fd) < 0 && errno != EINVAL)
		rc = err_sys(err, errno, "'%s': cannot write to the disk", folder);
	free(beside);
	free(folder);
	return rc;
}

void catalog_discard_new(const char *path)
{
	char *beside = new_path(path);

	unlink(beside);
	free(beside);
}

int catalog_make_folder(const char *path, struct err *err)
{
	char *folder = folder_of(path);
	int rc = 0;

	for (char *p = folder + 1; rc == 0 && *folder; p++) {
		char end = *p;

		if (end && end != '/')
			continue;
		*p = 0;
		if (mkdir(folder, 0777) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			rc = err_sys(err, errno, "'%s': cannot make the folder", folder);
		*p = end;
		if (!end)
			break;
	}
	free(folder);
	return rc;
}
