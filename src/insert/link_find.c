/* SPDX-License-Identifier: MIT */
/*
 * Which file a linker takes for a name: on its command line, or in a script (GNU ld manual, "File
 * Commands"). Where linkers differ and it matters, nothing is found.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "insert/link_command.h"

#define ARCHIVE_SEARCH_BYTES                                                                       \
	(4 << 20) /* its first object is no farther: the index comes before it */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Linkers pass over libraries of the wrong machine while they search. An archive is for the machine
 * of its first object. */
static bool is_for_this_machine(const char *path)
{
	struct file_map map;
	const uint8_t *elf;
	size_t n;
	bool is = true;

	if (file_map_open(&map, path, NULL) < 0)
		return false;
	n = map.bytes.n < ARCHIVE_SEARCH_BYTES ? map.bytes.n : ARCHIVE_SEARCH_BYTES;
	elf = n ? memmem(map.bytes.p, n, "\177ELF", 4) : NULL;
	if (elf && map.bytes.n - (size_t)(elf - map.bytes.p) >= 20)
		is = elf[4] == ELFCLASS64 && elf[18] == EM_X86_64 && elf[19] == 0;
	file_map_release(&map);
	return is;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* ---- the sysroot ---- */

/* What is behind "=" or "$SYSROOT"; NULL: the name begins with neither. */
static const char *behind_root(const char *name)
{
	static const char variable[] = "$SYSROOT";

	if (name[0] == '=')
		return name + 1;
	return strncmp(name, variable, strlen(variable)) ? NULL : name + strlen(variable);
}

static const char *root_of(const struct link_command *c)
{
	return c->sysroot ? c->sysroot : "";
}

static char *folder_path(const struct link_command *c, const char *folder)
{
	const char *rest = behind_root(folder);

	return rest ? mem_printf("%s%s", root_of(c), rest) : mem_strdup(folder);
}

/* Absolute names in a script that is there begin there, too. */
static bool is_in_sysroot(const struct link_command *c, const char *path)
{
	char *root = realpath(root_of(c), NULL), *whole = root ? realpath(path, NULL) : NULL;
	size_t n = root ? strlen(root) : 0;
	bool is_in = whole && n > 1 && !strncmp(whole, root, n) && whole[n] == '/';

	free(root);
	free(whole);
	return is_in;
}

/* Behind a "=" without a slash GNU ld goes on in the sysroot's own name, lld in the folder. */
static enum link_found find_below_root(const struct link_command *c, const char *rest, char **path)
{
	char *plain = mem_printf("%s%s", root_of(c), rest);
	char *inside = mem_printf("%s/%s", root_of(c), rest);
	bool is_plain = is_file(plain), is_inside = is_file(inside);

	if (*rest != '/' && is_plain && is_inside) {
		free(plain);
		free(inside);
		return LINK_DOUBTFUL;
	}
	*path = *rest != '/' && is_inside ? inside : plain;
	free(*path == plain ? inside : plain);
	return LINK_FOUND;
}

/* GNU ld and lld go by where the script is; gold by whether it was found as a library there. */
static enum link_found find_absolute(const struct link_command *c,
	const struct link_script_place *script, const char *name, char **path)
{
	if (!is_in_sysroot(c, script->path)) {
		*path = mem_strdup(name);
		return LINK_FOUND;
	}
	*path = mem_printf("%s%s", root_of(c), name);
	if (script->is_library || !is_file(name) || is_same_file(name, *path))
		return LINK_FOUND;
	free(*path);
	*path = NULL;
	return LINK_DOUBTFUL;
}

/* ---- folders ---- */

static char *try_file(const char *folder, const char *prefix, const char *name, const char *suffix)
{
	char *path = mem_printf("%s/%s%s%s", folder, prefix, name, suffix);

	if (is_file(path) && is_for_this_machine(path))
		return path;
	free(path);
	return NULL;
}

static char *find_in_folder(const char *folder, const struct link_input *input)
{
	char *path = NULL;

	if (input->name[0] == ':')
		return try_file(folder, "", input->name + 1, "");
	if (!input->is_static)
		path = try_file(folder, "lib", input->name, ".so");
	return path ? path : try_file(folder, "lib", input->name, ".a");
}

static char *find_plain(const char *folder, const struct link_input *input)
{
	return try_file(folder, "", input->name, "");
}

static char *find_text(const char *folder, const struct link_input *input)
{
	char *path = mem_printf("%s/%s", folder, input->name);

	if (is_file(path))
		return path;
	free(path);
	return NULL;
}

/* What its own script has for folders does not count when another one is given. */
static char *find_in_folders(const struct link_command *c, const struct link_input *input,
	char *(*find)(const char *folder, const struct link_input *input))
{
	const struct link_words *lists[] = {&c->folders,
		c->has_script ? &c->script_folders : &c->own_folders,
		c->has_script ? &c->own_folders : &c->script_folders};
	char *path = NULL;

	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
		for (size_t i = 0; i < lists[k]->n && !path; i++) {
			char *folder = folder_path(c, lists[k]->v[i]);

			path = find(folder, input);
			free(folder);
		}
	return path;
}

static char *find_input(const struct link_command *c, const struct link_input *input)
{
	const char *rest = behind_root(input->name);
	char *path = NULL;

	if (input->is_library)
		return find_in_folders(c, input, find_in_folder);
	if (is_file(input->name))
		return mem_strdup(input->name);
	if (input->is_script)
		return find_in_folders(c, input, find_text);
	/* gold and lld take such a name as it is. */
	if (rest && *rest == '/' && find_below_root(c, rest, &path) == LINK_FOUND && is_file(path))
		return path;
	free(path);
	return NULL;
}

void link_command_find(struct link_command *c)
{
	for (size_t i = 0; i < c->inputs.n; i++)
		if (!c->inputs.v[i].path)
			c->inputs.v[i].path = find_input(c, &c->inputs.v[i]);
}

bool link_command_misses(const struct link_command *c)
{
	for (size_t i = 0; i < c->inputs.n; i++)
		if (c->inputs.v[i].is_library && !c->inputs.v[i].path)
			return true;
	return false;
}

bool link_command_add_folder(struct link_command *c, const char *folder)
{
	if (c->only_given_folders)
		return false;
	for (size_t i = 0; i < c->script_folders.n; i++)
		if (!strcmp(c->script_folders.v[i], folder))
			return false;
	vec_push(&c->script_folders, mem_strdup(folder));
	return true;
}

/* ---- names in scripts ---- */

/* Linkers differ in whether they look here or beside the script first. */
static enum link_found find_relative(const char *script, const char *name, char **path)
{
	const char *base = path_base_name(script);
	char *beside = mem_printf("%.*s%s", (int)(base - script), script, name);
	bool is_beside = is_file(beside), is_here = is_file(name);
	enum link_found found = LINK_MISSING;

	if (is_beside && is_here && !is_same_file(beside, name))
		found = LINK_DOUBTFUL;
	else if (is_beside || is_here)
		*path = realpath(is_beside ? beside : name, NULL);
	free(beside);
	return *path ? LINK_FOUND : found;
}

enum link_found link_command_find_named(const struct link_command *c,
	const struct link_script_place *script, const char *name, char **path)
{
	struct link_input input = {.name = name, .is_static = script->is_static};
	const char *rest = behind_root(name);
	enum link_found found;

	*path = NULL;
	if (!*name)
		return LINK_MISSING;
	if (rest)
		return find_below_root(c, rest, path);
	if (name[0] == '/')
		return find_absolute(c, script, name, path);
	if (!strncmp(name, "-l", 2)) {
		input.name += 2;
		*path = find_in_folders(c, &input, find_in_folder);
		return *path ? LINK_FOUND : LINK_MISSING;
	}
	found = find_relative(script->path, name, path);
	if (found == LINK_MISSING)
		*path = find_in_folders(c, &input, find_plain);
	return *path ? LINK_FOUND : found;
}

enum link_found link_command_find_included(
	const struct link_command *c, const char *name, char **path)
{
	struct link_input input = {.name = name};

	if (!*name || is_file(name))
		*path = *name ? realpath(name, NULL) : NULL;
	else
		*path = name[0] == '/' ? NULL : find_in_folders(c, &input, find_text);
	return *path ? LINK_FOUND : LINK_MISSING;
}
