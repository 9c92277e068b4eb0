/* SPDX-License-Identifier: MIT */
#include "insert/object_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/order.h"

#define HASH_FOLDER_CHARS 2 /* of the hash are a folder, so that none gets too large */
#define REPORT_BYTES_MAX  (256u << 20)
#define FILE_MODE	  0600

/* ---- the folder ---- */

/* Makes the folder and those above it; true when it is there and can be written. */
static bool make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = 0;
		rc = mkdir(path, 0777);
		*slash = '/';
		if (rc < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			return false;
	}
	/* What is linked from here is run: nobody else may write it. */
	return (mkdir(path, 0700) == 0 || errno == EEXIST) && access(path, W_OK | X_OK) == 0;
}

static char *user_folder(void)
{
	const char *own = getenv("WEIR_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");

	if (own && *own)
		return mem_strdup(own);
	if (xdg && xdg[0] == '/')
		return mem_printf("%s/weir/count", xdg);
	if (home && home[0] == '/')
		return mem_printf("%s/.cache/weir/count", home);
	return NULL;
}

/* The linker may run in another folder than we do: a relative $WEIR_CACHE would lead astray. */
static char *absolute_path(char *path)
{
	char *here, *absolute;

	if (!path || path[0] == '/')
		return path;
	here = getcwd(NULL, 0);
	if (!here)
		return path;
	absolute = mem_printf("%s/%s", here, path);
	free(here);
	free(path);
	return absolute;
}

int object_cache_open(struct object_cache *cache, bool is_temporary, struct err *err)
{
	char *folder = is_temporary ? NULL : absolute_path(user_folder());
	const char *place = getenv("TMPDIR");
	struct stat st;
	int rc;

	if (folder && make_folders(folder) && stat(folder, &st) == 0 && st.st_uid == geteuid()) {
		*cache = (struct object_cache){.folder = folder};
		return 0;
	}
	free(folder);
	folder = absolute_path(mem_strdup(place && *place ? place : "/tmp"));
	*cache = (struct object_cache){0};
	rc = temporary_folder_make(&cache->temporary, folder, "weir-count-");
	if (rc < 0)
		rc = err_sys(err, -rc, "'%s': cannot make a folder for inserted objects", folder);
	else
		cache->folder = mem_strdup(cache->temporary.path);
	free(folder);
	return rc;
}

/* ---- walking and removing ---- */

static void remove_entry(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static bool is_hexadecimal(const char *text, size_t n)
{
	return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

/* Calls `each` for every entry; `n` is the number of characters of folder names of this level. */
static void each_folder(
	const char *path, size_t n, void (*each)(void *context, const char *path), void *context)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char *inner;

		if (!is_hexadecimal(e->d_name, n))
			continue;
		inner = mem_printf("%s/%s", path, e->d_name);
		each(context, inner);
		free(inner);
	}
	if (dir)
		closedir(dir);
}

struct entry {
	char *path;
	int64_t used_s;
	uint64_t bytes;
};

struct entries {
	VEC(struct entry) list;
	uint64_t bytes;
};

static void measure_entry(void *context, const char *path)
{
	struct entries *all = context;
	char *object = mem_printf("%s/.object", path);
	char *report = mem_printf("%s/.report", path);
	struct entry e = {.path = mem_strdup(path)};
	struct stat st;

	if (stat(path, &st) == 0)
		e.used_s = st.st_mtime;
	if (stat(object, &st) == 0)
		e.bytes += (uint64_t)st.st_size;
	if (stat(report, &st) == 0)
		e.bytes += (uint64_t)st.st_size;
	all->bytes += e.bytes;
	vec_push(&all->list, e);
	free(object);
	free(report);
}

#define ENTRY_NAME_CHARS (64 - HASH_FOLDER_CHARS)

static void measure_folder(void *context, const char *path)
{
	each_folder(path, ENTRY_NAME_CHARS, measure_entry, context);
}

void object_cache_close(struct object_cache *cache)
{
	temporary_folder_remove(&cache->temporary);
	free(cache->folder);
	cache->folder = NULL;
}

ORDER_BY(compare_use, struct entry, used_s)

/* Another process looked lately. Else it is noted that we do. */
static bool was_trimmed_lately(const struct object_cache *cache, int64_t now)
{
	char *stamp = mem_printf("%s/trimmed", cache->folder);
	struct stat st;
	bool lately =
		stat(stamp, &st) == 0 && st.st_mtime <= now && now - st.st_mtime < CACHE_TRIM_S;

	if (!lately) {
		FD_AUTO fd = open(stamp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		if (fd >= 0)
			futimens(fd, NULL);
	}
	free(stamp);
	return lately;
}

void object_cache_trim(const struct object_cache *cache, uint64_t max_bytes)
{
	int64_t now = time(NULL);
	struct entries all = {0};

	if (cache->temporary.path || was_trimmed_lately(cache, now))
		return;
	each_folder(cache->folder, HASH_FOLDER_CHARS, measure_folder, &all);
	vec_sort(&all.list, compare_use);
	for (size_t i = 0; i < all.list.n && all.bytes > max_bytes; i++) {
		if (all.list.v[i].used_s > now - CACHE_KEEP_S)
			break;
		remove_entry(all.list.v[i].path);
		all.bytes -= all.list.v[i].bytes;
	}
	for (size_t i = 0; i < all.list.n; i++)
		free(all.list.v[i].path);
	vec_release(&all.list);
}

/* ---- entries ---- */

static char *entry_path(const struct object_cache *cache, const char *hash)
{
	return mem_printf(
		"%s/%.*s/%s", cache->folder, HASH_FOLDER_CHARS, hash, hash + HASH_FOLDER_CHARS);
}

/* gcc's temporary objects have a new name each time: one link for all of them. */
static bool is_random_name(const char *name)
{
	return strlen(name) == 10 && !strncmp(name, "cc", 2) && !strcmp(name + 8, ".o");
}

char *object_cache_find(
	const struct object_cache *cache, const char *hash, const char *name, struct buf *report)
{
	const char *mark = name[0] == '.' ? "_" : "";
	char *entry = entry_path(cache, hash);
	char *text = mem_printf("%s/.report", entry), *object = mem_printf("%s/.object", entry);
	char *path = mem_printf("%s/%s%s", entry, mark, is_random_name(name) ? "cc.o" : name);

	/* The object is put in place last. */
	if (access(object, R_OK) < 0 || file_read(report, text, REPORT_BYTES_MAX, NULL) < 0 ||
		(symlink(".object", path) < 0 && errno != EEXIST)) {
		free(path);
		path = NULL;
	} else {
		utimensat(AT_FDCWD, entry, NULL, 0);
	}
	free(entry);
	free(text);
	free(object);
	return path;
}

static int write_file(const char *entry, const char *name, struct span bytes, struct err *err)
{
	char *path = mem_printf("%s/%s", entry, name);
	int rc = file_replace(path, bytes, FILE_MODE, err);

	free(path);
	return rc;
}

int object_cache_store(const struct object_cache *cache, const char *hash, struct span object,
	struct span report, struct err *err)
{
	char *entry = entry_path(cache, hash);
	int rc;

	if (!make_folders(entry))
		rc = err_sys(err, errno, "'%s': cannot make the folder", entry);
	else
		rc = write_file(entry, ".report", report, err);
	if (rc == 0)
		rc = write_file(entry, ".object", object, err);
	free(entry);
	return rc;
}
