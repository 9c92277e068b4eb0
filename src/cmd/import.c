/* SPDX-License-Identifier: MIT */
/* weir import: text files, count files and step streams into a trace. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "cmd/commands.h"
#include "cmd/foreign_formats.h"
#include "cmd/open_trace.h"
#include "formats/import_events.h"
#include "steps/stream/step_stream.h"

struct import_arguments {
	const char *output;
	struct import_counts_options counts;
	struct foreign_options foreign;
};

static const struct option_spec import_options[] = {
	{'o', "output", OPTION_TEXT, "TRACE", "the trace to write (trace.weir)",
		offsetof(struct import_arguments, output)},
	COUNT_FILE_OPTIONS(struct import_arguments, counts),
	{0, "sysroot", OPTION_TEXT, "DIR", "perf: the files of the recorded machine are below it",
		offsetof(struct import_arguments, foreign.sysroot)},
	{0, "kallsyms", OPTION_TEXT, "FILE", "perf: the symbols of the recorded kernel",
		offsetof(struct import_arguments, foreign.kallsyms)},
	{0, "catalog", OPTION_TEXT_ONCE, "FILE", "perf: symbols from this merged symbol file first",
		offsetof(struct import_arguments, foreign.catalog)},
	{0, "metric", OPTION_TEXT, "NAME", "folded: what the numbers count",
		offsetof(struct import_arguments, foreign.metric)},
	{0, "unit", OPTION_TEXT, "UNIT", "folded: their unit: samples, bytes, ns, us, ms, s",
		offsetof(struct import_arguments, foreign.unit)},
	{0, "first", OPTION_TEXT, "WHAT",
		"folded: the first name of a stack is a thread's, or a function's (thread, function)",
		offsetof(struct import_arguments, foreign.first)},
	{0},
};

typedef int import_function(
	struct span text, const char *name, struct trace_writer *w, struct err *err);

static const struct import_format {
	struct option_user user;
	import_function *read; /* NULL: a count file, not a text */
} formats[] = {
	{{"events", "output"}, import_events},
	{{"samples", "output"}, import_samples},
	{{"counts", "output cpu exe"}, NULL},
	{{"step-stream", "output"}, import_step_stream},
};
#define N_FORMATS	   (sizeof(formats) / sizeof(formats[0]))
#define N_FORMATS_MAX	   (N_FORMATS + 32)
#define OPTIONS_OF_FOREIGN "output"

static int read_stdin(struct buf *text, struct err *err)
{
	uint8_t block[65536];
	ssize_t n;

	while ((n = read(STDIN_FILENO, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "standard input: cannot read");
		buf_put(text, block, (size_t)n);
	}
	return 0;
}

/* The text is checked as a whole before anything is written. */
static int import_text(import_function *read_text, struct span text, const char *name,
	const char *output, struct err *err)
{
	struct trace_writer *writer;
	int rc = read_text(text, name, NULL, err);

	if (rc == 0)
		rc = trace_writer_open(&writer, output, err);
	if (rc < 0)
		return rc;
	trace_writer_meta(writer, "mode", "import");
	return trace_writer_settle(writer, read_text(text, name, writer, err), err);
}

static int import_file(
	import_function *read_text, const char *path, const char *output, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	struct file_map map = {0};
	struct buf text = {0};
	int rc = is_stdin ? read_stdin(&text, err) : file_map_open(&map, path, err);

	if (rc == 0)
		rc = import_text(
			read_text, is_stdin ? buf_span(&text) : map.bytes, path, output, err);
	buf_release(&text);
	file_map_release(&map);
	return rc;
}

/* Ours first, then those of other tools. */
static size_t list_users(struct option_user *users)
{
	size_t n = 0;

	for (size_t i = 0; i < N_FORMATS; i++)
		users[n++] = formats[i].user;
	for (size_t i = 0; i < foreign_n_formats && n < N_FORMATS_MAX; i++)
		users[n++] = (struct option_user){foreign_formats[i].name,
			foreign_formats[i].import_options ? foreign_formats[i].import_options
							  : OPTIONS_OF_FOREIGN};
	return n;
}

static int import_by(
	int number, const char *path, const struct import_arguments *a, struct err *err)
{
	if (number >= (int)N_FORMATS)
		return open_trace_import_foreign(&foreign_formats[number - (int)N_FORMATS], path,
			a->output, &a->foreign, err);
	return formats[number].read ? import_file(formats[number].read, path, a->output, err)
				    : open_trace_import(path, a->output, &a->counts, err);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct import_arguments a = {.output = "trace.weir"};
	struct option_user users[N_FORMATS_MAX];
	struct err err = {0};
	uint64_t given;
	int status, rc;

	if (!options_begin_given(command, &a, &argc, &argv, &status, &given))
		return status;
	if (argc != 2)
		return options_usage_error(command, "needs a format and one file");
	status = options_choose_user(command, given, argv[0], "format", users, list_users(users));
	if (status < 0)
		return STATUS_USAGE;
	if (a.foreign.first && strcmp(a.foreign.first, "thread") != 0 &&
		strcmp(a.foreign.first, "function") != 0)
		return options_usage_error(
			command, "--first: '%s' is neither thread nor function", a.foreign.first);
	rc = import_by(status, argv[1], &a, &err);
	return rc < 0 ? command_fail(&err) : STATUS_DONE;
}

const struct command command_import = {
	.name = "import",
	.synopsis = "FORMAT FILE [-o TRACE]",
	.summary = "makes a trace from events or samples in text, a count file or a step stream",
	.options = import_options,
	.details =
		"FILE '-' is standard input; '#' starts a comment. FORMAT is one of\n"
		"  events      lines of  TIME enter|leave NAME [TID]\n"
		"                        TIME switch-out|switch-in [TID]\n"
		"                        TIME add METRIC AMOUNT [TID]\n"
		"                        TIME stack NUMBER [TID]\n"
		"                        TIME sample[=WEIGHT]|stack-at [TID:] NAME...\n"
		"                        TIME node NUMBER PARENT NAME CALLS ELAPSED MIN MAX [TID]\n"
		"                        TIME hook NAME METHOD HITS OFF [REASON...]\n"
		"  samples     one stack a line, outermost first:  [TID:] NAME...\n"
		"  counts      the file that a program linked by 'weir count' leaves\n"
		"  step-stream executed instructions: 'weir export step-stream', or another tracer\n"
		"  perf        what perf record writes: perf.data, or a pipe of it\n"
		"  perf-script the text of perf script\n"
		"  folded      folded stacks, one a line:  OUTER;...;INNER COUNT\n"
		"  pprof       profiles of Go and of the pprof tools\n"
		"  jfr         recordings of Java Flight Recorder, also of async-profiler\n"
		"  chrome      trace events in JSON, as Chrome has them\n"
		"  speedscope  profiles of speedscope\n"
		"  firefox     processed profiles of the Firefox Profiler, as of samply\n"
		"  uftrace     folders of uftrace record\n"
		"  callgrind   profiles of callgrind and cachegrind\n"
		"Times are plain integers in units of 1 and do not go back within a thread.\n",
	.run = run,
};
