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
#include "cmd/count_lto.h"
#include "cmd/counted_files.h"
#include "cmd/counted_scripts.h"
#include "insert/left_objects.h"
#include "insert/link_command.h"
#include "process/own_file.h"

#define LIBRARY_BUILT	  "lib/x86_64-linux-gnu/libweircount.a"
#define LIBRARY_INSTALLED "../lib/weir/lib/x86_64-linux-gnu/libweircount.a"
/* The kernel takes 2 MiB of arguments and environment by default; beyond this a file is used. */
#define WORDS_BYTES_MAX (512 * 1024)

struct counted_link {
	struct counted_files all;
	const char *linker;
	struct link_command command;
	bool has_own_folders; /* the command knows those that the linker searches by itself */
	VEC(size_t) file_of;  /* by input; SIZE_MAX: none */
	char *left_objects; /* a file that tells of objects that are not counted; NULL: there are none */
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

static void search_own_folders(void *context)
{
	struct counted_link *l = context;

	if (!l->has_own_folders && !l->command.only_given_folders)
		search_folders(l->linker, &l->command.own_folders);
	l->has_own_folders = true;
}

static void find_inputs(struct counted_link *l)
{
	link_command_find(&l->command);
	if (!link_command_misses(&l->command))
		return;
	search_own_folders(l);
	link_command_find(&l->command);
}

/* Again when a script has told of folders: what was found stays. */
static void open_inputs(struct counted_link *l)
{
	vec_ensure_zero(&l->file_of, l->command.inputs.n);
	for (size_t i = 0; i < l->command.inputs.n; i++) {
		const struct link_input *input = &l->command.inputs.v[i];
		bool is_wanted = input->path && !input->is_raw;
		size_t n = l->all.files.n;

		l->file_of.v[i] = is_wanted ? counted_files_open(&l->all, input->path) : SIZE_MAX;
		if (l->file_of.v[i] != n)
			continue;
		l->all.files.v[n].is_static = input->is_static;
		l->all.files.v[n].is_library = input->is_library;
	}
}

static void open_files(struct counted_link *l)
{
	struct counted_scripts scripts = {&l->all, &l->command, search_own_folders, l};

	open_inputs(l);
	while (counted_scripts_open(&scripts)) {
		link_command_find(&l->command);
		open_inputs(l);
	}
	counted_scripts_tell(&scripts);
}

/* ---- what is left alone ---- */

/* Objects made for link-time optimisation. */
static void tell_lto(const struct counted_link *l)
{
	const char *first = NULL;
	uint64_t n = 0;

	for (size_t i = 0; i < l->all.files.n; i++) {
		const struct link_file *f = &l->all.files.v[i].file;

		n += f->n_lto;
		if (f->n_lto && !first)
			first = f->path;
	}
	if (n && !l->all.arguments->quiet)
		fprintf(stderr,
			"weir: '%s': %" PRIu64
			" object%s made for link-time optimisation (the first: '%s'): not "
			"counted (compile with -fno-lto)\n",
			l->command.output, n, n == 1 ? "" : "s", first);
}

/* An object by which the reports of the program tell of what is left alone. */
static void write_left_objects(struct counted_link *l)
{
	VEC(struct left_object) left = {0};
	struct buf object = {0};

	for (size_t i = 0; i < l->all.files.n; i++) {
		const struct counted_file *f = &l->all.files.v[i];

		if (f->file.n_lto)
			vec_push(&left,
				((struct left_object){f->file.path, INSERT_REASON_LTO, NULL}));
		if (f->failure)
			vec_push(&left, ((struct left_object){
						f->file.path, INSERT_REASON_OBJECT, f->failure}));
	}
	if (left.n) {
		left_objects_write(left.v, left.n, &object);
		l->left_objects = counted_files_store(&l->all, buf_span(&object), "left.o");
	}
	vec_release(&left);
	buf_release(&object);
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
	tell_lto(l);
	counted_files_insert(&l->all);
	for (size_t i = 0; i < l->all.files.n; i++) {
		struct counted_file *f = &l->all.files.v[i];

		insert_setup_match(&l->all.setup, &f->report);
		if (f->copy)
			counted_files_say(&l->all, f->file.path, &f->report);
		else if (l->all.arguments->verbose && !counted_file_is_inserted(f) &&
			 f->file.kind != LINK_FILE_SCRIPT && f->file.kind != LINK_FILE_LTO_COUNTED)
			fprintf(stderr, "weir: '%s': left as it is: %s\n", f->file.path,
				why_left(&f->file));
	}
	counted_scripts_insert(&(struct counted_scripts){&l->all, &l->command, NULL, NULL});
	write_left_objects(l);
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
	struct link_additions additions = {.library = library,
		.object = l->left_objects,
		.object_symbol = LEFT_OBJECTS_SYMBOL};
	VEC(char *) replaced = {0};
	struct link_words words = {0};
	int status;

	for (size_t i = 0; i < l->file_of.n; i++)
		vec_push(&replaced,
			l->file_of.v[i] == SIZE_MAX ? NULL : l->all.files.v[l->file_of.v[i]].copy);
	link_command_rewrite(&l->command, replaced.v, &additions, &words);
	status = run_linker(l->linker, &words);
	vec_release(&replaced);
	link_words_release(&words);
	if (status == 0)
		note_link(l);
	return status;
}

/* With our program in the place of gcc's lto-wrapper. */
static int run_optimised(struct counted_link *l, const char *library)
{
	struct lto_link lto;
	struct err err = {0};
	int status;

	if (lto_link_begin(&lto, &l->all, &l->command, &err) < 0)
		return command_fail(&err);
	status = run_counted(l, library);
	lto_link_end(&lto, &l->all, l->command.output);
	return status;
}

static int link_files(struct counted_link *l, const char *library)
{
	enum link_lto way = lto_link_way(&l->command, l->linker);
	struct err err = {0};
	int status;

	l->all.names.lto = way;
	l->all.setup.options.leaves_lto = way != LINK_LTO_NO_PLUGIN;
	find_inputs(l);
	open_files(l);
	insert_files(l);
	status = way == LINK_LTO_COUNTED ? run_optimised(l, library) : run_counted(l, library);
	/* Of a build that links several programs the next one may have it: no reason to fail. */
	if (status == 0 && insert_setup_unmatched(&l->all.setup, &err))
		fprintf(stderr, "weir: '%s': %s\n", l->command.output, err.text);
	return status;
}

static int link_counted(struct counted_link *l)
{
	char *library = own_file_find(LIBRARY_BUILT, LIBRARY_INSTALLED);
	struct err err = {0};
	int status = STATUS_FAILED;

	if (!library) {
		fputs("weir: " LIBRARY_BUILT ": is not beside the program (make builds it)\n",
			stderr);
	} else if (counted_files_begin(&l->all, &err) < 0) {
		status = command_fail(&err);
	} else {
		status = link_files(l, library);
		counted_files_end(&l->all);
	}
	free(library);
	return status;
}

static void release(struct counted_link *l)
{
	counted_files_release(&l->all);
	vec_release(&l->file_of);
	link_command_release(&l->command);
	free(l->left_objects);
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
	struct counted_link l = {.linker = linker};
	struct err err = {0};
	const char *why_not;
	int status = counted_files_init(&l.all, a);

	if (status != STATUS_DONE)
		return status;
	if (link_command_read(&l.command, args, n, &err) < 0) {
		counted_files_release(&l.all);
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
