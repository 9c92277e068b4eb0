/* SPDX-License-Identifier: MIT */
/*
 * import "FILE" and import "FOLDER": further scripts, parsed where they are named as if they stood there. A path is
 * relative to the folder of the script that names it; each file counts once, however often and along whichever
 * circle it is named.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "probe/script/parser.h"

#define IMPORTS_MAX	 200
#define IMPORT_DEPTH_MAX 32

/* Files that can be imported, and those of bpftrace that cannot. */
static const char *const script_endings[] = {".wr", ".bt", ".h", NULL};
static const char *const foreign_endings[] = {".bpf.c", ".c", ".o", NULL};

static bool has_ending(const char *path, const char *const *endings)
{
	size_t n = strlen(path);

	for (; *endings; endings++)
		if (n > strlen(*endings) && !strcmp(path + n - strlen(*endings), *endings))
			return true;
	return false;
}

/* --- once each -------------------------------------------------------------------------------- */

static bool is_known(const struct parser *p, const struct stat *st)
{
	for (size_t i = 0; i < p->imports.n; i++)
		if (p->imports.v[i].device == st->st_dev && p->imports.v[i].inode == st->st_ino)
			return true;
	return false;
}

static void remember(struct parser *p, const struct stat *st)
{
	struct imported one = {st->st_dev, st->st_ino};

	vec_push(&p->imports, one);
}

void import_remember_script(struct parser *p, const char *path)
{
	struct stat st;

	if (p->parameters->imports && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		remember(p, &st);
}

/* --- one file --------------------------------------------------------------------------------- */

/* What anybody may have put there is not run with the rights of whoever runs the script. */
static bool is_trusted(const char *path, const struct stat *st)
{
	const char *slash = strrchr(path, '/');
	struct stat parent;
	bool is_open;
	char *folder;

	folder = slash ? mem_printf("%.*s/", (int)(slash - path), path) : mem_strdup(".");
	is_open = stat(folder, &parent) < 0 || (parent.st_mode & S_IWOTH);
	free(folder);
	if (st->st_mode & S_IWOTH)
		return false;
	return !is_open || st->st_uid == 0 || st->st_uid == geteuid();
}

static bool read_script(struct parser *p, const char *path, struct place place, struct buf *bytes)
{
	struct err err = {0};

	if (file_read(bytes, path, SOURCE_BYTES_MAX, &err) < 0)
		diag_error(p->diags, place, "not-found", "%s", err.text);
	else if (bytes->n && memchr(bytes->p, 0, bytes->n))
		diag_error(p->diags, place, "not-found", "'%s': is not a text, so it is no script",
			path);
	else
		return true;
	return false;
}

static void import_file(
	struct parser *p, const char *path, const struct stat *st, struct place place)
{
	struct buf bytes = {0};

	if (is_known(p, st))
		return;
	if (p->imports.n >= IMPORTS_MAX || p->import_depth >= IMPORT_DEPTH_MAX) {
		diag_error(p->diags, place, "size",
			"more than %d files, or %d in one another, are imported", IMPORTS_MAX,
			IMPORT_DEPTH_MAX);
		return;
	}
	remember(p, st);
	if (!is_trusted(path, st)) {
		diag_error(p->diags, place, "unsafe", "'%s': anybody may have written it", path);
		diag_hint(p->diags, "chmod o-w the file and its folder");
	} else if (read_script(p, path, place, &bytes)) {
		sources_add(p->sources, path, buf_span(&bytes));
		p->import_depth++;
		parse_another_source(p, (uint32_t)p->sources->v.n - 1);
		p->import_depth--;
	}
	buf_release(&bytes);
}

static void import_path(struct parser *p, const char *path, struct place place)
{
	struct stat st;

	if (stat(path, &st) < 0)
		diag_error(p->diags, place, "not-found", "'%s': %s", path, strerror(errno));
	else
		import_file(p, path, &st, place);
}

/* --- folders ---------------------------------------------------------------------------------- */

static int is_script(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && has_ending(entry->d_name, script_endings);
}

/* In the order of their names. */
static void import_folder(struct parser *p, const char *path, struct place place)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_script, alphasort);

	if (n < 0) {
		diag_error(p->diags, place, "not-found", "'%s': %s", path, strerror(errno));
		return;
	}
	if (!n)
		diag_error(p->diags, place, "not-found",
			"'%s': has no file that ends in .wr, .bt or .h", path);
	for (int i = 0; i < n; i++) {
		char *file = mem_printf("%s/%s", path, entries[i]->d_name);

		import_path(p, file, place);
		free(file);
		free(entries[i]);
	}
	free(entries);
}

/* Beside the script that names it; one that is no file (-e) stands in the working directory. */
static char *resolved(const struct parser *p, const char *path)
{
	const char *of = p->sources->v.v[p->lexer.source_i].name, *slash = strrchr(of, '/');

	if (path[0] == '/' || !slash)
		return mem_strdup(path);
	return mem_printf("%.*s/%s", (int)(slash - of), of, path);
}

static void import(struct parser *p, const char *name, struct place place)
{
	char *path = resolved(p, name);
	struct stat st;

	if (has_ending(name, foreign_endings)) {
		diag_error(p->diags, place, "declaration",
			"'%s' is compiled code: only scripts can be imported", name);
	} else if (stat(path, &st) < 0) {
		diag_error(p->diags, place, "not-found", "'%s': %s", path, strerror(errno));
		diag_hint(p->diags, "paths are relative to the script that names them");
	} else if (S_ISDIR(st.st_mode)) {
		import_folder(p, path, place);
	} else {
		import_file(p, path, &st, place);
	}
	free(path);
}

/* import = "import" string [";"] */
void parse_import(struct parser *p)
{
	struct place place;
	const char *name;
	size_t n;

	parser_take(p);
	place = parser_here(p);
	name = literal_text(&p->lexer, p->token, p->arena, &n);
	if (!p->parameters->imports)
		parser_error(p, place, "declaration", "import is not possible here");
	else if (!n || strlen(name) != n)
		parser_error(p, place, "not-found", "the path of a file is needed");
	if (!p->panic)
		import(p, name, place);
	parser_take(p);
	parser_accept(p, ';');
}
