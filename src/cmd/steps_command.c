/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd/commands.h"
#include "cmd/steps_run.h"
#include "steps/record/step_engine.h"

#define BURST_DEFAULT 10000
#define EVERY_MS_MAX  1e9
#define BUFFER_MIN    (64u << 10)
#define BUFFER_MAX    (1u << 30)

struct steps_arguments {
	struct step_options o; /* what needs no second look is put there */
	const char *pids, *from, *to, *around, *every;
	uint64_t max, burst, buffer_bytes;
	bool lossless, lossy, quiet, verbose;
};

/* What a number has when its option is not given: none of these may be asked for. */
#define NOT_GIVEN UINT64_MAX

#define AT(field) offsetof(struct steps_arguments, field)
static const struct option_spec steps_options[] = {
	{'o', "output", OPTION_TEXT, "FILE", "write the trace there (default trace.weir)",
		AT(o.output)},
	{'p', "pid", OPTION_TEXT, "PID", "attach to running processes; a comma list", AT(pids)},
	{0, "engine", OPTION_TEXT, "NAME",
		"how it is traced: translate, branch or ptrace (default: the first that can)", AT(o.engine)},
	{0, "from", OPTION_TEXT, "FUNC", "trace from the first call of this function on", AT(from)},
	{0, "to", OPTION_TEXT, "FUNC", "trace up to the next call of this function", AT(to)},
	{0, "around", OPTION_TEXT, "FUNC", "trace the calls of this function, with all they call",
		AT(around)},
	{0, "max", OPTION_NUMBER, "N", "end the recording after N instructions", AT(max)},
	{0, "every", OPTION_TEXT, "MS", "trace in bursts, one every MS milliseconds", AT(every)},
	{0, "for", OPTION_NUMBER, "N", "with --every: instructions of a burst (default 10000)",
		AT(burst)},
	{0, "threads", OPTION_TEXT, "NAME", "trace threads of this name (a glob) or tid only",
		AT(o.threads)},
	{0, "user-code", OPTION_TEXT, "GLOB", "trace code of files whose path matches only",
		AT(o.user_code)},
	{0, "data", OPTION_FLAG, NULL, "record what instructions read and write, too", AT(o.data)},
	{0, "lossless", OPTION_FLAG, NULL, "let the program wait when a buffer is full (default)",
		AT(lossless)},
	{0, "lossy", OPTION_FLAG, NULL, "lose steps, and count them, when a buffer is full",
		AT(lossy)},
	{0, "buffer", OPTION_NUMBER, "BYTES", "size of a thread's buffer, for engines with buffers",
		AT(buffer_bytes)},
	{0, "no-follow", OPTION_FLAG, NULL, "let processes that are forked run untraced",
		AT(o.no_follow)},
	{0, "duration", OPTION_SECONDS, "S", "end the recording after S seconds", AT(o.duration_s)},
	{'q', "quiet", OPTION_FLAG, NULL, "say nothing but errors", AT(quiet)},
	{'v', "verbose", OPTION_FLAG, NULL, "say what is done", AT(verbose)},
	{0},
};

static int check_targets(const struct command *command, const struct steps_arguments *a, int argc)
{
	if (!a->pids && argc == 0)
		return options_usage_error(command, "nothing to trace: give a command or -p PID");
	if (a->pids && argc > 0)
		return options_usage_error(command, "a command and -p exclude each other");
	return 0;
}

static int check_engine(const struct command *command, const char *name)
{
	struct buf known = {0};

	if (!name || step_engine_find(name))
		return 0;
	for (size_t i = 0; step_engines[i]; i++)
		buf_printf(&known, "%s%s", i ? ", " : "", step_engines[i]->name);
	options_usage_error(command, "--engine: '%s' is none of %s", name, buf_text(&known));
	buf_release(&known);
	return STATUS_USAGE;
}

/* Texts that must not be empty. */
static int check_names(const struct command *command, const struct steps_arguments *a)
{
	const struct {
		const char *option, *value, *what;
	} names[] = {
		{"--from", a->from, "function"},
		{"--to", a->to, "function"},
		{"--around", a->around, "function"},
		{"--threads", a->o.threads, "thread"},
		{"--user-code", a->o.user_code, "file"},
		{"--output", a->o.output, "file"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].value && !*names[i].value)
			return options_usage_error(
				command, "%s: no %s named", names[i].option, names[i].what);
	if (a->around && (a->from || a->to))
		return options_usage_error(
			command, "--around and %s exclude each other", a->from ? "--from" : "--to");
	return 0;
}

#define N_FUNCTIONS 3 /* that can be named */

static int fill_functions(const struct command *command, struct steps_arguments *a,
	struct step_function functions[N_FUNCTIONS])
{
	const struct {
		const char *option, *value;
		const struct step_function **out;
	} rows[N_FUNCTIONS] = {
		{"--from", a->from, &a->o.from},
		{"--to", a->to, &a->o.to},
		{"--around", a->around, &a->o.around},
	};
	struct err err;

	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		if (!rows[i].value)
			continue;
		if (step_function_init(&functions[i], rows[i].value, &err) < 0)
			return options_usage_error(command, "%s: %s", rows[i].option, err.text);
		*rows[i].out = &functions[i];
	}
	return 0;
}

static int fill_bursts(const struct command *command, struct steps_arguments *a)
{
	struct step_options *o = &a->o;
	char *end;

	if (!a->every)
		return a->burst == NOT_GIVEN ? 0
					     : options_usage_error(command,
						       "--for: how often? give --every MS, too");
	errno = 0;
	o->every_ms = strtod(a->every, &end);
	if (errno || end == a->every || *end || !(o->every_ms > 0) || o->every_ms > EVERY_MS_MAX)
		return options_usage_error(
			command, "--every: '%s' is not a number of milliseconds", a->every);
	o->burst = a->burst == NOT_GIVEN ? BURST_DEFAULT : a->burst;
	return o->burst ? 0 : options_usage_error(command, "--for: must be at least 1");
}

static int fill_options(const struct command *command, struct steps_arguments *a)
{
	int rc = check_engine(command, a->o.engine);

	if (!rc)
		rc = check_names(command, a);
	if (!rc)
		rc = fill_bursts(command, a);
	if (rc)
		return rc;
	if (a->max == 0)
		return options_usage_error(command, "--max: must be at least 1");
	if (a->buffer_bytes != NOT_GIVEN &&
		(a->buffer_bytes < BUFFER_MIN || a->buffer_bytes > BUFFER_MAX))
		return options_usage_error(
			command, "--buffer: must be from %u to %u", BUFFER_MIN, BUFFER_MAX);
	if (a->lossless && a->lossy)
		return options_usage_error(command, "--lossless and --lossy exclude each other");
	a->o.max = a->max == NOT_GIVEN ? 0 : a->max;
	return 0;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct steps_arguments a = {.o = {.output = "trace.weir", .parent_fd = -1},
		.max = NOT_GIVEN,
		.burst = NOT_GIVEN,
		.buffer_bytes = NOT_GIVEN};
	struct step_function functions[N_FUNCTIONS] = {0};
	pid_t pids[PID_LIST_MAX];
	int status, rc;

	if (!options_begin(command, &a, &argc, &argv, &status))
		return status;
	rc = check_targets(command, &a, argc);
	if (!rc)
		rc = fill_options(command, &a);
	if (!rc)
		rc = fill_functions(command, &a, functions);
	if (!rc && a.pids)
		rc = pid_list_parse(command, a.pids, pids, &a.o.n_pids);
	a.o.pids = pids;
	a.o.command = argc ? argv : NULL;
	if (!rc)
		rc = steps_run(&a.o, a.quiet	 ? RECORD_QUIET
				     : a.verbose ? RECORD_VERBOSE
						 : RECORD_NORMAL);
	for (size_t i = 0; i < N_FUNCTIONS; i++)
		step_function_release(&functions[i]);
	return rc;
}

const struct command command_steps = {
	.name = "steps",
	.synopsis = "[OPTIONS] -- CMD ARGS...\n"
		    "[OPTIONS] -p PID[,PID...]",
	.summary = "record every instruction that a command or running processes execute",
	.options = steps_options,
	.stops_at_operand = true,
	.details =
		"FUNC is [IMAGE:]GLOB, /REGEX/ or 0xADDRESS. The command's exit status is passed\n"
		"on. Ctrl-C ends the recording; the data is kept. An older trace of the same name\n"
		"is kept as FILE.old. 'weir report steps' lists what was executed.\n",
	.run = run,
};
