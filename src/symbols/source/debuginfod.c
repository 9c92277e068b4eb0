/* SPDX-License-Identifier: MIT */
/*
 * The library is loaded when it is first needed and never unloaded (libcurl does not survive that).
 * Its limits are environment variables, which a library must not change under other threads; so
 * the deadline and the largest size are kept by its progress callback, which it calls at least once
 * a second while it waits. What the user set in the environment holds as well.
 *
 * The library takes a search that its callback ended for a miss, and remembers it: an empty file in
 * its cache answers "not found" for the next ten minutes. Such a file is removed here.
 */
#include "symbols/source/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#define LIBRARY		   "libdebuginfod.so.1"
#define TIMEOUT_S_DEFAULT  90
#define MAX_MB_DEFAULT	   2000
#define BUILD_ID_BYTES_MAX 64

/* As <elfutils/debuginfod.h> declares them. */
struct debuginfod_client;
typedef int progress_fn(struct debuginfod_client *client, long a, long b);
typedef int find_fn(
	struct debuginfod_client *client, const unsigned char *build_id, int n, char **path);

static struct {
	void *handle;
	struct debuginfod_client *(*begin)(void);
	void (*end)(struct debuginfod_client *client);
	find_fn *find_debuginfo, *find_executable;
	void (*set_progressfn)(struct debuginfod_client *client, progress_fn *fn);
	void (*set_user_data)(struct debuginfod_client *client, void *data);
	void *(*get_user_data)(struct debuginfod_client *client);
} library; /* written once, in load_library */
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void *symbol_of(const char *name, bool *all)
{
	void *symbol = dlsym(library.handle, name);

	*all = *all && symbol;
	return symbol;
}

static void load_library(void)
{
	bool all = true;

	library.handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library.handle)
		return;
	/* The casts that POSIX asks for: a data pointer that is a function. */
	*(void **)&library.begin = symbol_of("debuginfod_begin", &all);
	*(void **)&library.end = symbol_of("debuginfod_end", &all);
	*(void **)&library.find_debuginfo = symbol_of("debuginfod_find_debuginfo", &all);
	*(void **)&library.find_executable = symbol_of("debuginfod_find_executable", &all);
	*(void **)&library.set_progressfn = symbol_of("debuginfod_set_progressfn", &all);
	*(void **)&library.set_user_data = symbol_of("debuginfod_set_user_data", &all);
	*(void **)&library.get_user_data = symbol_of("debuginfod_get_user_data", &all);
	if (!all)
		library.handle = NULL;
}

/* Why the search was ended from our side. */
enum stop { STOP_NONE, STOP_TIME, STOP_SIZE, STOP_CALLER };

struct search {
	const struct debuginfod_options *options;
	long timeout_s, max_mb;
	uint64_t deadline_ns;
	uint64_t max_bytes;
	time_t began;
	enum stop stop;
};

/* `of` is 0 while the size is not known; `have` then only counts. */
static int on_progress(struct debuginfod_client *client, long have, long of)
{
	struct search *s = library.get_user_data(client);

	if (clock_read_ns(CLOCK_MONOTONIC) >= s->deadline_ns)
		s->stop = STOP_TIME;
	else if (of > 0 && ((uint64_t)of > s->max_bytes || (uint64_t)have > s->max_bytes))
		s->stop = STOP_SIZE;
	else if (s->options && s->options->progress &&
		 s->options->progress(s->options->ctx, of > 0 ? have : 0, of > 0 ? of : 0))
		s->stop = STOP_CALLER;
	return s->stop != STOP_NONE;
}

/* Where the library keeps its files: debuginfod_find_debuginfo(3). */
static void put_cache_folder(struct buf *to)
{
	const char *home = getenv("HOME"), *path = getenv("DEBUGINFOD_CACHE_PATH");
	const char *cache = getenv("XDG_CACHE_HOME");
	struct stat st;

	if (path && *path) {
		buf_printf(to, "%s", path);
		return;
	}
	buf_printf(to, "%s/.debuginfod_client_cache", home ? home : "");
	if (stat(buf_text(to), &st) == 0)
		return; /* of old versions; used as long as it is there */
	buf_reset(to);
	if (cache && *cache)
		buf_printf(to, "%s/debuginfod_client", cache);
	else
		buf_printf(to, "%s/.cache/debuginfod_client", home ? home : "");
}

/* After a search that was given up: removes the miss that the library wrote down. */
static void forget_miss(const struct search *s, enum debuginfod_what what, struct span build_id)
{
	struct buf path = {0};
	struct stat st;

	put_cache_folder(&path);
	buf_put_cstr(&path, "/");
	buf_put_hex(&path, build_id);
	buf_put_cstr(&path, what == DEBUGINFOD_EXECUTABLE ? "/executable" : "/debuginfo");
	if (lstat(buf_text(&path), &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
		st.st_mtime >= s->began)
		unlink(buf_text(&path));
	buf_release(&path);
}

static int fail(const struct search *s, enum debuginfod_what what, struct span build_id, int rc,
	struct err *err)
{
	const char *kind = what == DEBUGINFOD_EXECUTABLE ? "executable" : "debug file";
	char id[BUILD_ID_BYTES_MAX * 2 + 1] = "";

	for (size_t i = 0; i < build_id.n; i++)
		snprintf(id + i * 2, 3, "%02x", build_id.p[i]);
	switch (s->stop) {
	case STOP_TIME:
		return err_set(err, ERR_FAILED,
			"debuginfod: the %s of build-id %s did not come within %ld s", kind, id,
			s->timeout_s);
	case STOP_SIZE:
		return err_set(err, ERR_LIMIT,
			"debuginfod: the %s of build-id %s is larger than %ld MB", kind, id,
			s->max_mb);
	case STOP_CALLER:
		return err_set(err, ERR_FAILED,
			"debuginfod: given up waiting for the %s of build-id %s", kind, id);
	case STOP_NONE:
		break;
	}
	if (rc == -ENOENT)
		return err_set(err, ERR_NOT_FOUND,
			"debuginfod: no server has the %s of build-id %s", kind, id);
	if (rc == -EFBIG)
		return err_set(err, ERR_LIMIT,
			"debuginfod: the %s of build-id %s is larger than $DEBUGINFOD_MAXSIZE",
			kind, id);
	err_sys(err, -rc, "debuginfod: cannot get the %s of build-id %s", kind, id);
	return err ? err->code : ERR_FAILED;
}

/* What every search needs: an address to ask, a library to ask with, something to ask for. */
static int check_ready(struct span build_id, struct err *err)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !urls[strspn(urls, " ")])
		return err_set(err, ERR_UNSUPPORTED,
			"debuginfod: no server is named; set DEBUGINFOD_URLS, for example to https://debuginfod.elfutils.org/");
	if (!build_id.n || build_id.n > BUILD_ID_BYTES_MAX)
		return err_set(err, ERR_NOT_FOUND,
			"debuginfod: a build-id of %zu bytes cannot be asked for", build_id.n);
	pthread_once(&library_once, load_library);
	if (!library.handle)
		return err_set(err, ERR_UNSUPPORTED,
			"debuginfod: %s is not installed (Debian and Ubuntu: apt install libdebuginfod1)",
			LIBRARY);
	return 0;
}

/* The descriptor of the file in the cache, or a negative errno. */
static int run_search(
	struct search *s, enum debuginfod_what what, struct span build_id, char **path)
{
	find_fn *find =
		what == DEBUGINFOD_EXECUTABLE ? library.find_executable : library.find_debuginfo;
	struct debuginfod_client *client = library.begin();
	int fd;

	if (!client)
		return -ENOMEM;
	library.set_user_data(client, s);
	library.set_progressfn(client, on_progress);
	fd = find(client, build_id.p, (int)build_id.n, path);
	library.end(client);
	return fd;
}

int debuginfod_find(enum debuginfod_what what, struct span build_id,
	const struct debuginfod_options *options, char **path, struct err *err)
{
	struct search s = {
		.options = options,
		.timeout_s =
			options && options->timeout_s > 0 ? options->timeout_s : TIMEOUT_S_DEFAULT,
		.max_mb = options && options->max_mb > 0 ? options->max_mb : MAX_MB_DEFAULT,
	};
	char *found = NULL;
	struct stat st;
	int fd, rc = check_ready(build_id, err);

	if (rc < 0)
		return rc;
	s.deadline_ns = clock_read_ns(CLOCK_MONOTONIC) + (uint64_t)s.timeout_s * 1000000000u;
	s.max_bytes = (uint64_t)s.max_mb * 1000000u;
	s.began = time(NULL);
	fd = run_search(&s, what, build_id, &found);
	if (fd < 0 && s.stop != STOP_NONE)
		forget_miss(&s, what, build_id);
	/* The server may not have said how large the file is. */
	if (fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size > s.max_bytes)
		s.stop = STOP_SIZE;
	else if (fd >= 0)
		s.stop = STOP_NONE;
	if (fd >= 0)
		close(fd);
	if (fd < 0 || !found || s.stop != STOP_NONE) {
		free(found);
		return fail(&s, what, build_id, fd < 0 ? fd : -EIO, err);
	}
	*path = mem_strdup(found);
	free(found);
	return 0;
}
