/* SPDX-License-Identifier: MIT */
/*
 * weir count -- CMD: counts of a program as it is (count_run.c).
 *
 * weir count LINK-COMMAND: runs a command (a compiler driver, a linker, make) so that every linker it calls is
 * this program under another name, which puts counting code into what is linked (count_link.c).
 *
 * A folder with links ld, ld.bfd, ld.gold, cc, ... to this program goes in front of COMPILER_PATH,
 * where gcc and clang look for linkers, and in front of PATH. A driver that is called directly gets
 * it by -B too, in front of its own -B options.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/count_link.h"
#include "cmd/count_run.h"
#include "insert/link_command.h"
#include "process/own_file.h"

#define LINKERS_BUILT	  "libexec/weir"
#define LINKERS_INSTALLED "../libexec/weir"

static const struct option_spec count_options[] = {
	{'o', "output", OPTION_TEXT, "FILE",
		"of a program: write the counts there (default trace.weir)", INSERT_OPTION(output)},
	{'p', "pid", OPTION_TEXT, "PID", "count running processes; a comma list",
		INSERT_OPTION(pids)},
	{0, "duration", OPTION_SECONDS, "S", "of a program: end the counting after S seconds",
		INSERT_OPTION(duration_s)},
	INSERT_OPTION_ROWS,
	{0, "no-cache", OPTION_FLAG, NULL, "insert anew, keep nothing for the next link",
		INSERT_OPTION(no_cache)},
	{'v', "verbose", OPTION_FLAG, NULL, "what was inserted, what was left alone and why",
		INSERT_OPTION(verbose)},
	{'q', "quiet", OPTION_FLAG, NULL, "no sentences about what was left alone",
		INSERT_OPTION(quiet)},
	{0},
};

/* ---- which kind of command ---- */

/* "x86_64-linux-gnu-gcc-12" -> "gcc" */
static char *tool_name(const char *path)
{
	char *name = mem_strdup(path_base_name(path));
	char *dash = strrchr(name, '-');
	char *result;

	if (dash && dash[1] && strspn(dash + 1, "0123456789.") == strlen(dash + 1))
		*dash = 0;
	dash = strrchr(name, '-');
	result = mem_strdup(dash ? dash + 1 : name);
	free(name);
	return result;
}

bool is_driver_name(const char *path)
{
	static const char *const drivers[] = {
		"cc", "c++", "gcc", "g++", "clang", "clang++", "gfortran", "gdc", "flang"};
	char *name = tool_name(path);
	bool is = false;

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		is |= !strcmp(name, drivers[i]);
	free(name);
	return is;
}

bool is_linker_name(const char *path)
{
	char *name = tool_name(path);
	bool is = !strcmp(name, "ld") || !strncmp(name, "ld.", 3);

	free(name);
	return is;
}

/* ---- the environment of the command ---- */

static void put_in_front(const char *variable, const char *folder)
{
	const char *old = getenv(variable);
	char *value = old && *old ? mem_printf("%s:%s", folder, old) : mem_strdup(folder);

	setenv(variable, value, 1);
	free(value);
}

static void pass_options(char **words, size_t n)
{
	struct buf text = {0};

	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s\n", words[i]);
	setenv(COUNT_ENV_OPTIONS, buf_text(&text), 1);
	buf_release(&text);
}

/* A file without a name that linkers within the command find through /proc. -1: a command around
 * this one has it, or there is none. */
static int pass_notes_file(void)
{
	const char *outer = getenv(COUNT_ENV_NOTES);
	char *path;
	int fd;

	if (outer && access(outer, W_OK) == 0)
		return -1;
	fd = memfd_create("weir-count", MFD_CLOEXEC);
	path = mem_printf("/proc/%d/fd/%d", (int)getpid(), fd);
	if (fd >= 0)
		setenv(COUNT_ENV_NOTES, path, 1);
	else
		unsetenv(COUNT_ENV_NOTES);
	free(path);
	return fd;
}

/* ---- compiler drivers ---- */

/* A driver that we run may be one of our own links, and gets its words a second time. */
static bool is_below(const char *path, const char *folder)
{
	return !strncmp(path, folder, strlen(folder));
}

/* An option that names the linker by its path: ours takes its place, and is told of it. */
static char *replaced_linker(const char *word, const char *linkers)
{
	static const char *const options[] = {"--ld-path=", "-fuse-ld="};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(options[i]);

		if (strncmp(word, options[i], n) || (i == 1 && word[n] != '/') || !word[n] ||
			is_below(word + n, linkers))
			continue;
		setenv(COUNT_ENV_LINKER, word + n, 1);
		return mem_printf("%s%s/ld", options[i], linkers);
	}
	return NULL;
}

/* The folders of the driver's own -B options: the real linker may be there. */
static void pass_program_folders(char **argv, const char *linkers)
{
	struct buf folders = {0};

	for (; *argv; argv++) {
		const char *folder = strncmp(*argv, "-B", 2) ? NULL : *argv + 2;

		if (folder && !*folder && argv[1])
			folder = argv[1];
		if (folder && *folder && !is_below(folder, linkers))
			buf_printf(&folders, "%s%s", folders.n ? ":" : "", folder);
	}
	if (folders.n)
		setenv(COUNT_ENV_PATH, buf_text(&folders), 1);
	buf_release(&folders);
}

static int run_driver(char **argv, const char *linkers)
{
	struct link_words words = {0};
	int status;

	pass_program_folders(argv + 1, linkers);
	vec_push(&words, mem_strdup(argv[0]));
	vec_push(&words, mem_strdup("-B"));
	vec_push(&words, mem_printf("%s/", linkers));
	for (char **word = argv + 1; *word; word++) {
		char *other = replaced_linker(*word, linkers);

		vec_push(&words, other ? other : mem_strdup(*word));
	}
	vec_push(&words, NULL);
	status = count_run_child(argv[0], words.v);
	link_words_release(&words);
	return status;
}

/* A build tool that calls a compiler to link may name a folder of linkers before ours (rustc does):
 * so the compilers are in our folder, too. */
int count_driver_main(char **argv)
{
	const char *name = path_base_name(argv[0]);
	char *linkers = own_file_find(LINKERS_BUILT, LINKERS_INSTALLED);
	char *driver = count_find_program(getenv("PATH"), name);
	int status = STATUS_FAILED;

	if (!driver || !linkers) {
		fprintf(stderr, "weir: '%s': there is no such program in PATH\n", name);
	} else {
		argv[0] = driver;
		status = run_driver(argv, linkers);
	}
	free(driver);
	free(linkers);
	return status;
}

/* ---- the command ---- */

/* `weir count ld ...`: no need to be called by anybody. */
static int run_linker(int argc, char **argv, const struct insert_arguments *a)
{
	char *found = strchr(argv[0], '/') ? NULL : count_find_program(getenv("PATH"), argv[0]);
	int status = count_link(found ? found : argv[0], argv + 1, (size_t)argc - 1, a);

	free(found);
	return status;
}

static int run_command(char **argv, const struct insert_arguments *a, const char *linkers)
{
	int notes = pass_notes_file(), status;
	struct stat st;

	put_in_front("COMPILER_PATH", linkers);
	put_in_front("PATH", linkers);
	unsetenv(COUNT_ENV_LINKER);
	unsetenv(COUNT_ENV_PATH);
	status = is_driver_name(argv[0]) ? run_driver(argv, linkers)
					 : count_run_child(argv[0], argv);
	if (status == 0 && !a->quiet && notes >= 0 && fstat(notes, &st) == 0 && !st.st_size)
		fprintf(stderr,
			"weir: '%s' linked nothing: there is nothing that counts (weir count is put in front of "
			"the link command)\n",
			argv[0]);
	if (notes >= 0)
		close(notes);
	return status;
}

static int run_in_setup(int argc, char **argv, const struct insert_arguments *a)
{
	char *linkers;
	int status;

	if (is_linker_name(argv[0]))
		return run_linker(argc, argv, a);
	linkers = own_file_find(LINKERS_BUILT, LINKERS_INSTALLED);
	if (!linkers) {
		fprintf(stderr,
			"weir: " LINKERS_BUILT ": is not beside the program (make builds it)\n");
		return STATUS_FAILED;
	}
	status = run_command(argv, a, linkers);
	free(linkers);
	return status;
}

/* ---- programs as they are ---- */

static int count_program(
	const struct command *command, const struct insert_arguments *a, int argc, char **argv)
{
	struct translate_options o = {.output = a->output ? a->output : "trace.weir",
		.command = argc ? argv : NULL,
		.duration_s = a->duration_s};
	pid_t pids[PID_LIST_MAX];
	int status = STATUS_DONE;

	if (a->pids && argc)
		return options_usage_error(command, "a command and -p exclude each other");
	if (!*o.output)
		return options_usage_error(command, "--output: no file named");
	if (a->pids)
		status = pid_list_parse(command, a->pids, pids, &o.n_pids);
	o.pids = pids;
	return status ? status
		      : count_run(&o, a->quiet	   ? RECORD_QUIET
				      : a->verbose ? RECORD_VERBOSE
						   : RECORD_NORMAL);
}

static int count_links(const struct command *command, const struct insert_arguments *a, int argc,
	char **argv, char **options)
{
	struct insert_setup setup;
	int status;

	if (argc < 1)
		return options_usage_error(command,
			"nothing to count: give a link command, or -- and a command, or -p PID");
	status = insert_setup_init(&setup, command, a);
	if (status != STATUS_DONE)
		return status;
	insert_setup_release(&setup);
	pass_options(options, (size_t)(argv - options));
	return run_in_setup(argc, argv, a);
}

static int run(const struct command *command, int argc, char **argv)
{
	static const struct option_user users[] = {
		{"a link command",
			"only skip counts metrics cpu time-foreign os-calls no-cache verbose quiet"},
		{"a program behind -- or -p", "output pid duration verbose quiet"},
	};
	char **words = mem_dup(argv, ((size_t)argc + 1) * sizeof(argv[0]));
	size_t n_words = (size_t)argc;
	struct insert_arguments a = {0};
	uint64_t given;
	int status;

	if (options_begin_given(command, &a, &argc, &argv, &status, &given)) {
		size_t first = n_words - (size_t)argc; /* operand */
		bool is_program = a.pids || (first > 1 && !strcmp(words[first - 1], "--"));

		if (options_choose_user(command, given, users[is_program].name, "", users, 2) < 0)
			status = STATUS_USAGE;
		else if (is_program && !a.pids && !argc)
			status = options_usage_error(
				command, "nothing to count: give a command or -p PID");
		else
			status = is_program
					 ? count_program(command, &a, argc, argv)
					 : count_links(command, &a, argc, words + first, words + 1);
	}
	insert_arguments_release(&a);
	free(words);
	return status;
}

bool count_options_from_environment(struct insert_arguments *a, struct link_words *words)
{
	const char *text = getenv(COUNT_ENV_OPTIONS);
	enum options_result result;
	char **argv;
	int argc;

	vec_push(words, mem_strdup("count"));
	while (text && *text) {
		size_t n = strcspn(text, "\n");

		vec_push(words, mem_strndup(text, n));
		text += n + (text[n] == '\n');
	}
	vec_push(words, NULL);
	argc = (int)words->n - 1;
	/* Parsing puts the operands in front, so it gets a copy. */
	argv = mem_dup(words->v, words->n * sizeof(words->v[0]));
	result = options_parse(&command_count, a, &argc, &argv, NULL);
	free(argv);
	return result == OPTIONS_RUN;
}

/* Where a compiler would have found it: named by the driver's options, in COMPILER_PATH, which gcc
 * sets for its parts, or in PATH. */
static char *real_linker(const char *name)
{
	const char *given = getenv(COUNT_ENV_LINKER);
	char *path;

	if (given && *given)
		return mem_strdup(given);
	path = count_find_program(getenv(COUNT_ENV_PATH), name);
	if (!path)
		path = count_find_program(getenv("COMPILER_PATH"), name);
	return path ? path : count_find_program(getenv("PATH"), name);
}

int count_link_main(int argc, char **argv)
{
	const char *name = path_base_name(argv[0]);
	struct insert_arguments a = {0};
	struct link_words words = {0};
	char *linker = real_linker(name);
	int status = STATUS_FAILED;

	if (!linker)
		fprintf(stderr, "weir: '%s': there is no such linker in PATH\n", name);
	else if (!count_options_from_environment(&a, &words))
		status = STATUS_USAGE;
	else
		status = count_link(linker, argv + 1, (size_t)argc - 1, &a);
	link_words_release(&words);
	insert_arguments_release(&a);
	free(linker);
	return status;
}

const struct command command_count = {
	.name = "count",
	.synopsis = "[OPTIONS] -- CMD ARGS...\n"
		    "[OPTIONS] -p PID[,PID...]\n"
		    "[OPTIONS] LINK-COMMAND...",
	.summary = "count exactly what a program executes: as it is, or linked for that",
	.options = count_options,
	.stops_at_operand = true,
	.details =
		"Behind -- stands a command that is run as it is, and counted with all that it starts.\n"
		"Its exit status is passed on; an older trace of the same name is kept as FILE.old.\n"
		"LINK-COMMAND is any command that links: gcc, g++, clang, ld, make, ... The objects and archives\n"
		"that its linkers get are replaced by copies with counting code (kept in $WEIR_CACHE or\n"
		"~/.cache/weir/count); nothing else changes.\n"
		"The program writes NAME.weir (NAME of the program) into its working directory, or the file\n"
		"that $WEIR_OUT names; 'weir report flat NAME.weir' shows it.\n"
		"Calls of shared libraries and of the system are shown as functions of their own; what a\n"
		"function and its callees take together is in the column Cum.\n",
	.run = run,
};
