/* SPDX-License-Identifier: MIT */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define FIRST_BYTES 16
#define LINKS_MAX   40 /* as the kernel */
#define READER_NS   20000000

/* What the files of all formats begin with; a test compares it with the formats' own headers. */
static const struct {
	const char *bytes;
	size_t n;
} beginnings[] = {
	{"\x89weir\r\n\x1a", 8}, /* a trace */
	{"WEIRCNT1", 8},	 /* a count file */
	{"\x89wsym\r\n\x1a", 8}, /* a symbol catalog */
	{"weirprobe\n", 10},	 /* a compiled script */
	{"weirstep", 8},	 /* a step stream */
};

static bool is_ours(const char *path)
{
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char first[FIRST_BYTES];
	ssize_t n = fd < 0 ? -1 : pread(fd, first, sizeof(first), 0);

	for (size_t i = 0; n > 0 && i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if ((size_t)n >= beginnings[i].n &&
			!memcmp(first, beginnings[i].bytes, beginnings[i].n))
			return true;
	return false;
}

enum output_place output_place(const char *path)
{
	struct stat st;

	/* What cannot be looked at (a folder that is missing) fails when it is opened. */
	if (stat(path, &st) < 0)
		return OUTPUT_PLACE_FREE;
	if (!S_ISREG(st.st_mode))
		return OUTPUT_PLACE_THROUGH;
	if (!st.st_size)
		return OUTPUT_PLACE_EMPTY;
	return is_ours(path) ? OUTPUT_PLACE_OURS : OUTPUT_PLACE_FOREIGN;
}

int output_check(const char *path, struct err *err)
{
	if (output_place(path) == OUTPUT_PLACE_FOREIGN)
		return err_set(err, ERR_FAILED,
			"'%s': exists and is no weir file; choose another name or remove it", path);
	return 0;
}

/* One step of a link that leads to nothing yet. */
static char *link_target(const char *path)
{
	const char *base = path_base_name(path);
	char text[4096];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	if (n <= 0)
		return mem_strdup(path);
	text[n] = 0;
	return text[0] == '/' || base == path
		       ? mem_strdup(text)
		       : mem_printf("%.*s%s", (int)(base - path), path, text);
}

static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

int output_check_apart(const char *path, const char *input, struct err *err)
{
	struct stat to, from;

	if (stat(path, &to) < 0 || stat(input, &from) < 0 || !S_ISREG(to.st_mode) ||
		to.st_dev != from.st_dev || to.st_ino != from.st_ino)
		return 0;
	return err_set(err, ERR_FAILED,
		"'%s': is the file that is read; what is written needs another name", path);
}

char *output_follow(const char *path)
{
	char *at = mem_strdup(path), *to;
	struct stat named, real;

	for (int i = 0; i < LINKS_MAX && is_link(at) && stat(at, &named) < 0; i++) {
		to = link_target(at);
		free(at);
		at = to;
	}
	if (!is_link(at))
		return at;
	to = realpath(at, NULL);
	/* Links of /proc/PID/fd say where a file was, which may be another one by now. */
	if (to && stat(at, &named) == 0 && stat(to, &real) == 0 && named.st_dev == real.st_dev &&
		named.st_ino == real.st_ino) {
		free(at);
		return to;
	}
	free(to);
	return at;
}

/* Moves the file of ours that is there out of the way. */
static int keep_old(struct output *o, struct err *err)
{
	char *old = mem_printf("%s.old", o->path);
	struct stat st;
	int rc = output_check(old, err);

	if (rc == 0 && lstat(old, &st) == 0 && !S_ISREG(st.st_mode))
		rc = err_set(err, ERR_FAILED,
			"'%s': is in the way of the older file and is not a regular file", old);
	if (rc == 0 && is_link(o->path))
		rc = err_set(err, ERR_FAILED, "'%s': where it leads to cannot be told", o->path);
	if (rc == 0 && rename(o->path, old) < 0)
		rc = err_sys(err, errno, "'%s': cannot keep the older file as '%s'", o->path, old);
	if (rc < 0)
		free(old);
	else
		o->old = old;
	return rc;
}

/* How to open what is there; whatever appears there in between is not touched. */
static int flags_of(enum output_place place)
{
	if (place == OUTPUT_PLACE_THROUGH)
		return O_NOCTTY;
	if (place == OUTPUT_PLACE_FREE)
		return O_CREAT | O_EXCL;
	return O_TRUNC;
}

/* Keeps the file open, so that no other one gets its numbers. */
static void note_file(struct output *o, int fd, bool is_made)
{
	struct stat st;

	o->fd = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	o->is_made = is_made;
}

bool output_is_given_up(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		       sigismember(&pending, SIGHUP) || sigismember(&pending, SIGQUIT));
}

static bool is_fifo(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* An open that blocks would not see signals that are blocked. */
static int open_fifo(const char *path)
{
	int fd = -1;

	for (;;) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 || errno != ENXIO)
			break;
		if (output_is_given_up()) {
			errno = EINTR;
			break;
		}
		nanosleep(&(struct timespec){0, READER_NS}, NULL);
	}
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_WRONLY);
	return fd;
}

int output_open(
	struct output *o, int *out, const char *path, enum output_mode mode, struct err *err)
{
	enum output_place place = output_place(path);
	int rc = 0, fd = -1;

	*o = (struct output){.path = output_follow(path), .fd = -1};
	if (mode == OUTPUT_MODE_OURS) {
		rc = output_check(path, err);
		if (rc == 0 && place == OUTPUT_PLACE_OURS) {
			rc = keep_old(o, err);
			place = OUTPUT_PLACE_FREE;
		}
	}
	if (rc == 0) {
		fd = is_fifo(o->path) ? open_fifo(o->path)
				      : open(o->path, O_WRONLY | O_CLOEXEC | flags_of(place), 0666);
		if (fd < 0)
			rc = err_sys(err, errno, "'%s': cannot create", path);
	}
	if (rc < 0) {
		output_discard(o);
		output_release(o);
		return rc;
	}
	note_file(o, fd, place == OUTPUT_PLACE_FREE);
	*out = fd;
	return 0;
}

static bool is_still_there(const struct output *o)
{
	struct stat named, ours;

	return o->fd >= 0 && fstat(o->fd, &ours) == 0 && lstat(o->path, &named) == 0 &&
	       named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

/* Nobody's file is replaced: link fails where something is. */
static void put_back(const char *old, const char *path)
{
	struct stat st;

	if (link(old, path) == 0)
		unlink(old);
	else if (lstat(path, &st) < 0) /* a file system without links */
		rename(old, path);
}

void output_discard(struct output *o)
{
	if (o->is_made && is_still_there(o))
		unlink(o->path);
	else if (o->fd >= 0 && ftruncate(o->fd, 0) < 0)
		errno = 0; /* half an output stays in a file that was there before */
	if (o->old)
		put_back(o->old, o->path);
	free(o->old);
	o->old = NULL;
	fd_cleanup(&o->fd);
}

void output_release(struct output *o)
{
	fd_cleanup(&o->fd);
	free(o->path);
	free(o->old);
	*o = OUTPUT_NONE;
}
