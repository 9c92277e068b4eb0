/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map_guard.h"
#include "base/mem.h"
#include "base/output.h"
#include "base/staged_file.h"

#define READ_STEP_BYTES (64 * 1024)
#define READ_WHOLE_MAX	((size_t)1 << 30)

void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int read_all(int fd, struct buf *to, size_t max, const char *path, struct err *err)
{
	char step[READ_STEP_BYTES];
	size_t total = 0;

	for (;;) {
		ssize_t n = read(fd, step, sizeof(step));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "'%s': cannot read", path);
		if (n == 0)
			return 0;
		total += (size_t)n;
		if (total > max)
			return err_set(err, ERR_LIMIT, "'%s': is larger than %zu bytes", path, max);
		buf_put(to, step, (size_t)n);
	}
}

int file_read(struct buf *to, const char *path, size_t max, struct err *err)
{
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "'%s': cannot open", path);
	return read_all(fd, to, max, path, err);
}

int fd_write_all(int fd, struct span bytes)
{
	while (bytes.n) {
		ssize_t n = write(fd, bytes.p, bytes.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (!n)
			errno = ENOSPC;
		if (n <= 0)
			return -1;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return 0;
}

/* A device or pipe (/dev/null, /dev/stdout) gets the bytes; a rename would put a file in its place.
 */
static int write_into(const char *path, struct span bytes, struct err *err)
{
	FD_AUTO fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || fd_write_all(fd, bytes) < 0)
		return err_sys(err, errno, "'%s': cannot write", path);
	return 0;
}

static int rename_over(const char *path, struct span bytes, unsigned int mode, struct err *err)
{
	struct staged_file f;
	int rc = staged_file_open(&f, path, mode, err);

	if (rc < 0)
		return rc;
	if (fd_write_all(f.fd, bytes) < 0 || fchmod(f.fd, mode) < 0)
		rc = err_sys(err, errno, "'%s': cannot write", path);
	else
		rc = staged_file_put(&f, path, true, err);
	staged_file_close(&f);
	return rc;
}

int file_replace(const char *path, struct span bytes, unsigned int mode, struct err *err)
{
	char *real = output_follow(path);
	struct stat st;
	int rc;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		rc = write_into(path, bytes, err);
	else if (lstat(real, &st) == 0 && S_ISLNK(st.st_mode))
		rc = err_set(err, ERR_FAILED, "'%s': where it leads to cannot be told", path);
	else
		rc = rename_over(real, bytes, mode, err);
	free(real);
	return rc;
}

int file_map_open(struct file_map *map, const char *path, struct err *err)
{
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_sys(err, errno, "'%s': cannot open", path);
	return file_map_open_fd(map, fd, path, err);
}

int file_map_open_fd(struct file_map *map, int fd, const char *path, struct err *err)
{
	struct buf b = {0};
	struct stat st;
	void *p;
	int rc;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "'%s': cannot stat", path);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_FAILED, "'%s': is a directory", path);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return err_set(err, ERR_FAILED, "'%s': is not a regular file", path);
	if (S_ISREG(st.st_mode) && st.st_size > 0) {
		/* Uprobes, anybody's, put breakpoints into private mappings of a program, also
		 * into those that only read it. */
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED) /* as on FUSE with direct I/O */
			p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			return err_sys(err, errno, "'%s': cannot map", path);
		if (map_guard_add(p, (size_t)st.st_size)) {
			*map = (struct file_map){{p, (size_t)st.st_size}, true};
			return 0;
		}
		munmap(p, (size_t)st.st_size); /* more files than anybody has: read it */
	}
	fcntl(fd, F_SETFL, 0); /* a pipe is read until its writer is done */
	rc = read_all(fd, &b, READ_WHOLE_MAX, path, err);
	if (rc < 0) {
		buf_release(&b);
		return rc;
	}
	*map = (struct file_map){{b.p, b.n}, false};
	return 0;
}

void file_map_release(struct file_map *map)
{
	if (map->mapped) {
		map_guard_remove(map->bytes.p);
		munmap((void *)map->bytes.p, map->bytes.n);
	} else {
		free((void *)map->bytes.p);
	}
	*map = (struct file_map){{NULL, 0}, false};
}

bool file_map_is_cut(const struct file_map *map)
{
	return map->mapped && map_guard_is_cut(map->bytes.p);
}
