/* SPDX-License-Identifier: MIT */
#include "record/hooks/library_link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

bool library_link_is_needed(const char *folder)
{
	return strpbrk(folder, " :\t\n") != NULL;
}

int library_link_make(struct temporary_folder *own, const char *folder)
{
	const char *place = temporary_place();
	char *to = mem_printf("%s/lib", folder), *link = NULL;
	int rc = temporary_folder_make(
		own, library_link_is_needed(place) ? "/tmp" : place, "weir-link-");

	if (rc == 0) {
		link = mem_printf("%s/lib", own->path);
		if (chmod(own->path, 0755) < 0 || symlink(to, link) < 0) {
			temporary_folder_remove(own);
			rc = -1;
		}
	}
	free(link);
	free(to);
	return rc;
}
