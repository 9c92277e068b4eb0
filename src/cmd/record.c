/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/host_option.h"
#include "cmd/record_probe.h"
#include "cmd/record_run.h"
#include "record/snapshot_request.h"

#define HZ_DEFAULT 999
#define HZ_MAX	   100000
/* Thousandths; only where memory runs short, as long as nobody asks for it. */
#define PRUNE_DEFAULT 100

struct record_arguments {
	const char *output;
	uint64_t hz;
	const char *events;
	bool pc_only, no_sample, user_only, all_modules, module_snapshots, system_wide, quiet,
		verbose;
	uint64_t stack_bytes;
	double duration_s;
	const char *pids;
	const char *kinds, *old_kinds;			  /* --kinds, --hooks */
	const char *functions, *old_functions, *stack_at; /* --functions, --events, --stack-at */
	const char *snapshot_of;
	bool tree;
	double prune, budget;
	struct option_texts probes; /* --probe */
	struct host_arguments host;
};

#define AT(field) offsetof(struct record_arguments, field)
static const struct option_spec record_options[] = {
	{'o', "output", OPTION_TEXT, "FILE",
		"write the trace there (default trace.weir; '-': standard output)", AT(output)},
	{'F', "frequency", OPTION_NUMBER, "HZ", "samples a second (default 999)", AT(hz)},
	{'e', "event", OPTION_TEXT, "EVENT", "what is sampled (default cpu-clock); a comma list",
		AT(events)},
	{'p', "pid", OPTION_TEXT, "PID", "attach to running processes; a comma list", AT(pids)},
	{'a', "all", OPTION_FLAG, NULL,
		"record every process of the machine; with a command, while that runs",
		AT(system_wide)},
	{0, "duration", OPTION_SECONDS, "S", "end the recording after S seconds", AT(duration_s)},
	{0, "pc-only", OPTION_FLAG, NULL, "record where, not the stack", AT(pc_only)},
	{0, "no-sample", OPTION_FLAG, NULL, "record processes, modules and switches only",
		AT(no_sample)},
	{0, "user-only", OPTION_FLAG, NULL, "leave out time spent in the kernel", AT(user_only)},
	{0, "stack-bytes", OPTION_NUMBER, "N",
		"bytes of stack the kernel copies without BPF (default 32768)", AT(stack_bytes)},
	{0, "all-modules", OPTION_FLAG, NULL, "write modules that no sample hit, too",
		AT(all_modules)},
	{0, "module-snapshots", OPTION_FLAG, NULL, "write modules at the start and the end only",
		AT(module_snapshots)},
	{0, "functions", OPTION_TEXT, "GLOB",
		"hook functions: every entry and exit; a comma list, [IMAGE:]GLOB or /REGEX/",
		AT(functions)},
	{0, "stack-at", OPTION_TEXT, "GLOB", "hook functions, with the stack at each entry",
		AT(stack_at)},
	{0, "tree", OPTION_FLAG, NULL,
		"keep the tree of hooked calls in the program, in fixed memory", AT(tree)},
	{0, "prune", OPTION_DECIMAL, "T",
		"with --tree: fold what has less than T of its caller's time (default 0.1)",
		AT(prune)},
	{0, "budget", OPTION_DECIMAL, "PCT",
		"unhook short functions when hooks cost more than PCT percent", AT(budget)},
	{0, "probe", OPTION_TEXTS, "FILE",
		"run this trace script (weir probe) beside the recording; each one counts",
		AT(probes)},
	{0, "kinds", OPTION_TEXT, "LIST",
		"which kinds of record are made (default stack,module, and switch where it is used)",
		AT(kinds)},
	{0, "snapshot-of", OPTION_TEXT, "PID",
		"make another recording write what it has so far; print the path", AT(snapshot_of)},
	HOST_OPTIONS(AT(host)),
	{'q', "quiet", OPTION_FLAG, NULL, "say nothing but errors", AT(quiet)},
	{'v', "verbose", OPTION_FLAG, NULL, "say what is done", AT(verbose)},
	{0, "events", OPTION_TEXT, "GLOB", option_old_name, AT(old_functions)},
	{0, "hooks", OPTION_TEXT, "LIST", option_old_name, AT(old_kinds)},
	{0, "snapshot", OPTION_TEXT, "PID", option_old_name, AT(snapshot_of)},
	{0, "snapshots", OPTION_FLAG, NULL, option_old_name, AT(module_snapshots)},
	{0},
};

/* The old names are as good as the new ones, and messages use those of the user. */
static int take_old_names(const struct command *command, struct record_arguments *a)
{
	if (a->functions && a->old_functions)
		return options_usage_error(
			command, "--functions and --events are one option: give one of them");
	if (a->kinds && a->old_kinds)
		return options_usage_error(
			command, "--kinds and --hooks are one option: give one of them");
	a->functions = a->old_functions ? a->old_functions : a->functions;
	a->kinds = a->old_kinds ? a->old_kinds : a->kinds;
	return 0;
}

static int check_targets(const struct command *command, const struct record_arguments *a, int argc)
{
	if (a->pids && (a->system_wide || argc))
		return options_usage_error(
			command, a->system_wide ? "-p and -a exclude each other"
						: "a command and -p exclude each other");
	if (!a->pids && !a->system_wide && !argc)
		return options_usage_error(
			command, "nothing to record: give a command, -p PID or -a");
	return 0;
}

/* Times of hooked calls stand still while a thread waits, and waiting is measured from switch to switch. */
static bool uses_switches(const struct record_arguments *a, const struct recorder_options *o)
{
	bool has_waits = false;

	for (size_t i = 0; i < o->perf.n_events; i++)
		has_waits |= o->perf.events[i].is_wait;
	return has_waits || a->functions || a->stack_at || a->no_sample;
}

static int fill_kinds(
	const struct command *command, const struct record_arguments *a, struct recorder_options *o)
{
	const char *option = a->old_kinds ? "--hooks" : "--kinds";
	struct err err;

	o->hooks = HOOKS_DEFAULT;
	if (a->kinds && hook_list_parse(option, a->kinds, &o->hooks, &err) < 0)
		return options_usage_error(command, "%s", err.text);
	if (o->hooks & HOOK_METHOD && !a->functions)
		return options_usage_error(command, "%s: method: which functions? give %s, too",
			option, a->old_kinds ? "--events" : "--functions");
	if (o->hooks & HOOK_STACK_AT && !a->stack_at)
		return options_usage_error(
			command, "%s: stack-at: which functions? give --stack-at, too", option);
	o->allocations = o->hooks & HOOK_ALLOC;
	o->functions.bytecodes = o->hooks & HOOK_BYTECODE && a->functions;
	o->functions.heap_bytes = o->hooks & HOOK_HEAP && a->functions;
	if (a->no_sample)
		o->hooks &= ~(uint32_t)HOOK_STACK;
	if (a->tree) /* nothing that grows with time; and only events tell the callers of hooked
			calls */
		o->hooks &= ~(uint32_t)(HOOK_STACK | HOOK_SWITCH);
	if (o->hooks & HOOK_STACK &&
		event_specs_parse(a->events, o->perf.events, &o->perf.n_events, &err) < 0)
		return command_fail(&err);
	if (!a->kinds && !a->tree && !uses_switches(a, o))
		o->hooks &= ~(uint32_t)HOOK_SWITCH;
	for (size_t i = 0; i < o->perf.n_events; i++)
		if (o->perf.events[i].is_wait && !(o->hooks & HOOK_SWITCH))
			return options_usage_error(command,
				"-e wall: how long a thread waits is known by 'switch' records, which "
				"%s leaves out",
				option);
	return 0;
}

static int fill_functions(
	const struct command *command, const struct record_arguments *a, struct recorder_options *o)
{
	struct hooks_options *f = &o->functions;

	f->events = a->functions;
	f->stack_at = a->stack_at;
	f->tree = a->tree;
	f->prune_permille = a->prune < 0 ? PRUNE_DEFAULT : (uint32_t)(a->prune * 1000 + 0.5);
	f->prunes_all = a->prune >= 0;
	f->budget_percent = a->budget;
	if (a->system_wide && (f->events || f->stack_at || o->allocations))
		return options_usage_error(command,
			"-a: functions are hooked in chosen programs only: give a command or -p PID");
	if (a->tree && !f->events)
		return options_usage_error(
			command, "--tree: which functions? give --functions, too");
	if (a->tree && (f->stack_at || o->allocations || f->bytecodes || f->heap_bytes))
		return options_usage_error(command,
			"--tree: has neither stacks nor bytes nor bytecodes, only calls and times");
	if (a->prune >= 1)
		return options_usage_error(command, "--prune: must be less than 1");
	if (a->budget > 100)
		return options_usage_error(command, "--budget: must be at most 100");
	return 0;
}

static int fill_options(
	const struct command *command, const struct record_arguments *a, struct recorder_options *o)
{
	int rc;

	if (!a->hz || a->hz > HZ_MAX)
		return options_usage_error(command, "-F: must be from 1 to %d", HZ_MAX);
	if (a->stack_bytes && (a->stack_bytes < 1024 || a->stack_bytes > 65000))
		return options_usage_error(command, "--stack-bytes: must be from 1024 to 65000");
	o->output = a->output;
	o->perf.hz = a->hz;
	o->perf.pc_only = a->pc_only;
	o->perf.user_only = a->user_only;
	o->modules.all_modules = a->all_modules;
	o->modules.snapshots_only = a->module_snapshots;
	o->perf.stack_bytes = (uint32_t)(a->stack_bytes & ~(uint64_t)7);
	o->duration_s = a->duration_s;
	o->system_wide = a->system_wide;
	rc = fill_kinds(command, a, o);
	return rc ? rc : fill_functions(command, a, o);
}

static int run_recorder(const struct record_arguments *a, struct recorder_options *o)
{
	struct recorder_companion companion;
	struct record_probe *probe = NULL;
	int status;

	if (a->probes.n) {
		probe = record_probe_new(&a->probes, o, &companion, &status);
		if (!probe)
			return status;
		o->companion = &companion;
	}
	status = record_run(o,
		a->quiet     ? RECORD_QUIET
		: a->verbose ? RECORD_VERBOSE
			     : RECORD_NORMAL,
		NULL);
	record_probe_free(probe);
	return status;
}

static int agent_trace_fd = -1;

void record_expect_agent(int fd)
{
	agent_trace_fd = fd;
}

/* "-": the trace goes where our standard output goes. A command that wrote there, too, would make the trace
 * unreadable, so that its own goes to standard error. */
static int take_standard_output(
	const struct command *command, const struct record_arguments *a, struct recorder_options *o)
{
	bool is_stream = !strcmp(a->output, "-");

	if (is_stream)
		o->output = "standard output";
	if (agent_trace_fd >= 0)
		o->output_fd = agent_trace_fd;
	if (agent_trace_fd >= 0 || !is_stream)
		return 0;
	if (isatty(STDOUT_FILENO))
		return options_usage_error(command,
			"-o -: standard output is a terminal, which shows no trace: send it to a pipe or a file");
	o->output_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (o->output_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return options_usage_error(
			command, "-o -: standard output or standard error is not open");
	if (o->command && !a->quiet)
		fputs("weir: note: what the command writes to standard output goes to standard error: "
		      "the trace takes its place\n",
			stderr);
	return 0;
}

/* What another recording has so far, as a readable trace: waits until it is there and prints its path.
 * `pid` is the number of a `weir record` or of a process that it records, as text. */
static int ask_for_snapshot(const struct command *command, const char *pid)
{
	char *end, *path = NULL;
	pid_t recorder;
	struct err err;
	long number;

	errno = 0;
	number = strtol(pid, &end, 10);
	if (errno || end == pid || *end || number <= 0 || number > INT32_MAX)
		return options_usage_error(command, "--snapshot-of: '%s' is not a process id", pid);
	if (snapshot_find_recorder((pid_t)number, &recorder, &err) < 0 ||
		snapshot_ask(recorder, &path, &err) < 0)
		return command_fail(&err);
	puts(path);
	free(path);
	return STATUS_DONE;
}

/* On another machine; the trace comes here. */
static int run_there(const struct command *command, const struct record_arguments *a, const struct recorder_options *o,
	uint64_t given)
{
	struct host_request request = {.command = command,
		.from = a,
		.given = given,
		.host = &a->host,
		.files = "probe",
		.operands = o->command,
		.reads_input = o->command != NULL,
		.output = o->output,
		.output_fd = o->output_fd};

	while (o->command && o->command[request.n_operands])
		request.n_operands++;
	return host_run(&request);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct record_arguments a = {
		.output = "trace.weir", .hz = HZ_DEFAULT, .events = "cpu-clock", .prune = -1};
	struct recorder_options o = {0};
	pid_t pids[PID_LIST_MAX];
	uint64_t given;
	int rc, status;

	if (!options_begin_given(command, &a, &argc, &argv, &status, &given))
		return status;
	if (a.snapshot_of)
		return argc || a.pids || a.system_wide || a.host.host
			       ? options_usage_error(
					 command, "--snapshot-of: records nothing itself")
			       : ask_for_snapshot(command, a.snapshot_of);
	rc = take_old_names(command, &a);
	if (!rc)
		rc = check_targets(command, &a, argc);
	if (!rc)
		rc = fill_options(command, &a, &o);
	if (!rc && a.pids)
		rc = (a.host.host ? pid_list_parse_there : pid_list_parse)(command, a.pids, pids, &o.n_pids);
	if (!rc)
		rc = host_check(command, &a.host);
	if (rc)
		return rc;
	o.pids = pids;
	o.command = argc ? argv : NULL;
	rc = take_standard_output(command, &a, &o);
	if (rc)
		return rc;
	status = a.host.host ? run_there(command, &a, &o, given) : run_recorder(&a, &o);
	free(a.probes.v);
	return status;
}

int run_and_report(int argc, char **argv)
{
	struct recorder_options o = {
		.output = "trace.weir", .perf = {.hz = HZ_DEFAULT}, .hooks = HOOKS_SAMPLING};
	struct err err;

	if (argc < 2)
		return options_usage_error(&command_record, "no command after '--'");
	if (event_specs_parse("cpu-clock", o.perf.events, &o.perf.n_events, &err) < 0)
		return command_fail(&err);
	o.command = argv + 1;
	return record_run(&o, RECORD_QUIET, record_print_summary);
}

const struct command command_record = {
	.name = "record",
	.synopsis = "[OPTIONS] -- CMD ARGS...\n"
		    "[OPTIONS] -p PID[,PID...]\n"
		    "[OPTIONS] -a [-- CMD ARGS...]\n"
		    "--snapshot-of PID",
	.summary = "record a command, running processes or the whole machine",
	.options = record_options,
	.stops_at_operand = true,
	.details =
		"The command's exit status is passed on. Ctrl-C ends the recording; the data is\n"
		"kept. An older trace of the same name is kept as FILE.old.\n",
	.run = run,
};
