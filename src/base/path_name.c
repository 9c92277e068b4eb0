/* SPDX-License-Identifier: MIT */
#include "base/path_name.h"

#include <ctype.h>
#include <string.h>

const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

size_t path_plain_bytes(const char *path)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(path), m = sizeof(mark) - 1;

	return n > m && !strcmp(path + n - m, mark) ? n - m : n;
}

bool path_is_deleted(const char *path)
{
	return path[path_plain_bytes(path)] != 0;
}

size_t path_library_stem(const char *name)
{
	const char *so = strstr(name, ".so");
	size_t n;

	if (!so || (so[3] && so[3] != '.'))
		return 0;
	n = (size_t)(so - name);
	while (n && (isdigit((unsigned char)name[n - 1]) || name[n - 1] == '.'))
		n--;
	if (n > 1 && n < (size_t)(so - name) && name[n - 1] == '-')
		return n - 1;
	return (size_t)(so - name);
}
