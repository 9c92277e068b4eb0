/* SPDX-License-Identifier: MIT */
#include "cmd/counted_scripts.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "insert/link_script.h"

/* Within one another; GNU ld takes ten that include each other. */
#define SCRIPTS_DEPTH_MAX 64

/* One script being read. */
struct walk {
	struct counted_scripts *scripts;
	struct link_script_place place;
	struct buf *text;      /* being rewritten */
	const uint8_t *copied; /* up to here */
	size_t n_copies;       /* of files that it names */
	unsigned depth;
	bool has_grown; /* a folder is new */
	char *doubt;	/* NULL, or a sentence: a name in it is doubtful */
};

static struct walk walk_of(struct counted_scripts *s, size_t file)
{
	const struct counted_file *f = &s->all->files.v[file];

	/* The path stays where it is when files are added. */
	return (struct walk){.scripts = s, .place = {f->file.path, f->is_static, f->is_library}};
}

static void read_script(struct walk *w, size_t file, link_script_each *each)
{
	link_script_read(w->scripts->all->files.v[file].file.map.bytes, each, w);
}

static bool is_script(const struct counted_scripts *s, size_t file)
{
	return s->all->files.v[file].file.kind == LINK_FILE_SCRIPT;
}

static enum link_found find(
	const struct walk *w, enum link_script_use use, const char *name, char **path)
{
	if (use == LINK_SCRIPT_INCLUDE)
		return link_command_find_included(w->scripts->command, name, path);
	return link_command_find_named(w->scripts->command, &w->place, name, path);
}

/* ---- opening what they name ---- */

static void open_named(void *context, enum link_script_use use, struct span word)
{
	struct walk *w = context;
	struct counted_files *all = w->scripts->all;
	char *name = link_script_name(word), *path = NULL;
	size_t n = all->files.n;

	if (use == LINK_SCRIPT_FOLDER)
		w->has_grown |= link_command_add_folder(w->scripts->command, name);
	else if (find(w, use, name, &path) == LINK_MISSING) {
		w->scripts->need_folders(w->scripts->context);
		find(w, use, name, &path);
	}
	if (path && counted_files_open(all, path) == n) {
		all->files.v[n].is_static = w->place.is_static;
		all->files.v[n].is_library = !strncmp(name, "-l", 2);
	}
	free(name);
	free(path);
}

/* Scripts may name scripts: those are behind them then, and are opened in the same turn. */
bool counted_scripts_open(struct counted_scripts *s)
{
	bool has_grown = false;

	for (size_t i = 0; i < s->all->files.n; i++) {
		struct walk w = walk_of(s, i);

		if (is_script(s, i))
			read_script(&w, i, open_named);
		has_grown |= w.has_grown;
	}
	return has_grown;
}

/* The reports tell of a doubtful one, too. */
static void tell_named(void *context, enum link_script_use use, struct span word)
{
	struct walk *w = context;
	char *name = link_script_name(word), *path = NULL;
	enum link_found found = use == LINK_SCRIPT_FOLDER ? LINK_FOUND : find(w, use, name, &path);
	/* Shared libraries that it names are not counted anyway. */
	bool is_told = found == LINK_DOUBTFUL ||
		       (found == LINK_MISSING && !strstr(name, ".so") && strncmp(name, "-l", 2));
	char *sentence =
		mem_printf("it is not known which file '%s' in this linker script is", name);

	if (is_told && !w->scripts->all->arguments->quiet)
		fprintf(stderr, "weir: '%s': %s: %s\n", w->place.path, sentence,
			found == LINK_DOUBTFUL ? "nothing that it names is counted"
					       : "not counted");
	if (found == LINK_DOUBTFUL && !w->doubt)
		w->doubt = sentence;
	else
		free(sentence);
	free(name);
	free(path);
}

void counted_scripts_tell(struct counted_scripts *s)
{
	for (size_t i = 0; i < s->all->files.n; i++) {
		struct walk w = walk_of(s, i);

		if (is_script(s, i))
			read_script(&w, i, tell_named);
		s->all->files.v[i].failure = w.doubt;
	}
}

/* ---- copies ---- */

static void insert_script(struct counted_scripts *s, size_t file, unsigned depth);

/* The copy of a file that a script names; one of a script is made now. */
static const char *copy_of(struct walk *w, size_t file)
{
	struct counted_files *all = w->scripts->all;
	const struct counted_file *f = &all->files.v[file];

	if (f->file.kind == LINK_FILE_SCRIPT && f->script_state == SCRIPT_UNDER_WAY)
		fprintf(stderr,
			"weir: '%s': names '%s', which names it: linker scripts that contain "
			"themselves are left to the linker\n",
			w->place.path, f->file.path);
	else if (f->file.kind == LINK_FILE_SCRIPT)
		insert_script(w->scripts, file, w->depth + 1);
	return all->files.v[file].copy;
}

/* The script is somewhere else then: what is relative to it is not any more, and absolute names do not begin
 * at the sysroot. */
static void replace_named(void *context, enum link_script_use use, struct span word)
{
	struct walk *w = context;
	char *name = link_script_name(word), *path = NULL;
	const char *copy = NULL, *now;
	size_t file = SIZE_MAX;

	if (use != LINK_SCRIPT_FOLDER)
		find(w, use, name, &path);
	if (path)
		file = counted_files_open(w->scripts->all, path);
	if (file != SIZE_MAX)
		copy = copy_of(w, file);
	now = copy ? copy : path;
	if (now && !strchr(now, '"') && (copy || strncmp(name, "-l", 2))) {
		buf_put(w->text, w->copied, (size_t)(word.p - w->copied));
		buf_printf(w->text, "\"%s\"", now);
		w->copied = word.p + word.n;
		w->n_copies += copy != NULL;
	}
	free(name);
	free(path);
}

static void insert_script(struct counted_scripts *s, size_t file, unsigned depth)
{
	const char *path = s->all->files.v[file].file.path;
	struct span script = s->all->files.v[file].file.map.bytes;
	struct walk w = walk_of(s, file);
	struct buf text = {0};

	if (s->all->files.v[file].script_state != SCRIPT_FRESH)
		return;
	if (depth >= SCRIPTS_DEPTH_MAX) {
		fprintf(stderr,
			"weir: '%s': %d linker scripts name each other down to it: what it names is "
			"not counted\n",
			path, SCRIPTS_DEPTH_MAX);
		return;
	}
	w.text = &text;
	w.copied = script.p;
	w.depth = depth;
	s->all->files.v[file].script_state = SCRIPT_UNDER_WAY;
	read_script(&w, file, replace_named);
	s->all->files.v[file].script_state = SCRIPT_DONE;
	buf_put(&text, w.copied, (size_t)(script.p + script.n - w.copied));
	if (w.n_copies && !s->all->files.v[file].failure)
		s->all->files.v[file].copy =
			counted_files_store(s->all, buf_span(&text), path_base_name(path));
	buf_release(&text);
}

void counted_scripts_insert(struct counted_scripts *s)
{
	for (size_t i = 0; i < s->all->files.n; i++) {
		if (!is_script(s, i))
			continue;
		insert_script(s, i, 0);
		if (s->all->arguments->verbose && !s->all->files.v[i].copy)
			fprintf(stderr,
				"weir: '%s': left as it is: a linker script that names nothing to be "
				"counted\n",
				s->all->files.v[i].file.path);
	}
}
