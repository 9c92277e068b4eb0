/* SPDX-License-Identifier: MIT */
/*
 * Names of numbers (SHAPE_NAME), looked up when they are printed. A process or a control group may be
 * gone by then, or another may have its number: what has no name is printed as the number.
 */
#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <inttypes.h>
#include <mntent.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "probe/print/print_internal.h"
#include "process/syscall_names.h"

#define SIGNAL_MAX   64
#define ERROR_MAX    4095   /* of the kernel */
#define GROUPS_MAX   100000 /* directories of a hierarchy that are looked at */
#define LOOKUP_BYTES 4096
#define MOUNTS_PATH  "/proc/self/mounts"

typedef bool name_fn(const struct stream *s, uint64_t number, uint32_t detail, struct buf *out);

static bool error_name(const struct stream *s, uint64_t number, uint32_t detail, struct buf *out)
{
	int64_t n = (int64_t)number;

	(void)s;
	(void)detail;
	if (n < 0 || n > ERROR_MAX)
		return false;
	buf_put_cstr(out, strerror((int)n));
	return true;
}

static bool signal_name(const struct stream *s, uint64_t number, uint32_t detail, struct buf *out)
{
	(void)s;
	(void)detail;
	buf_put_cstr(out, number <= SIGNAL_MAX ? strsignal((int)number) : "N/A");
	return true;
}

static bool call_name(const struct stream *s, uint64_t number, uint32_t detail, struct buf *out)
{
	const char *name = syscall_name(detail == 32, (int64_t)number);

	(void)s;
	buf_put_cstr(out, name ? name : "");
	return name != NULL;
}

static bool user_name(const struct stream *s, uint64_t number, uint32_t detail, struct buf *out)
{
	char bytes[LOOKUP_BYTES];
	struct passwd entry, *found = NULL;

	(void)s;
	(void)detail;
	if (getpwuid_r((uid_t)number, &entry, bytes, sizeof(bytes), &found) || !found)
		return false;
	buf_put_cstr(out, found->pw_name);
	return true;
}

static bool process_name(const struct stream *s, uint64_t number, uint32_t detail, struct buf *out)
{
	char path[64];
	struct buf text = {0};
	bool is_there;

	(void)s;
	(void)detail;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/comm", number);
	is_there = file_read(&text, path, LOOKUP_BYTES, NULL) >= 0 && text.n > 0;
	if (is_there)
		buf_put(out, text.p, text.n - (text.p[text.n - 1] == '\n'));
	buf_release(&text);
	return is_there;
}

/* --- control groups --------------------------------------------------------------------------- */

/* The id of a group is the inode of its directory. Gives where below the mount it is, or NULL. */
static char *find_group(const char *mount, uint64_t id)
{
	char *const roots[] = {(char *)mount, NULL};
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
	char *found = NULL;
	FTSENT *at;

	for (int n = 0; walk && !found && n < GROUPS_MAX && (at = fts_read(walk)); n++)
		if (at->fts_info == FTS_D && at->fts_statp->st_ino == id)
			found = mem_strdup(
				at->fts_path[strlen(mount)] ? at->fts_path + strlen(mount) : "/");
	if (walk)
		fts_close(walk);
	return found;
}

static const char *hierarchy_name(const struct mntent *mount)
{
	const char *slash = strrchr(mount->mnt_dir, '/');

	if (!strcmp(mount->mnt_type, "cgroup2"))
		return "unified";
	return !strcmp(mount->mnt_type, "cgroup") && slash ? slash + 1 : NULL;
}

/* "unified:/system.slice". Hierarchies number their groups each by itself, and the kernel's ids are those of
 * the unified one: others are looked at when the script names them. */
static bool group_name(const struct stream *s, uint64_t number, uint32_t detail, struct buf *out)
{
	const char *pattern = s && detail < s->strings.n ? s->strings.v[detail] : "unified";
	FILE *mounts = setmntent(MOUNTS_PATH, "re");
	struct mntent entry, *mount;
	char bytes[LOOKUP_BYTES];
	size_t before = out->n;

	while (mounts && (mount = getmntent_r(mounts, &entry, bytes, sizeof(bytes)))) {
		const char *name = hierarchy_name(mount);
		char *path = name && !fnmatch(pattern, name, 0) ? find_group(mount->mnt_dir, number)
								: NULL;

		if (path)
			buf_printf(out, "%s%s:%s", out->n > before ? ";" : "", name, path);
		free(path);
	}
	if (mounts)
		endmntent(mounts);
	return out->n > before;
}

/* --- all of them ------------------------------------------------------------------------------ */

void print_name_of(const struct stream *s, struct span value, struct buf *out)
{
	static name_fn *const names[N_NAMES_OF] = {[NAME_OF_ERROR] = error_name,
		[NAME_OF_SIGNAL] = signal_name,
		[NAME_OF_SYSCALL] = call_name,
		[NAME_OF_USER] = user_name,
		[NAME_OF_PROCESS] = process_name,
		[NAME_OF_CGROUP] = group_name};
	uint64_t number = print_word(value, 0), what = print_word(value, 8);

	if ((uint32_t)what >= N_NAMES_OF ||
		!names[(uint32_t)what](s, number, (uint32_t)(what >> 32), out))
		buf_printf(out, "%" PRId64, (int64_t)number);
}
