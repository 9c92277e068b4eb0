/* SPDX-License-Identifier: MIT */
/*
 * The file that dwz moves common entries and texts to: named by .gnu_debugaltlink, or .debug_sup
 * since DWARF 5, with a build-id that must be its own.
 */
#include <stdlib.h>

#include "dwarf/debug_info.h"

#define SHARED_NAME_MAX 4096
#define DEBUG_ROOT	"/usr/lib/debug"

struct link {
	const char *name;
	struct span id;
};

static bool read_altlink(struct span section, struct link *out)
{
	struct cursor c = cursor_of(section);

	out->name = cursor_cstr(&c);
	out->id = cursor_bytes(&c, cursor_left(&c));
	return !c.failed;
}

/* DWARF 5 section 7.3.6 */
static bool read_sup(struct span section, struct link *out)
{
	struct cursor c = cursor_of(section);
	uint16_t version = cursor_u16(&c);
	uint8_t is_shared = cursor_u8(&c);

	out->name = cursor_cstr(&c);
	out->id = cursor_bytes(&c, cursor_uleb(&c));
	return !c.failed && version == 5 && !is_shared;
}

/* The id that the shared file has itself. */
static struct span own_id(struct dwarf_file *f)
{
	struct span id = elf_file_build_id(f->elf), section;
	struct cursor c;

	if (id.n || dwarf_file_section(f, ".debug_sup", &section, NULL) < 0)
		return id;
	c = cursor_of(section);
	cursor_skip(&c, 3);
	cursor_cstr(&c);
	return cursor_bytes(&c, cursor_uleb(&c));
}

/* Opens `path`, the caller's no longer, and keeps it when the id is right. */
static bool try_open(struct dwarf_debug *d, char *path, const struct link *link, char **why)
{
	struct err err = {0};
	struct span id;
	bool is_right;

	if (dwarf_file_open(&d->alt_file, path, false, &err) < 0) {
		if (err.code != ERR_NOT_FOUND) {
			free(*why);
			*why = mem_strdup(err.text);
		}
		dwarf_file_close(&d->alt_file);
		free(path);
		return false;
	}
	id = own_id(&d->alt_file);
	is_right = id.n && span_equal(id, link->id);
	if (!is_right) {
		free(*why);
		*why = mem_printf("'%s': is the shared debug file of another build", path);
		dwarf_file_close(&d->alt_file);
	}
	free(path);
	return is_right;
}

static char *build_id_path(struct span id)
{
	struct buf b = {0};
	char *path;

	if (id.n < 2)
		return NULL;
	buf_printf(&b, DEBUG_ROOT "/.build-id/%02x/", id.p[0]);
	buf_put_hex(&b, span_sub(id, 1, (id.n < ELF_BUILD_ID_MAX ? id.n : ELF_BUILD_ID_MAX) - 1));
	buf_printf(&b, ".debug");
	path = mem_strdup(buf_text(&b));
	buf_release(&b);
	return path;
}

/* Beside the debug file, in the folder of shared files, by build-id. */
static bool find_shared(struct dwarf_debug *d, const struct link *link, char **why)
{
	const char *base = strrchr(link->name, '/');
	char *folder, *by_id;
	bool found;

	base = base ? base + 1 : link->name;
	if (link->name[0] == '/') {
		if (try_open(d, mem_strdup(link->name), link, why))
			return true;
	} else if (d->path) {
		folder = path_folder(d->path);
		found = try_open(d, mem_printf("%s%s", folder, link->name), link, why);
		free(folder);
		if (found)
			return true;
	}
	if (try_open(d, mem_printf(DEBUG_ROOT "/.dwz/%s", base), link, why))
		return true;
	by_id = build_id_path(link->id);
	return by_id && try_open(d, by_id, link, why);
}

void shared_file_open(struct dwarf_debug *d)
{
	struct span alt = {NULL, 0}, sup = {NULL, 0};
	struct link link;
	char *why = NULL;

	if (dwarf_file_section(&d->file, ".gnu_debugaltlink", &alt, NULL) < 0 ||
		dwarf_file_section(&d->file, ".debug_sup", &sup, NULL) < 0)
		return;
	if (!(alt.n && read_altlink(alt, &link)) && !(sup.n && read_sup(sup, &link))) {
		if (alt.n)
			dwarf_debug_note(d, ".gnu_debugaltlink: cannot be read");
		return;
	}
	if (strlen(link.name) > SHARED_NAME_MAX) {
		dwarf_debug_note(d, ".gnu_debugaltlink: the name is too long");
		return;
	}
	if (!find_shared(d, &link, &why))
		dwarf_debug_note(d, why ? "%s" : "the shared debug file '%s' is not there",
			why ? why : link.name);
	free(why);
}
