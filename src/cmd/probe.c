/* SPDX-License-Identifier: MIT */
/* weir probe: options, scripts, compiling; what is done with the stream is in probe_*.c. */
#include "cmd/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output.h"
#include "cmd/commands.h"
#include "probe/compile/compile.h"
#include "probe/stream/stream_file.h"
#include "process/launch.h"
#include "symbols/debug_file.h"

#define PID_MAX		 4194304 /* of Linux */
#define INPUT_BYTES_MAX	 ((size_t)256 << 20)
#define STRING_BYTES_MAX 10240
#define RING_KB_MAX	 (1u << 20)
#define ENTRIES_MAX	 (1u << 28)

#define AT(field) offsetof(struct probe_arguments, field)
static const struct option_spec probe_options[] = {
	{'e', "script", OPTION_TEXTS, "SCRIPT", "the text of a script; each one counts",
		AT(scripts)},
	{'i', "include", OPTION_TEXTS, "FILE", "a script's file, besides others; each one counts",
		AT(files)},
	{'c', "command", OPTION_TEXT, "CMD", "run CMD and trace it and its children only",
		AT(command)},
	{'p', "pid", OPTION_TEXTS, "PID[,...]", "trace these processes and their children only",
		AT(pids)},
	{'l', "list", OPTION_FLAG, NULL, "list trace points; with -v their arguments, too",
		AT(list)},
	{'f', "format", OPTION_TEXT, "text|json", "how records and maps are written (text)",
		AT(format)},
	{'o', "program", OPTION_TEXT, "FILE", "write the compiled script; nothing is run",
		AT(stream_file)},
	{'O', "output", OPTION_TEXT, "FILE", "write what is printed there", AT(output)},
	{0, "dump", OPTION_FLAG, NULL, "show the code of both modes; nothing is run", AT(dump)},
	{0, "dry-run", OPTION_FLAG, NULL,
		"say where the points are and what they cost; nothing is run", AT(dry_run)},
	{'d', "duration", OPTION_SECONDS, "S", "end after S seconds", AT(duration_s)},
	{0, "control", OPTION_TEXT, "FIFO", "read commands there: enable N, disable N, end",
		AT(control)},
	{0, "strict", OPTION_FLAG, NULL, "end with status 3 as soon as anything is lost",
		AT(strict)},
	{0, "strlen", OPTION_NUMBER, "N", "bytes of str() without a length (128)",
		AT(string_bytes)},
	{0, "max-entries", OPTION_NUMBER, "N", "entries of a map (16384)", AT(max_entries)},
	{0, "ring", OPTION_NUMBER, "KB", "size of the ring for records (8192)", AT(ring_kb)},
	{0, "unsafe", OPTION_FLAG, NULL, "allow system()", AT(unsafe)},
	{0, "without", OPTION_TEXT, "LIST",
		"use the next best way in place of multi, btf, sleep, task-storage, turns",
		AT(without)},
	{0, "like", OPTION_TEXT, "0.17|0.26",
		"print what the bpftrace of that version prints (0.26)", AT(like)},
	{'q', "quiet", OPTION_FLAG, NULL, "say nothing but errors and losses", AT(quiet)},
	{'v', "verbose", OPTION_FLAG, NULL, "say what is done", AT(verbose)},
	{0, "no-warnings", OPTION_FLAG, NULL, "say nothing about what is only a warning",
		AT(no_warnings)},
	{0, "probe-filter", OPTION_TEXT, "REGEX",
		"leave out trace points whose text does not match; begin, end and error stay",
		AT(point_filter)},
	{0, "debuginfo", OPTION_TEXTS, "DIR", "look there for separate debug files, first",
		AT(debug_folders)},
	HOST_OPTIONS(AT(host)),
	{0, "bench", OPTION_FLAG, NULL, "time the clauses bench:NAME, and end", AT(bench)},
	{0, "stream", OPTION_TEXT, "FILE", option_old_name, AT(stream_file)},
	/* What users of bpftrace type. */
	{0, "cmd", OPTION_TEXT, "CMD", option_old_name, AT(command)},
	{'B', "buffering", OPTION_TEXT, "none|line|full", option_old_name, AT(foreign.buffering)},
	{'I', "include-dir", OPTION_TEXTS, "DIR", option_old_name, AT(foreign.folders)},
	{'k', "runtime-warnings", OPTION_FLAG, NULL, option_old_name, AT(foreign.warns)},
	{0, "info", OPTION_FLAG, NULL, option_old_name, AT(foreign.info)},
	{0, "mode", OPTION_TEXT, "bench", option_old_name, AT(foreign.mode)},
	{0, "usdt-file-activation", OPTION_FLAG, NULL, option_old_name, AT(foreign.semaphores)},
	{'V', "version", OPTION_FLAG, NULL, option_old_name, AT(foreign.version)},
	{0},
};

/* ---- arguments ---- */

/* A sentence of the bpftrace that --like names, for those who look for it. */
static int __attribute__((format(printf, 1, 2))) refuse_as_before(const char *fmt, ...)
{
	va_list args;

	fputs("ERROR: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return STATUS_FAILED;
}

static int refuse_pid(const struct probe_setup *setup, const char *list)
{
	if (setup->like == STREAM_LIKE_0_17)
		return refuse_as_before("pid '%s' is not a valid decimal number", list);
	return options_usage_error(setup->command, "-p: '%s' is not a list of process ids", list);
}

static int take_pids(struct probe_setup *setup)
{
	for (size_t i = 0; i < setup->a->pids.n; i++) {
		const char *list = setup->a->pids.v[i], *p = list;

		do {
			char *end;
			long pid;

			errno = 0;
			pid = strtol(p, &end, 10);
			if (errno || end == p || pid <= 0 || pid > INT32_MAX ||
				(*end && *end != ','))
				return refuse_pid(setup, list);
			if (setup->like == STREAM_LIKE_0_17 && pid > PID_MAX)
				return refuse_as_before(
					"pid '%ld' out of valid pid range [1,%d]", pid, PID_MAX);
			vec_push(&setup->pids, (pid_t)pid);
			p = end + (*end == ',');
		} while (*p);
	}
	return STATUS_DONE;
}

static int take_command(struct probe_setup *setup)
{
	struct err err = {0};

	if (!setup->a->command)
		return STATUS_DONE;
	if (setup->like == STREAM_LIKE_0_17)
		probe_split_blanks(setup->a->command, &setup->words);
	else if (!probe_split_words(setup->a->command, &setup->words))
		return options_usage_error(setup->command, "-c: a quote is not closed");
	if (!setup->words.n)
		return options_usage_error(setup->command, "-c: no command");
	if (!setup->a->host.host && launch_find(setup->words.v[0], &setup->program, &err) < 0)
		return command_fail(&err);
	vec_push(&setup->words, NULL);
	return STATUS_DONE;
}

static int take_numbers(const struct probe_setup *setup)
{
	const struct probe_arguments *a = setup->a;

	if (a->string_bytes > STRING_BYTES_MAX)
		return options_usage_error(
			setup->command, "--strlen: must be at most %d", STRING_BYTES_MAX);
	if (a->ring_kb > RING_KB_MAX)
		return options_usage_error(
			setup->command, "--ring: must be at most %u", RING_KB_MAX);
	if (a->max_entries > ENTRIES_MAX)
		return options_usage_error(
			setup->command, "--max-entries: must be at most %u", ENTRIES_MAX);
	return STATUS_DONE;
}

/* True when one was given that is answered at once. */
static bool answer_foreign(const struct probe_arguments *a)
{
	if (a->foreign.version)
		printf(a->like ? "weir %s, like bpftrace v%s\n" : "weir %s\n", WEIR_VERSION,
			a->like);
	else if (a->foreign.info)
		puts("'weir doctor' tells what this machine can do, and what is missing");
	return a->foreign.version || a->foreign.info;
}

static int take_foreign(const struct probe_setup *setup)
{
	static const char *const modes[] = {"none", "line", "full", NULL}, *const kinds[] = {
										   "bench", NULL};
	const char *mode = setup->a->foreign.buffering;
	size_t i;

	if (mode && options_choose(setup->command, "-B", mode, modes, &i) != STATUS_DONE)
		return STATUS_USAGE;
	mode = setup->a->foreign.mode;
	return mode ? options_choose(setup->command, "--mode", mode, kinds, &i) : STATUS_DONE;
}

static int take_filter(struct probe_setup *setup)
{
	const char *filter = setup->a->point_filter;
	char why[200];
	int rc;

	if (!filter)
		return STATUS_DONE;
	rc = regcomp(&setup->filter, filter, REG_EXTENDED | REG_NOSUB);
	if (rc == 0) {
		setup->has_filter = true;
		return STATUS_DONE;
	}
	regerror(rc, &setup->filter, why, sizeof(why));
	return options_usage_error(setup->command, "--probe-filter: '%s': %s", filter, why);
}

static int take_without(const struct probe_setup *setup)
{
	static const char *const words[] = {"multi", "btf", "sleep", "task-storage", "turns"};
	enum { N_WORDS = sizeof(words) / sizeof(words[0]) };
	const char *p = setup->a->without ? setup->a->without : "";

	while (*p) {
		size_t n = strcspn(p, ","), i = 0;

		while (i < N_WORDS && (strlen(words[i]) != n || memcmp(words[i], p, n)))
			i++;
		if (i == N_WORDS)
			return options_usage_error(setup->command,
				"--without: '%.*s' is not one of multi, btf, sleep, task-storage, turns",
				(int)n, p);
		p += n + (p[n] == ',');
	}
	return STATUS_DONE;
}

static int fail_output(const struct probe_setup *setup)
{
	struct err err = {0};

	err_sys(&err, errno, "'%s': cannot be written", setup->a->output);
	return command_fail(&err);
}

/* The file loses what it had when there is something to write: see begin_output. */
static int take_output(struct probe_setup *setup)
{
	int fd;

	setup->out = stdout;
	if (!setup->a->output)
		return STATUS_DONE;
	fd = open(setup->a->output, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	setup->out = fd < 0 ? NULL : fdopen(fd, "w");
	return setup->out ? STATUS_DONE : fail_output(setup);
}

static int take_like(struct probe_setup *setup)
{
	static const char *const words[N_STREAM_LIKES + 1] = {"0.26", "0.17", NULL};
	size_t i = 0;
	int status = STATUS_DONE;

	if (setup->a->like)
		status = options_choose(setup->command, "--like", setup->a->like, words, &i);
	setup->like = (enum stream_like)i;
	return status;
}

/* What is a file of this machine, and is written while the script runs, stays here. */
static int check_host(const struct probe_setup *setup)
{
	const struct probe_arguments *a = setup->a;
	const char *option = a->output ? "-O" : a->stream_file ? "-o" : a->control ? "--control" : NULL;

	if (a->host.host && option)
		return options_usage_error(setup->command, "--host and %s exclude each other", option);
	return host_check(setup->command, &a->host);
}

static int setup_init(struct probe_setup *setup)
{
	const struct probe_arguments *a = setup->a;
	int status = take_like(setup);

	if (status != STATUS_DONE)
		return status;
	if (a->format && strcmp(a->format, "text") && strcmp(a->format, "json") &&
		setup->like == STREAM_LIKE_0_17)
		return refuse_as_before("Invalid output format \"%s\"", a->format);
	if (a->format && strcmp(a->format, "text") && strcmp(a->format, "json"))
		return options_usage_error(
			setup->command, "-f: '%s' is neither text nor json", a->format);
	setup->is_json = a->format && !strcmp(a->format, "json");
	status = take_pids(setup);
	if (status == STATUS_DONE)
		status = take_numbers(setup);
	if (status == STATUS_DONE)
		status = take_without(setup);
	if (status == STATUS_DONE)
		status = take_foreign(setup);
	if (status == STATUS_DONE)
		status = take_filter(setup);
	if (status == STATUS_DONE)
		status = take_command(setup);
	if (status == STATUS_DONE)
		status = take_output(setup);
	setup->find = (struct find_options){
		.pids = setup->pids.v, .n_pids = setup->pids.n, .command = setup->program};
	return status;
}

static int setup_release(struct probe_setup *setup, int status)
{
	if (setup->out && setup->out != stdout && fclose(setup->out) && status == STATUS_DONE)
		status = fail_output(setup);
	if (setup->has_filter)
		regfree(&setup->filter);
	vec_release_all(&setup->words);
	vec_release(&setup->pids);
	free(setup->program);
	return status;
}

/* ---- scripts and streams ---- */

/* The bytes of a script or stream; "-" is standard input. Refuses what was meant for -c, before it gives
 * thousands of messages. */
static int read_input(const char *path, struct buf *bytes, bool *is_stream, struct err *err)
{
	int rc = file_read(bytes, strcmp(path, "-") ? path : "/dev/stdin", INPUT_BYTES_MAX, err);

	*is_stream = rc >= 0 && stream_file_is(buf_span(bytes));
	if (rc < 0 || *is_stream)
		return rc < 0 ? rc : 0;
	if (bytes->n >= 4 && !memcmp(bytes->p, "\177ELF", 4))
		return err_set(err, ERR_FORMAT,
			"'%s': is a program, not a script (-c '%s' runs it)", path, path);
	if (bytes->n && memchr(bytes->p, 0, bytes->n))
		return err_set(err, ERR_FORMAT, "'%s': is not a text, so it is no script", path);
	return 0;
}

static int add_file(struct sources *sources, const char *path, struct err *err)
{
	struct buf bytes = {0};
	bool is_stream;
	int rc = read_input(path, &bytes, &is_stream, err);

	if (is_stream)
		rc = err_set(err, ERR_FORMAT, "'%s': is a trace stream, not a script", path);
	if (rc >= 0)
		sources_add(sources, path, buf_span(&bytes));
	buf_release(&bytes);
	return rc;
}

/* bpftrace looks for those of --include where C compilers do. */
static bool is_missing_header(const struct probe_arguments *a, const char *path)
{
	const char *ending = strrchr(path, '.');

	if (!ending || strcmp(ending, ".h") || access(path, F_OK) == 0)
		return false;
	if (!a->quiet && !a->no_warnings)
		fprintf(stderr,
			"weir: --include %s: headers of C are not looked for: types are those of the traced "
			"programs and of the kernel\n",
			path);
	return true;
}

static int add_sources(const struct probe_setup *setup, struct sources *sources, struct err *err)
{
	const struct probe_arguments *a = setup->a;

	for (size_t i = 0; i < a->scripts.n; i++) {
		char *name = i ? mem_printf("-e %zu", i + 1) : mem_strdup("-e");

		sources_add(sources, name,
			(struct span){(const uint8_t *)a->scripts.v[i], strlen(a->scripts.v[i])});
		free(name);
	}
	for (size_t i = 0; i < a->files.n; i++)
		if (!is_missing_header(a, a->files.v[i]) &&
			add_file(sources, a->files.v[i], err) < 0)
			return err->code;
	return 0;
}

void probe_print_messages(const struct probe_setup *setup, const struct diags *diags)
{
	struct buf text = {0};

	if (!diags->v.n || (diags->hides_warnings && !diags->n_errors))
		return;
	if (setup->is_json)
		diags_json(diags, &text);
	else
		diags_text(diags, &text);
	fwrite(text.p, 1, text.n, stderr);
	buf_release(&text);
}

static size_t count_left_out(const struct diags *diags)
{
	size_t n = 0;

	for (size_t i = 0; i < diags->v.n; i++)
		n += !strcmp(diags->v.v[i].tag, "left-out");
	return n;
}

/* WEIR_PROBE_CLOCK=@ts: time series take the time out of a map, so that a test knows it. */
static const char *clock_of_tests(void)
{
	const char *map = getenv("WEIR_PROBE_CLOCK");

	return map && map[0] == '@' ? map : NULL;
}

/* What stands behind the script: "--name=value" and "--name" are for getopt(), the others are $1, $2, ... */
struct script_words {
	struct option_texts words, named;
};

static void split_words(struct script_words *w, char **argv, int argc)
{
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "--", 2) && argv[i][2])
			vec_push(&w->named, argv[i]);
		else
			vec_push(&w->words, argv[i]);
}

static int compile(const struct probe_setup *setup, struct sources *sources,
	const struct script_words *words, struct stream **out)
{
	struct buf usage = {0};
	const struct probe_arguments *a = setup->a;
	struct compile_options options = {.find = setup->find,
		.string_bytes = (uint32_t)a->string_bytes,
		.is_unsafe = a->unsafe,
		.is_kept = a->stream_file != NULL,
		.wants_all_modes = a->stream_file || a->dump,
		.clock_map = clock_of_tests(),
		.parameters = {words->words.v, words->words.n, words->named.v, words->named.n,
			true},
		.usage = &usage,
		.like = a->like ? &setup->like : NULL,
		.point_filter = setup->has_filter ? &setup->filter : NULL,
		.environment = (const char *const *)environ};
	struct diags diags;
	int status = STATUS_DONE;

	diags_init(&diags, sources);
	diags.hides_warnings = a->no_warnings;
	*out = compile_scripts(sources, &options, &diags);
	if (!a->quiet || a->strict || diags.n_errors)
		probe_print_messages(setup, &diags);
	if (usage.n) {
		fwrite(usage.p, 1, usage.n, setup->out);
	} else if (!*out) {
		status = STATUS_FAILED;
	} else if (a->strict && count_left_out(&diags)) {
		fputs("weir: --strict: not started: something had to be left out\n", stderr);
		status = STATUS_LOSSES;
	}
	diags_release(&diags);
	buf_release(&usage);
	return status;
}

static int compile_with(const struct probe_setup *setup, struct sources *sources, char **argv,
	int argc, struct stream **out)
{
	struct script_words words = {0};
	int status;

	split_words(&words, argv, argc);
	status = compile(setup, sources, &words, out);
	vec_release(&words.words);
	vec_release(&words.named);
	return status;
}

static int load_stream(const char *path, struct span bytes, struct stream **out)
{
	struct err err = {0};

	if (stream_file_read(bytes, out, &err) >= 0)
		return STATUS_DONE;
	err_prefix(&err, "'%s'", path);
	return command_fail(&err);
}

static int refuse_word(const char *word)
{
	struct err err;

	err_set(&err, ERR_NOT_FOUND, "'%s': is neither a file nor a script (which has clauses: POINT { ... })", word);
	return command_fail(&err);
}

/* The first free word: a file with a script or a stream, or the script itself. */
static int take_word(const struct probe_setup *setup, struct sources *sources, const char *word,
	bool has_parameters, struct stream **out)
{
	bool is_file = !strcmp(word, "-") || access(word, F_OK) == 0, is_stream;
	struct buf bytes = {0};
	struct err err = {0};
	int status = STATUS_DONE;

	if (!is_file && strchr(word, '{')) {
		sources_add(sources, "-e", (struct span){(const uint8_t *)word, strlen(word)});
		return STATUS_DONE;
	}
	if (!is_file && setup->like == STREAM_LIKE_0_17)
		return refuse_as_before("failed to open file '%s': %s", word, strerror(errno));
	if (!is_file)
		return refuse_word(word);
	if (read_input(word, &bytes, &is_stream, &err) < 0)
		status = command_fail(&err);
	else if (!is_stream)
		sources_add(sources, word, buf_span(&bytes));
	else if (has_parameters)
		status = options_usage_error(setup->command,
			"'%s': the parameters of a trace stream were compiled into it", word);
	else
		status = load_stream(word, buf_span(&bytes), out);
	buf_release(&bytes);
	return status;
}

/* The stream that the command line means. */
static int make_stream(const struct probe_setup *setup, int argc, char **argv, struct stream **out)
{
	bool has_scripts = setup->a->scripts.n || setup->a->files.n;
	struct sources sources = {0};
	struct err err = {0};
	int status = STATUS_DONE, n_used = !has_scripts;

	if (!has_scripts && !argc)
		return options_usage_error(
			setup->command, "no script: give its text, a file, or -e");
	if (add_sources(setup, &sources, &err) < 0)
		status = command_fail(&err);
	else if (n_used)
		status = take_word(setup, &sources, argv[0], argc > 1, out);
	if (status == STATUS_DONE && !*out)
		status = compile_with(setup, &sources, argv + n_used, argc - n_used, out);
	sources_release(&sources);
	return status;
}

/* ---- what is done with it ---- */

/* What was written is read again: whoever gets the file must be able to. */
static int write_stream(const char *path, const struct stream *s)
{
	struct stream *again = NULL;
	struct buf bytes = {0};
	struct err err = {0};
	int rc;

	stream_file_write(s, &bytes);
	rc = stream_file_read(buf_span(&bytes), &again, &err);
	if (rc < 0)
		err_prefix(&err, "'%s': not written", path);
	else
		rc = output_check(path, &err);
	if (rc == 0)
		rc = file_replace(path, buf_span(&bytes), 0644, &err);
	stream_free(again);
	buf_release(&bytes);
	return rc < 0 ? command_fail(&err) : STATUS_DONE;
}

static void dump_stream(const struct probe_setup *setup, const struct stream *s)
{
	struct buf text = {0};

	stream_dump(s, &text);
	fwrite(text.p, 1, text.n, setup->out);
	buf_release(&text);
}

/* The script is good: what an earlier run wrote makes room. A device or pipe has nothing to cut. */
static int begin_output(const struct probe_setup *setup)
{
	struct stat st;

	if (setup->out == stdout || fstat(fileno(setup->out), &st) < 0 || !S_ISREG(st.st_mode) ||
		ftruncate(fileno(setup->out), 0) == 0)
		return STATUS_DONE;
	return fail_output(setup);
}

static int use_stream(const struct probe_setup *setup, const struct stream *s)
{
	const struct probe_arguments *a = setup->a;
	int status = begin_output(setup);

	if (status != STATUS_DONE)
		return status;
	if (a->stream_file)
		status = write_stream(a->stream_file, s);
	if (status == STATUS_DONE && a->dump)
		dump_stream(setup, s);
	if (status == STATUS_DONE && a->dry_run)
		status = probe_plan(setup, s);
	if (a->stream_file || a->dump || a->dry_run)
		return status;
	return probe_run(setup, s);
}

/* The first word may be the file of a script. */
static int list_points(const struct probe_setup *setup, int argc, char **argv)
{
	struct sources sources = {0};
	struct err err = {0};
	struct stat st;
	int status, n_used = 0;

	if (add_sources(setup, &sources, &err) >= 0 && !sources.v.n && argc &&
		stat(argv[0], &st) == 0 && S_ISREG(st.st_mode)) {
		n_used = 1;
		add_file(&sources, argv[0], &err);
	}
	status = err.code ? command_fail(&err)
			  : probe_list(setup, &sources, argv + n_used, (size_t)(argc - n_used));
	sources_release(&sources);
	return status;
}

/* On another machine. Files of scripts are read here, and what traces is found there. */
static int run_there(const struct probe_setup *setup, int argc, char **argv)
{
	const struct probe_arguments *a = setup->a;
	bool has_scripts = a->scripts.n || a->files.n;
	const char *word = !has_scripts && argc ? argv[0] : NULL;
	bool is_input = word && !strcmp(word, "-");
	bool is_file = is_input || (word && access(word, F_OK) == 0);

	if (!has_scripts && !argc && !a->list)
		return options_usage_error(setup->command, "no script: give its text, a file, or -e");
	if (word && !is_file && !a->list && !strchr(word, '{'))
		return refuse_word(word);
	return host_run(&(struct host_request){.command = setup->command,
		.from = a,
		.given = setup->given,
		.host = &a->host,
		.files = "include",
		.operands = argv,
		.n_operands = (size_t)argc,
		.first_is_file = is_file,
		.reads_input = a->command && !is_input});
}

static int run_with(struct probe_setup *setup, int argc, char **argv)
{
	struct stream *s = NULL;
	int status;

	if (setup->a->host.host)
		return run_there(setup, argc, argv);
	if (setup->a->list)
		return list_points(setup, argc, argv);
	status = make_stream(setup, argc, argv, &s);
	if (status == STATUS_DONE && s)
		status = use_stream(setup, s);
	stream_free(s);
	return status;
}

static int run_asked(struct probe_setup *setup, int argc, char **argv)
{
	int status = check_host(setup);

	if (status == STATUS_DONE)
		status = setup_init(setup);
	if (status == STATUS_DONE)
		status = run_with(setup, argc, argv);
	return setup_release(setup, status);
}

/* With --like the command line is one of bpftrace's, whose -o is the output. */
static void take_bpftrace_output(struct probe_arguments *a)
{
	if (!a->like || !a->stream_file)
		return;
	a->output = a->stream_file;
	a->stream_file = NULL;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct probe_arguments a = {0};
	struct probe_setup setup = {.command = command, .a = &a};
	int status;

	if (options_begin_given(command, &a, &argc, &argv, &status, &setup.given)) {
		take_bpftrace_output(&a);
		a.bench |= a.foreign.mode != NULL;
		debug_files_ask((const char *const *)a.debug_folders.v, a.debug_folders.n);
		status = answer_foreign(&a) ? STATUS_DONE : run_asked(&setup, argc, argv);
	}
	vec_release(&a.foreign.folders);
	vec_release(&a.debug_folders);
	vec_release(&a.scripts);
	vec_release(&a.files);
	vec_release(&a.pids);
	return status;
}

const struct command command_probe = {
	.name = "probe",
	.synopsis = "[OPTIONS] SCRIPT|FILE|PROGRAM [PARAMETER...]\n"
		    "[OPTIONS] -e SCRIPT [PARAMETER...]\n"
		    "[OPTIONS] -l [PATTERN[,...]|FILE]...",
	.summary = "run trace scripts over 32-bit and 64-bit programs at once",
	.options = probe_options,
	.details = "The first word is the script itself unless a file has that name. Example:\n"
		   "  weir probe 'uprobe:libc:malloc { @bytes[comm, bits] = hist(arg0); }'\n"
		   "Ctrl-C ends the run; maps are printed then.\n",
	.run = run,
};
