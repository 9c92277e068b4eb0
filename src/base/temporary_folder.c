/* SPDX-License-Identifier: MIT */
#include "base/temporary_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define TRIES_MAX    100
#define RANDOM_CHARS 6
#define OPEN_MAX_FDS 16

const char *temporary_place(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && tmp[0] == '/' ? tmp : "/tmp";
}

/* Not every file system has files without a name from the start. */
int temporary_file_open(void)
{
	char *name = mem_printf("%s/weir-XXXXXX", temporary_place());
	int fd = open(temporary_place(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd < 0) {
		fd = mkostemp(name, O_CLOEXEC);
		if (fd >= 0)
			unlink(name);
	}
	free(name);
	return fd;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	remove(path);
	return 0;
}

static void remove_all(const char *path)
{
	nftw(path, remove_one, OPEN_MAX_FDS, FTW_DEPTH | FTW_PHYS);
}

/* The lock on a folder of ours that still has a name; -1 when another one has it. */
static int lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || !st.st_nlink ||
			       st.st_uid != geteuid()))
		fd_cleanup(&fd);
	return fd;
}

static bool is_name_of_ours(const char *name, const char *prefix)
{
	size_t n = strlen(prefix), digits;

	if (strncmp(name, prefix, n))
		return false;
	digits = strspn(name + n, "0123456789");
	return digits && name[n + digits] == '-' && strlen(name + n + digits + 1) == RANDOM_CHARS;
}

/* What nobody has locked, its maker has left. */
static void sweep(const char *place, const char *prefix)
{
	DIR *d = opendir(place);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char *path = mem_printf("%s/%s", place, e->d_name);
		FD_AUTO fd = is_name_of_ours(e->d_name, prefix) ? lock(path) : -1;

		if (fd >= 0)
			remove_all(path);
		free(path);
	}
	if (d)
		closedir(d);
}

int temporary_folder_make(struct temporary_folder *f, const char *place, const char *prefix)
{
	int rc = 0;

	*f = (struct temporary_folder){.lock_fd = -1};
	sweep(place, prefix);
	/* Another one may sweep it before it is locked. */
	for (int i = 0; i < TRIES_MAX && f->lock_fd < 0 && rc == 0; i++) {
		free(f->path);
		f->path = mem_printf("%s/%s%d-XXXXXX", place, prefix, (int)getpid());
		if (mkdtemp(f->path))
			f->lock_fd = lock(f->path);
		else
			rc = -errno;
	}
	if (f->lock_fd >= 0)
		return 0;
	free(f->path);
	f->path = NULL;
	return rc < 0 ? rc : -EAGAIN;
}

void temporary_folder_remove(struct temporary_folder *f)
{
	if (!f->path)
		return;
	remove_all(f->path);
	free(f->path);
	f->path = NULL;
	fd_cleanup(&f->lock_fd);
}
