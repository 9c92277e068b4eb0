/* SPDX-License-Identifier: MIT */
/*
 * From what a script calls a file to ELF files. A name with a slash is a path (or a pattern of
 * paths). A short name is looked for in this order, and a mode that one place has is not searched
 * further, so that a process or command that was named decides which library is meant:
 *	1. the files that the processes of -p have mapped, and what the command of -c will load
 *	2. a program on PATH, unless it looks like a library
 *	3. the loader's cache, then the usual folders of libraries
 */
#include "probe/points/find_file.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/glob.h"
#include "base/nearest_names.h"
#include "probe/points/library_cache.h"
#include "process/mapped_file.h"
#include "process/proc.h"

#define FILES_MAX 4096 /* of one point */

struct search {
	const struct point_spec *spec;
	const struct find_options *options;
	struct arena *arena;
	struct probe_files *out;
	struct diags *d;
	bool has_mode[N_MODES];	   /* of a place before: not searched further */
	struct nearest_names near; /* libraries of similar names */
	pid_t pid;		   /* while its mappings are read */
};

enum file_kind file_identify(const char *path, struct probe_file *out)
{
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t head[20];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return FILE_MISSING;
	if (!S_ISREG(st.st_mode) || pread(fd, head, sizeof(head), 0) != sizeof(head) ||
		memcmp(head, ELFMAG, SELFMAG) != 0 || head[EI_DATA] != ELFDATA2LSB)
		return FILE_NOT_ELF;
	if (head[18] == EM_X86_64 && head[19] == 0 && head[EI_CLASS] == ELFCLASS32)
		return FILE_X32;
	if (head[19] || (head[18] != EM_X86_64 && head[18] != EM_386))
		return FILE_OTHER_MACHINE;
	*out = (struct probe_file){.path = path,
		.device = st.st_dev,
		.inode = st.st_ino,
		.modified_ns = timespec_ns(&st.st_mtim),
		.mode = head[18] == EM_386 ? MODE_32 : MODE_64};
	return FILE_ELF;
}

static void add_identified(
	struct probe_files *files, struct arena *arena, const struct probe_file *f)
{
	struct probe_file copy = *f;

	for (size_t i = 0; i < files->v.n; i++)
		if (files->v.v[i].device == f->device && files->v.v[i].inode == f->inode)
			return;
	copy.path = arena_strdup(arena, f->path);
	if (files->v.n < FILES_MAX)
		vec_push(&files->v, copy);
}

bool probe_files_add(struct probe_files *files, struct arena *arena, const char *path)
{
	struct probe_file f;

	if (file_identify(path, &f) != FILE_ELF)
		return false;
	add_identified(files, arena, &f);
	return true;
}

/* --- paths ------------------------------------------------------------------------------------ */

/* Where the files of a process are: "" when it sees what we see, else its root folder in /proc. */
static const char *root_of(struct search *s, pid_t pid)
{
	const char *root = arena_printf(s->arena, "/proc/%d/root", (int)pid);
	struct stat a, b;

	if (stat("/", &a) < 0 || stat(root, &b) < 0)
		return "";
	return proc_namespace_id(pid, "mnt") || a.st_dev != b.st_dev || a.st_ino != b.st_ino ? root
											     : "";
}

/* A path that the file's neighbours resemble. */
static void hint_neighbours(struct search *s, const char *path)
{
	const char *base = path_base_name(path);
	char *folder = arena_strndup(s->arena, path, (size_t)(base - path));
	struct nearest_names near = {.wanted = base};
	DIR *dir = opendir(folder);
	struct dirent *e;
	char text[512];

	while (dir && (e = readdir(dir)))
		nearest_names_add(&near, e->d_name);
	if (dir)
		closedir(dir);
	if (nearest_names_text(&near, text, sizeof(text)))
		diag_hint(s->d, "%s holds %s", folder, text);
}

/* One named path: what is wrong with it is an error. */
static bool add_path(struct search *s, const char *path)
{
	struct place place = s->spec->place;
	struct probe_file f;
	enum file_kind kind = file_identify(path, &f);
	int why = errno;

	switch (kind) {
	case FILE_ELF:
		add_identified(s->out, s->arena, &f);
		return true;
	case FILE_MISSING:
		diag_error(s->d, place, why == EACCES ? "no-privilege" : "not-found", "'%s': %s",
			path, strerror(why));
		if (why == ENOENT)
			hint_neighbours(s, path);
		return false;
	case FILE_X32:
		return diag_error(s->d, place, "x32",
			"'%s' is an x32 file (32-bit pointers in 64-bit code), which cannot be probed",
			path);
	case FILE_OTHER_MACHINE:
		return diag_error(s->d, place, "not-elf", "'%s' is for another processor", path);
	default:
		diag_error(s->d, place, "not-elf", "'%s' is no ELF program or library", path);
		if (program_of_command(path, s->arena) &&
			strcmp(program_of_command(path, s->arena), path) != 0)
			diag_hint(s->d, "it is a script of %s", program_of_command(path, s->arena));
		return false;
	}
}

/* A path as we and as the processes of -p see it. */
static bool find_path(struct search *s, const char *path)
{
	size_t before = s->out->v.n;

	for (size_t i = 0; i < s->options->n_pids && *path == '/'; i++) {
		const char *root = root_of(s, s->options->pids[i]);

		if (*root)
			probe_files_add(
				s->out, s->arena, arena_printf(s->arena, "%s%s", root, path));
	}
	return s->out->v.n > before || add_path(s, path);
}

static bool find_pattern(struct search *s, const char *pattern)
{
	glob_t found = {0};

	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && i < FILES_MAX; i++)
			probe_files_add(s->out, s->arena, found.gl_pathv[i]);
	globfree(&found);
	if (!s->out->v.n)
		diag_warning(
			s->d, s->spec->place, "not-found", "no ELF file matches '%s'", pattern);
	return s->out->v.n > 0;
}

/* --- processes and commands ------------------------------------------------------------------- */

static void match_mapping(void *ctx, const struct proc_mapping *m)
{
	struct search *s = ctx;
	struct mapped_file f;
	const char *name;

	if (*m->path != '/' || !m->inode)
		return;
	name = arena_strndup(s->arena, m->path, path_plain_bytes(m->path));
	if (!library_name_is(s->spec->file, path_base_name(name)) ||
		mapped_file_open(&f, s->pid, m, (struct span){0}, NULL) < 0)
		return;
	probe_files_add(s->out, s->arena, f.path);
	mapped_file_close(&f);
}

/* The path that /proc/PID/exe stands for where that is the same file, which reads better. */
static void add_program(struct search *s, pid_t pid)
{
	const char *link = arena_printf(s->arena, "/proc/%d/exe", (int)pid), *path;
	struct probe_file a, b;
	char target[4096];

	proc_exe(pid, target, sizeof(target));
	path = arena_printf(s->arena, "%s%s", root_of(s, pid), target);
	if (file_identify(link, &a) == FILE_ELF && file_identify(path, &b) == FILE_ELF &&
		a.inode == b.inode && a.device == b.device)
		link = path;
	probe_files_add(s->out, s->arena, link);
}

static void add_mapped(void *ctx, const struct proc_mapping *m)
{
	struct search *s = ctx;
	struct mapped_file f;

	if (*m->path != '/' || !m->inode || !(m->prot & PROT_EXEC) ||
		mapped_file_open(&f, s->pid, m, (struct span){0}, NULL) < 0)
		return;
	probe_files_add(s->out, s->arena, f.path);
	mapped_file_close(&f);
}

/* "*": what the processes have mapped as code, what the command will load. */
static bool find_every(struct search *s)
{
	const char *program =
		s->options->command ? program_of_command(s->options->command, s->arena) : NULL;

	for (size_t i = 0; i < s->options->n_pids; i++) {
		s->pid = s->options->pids[i];
		add_program(s, s->pid);
		proc_each_mapping(s->pid, add_mapped, s, NULL);
	}
	if (program) {
		probe_files_add(s->out, s->arena, program);
		needed_files_add(s->out, s->arena, program, "*");
	}
	if (s->out->v.n)
		return true;
	diag_error(s->d, s->spec->place, "point", "'%s' cannot be looked for in every file",
		s->spec->name);
	return diag_hint(s->d,
		"name a file, a library, or a pattern such as /usr/lib/libx*.so; with -p and -c a * is for "
		"the files of the process");
}

static bool process_is_named(const struct search *s, pid_t pid)
{
	char target[4096];

	proc_exe(pid, target, sizeof(target));
	return target[0] && strcmp(path_base_name(target), s->spec->file) == 0;
}

static void search_named_ones(struct search *s)
{
	const char *program =
		s->options->command ? program_of_command(s->options->command, s->arena) : NULL;

	for (size_t i = 0; i < s->options->n_pids; i++) {
		s->pid = s->options->pids[i];
		if (process_is_named(s, s->pid))
			add_program(s, s->pid);
		else
			proc_each_mapping(s->pid, match_mapping, s, NULL);
	}
	if (program && strcmp(path_base_name(program), s->spec->file) == 0)
		probe_files_add(s->out, s->arena, program);
	else if (program)
		needed_files_add(s->out, s->arena, program, s->spec->file);
}

/* "uprobe::f": the program itself. */
static bool find_program(struct search *s)
{
	const char *program = NULL;

	for (size_t i = 0; i < s->options->n_pids; i++)
		add_program(s, s->options->pids[i]);
	if (s->options->command) {
		program = program_of_command(s->options->command, s->arena);
		if (!program)
			return diag_error(s->d, s->spec->place, "not-found",
				"there is no program '%s'", s->options->command);
		return add_path(s, program);
	}
	if (s->out->v.n)
		return true;
	diag_error(s->d, s->spec->place, "not-found", "'%s' names no file%s", s->spec->text,
		s->options->n_pids ? ", and the program of the process cannot be read" : "");
	return diag_hint(s->d, "name one, or give a program by -c or -p");
}

/* --- libraries -------------------------------------------------------------------------------- */

static void note_modes(struct search *s)
{
	for (size_t i = 0; i < s->out->v.n; i++)
		s->has_mode[s->out->v.v[i].mode] = true;
}

static void match_library(struct search *s, const char *name, const char *path)
{
	struct probe_file f;

	if (library_name_is(s->spec->file, name)) {
		if (file_identify(path, &f) == FILE_ELF && !s->has_mode[f.mode])
			add_identified(s->out, s->arena, &f);
	} else if (strstr(name, ".so")) {
		char stem[NEAREST_NAME_BYTES];

		snprintf(stem, sizeof(stem), "%.*s", (int)(strstr(name, ".so") - name), name);
		nearest_names_add(&s->near, stem);
	}
}

static void match_cached(void *ctx, const char *name, const char *path, enum mode mode)
{
	(void)mode; /* the file itself says it better */
	match_library(ctx, name, path);
}

static void search_cache(struct search *s)
{
	struct file_map map;

	if (file_map_open(&map, LIBRARY_CACHE_PATH, NULL) < 0)
		return;
	library_cache_each(map.bytes, match_cached, s, NULL);
	file_map_release(&map);
}

static void search_folders(struct search *s)
{
	static const char *const folders[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		"/lib64", "/usr/lib64", "/lib/i386-linux-gnu", "/usr/lib/i386-linux-gnu", "/lib32",
		"/usr/lib32", "/usr/lib", "/usr/local/lib"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		DIR *dir = opendir(folders[i]);
		struct dirent *e;

		while (dir && (e = readdir(dir)))
			if (strstr(e->d_name, ".so"))
				match_library(s, e->d_name,
					arena_printf(s->arena, "%s/%s", folders[i], e->d_name));
		if (dir)
			closedir(dir);
	}
}

static void search_libraries(struct search *s)
{
	search_cache(s);
	note_modes(s);
	if (!s->has_mode[MODE_32] || !s->has_mode[MODE_64])
		search_folders(s);
}

static bool find_short(struct search *s)
{
	const char *name = s->spec->file;
	bool is_library = strncmp(name, "lib", 3) == 0 || strstr(name, ".so") || glob_has(name);
	const char *program;
	char text[512];

	search_named_ones(s);
	note_modes(s);
	if (!is_library && !s->out->v.n && (program = program_find(name, s->arena)))
		return add_path(s, program);
	search_libraries(s);
	if (!s->out->v.n && is_library && !glob_has(name) &&
		(program = program_find(name, s->arena)))
		return add_path(s, program);
	if (s->out->v.n)
		return true;
	if (glob_has(name)) {
		diag_warning(s->d, s->spec->place, "not-found", "no library matches '%s'", name);
		return false;
	}
	diag_error(s->d, s->spec->place, "not-found",
		"there is no program on PATH and no library '%s'", name);
	if (nearest_names_text(&s->near, text, sizeof(text)))
		diag_hint(s->d, "there is %s", text);
	else if (access(name, F_OK) == 0)
		diag_hint(s->d, "the file in this folder is './%s'", name);
	return false;
}

bool find_files(const struct point_spec *spec, const struct find_options *options,
	struct arena *arena, struct probe_files *out, struct diags *d)
{
	static const struct find_options none;
	struct search s = {.spec = spec,
		.options = options ? options : &none,
		.arena = arena,
		.out = out,
		.d = d,
		.near = {.wanted = spec->file ? spec->file : ""}};

	if (!spec->file || !*spec->file)
		return find_program(&s);
	if (!strcmp(spec->file, "*"))
		return find_every(&s);
	if (!strchr(spec->file, '/'))
		return find_short(&s);
	return glob_has(spec->file) ? find_pattern(&s, spec->file) : find_path(&s, spec->file);
}
