/* SPDX-License-Identifier: MIT */
#include "process/lost_rights.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "base/mem.h"
#include "process/proc.h"

/* What stands for users whom a user namespace does not know: the kernel gives nobody their rights there. */
#define UNKNOWN_ID 65534

/* The second number of a line of /proc/PID/status is the effective one. */
static unsigned long effective_id(pid_t pid, const char *name)
{
	char line[128], *end;

	proc_status_field(pid, pid, name, line, sizeof(line));
	strtoul(line, &end, 10);
	return strtoul(end, NULL, 10);
}

static bool lacks_id(pid_t pid, const char *name, unsigned long wanted)
{
	return wanted != UNKNOWN_ID && wanted != effective_id(pid, name);
}

static const char *lost_kind(pid_t pid, const char *exe)
{
	struct statvfs mount;
	struct stat st;

	if (stat(exe, &st) < 0 || (statvfs(exe, &mount) == 0 && mount.f_flag & ST_NOSUID) ||
		proc_status_number(pid, pid, "NoNewPrivs", 10))
		return NULL;
	if (st.st_mode & S_ISUID && lacks_id(pid, "Uid", st.st_uid))
		return "those of its owner (set-user-ID)";
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
		lacks_id(pid, "Gid", st.st_gid))
		return "those of its group (set-group-ID)";
	if (getxattr(exe, "security.capability", NULL, 0) > 0 &&
		!proc_status_number(pid, pid, "CapPrm", 16))
		return "its capabilities";
	return NULL;
}

char *process_lost_rights(pid_t pid, bool *is_told)
{
	char link[64], path[PATH_MAX];
	const char *kind;

	if (*is_told)
		return NULL;
	snprintf(link, sizeof(link), "/proc/%d/exe", proc_number(pid));
	kind = lost_kind(pid, link);
	if (!kind)
		return NULL;
	*is_told = true;
	proc_exe(pid, path, sizeof(path));
	return mem_printf("'%s' runs without rights that it has otherwise, %s: another user's "
			  "process traces it ('sudo weir ...' keeps them)",
		path, kind);
}
