/* SPDX-License-Identifier: MIT */
/*
 * What the loader will map for a program that does not run yet: DT_NEEDED, followed breadth first,
 * each name looked for where the loader looks: DT_RPATH or DT_RUNPATH (of the file that asks),
 * LD_LIBRARY_PATH, the cache, the usual folders. Only libraries of the program's mode count.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "elf/elf_file.h"
#include "probe/points/find_file.h"
#include "probe/points/library_cache.h"

#define NEEDED_FILES_MAX 512  /* libraries of a program */
#define NEEDED_NAMES_MAX 512  /* DT_NEEDED entries of a file */
#define NEEDED_TEXT_MAX	 4096 /* bytes of a name or a list of folders */

struct needs {
	struct arena *arena;
	struct probe_files *files; /* result */
	const char *asked;
	enum mode mode;
	struct file_map cache;
	VEC(const char *) queue; /* paths, in order of loading */
	struct intern seen;	 /* names that were looked for */
	const char *wanted;	 /* while the cache is searched: name and answer */
	const char *answer;
};

static bool is_usable(const struct needs *w, const char *path)
{
	struct probe_file f;

	return file_identify(path, &f) == FILE_ELF && f.mode == w->mode;
}

/* A folder of a search list, with $ORIGIN as the folder of the file that has the list. */
static const char *in_folder(
	struct needs *w, const char *folder, size_t n, const char *owner, const char *name)
{
	static const char *const tokens[] = {"$ORIGIN", "${ORIGIN}"};
	const char *slash = strrchr(owner, '/');
	int origin_n = slash ? (int)(slash - owner) : 1;
	const char *path = NULL;

	for (size_t i = 0; i < 2 && !path; i++) {
		size_t token_n = strlen(tokens[i]);

		if (n >= token_n && strncmp(folder, tokens[i], token_n) == 0)
			path = arena_printf(w->arena, "%.*s%.*s/%s", origin_n, slash ? owner : ".",
				(int)(n - token_n), folder + token_n, name);
	}
	if (!path)
		path = arena_printf(w->arena, "%.*s/%s", (int)n, folder, name);
	return is_usable(w, path) ? path : NULL;
}

static const char *in_list(struct needs *w, const char *list, const char *owner, const char *name)
{
	while (list && *list) {
		size_t n = strcspn(list, ":;");
		const char *path = n ? in_folder(w, list, n, owner, name) : NULL;

		if (path)
			return path;
		list += n + (list[n] != 0);
	}
	return NULL;
}

static void compare_cached(void *ctx, const char *name, const char *path, enum mode mode)
{
	struct needs *w = ctx;

	if (!w->answer && mode == w->mode && strcmp(name, w->wanted) == 0 && is_usable(w, path))
		w->answer = path;
}

static const char *find_needed(
	struct needs *w, const char *name, const char *owner, const char *run_path)
{
	static const char *const usual[N_MODES] = {
		[MODE_64] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:"
			    "/lib:/usr/lib",
		[MODE_32] = "/lib/i386-linux-gnu:/usr/lib/i386-linux-gnu:/lib32:/usr/lib32:"
			    "/lib:/usr/lib",
	};
	const char *path;

	if (strchr(name, '/'))
		return is_usable(w, name) ? arena_strdup(w->arena, name) : NULL;
	path = in_list(w, run_path, owner, name);
	if (!path)
		path = in_list(w, getenv("LD_LIBRARY_PATH"), owner, name);
	if (path)
		return path;
	w->wanted = name;
	w->answer = NULL;
	library_cache_each(w->cache.bytes, compare_cached, w, NULL);
	if (w->answer)
		return arena_strdup(w->arena, w->answer);
	return in_list(w, usual[w->mode], owner, name);
}

static void follow(struct needs *w, const char *path, const struct elf_file *elf)
{
	uint64_t names_at, value;
	struct span names, dynamic = {NULL, 0};
	const char *run_path = NULL;
	struct cursor c;

	if (!elf_file_dynamic(elf, DT_STRTAB, &names_at))
		return;
	names = elf_file_bytes_at(elf, (struct iaddr){names_at});
	if (elf_file_dynamic(elf, DT_RUNPATH, &value) || elf_file_dynamic(elf, DT_RPATH, &value))
		run_path = span_short_cstr(names, value, NEEDED_TEXT_MAX);
	for (size_t i = 0; i < elf->n_segments && !dynamic.p; i++)
		if (elf->segments[i].type == PT_DYNAMIC)
			dynamic = span_sub(
				elf->bytes, elf->segments[i].offset.v, elf->segments[i].file_size);
	c = cursor_of(dynamic);
	for (int n = 0; cursor_left(&c) && !c.failed && n < NEEDED_NAMES_MAX; n++) {
		uint64_t tag = elf_file_word(elf, &c);
		const char *name = span_short_cstr(names, elf_file_word(elf, &c), NEEDED_TEXT_MAX);
		size_t known = w->seen.n_items;
		const char *found;

		if (tag == DT_NULL)
			break;
		if (tag != DT_NEEDED || !name || w->queue.n >= NEEDED_FILES_MAX ||
			intern_text(&w->seen, name) < known)
			continue;
		found = find_needed(w, name, path, run_path);
		if (found)
			vec_push(&w->queue, found);
		if (found && library_name_is(w->asked, path_base_name(found)))
			probe_files_add(w->files, w->arena, found);
	}
}

void needed_files_add(
	struct probe_files *files, struct arena *arena, const char *program, const char *asked)
{
	struct needs w = {.arena = arena, .files = files, .asked = asked};
	struct probe_file first;

	if (file_identify(program, &first) != FILE_ELF)
		return;
	w.mode = first.mode;
	if (file_map_open(&w.cache, LIBRARY_CACHE_PATH, NULL) < 0)
		w.cache = (struct file_map){0};
	vec_push(&w.queue, program);
	for (size_t i = 0; i < w.queue.n; i++) {
		struct file_map map;
		struct elf_file elf;

		if (file_map_open(&map, w.queue.v[i], NULL) < 0)
			continue;
		if (elf_file_init(&elf, map.bytes, NULL) == 0) {
			follow(&w, w.queue.v[i], &elf);
			elf_file_release(&elf);
		}
		file_map_release(&map);
	}
	file_map_release(&w.cache);
	vec_release(&w.queue);
	intern_release(&w.seen);
}
