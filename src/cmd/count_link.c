/* SPDX-License-Identifier: MIT */
/*
 * The linker of `weir count`: finds the files that the real linker would link, makes inserted
 * copies of objects and archives (or has them in the cache), adds libweircount.a and runs the real
 * linker with the same arguments otherwise. When something is in doubt, the linker gets what was
 * there.
 */
#include "cmd/count_link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "insert/foreign_names.h"
#include "insert/insert.h"
#include "insert/link_command.h"
#include "insert/object_cache.h"

#define LIBRARY_BUILT	  "lib/x86_64-linux-gnu/libweircount.a"
#define LIBRARY_INSTALLED "../lib/weir/lib/x86_64-linux-gnu/libweircount.a"
/* The kernel takes 2 MiB of arguments and environment by default; beyond this a file is used. */
#define WORDS_BYTES_MAX (512 * 1024)

extern const struct command command_count;

/* One file of the link; inputs may name it several times. */
struct counted_file {
	struct link_file file;
	char *copy; /* NULL: left alone */
	struct insert_report report;
	bool is_static; /* of a script: shared libraries are not looked for */
};

struct counted_link {
	const struct insert_arguments *arguments;
	struct insert_setup setup;
	struct object_cache cache;
	const char *linker;
	struct link_command command;
	struct link_names names;
	VEC(struct counted_file) files;
	VEC(size_t) file_of;  /* by input; SIZE_MAX: none */
	uint64_t identity[3]; /* of this program: another version may insert otherwise */
	bool has_stored;
	bool has_seen_all; /* names knows which functions are left alone */
};

/* ---- finding files ---- */

/* Folders that GNU ld searches by itself: its script says so. */
static void search_folders(const char *linker, struct link_words *out)
{
	struct buf text = {0}, quoted = {0};
	char line[4096], *command;
	FILE *answer;

	buf_put_shell_word(&quoted, linker);
	command = mem_printf("%s --verbose 2>/dev/null", buf_text(&quoted));
	answer = popen(command, "r");
	while (answer && fgets(line, sizeof(line), answer))
		buf_put_cstr(&text, line);
	if (answer)
		pclose(answer);
	for (const char *at = strstr(buf_text(&text), "SEARCH_DIR(\""); at;
		at = strstr(at, "SEARCH_DIR(\"")) {
		at += strlen("SEARCH_DIR(\"");
		vec_push(out, mem_strndup(at, strcspn(at, "\"")));
	}
	free(command);
	buf_release(&quoted);
	buf_release(&text);
}

static void find_inputs(struct counted_link *l)
{
	struct link_words more = {0};

	link_command_find(&l->command, NULL);
	if (!link_command_misses(&l->command) || l->command.only_given_folders)
		return;
	search_folders(l->linker, &more);
	link_command_find(&l->command, &more);
	link_words_release(&more);
}

static size_t open_file(struct counted_link *l, const char *path)
{
	struct counted_file f = {0};

	for (size_t i = 0; i < l->files.n; i++)
		if (!strcmp(l->files.v[i].file.path, path))
			return i;
	if (link_file_open(&f.file, path, &l->names, NULL) < 0)
		return SIZE_MAX; /* the linker will say why */
	vec_push(&l->files, f);
	return l->files.n - 1;
}

struct script_walk {
	struct counted_link *link;
	const char *script; /* its path */
	bool is_static;
	struct buf *text;      /* being rewritten */
	const uint8_t *copied; /* up to here */
	size_t n_copies;       /* of files that it names */
};

/* The path of a file that the script names, or NULL. */
static char *script_path(const struct script_walk *w, struct span word)
{
	char *name = link_script_name(word);
	char *path = link_command_find_named(&w->link->command, w->script, name, w->is_static);

	free(name);
	return path;
}

static void open_script_file(void *context, struct span word)
{
	struct script_walk *w = context;
	char *path = script_path(w, word);
	char *name = path ? NULL : link_script_name(word);
	size_t n = w->link->files.n;

	if (path && open_file(w->link, path) == n)
		w->link->files.v[n].is_static = w->is_static;
	/* Shared libraries that it names are not counted anyway. */
	if (name && !w->link->arguments->quiet && !strstr(name, ".so") && strncmp(name, "-l", 2))
		fprintf(stderr,
			"weir: '%s': it is not known which file '%s' in this linker script is: not "
			"counted\n",
			w->script, name);
	free(name);
	free(path);
}

static struct script_walk walk_of(struct counted_link *l, size_t file)
{
	/* What is here stays where it is when files are added. */
	return (struct script_walk){.link = l,
		.script = l->files.v[file].file.path,
		.is_static = l->files.v[file].is_static};
}

/* Scripts may name scripts: those are behind them then. */
static void open_script_files(struct counted_link *l)
{
	for (size_t i = 0; i < l->files.n; i++) {
		struct script_walk w = walk_of(l, i);

		if (l->files.v[i].file.kind == LINK_FILE_SCRIPT)
			link_script_read(l->files.v[i].file.map.bytes, open_script_file, &w);
	}
}

static void open_files(struct counted_link *l)
{
	for (size_t i = 0; i < l->command.inputs.n; i++) {
		const struct link_input *input = &l->command.inputs.v[i];
		bool is_wanted = input->path && !input->is_raw;
		size_t n = l->files.n, file = is_wanted ? open_file(l, input->path) : SIZE_MAX;

		vec_push(&l->file_of, file);
		if (file == n)
			l->files.v[n].is_static = input->is_static;
	}
	open_script_files(l);
}

/* ---- inserting ---- */

static bool is_foreign(void *context, const char *name)
{
	struct counted_link *l = context;

	return !link_names_defines(&l->names, name) ||
	       (l->has_seen_all && link_names_is_left(&l->names, name));
}

static bool is_timed(void *context, const char *name)
{
	struct counted_link *l = context;

	return insert_setup_times(&l->setup, name);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of functions without inserted code, in an order that depends on nothing else. */
static void hash_foreign(
	struct counted_link *l, const struct link_file *f, struct content_hash *hash)
{
	struct option_texts foreign = {0};

	for (size_t i = 0; i < f->wanted.n; i++) {
		const char *name = intern_get(&l->names.names, f->wanted.v[i]);

		if (is_foreign(l, name))
			vec_push(&foreign, name);
	}
	vec_sort(&foreign, compare_texts);
	content_hash_add_u64(hash, foreign.n);
	for (size_t i = 0; i < foreign.n; i++)
		content_hash_add_text(hash, foreign.v[i]);
	vec_release(&foreign);
}

static void hash_file(
	struct counted_link *l, const struct link_file *f, char hex[2 * CONTENT_HASH_BYTES + 1])
{
	struct content_hash hash;

	content_hash_init(&hash);
	content_hash_add_text(&hash, "weir insert " WEIR_VERSION);
	for (size_t i = 0; i < 3; i++)
		content_hash_add_u64(&hash, l->identity[i]);
	insert_setup_hash(&l->setup, &hash);
	hash_foreign(l, f, &hash);
	link_file_hash(f, &hash);
	content_hash_hex(&hash, hex);
}

static void say_what_was_done(
	const struct counted_link *l, const char *path, const struct insert_report *report)
{
	if (l->arguments->verbose) {
		fputs("weir: ", stderr);
		insert_print_summary(path, report, stderr);
		insert_print_functions(report, true, stderr);
	} else if (!l->arguments->quiet) {
		insert_print_notes(path, report);
	}
}

static int insert_and_store(
	struct counted_link *l, const struct link_file *f, const char *hex, struct err *err)
{
	struct buf object = {0}, report_bytes = {0};
	struct insert_report report = {0};
	int rc = insert_file(f->map.bytes, f->path, &l->setup.options, &object, &report, err);

	if (rc == 0) {
		insert_report_put(&report, &report_bytes);
		rc = object_cache_store(
			&l->cache, hex, buf_span(&object), buf_span(&report_bytes), err);
		l->has_stored = true;
	} else {
		err_prefix(err, "'%s'", f->path);
	}
	insert_report_release(&report);
	buf_release(&object);
	buf_release(&report_bytes);
	return rc;
}

static void forget_copy(struct counted_file *f)
{
	free(f->copy);
	f->copy = NULL;
	insert_report_release(&f->report);
	f->report = (struct insert_report){0};
}

static void insert_one(struct counted_link *l, struct counted_file *f)
{
	const char *name = path_base_name(f->file.path);
	struct buf report_bytes = {0};
	char hex[2 * CONTENT_HASH_BYTES + 1];
	struct err err = {0};

	forget_copy(f);
	hash_file(l, &f->file, hex);
	f->copy = object_cache_find(&l->cache, hex, name, &report_bytes);
	if (!f->copy) {
		if (insert_and_store(l, &f->file, hex, &err) < 0) {
			fprintf(stderr, "weir: %s (linked as it is)\n", err.text);
			buf_release(&report_bytes);
			return;
		}
		buf_reset(&report_bytes);
		f->copy = object_cache_find(&l->cache, hex, name, &report_bytes);
	}
	if (f->copy)
		insert_report_get(&f->report, buf_span(&report_bytes), NULL);
	buf_release(&report_bytes);
}

static bool is_inserted(const struct counted_file *f)
{
	return f->file.kind == LINK_FILE_OBJECT || f->file.kind == LINK_FILE_ARCHIVE;
}

/* Does it call a function of another object that is left alone? */
static bool wants_left(const struct counted_link *l, const struct link_file *f)
{
	for (size_t i = 0; i < f->wanted.n; i++)
		if (l->names.is_left.v[f->wanted.v[i]])
			return true;
	return false;
}

/* Which functions are left alone is known when all objects have been looked at. Those that call them then
 * are inserted once more. */
static void insert_all(struct counted_link *l)
{
	for (size_t i = 0; i < l->files.n; i++) {
		struct counted_file *f = &l->files.v[i];

		if (is_inserted(f))
			insert_one(l, f);
		for (size_t k = 0; k < f->report.left_names.n; k++)
			link_names_leave(&l->names, f->report.left_names.v[k]);
	}
	l->has_seen_all = true;
	for (size_t i = 0; i < l->files.n; i++)
		if (is_inserted(&l->files.v[i]) && wants_left(l, &l->files.v[i].file))
			insert_one(l, &l->files.v[i]);
}

/* ---- scripts that name files ---- */

/* The script is somewhere else then: what is relative to it is not any more. */
static void replace_script_file(void *context, struct span word)
{
	struct script_walk *w = context;
	char *path = script_path(w, word);
	size_t file = path ? open_file(w->link, path) : SIZE_MAX;
	const char *copy = file == SIZE_MAX ? NULL : w->link->files.v[file].copy;
	const char *now = copy ? copy : path;
	bool is_library = word.n > 2 && !memcmp(word.p, "-l", 2);

	if (now && !strchr(now, '"') && (copy || !is_library)) {
		buf_put(w->text, w->copied, (size_t)(word.p - w->copied));
		buf_printf(w->text, "\"%s\"", now);
		w->copied = word.p + word.n;
		w->n_copies += copy != NULL;
	}
	free(path);
}

static void insert_script(struct counted_link *l, size_t file_i)
{
	struct counted_file *f = &l->files.v[file_i];
	const char *name = path_base_name(f->file.path);
	struct span script = f->file.map.bytes;
	struct buf text = {0}, report_bytes = {0};
	struct script_walk w = walk_of(l, file_i);
	struct insert_report nothing = {0};
	struct content_hash hash;
	char hex[2 * CONTENT_HASH_BYTES + 1];

	w.text = &text;
	w.copied = script.p;
	link_script_read(script, replace_script_file, &w);
	buf_put(&text, w.copied, (size_t)(script.p + script.n - w.copied));
	content_hash_init(&hash);
	content_hash_add(&hash, buf_span(&text));
	content_hash_hex(&hash, hex);
	if (w.n_copies) {
		f->copy = object_cache_find(&l->cache, hex, name, &report_bytes);
		buf_reset(&report_bytes);
	}
	if (w.n_copies && !f->copy) {
		insert_report_put(&nothing, &report_bytes);
		if (object_cache_store(
			    &l->cache, hex, buf_span(&text), buf_span(&report_bytes), NULL) == 0) {
			buf_reset(&report_bytes);
			f->copy = object_cache_find(&l->cache, hex, name, &report_bytes);
		}
	}
	buf_release(&text);
	buf_release(&report_bytes);
}

/* ---- what is left alone ---- */

static void say_lto(const struct counted_link *l)
{
	uint64_t n = 0;
	const char *first = NULL;

	for (size_t i = 0; i < l->files.n; i++) {
		const struct link_file *f = &l->files.v[i].file;

		n += f->n_lto + (f->kind == LINK_FILE_LTO);
		if (!first && n)
			first = f->path;
	}
	if (n && !l->arguments->quiet)
		fprintf(stderr,
			"weir: '%s': %" PRIu64
			" object%s made for link-time optimisation (the first: '%s'): not "
			"counted (compile with -fno-lto)\n",
			l->command.output, n, n == 1 ? "" : "s", first);
}

static const char *why_left(const struct link_file *f)
{
	static const char *const kinds[] = {[LINK_FILE_SHARED] = "a shared library",
		[LINK_FILE_OTHER_MACHINE] = "not for x86-64",
		[LINK_FILE_LTO] = "made for link-time optimisation"};

	if (f->kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[f->kind])
		return kinds[f->kind];
	return memchr(f->map.bytes.p, 0, f->map.bytes.n) ? "neither an object nor an archive"
							  : "a linker script";
}

static void insert_files(struct counted_link *l)
{
	say_lto(l);
	insert_all(l);
	for (size_t i = 0; i < l->files.n; i++) {
		struct counted_file *f = &l->files.v[i];

		insert_setup_match(&l->setup, &f->report);
		if (f->copy)
			say_what_was_done(l, f->file.path, &f->report);
		else if (l->arguments->verbose && !is_inserted(f) &&
			 f->file.kind != LINK_FILE_SCRIPT)
			fprintf(stderr, "weir: '%s': left as it is: %s\n", f->file.path,
				why_left(&f->file));
	}
	for (size_t i = l->files.n; i-- > 0;) {
		if (l->files.v[i].file.kind != LINK_FILE_SCRIPT)
			continue;
		insert_script(l, i);
		if (l->arguments->verbose && !l->files.v[i].copy)
			fprintf(stderr,
				"weir: '%s': left as it is: a linker script that names nothing to be "
				"counted\n",
				l->files.v[i].file.path);
	}
}

/* ---- running the linker ---- */

/* The words, or @FILE when they are too many. */
static void shorten(struct link_words *words)
{
	struct buf text = {0};
	size_t bytes = 0;
	int fd;

	for (size_t i = 0; i < words->n; i++)
		bytes += strlen(words->v[i]) + 1 + sizeof(char *);
	if (bytes <= WORDS_BYTES_MAX)
		return;
	fd = memfd_create("weir-link", 0);
	link_words_join(words, &text);
	if (fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n) {
		link_words_release(words);
		vec_push(words, mem_printf("@/proc/self/fd/%d", fd));
	}
	buf_release(&text);
}

static int run_linker(const char *linker, struct link_words *words)
{
	struct link_words argv = {0};
	int status;

	shorten(words);
	vec_push(&argv, (char *)linker);
	for (size_t i = 0; i < words->n; i++)
		vec_push(&argv, words->v[i]);
	vec_push(&argv, NULL);
	status = count_run_child(linker, argv.v);
	vec_release(&argv);
	return status;
}

/* As if we had not been called. Returns only when that fails. */
static int run_plain(const char *linker, char **args, size_t n)
{
	char **argv = mem_calloc(n + 2, sizeof(argv[0]));
	struct err err;

	argv[0] = (char *)linker;
	for (size_t i = 0; i < n; i++)
		argv[i + 1] = args[i];
	execv(linker, argv);
	err_sys(&err, errno, "'%s': cannot run", linker);
	free(argv);
	return command_fail(&err);
}

static void note_link(const struct counted_link *l)
{
	const char *notes = getenv(COUNT_ENV_NOTES);
	int fd = notes ? open(notes, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (fd >= 0) {
		dprintf(fd, "%s\n", l->command.output);
		close(fd);
	}
}

static int run_counted(struct counted_link *l, const char *library)
{
	VEC(char *) replaced = {0};
	struct link_words words = {0};
	int status;

	for (size_t i = 0; i < l->file_of.n; i++)
		vec_push(&replaced,
			l->file_of.v[i] == SIZE_MAX ? NULL : l->files.v[l->file_of.v[i]].copy);
	link_command_rewrite(&l->command, replaced.v, library, &words);
	status = run_linker(l->linker, &words);
	vec_release(&replaced);
	link_words_release(&words);
	if (status == 0)
		note_link(l);
	return status;
}

static int link_counted(struct counted_link *l)
{
	char *library = count_own_file(LIBRARY_BUILT, LIBRARY_INSTALLED);
	struct err err = {0};
	struct stat st;
	int status;

	if (!library) {
		fputs("weir: " LIBRARY_BUILT ": is not beside the program (make builds it)\n",
			stderr);
		return STATUS_FAILED;
	}
	if (object_cache_open(&l->cache, l->arguments->no_cache, &err) < 0) {
		free(library);
		return command_fail(&err);
	}
	if (stat("/proc/self/exe", &st) == 0) {
		l->identity[0] = (uint64_t)st.st_size;
		l->identity[1] = (uint64_t)st.st_mtim.tv_sec;
		l->identity[2] = (uint64_t)st.st_mtim.tv_nsec;
	}
	l->setup.options.is_foreign = is_foreign;
	l->setup.options.is_timed = is_timed;
	l->setup.options.foreign_context = l;
	find_inputs(l);
	open_files(l);
	insert_files(l);
	/* Of a build that links several programs the next one may have it: no reason to fail. */
	if (insert_setup_unmatched(&l->setup, &err))
		fprintf(stderr, "weir: '%s': %s\n", l->command.output, err.text);
	status = run_counted(l, library);
	if (l->has_stored)
		object_cache_trim(&l->cache, CACHE_BYTES_MAX);
	object_cache_close(&l->cache);
	free(library);
	return status;
}

static void release(struct counted_link *l)
{
	for (size_t i = 0; i < l->files.n; i++) {
		link_file_release(&l->files.v[i].file);
		forget_copy(&l->files.v[i]);
	}
	vec_release(&l->files);
	vec_release(&l->file_of);
	link_names_release(&l->names);
	link_command_release(&l->command);
	insert_setup_release(&l->setup);
}

/* NULL: the link is counted. */
static const char *const why_not_counted[] = {
	[LINK_RESULT_PROGRAM] = NULL,
	[LINK_RESULT_SHARED] =
		"shared libraries are not inserted: their code is timed, not counted",
	[LINK_RESULT_RELOCATABLE] =
		"an object made of objects: counting code comes when a program is linked from it",
	[LINK_RESULT_OTHER] = "is not for x86-64: not counted",
};

int count_link(const char *linker, char **args, size_t n, const struct insert_arguments *a)
{
	struct counted_link l = {.arguments = a, .linker = linker};
	struct err err = {0};
	const char *why_not;
	int status = insert_setup_init(&l.setup, &command_count, a);

	if (status != STATUS_DONE)
		return status;
	if (link_command_read(&l.command, args, n, &err) < 0) {
		insert_setup_release(&l.setup);
		return command_fail(&err);
	}
	why_not = why_not_counted[l.command.result];
	if (l.command.inputs.n && !why_not) {
		status = link_counted(&l);
	} else {
		bool is_quiet = a->quiet || !l.command.inputs.n ||
				(l.command.result == LINK_RESULT_RELOCATABLE && !a->verbose);

		if (why_not && !is_quiet)
			fprintf(stderr, "weir: '%s': %s\n", l.command.output, why_not);
		if (l.command.inputs.n)
			note_link(&l);
		status = run_plain(linker, args, n);
	}
	release(&l);
	return status;
}
