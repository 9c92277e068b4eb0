/* SPDX-License-Identifier: MIT */
#include "record/hooks/library_link.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define PREFIX "weir-link-" /* then the pid of its maker, "-", six characters */

bool library_link_is_needed(const char *folder)
{
	return strpbrk(folder, " :\t\n") != NULL;
}

static const char *place(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && tmp[0] == '/' && !library_link_is_needed(tmp) ? tmp : "/tmp";
}

static void remove_folder(const char *folder)
{
	char *link = mem_printf("%s/lib", folder);

	unlink(link);
	rmdir(folder);
	free(link);
}

static bool is_left_behind(const char *folder, const char *name)
{
	struct stat st;
	int pid, n = 0;

	return sscanf(name, PREFIX "%d-%n", &pid, &n) == 1 && n && pid > 0 &&
	       lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       kill(pid, 0) < 0 && errno == ESRCH;
}

static void sweep(void)
{
	DIR *d = opendir(place());
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char *folder = mem_printf("%s/%s", place(), e->d_name);

		if (is_left_behind(folder, e->d_name))
			remove_folder(folder);
		free(folder);
	}
	if (d)
		closedir(d);
}

char *library_link_make(const char *folder)
{
	char *own = mem_printf("%s/" PREFIX "%d-XXXXXX", place(), getpid());
	char *to = mem_printf("%s/lib", folder), *link = NULL;
	bool is_made;

	sweep();
	is_made = mkdtemp(own) && chmod(own, 0755) == 0;
	if (is_made) {
		link = mem_printf("%s/lib", own);
		is_made = symlink(to, link) == 0;
	}
	free(link);
	free(to);
	if (is_made)
		return own;
	rmdir(own);
	free(own);
	return NULL;
}

void library_link_remove(char *link_folder)
{
	if (link_folder)
		remove_folder(link_folder);
	free(link_folder);
}
