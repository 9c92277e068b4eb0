/* SPDX-License-Identifier: MIT */
#include "base/staged_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define NAME_TRIES_MAX 100

/* A writer holds the lock on its file as long as it lives: a name whose file nobody has locked was
 * left by one that was killed. The names are few, so that the next writer comes upon it. */
static char *name_beside(const char *path, unsigned attempt)
{
	return mem_printf("%s.weir-partial-%u", path, attempt);
}

static bool has_name(int fd, const char *name)
{
	struct stat st, named;

	return fstat(fd, &st) == 0 && lstat(name, &named) == 0 && named.st_dev == st.st_dev &&
	       named.st_ino == st.st_ino;
}

/* Only who has the lock removes the name. */
static void sweep(const char *name)
{
	FD_AUTO fd = open(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && has_name(fd, name))
		unlink(name);
}

static int open_unnamed(const char *path, mode_t mode)
{
	const char *base = path_base_name(path);
	char *folder = base == path ? mem_strdup(".") : mem_strndup(path, (size_t)(base - path));
	int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);

	if (fd >= 0)
		flock(fd, LOCK_EX);
	free(folder);
	return fd;
}

static int open_named(const char *name, mode_t mode)
{
	int fd;

	sweep(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -1;
	flock(fd, LOCK_EX);
	if (!has_name(fd, name)) { /* somebody has swept it */
		fd_cleanup(&fd);
		errno = EEXIST;
	}
	return fd;
}

int staged_file_open(struct staged_file *f, const char *path, mode_t mode, struct err *err)
{
	*f = (struct staged_file){.fd = open_unnamed(path, mode)};
	/* Not every file system has files without a name. */
	for (unsigned i = 0; f->fd < 0 && i < NAME_TRIES_MAX; i++) {
		char *name = name_beside(path, i);

		f->fd = open_named(name, mode);
		if (f->fd >= 0) {
			f->temporary = name;
		} else {
			free(name);
			if (errno != EEXIST)
				break;
		}
	}
	return f->fd < 0 ? err_sys(err, errno, "'%s': cannot write", path) : 0;
}

static int link_to(const struct staged_file *f, const char *name)
{
	char path[32];

	if (f->temporary)
		return link(f->temporary, name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Only rename replaces a file, and only what has a name can be renamed. */
static int give_name(struct staged_file *f, const char *path)
{
	for (unsigned i = 0; !f->temporary && i < NAME_TRIES_MAX; i++) {
		char *name = name_beside(path, i);

		sweep(name);
		if (link_to(f, name) == 0) {
			f->temporary = name;
		} else {
			free(name);
			if (errno != EEXIST)
				return -1;
		}
	}
	return f->temporary ? 0 : -1;
}

int staged_file_put(struct staged_file *f, const char *path, bool replaces, struct err *err)
{
	struct stat st;

	if (!replaces && link_to(f, path) == 0)
		return 0; /* the temporary name goes with the closing */
	if (!replaces && (errno == EEXIST || lstat(path, &st) == 0))
		return err_sys(err, EEXIST, "'%s': cannot write", path);
	if (give_name(f, path) < 0 || rename(f->temporary, path) < 0)
		return err_sys(err, errno, "'%s': cannot write", path);
	free(f->temporary);
	f->temporary = NULL;
	return 0;
}

void staged_file_close(struct staged_file *f)
{
	if (f->temporary)
		unlink(f->temporary);
	free(f->temporary);
	f->temporary = NULL;
	fd_cleanup(&f->fd);
}
