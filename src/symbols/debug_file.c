/* SPDX-License-Identifier: MIT */
/* The search for separate debug files; the order is in the header. */
#include "symbols/debug_file.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"

#define ROOT_DEFAULT  "/usr/lib/debug"
#define ROOT_VARIABLE "WEIR_DEBUG_PATH"

static const char *const *asked_folders;
static size_t n_asked;

void debug_files_ask(const char *const *folders, size_t n)
{
	asked_folders = folders;
	n_asked = n;
}

struct search {
	const struct elf_file *elf;
	struct span build_id; /* empty when the image has none */
	const char *link;     /* debuglink; NULL when the image has none */
	uint32_t link_crc;
	const char *dir;     /* folder of the image; NULL when unknown */
	const char *path;    /* the image itself, which must not be taken for its debug file */
	char *found;	     /* owned */
	char *mismatch;	     /* a file that was there but is another's; owned */
	const char *differs; /* in what, of that file */
	uint32_t crc;	     /* its CRC, when that was compared */
};

/* Does the open file belong to the image? */
static bool bytes_match(struct search *s, struct span bytes)
{
	struct elf_file debug;
	struct span id;
	bool same;

	s->differs = "is no ELF file";
	s->crc = 0;
	if (elf_file_init(&debug, bytes, NULL) < 0)
		return false;
	id = elf_file_build_id(&debug);
	same = debug.is_64 == s->elf->is_64 && debug.machine == s->elf->machine;
	s->differs = "is of another machine";
	if (same && id.n && s->build_id.n) {
		same = id.n == s->build_id.n && memcmp(id.p, s->build_id.p, id.n) == 0;
		s->differs = "has another build-id";
	} else if (same) {
		s->crc = (uint32_t)crc32_z(0, bytes.p, bytes.n);
		same = s->link && s->crc == s->link_crc;
		s->differs = "has another CRC";
	}
	elf_file_release(&debug);
	return same;
}

/* Takes over `candidate`. True when it is the debug file. */
static bool try_file(struct search *s, char *candidate)
{
	struct file_map map;
	struct stat self, other;
	bool same;

	if (stat(candidate, &other) < 0 || !S_ISREG(other.st_mode) ||
		(s->path && stat(s->path, &self) == 0 && self.st_dev == other.st_dev &&
			self.st_ino == other.st_ino) ||
		file_map_open(&map, candidate, NULL) < 0) {
		free(candidate);
		return false;
	}
	same = bytes_match(s, map.bytes);
	file_map_release(&map);
	if (same) {
		s->found = candidate;
	} else {
		free(s->mismatch);
		s->mismatch = candidate;
	}
	return same;
}

static bool try_build_id(struct search *s, const char *root)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1];

	if (s->build_id.n < 2 || s->build_id.n > ELF_BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i < s->build_id.n; i++)
		snprintf(hex + 2 * i, 3, "%02x", s->build_id.p[i]);
	return try_file(s, mem_printf("%s/.build-id/%.2s/%s.debug", root, hex, hex + 2));
}

static bool try_link_below(struct search *s, const char *root)
{
	return s->link && s->dir && try_file(s, mem_printf("%s%s/%s", root, s->dir, s->link));
}

/* Calls `try_root` with each root until it finds the file. */
static bool each_root(struct search *s, bool (*try_root)(struct search *, const char *))
{
	const char *list = getenv(ROOT_VARIABLE);

	for (size_t i = 0; i < n_asked; i++)
		if (try_root(s, asked_folders[i]))
			return true;
	while (list && *list) {
		size_t n = strcspn(list, ":");
		char *root = mem_strndup(list, n);
		bool found = n && try_root(s, root);

		free(root);
		if (found)
			return true;
		list += n + (list[n] == ':');
	}
	return try_root(s, ROOT_DEFAULT);
}

/* Files that lie in the folder itself. */
static bool try_in_folder(struct search *s, const char *folder)
{
	const char *slash = s->path ? strrchr(s->path, '/') : NULL;

	if (s->path && try_file(s, mem_printf("%s/%s.debug", folder, slash ? slash + 1 : s->path)))
		return true;
	return s->link && try_file(s, mem_printf("%s/%s", folder, s->link));
}

static bool search_all(struct search *s)
{
	for (size_t i = 0; i < n_asked; i++)
		if (try_in_folder(s, asked_folders[i]))
			return true;
	if (each_root(s, try_build_id))
		return true;
	if (!s->link || !s->dir)
		return false;
	return try_file(s, mem_printf("%s/%s", s->dir, s->link)) ||
	       try_file(s, mem_printf("%s/.debug/%s", s->dir, s->link)) ||
	       each_root(s, try_link_below);
}

int debug_file_find(const struct elf_file *elf, const char *path, char **out, struct err *err)
{
	struct search s = {.elf = elf, .build_id = elf_file_build_id(elf), .path = path};
	char real[PATH_MAX];
	int rc = 0;

	if (!elf_file_debuglink(elf, &s.link, &s.link_crc) || strchr(s.link, '/'))
		s.link = NULL; /* a link is a plain file name; anything else is no link */
	if (path && realpath(path, real))
		s.dir = dirname(real);
	if (search_all(&s))
		*out = s.found;
	else if (s.mismatch && s.crc && s.link)
		rc = err_set(err, ERR_FORMAT,
			"'%s': is the debug file of another build: CRC 0x%08x is wanted, it has 0x%08x",
			s.mismatch, s.link_crc, s.crc);
	else if (s.mismatch)
		rc = err_set(err, ERR_FORMAT, "'%s': is the debug file of another build: %s",
			s.mismatch, s.differs);
	else if (!s.build_id.n && !s.link)
		rc = err_set(err, ERR_NOT_FOUND,
			"has neither a build-id nor a debuglink, so no debug file can be found");
	else
		rc = err_set(err, ERR_NOT_FOUND, "no separate debug file is installed");
	free(s.mismatch);
	return rc;
}

int debug_file_open_found(
	struct debug_file *d, const struct elf_file *elf, char *found, struct err *err)
{
	bool has_ids;
	int rc;

	d->path = found;
	rc = file_map_open(&d->map, found, err);
	if (rc == 0)
		rc = elf_file_init(&d->elf, d->map.bytes, err);
	if (rc < 0)
		return rc;
	d->is_open = true;
	has_ids = elf_file_build_id(elf).n && elf_file_build_id(&d->elf).n;
	d->verdict = has_ids ? "build-id equal" : "debuglink CRC equal";
	return 0;
}

int debug_file_open(
	struct debug_file *d, const struct elf_file *elf, const char *path, struct err *err)
{
	char *found;
	int rc = debug_file_find(elf, path, &found, err);

	return rc < 0 ? rc : debug_file_open_found(d, elf, found, err);
}

void debug_file_close(struct debug_file *d)
{
	if (d->is_open)
		elf_file_release(&d->elf);
	file_map_release(&d->map);
	free(d->path);
}
