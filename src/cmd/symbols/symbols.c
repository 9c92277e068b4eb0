/* SPDX-License-Identifier: MIT */
/* weir symbols: merged symbol files, from making them to asking them. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"
#include "cmd/commands.h"
#include "cmd/symbols/symbols_verbs.h"

#define AT(field) offsetof(struct symbols_arguments, field)
static const struct option_spec symbols_options[] = {
	{'o', "output", OPTION_TEXT, "FILE", "merge: the merged symbol file to make", AT(output)},
	{0, "catalog", OPTION_TEXT_ONCE, "FILE", "the merged symbol file (default: the user's own)",
		AT(catalog)},
	{0, "pid", OPTION_NUMBER, "PID", "a running process: what it has mapped", AT(pid)},
	{0, "kernel", OPTION_FLAG, NULL, "merge, add: the running kernel, too", AT(kernel)},
	{0, "image", OPTION_TEXT, "IMAGE", "resolve: the image that the addresses are in",
		AT(image)},
	{0, "trace", OPTION_TEXT, "TRACE", "resolve: the trace that the addresses are from",
		AT(trace)},
	{0, "threads", OPTION_NUMBER, "N", "how many to work with (default: one for each CPU)",
		AT(threads)},
	{0, "no-search", OPTION_FLAG, NULL, "only what is named: no other folders, no servers",
		AT(no_search)},
	{0, "columns", OPTION_FLAG, NULL, "merge, add: keep the columns of source lines",
		AT(columns)},
	{0, "symbols", OPTION_FLAG, NULL, "show: the symbols, too", AT(symbols)},
	{0, "limit", OPTION_NUMBER, "N", "show, diff: at most N symbols", AT(limit)},
	{0, "json", OPTION_FLAG, NULL, "one JSON object instead of text", AT(json)},
	{'q', "quiet", OPTION_FLAG, NULL, "leave out what went well", AT(quiet)},
	{0},
};

static const struct symbols_verb {
	const char *name;
	int (*run)(const struct symbols_call *call, struct err *err);
	/* Opens the catalog that it reads; NULL: what it does with it is its own affair. */
	int (*open)(const struct symbols_call *call, struct catalog **out, struct err *err);
	const char *options; /* long names, blank separated */
	const char *operands;
	size_t min, max; /* operands */
} verbs[] = {
	{"merge", symbols_merge, NULL, "output pid kernel threads no-search columns json quiet",
		"paths (or --pid, --kernel)", 0, SIZE_MAX},
	{"add", symbols_add, NULL, "catalog pid kernel threads no-search columns json quiet",
		"paths (or --pid, --kernel)", 0, SIZE_MAX},
	{"remove", symbols_remove, symbols_catalog_open, "catalog json quiet", "one or more images",
		1, SIZE_MAX},
	{"list", symbols_list, symbols_catalog_open, "catalog json quiet", "names", 0, SIZE_MAX},
	{"show", symbols_show, symbols_catalog_open, "catalog symbols limit json quiet",
		"one image", 1, 1},
	{"resolve", symbols_resolve, NULL, "catalog pid image trace threads no-search json quiet",
		"one or more addresses", 1, SIZE_MAX},
	{"verify", symbols_verify, symbols_catalog_open_if_any,
		"catalog threads no-search json quiet", "at most one trace", 0, 1},
	{"diff", symbols_diff, NULL, "catalog limit json quiet",
		"two merged symbol files, or two images of one", 2, 2},
	{"compact", symbols_compact, NULL, "catalog json quiet", "no operands", 0, 0},
	{"stats", symbols_stats, symbols_catalog_open, "catalog json quiet", "no operands", 0, 0},
	{0},
};

/* 0, or STATUS_USAGE with its sentence said. */
static int check_call(
	const struct symbols_verb *verb, const struct symbols_call *call, uint64_t given)
{
	for (size_t i = 0; given >> i; i++)
		if (given >> i & 1 && !word_list_has(verb->options, symbols_options[i].name))
			return options_usage_error(call->command, "%s does not take --%s",
				verb->name, symbols_options[i].name);
	if (call->n_operands < verb->min || call->n_operands > verb->max)
		return options_usage_error(
			call->command, "%s takes %s", verb->name, verb->operands);
	if (call->args->pid != SYMBOLS_NUMBER_ABSENT &&
		(!call->args->pid || call->args->pid > INT32_MAX))
		return options_usage_error(call->command, "--pid: there is no process %llu",
			(unsigned long long)call->args->pid);
	if (call->args->threads != SYMBOLS_NUMBER_ABSENT &&
		(!call->args->threads || call->args->threads > 1024))
		return options_usage_error(call->command, "--threads: must be from 1 to 1024");
	return 0;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct symbols_arguments a = {.pid = SYMBOLS_NUMBER_ABSENT,
		.threads = SYMBOLS_NUMBER_ABSENT,
		.limit = SYMBOLS_NUMBER_ABSENT};
	struct symbols_call call = {.command = command, .args = &a};
	const struct symbols_verb *verb = verbs;
	struct err err = {0};
	char *own = NULL;
	uint64_t given;
	int status;

	if (!options_begin_given(command, &a, &argc, &argv, &status, &given))
		return status;
	if (argc < 1)
		return options_usage_error(command, "needs a verb (merge, add, list, ...)");
	while (verb->name && strcmp(verb->name, argv[0]))
		verb++;
	if (!verb->name)
		return options_usage_error(command, "'%s' is not a verb", argv[0]);
	call.verb = verb->name;
	call.operands = argv + 1;
	call.n_operands = (size_t)argc - 1;
	status = check_call(verb, &call, given);
	if (status)
		return status;
	if (!a.catalog)
		own = catalog_default_path();
	call.catalog_path = a.catalog ? a.catalog : own;
	status = verb->open ? verb->open(&call, &call.catalog, &err) : 0;
	if (status == 0)
		status = verb->run(&call, &err);
	if (status < 0)
		status = command_fail(&err);
	catalog_close(call.catalog);
	free(own);
	return status;
}

const struct command command_symbols = {
	.name = "symbols",
	.synopsis = "merge -o FILE PATH... [OPTIONS]\n"
		    "add PATH... [OPTIONS]\n"
		    "remove IMAGE... [OPTIONS]\n"
		    "list [NAME...] [OPTIONS]\n"
		    "show IMAGE [--symbols] [--limit N] [OPTIONS]\n"
		    "resolve ADDR... --image IMAGE|--pid PID|--trace TRACE [OPTIONS]\n"
		    "verify [TRACE] [OPTIONS]\n"
		    "diff A B [OPTIONS]\n"
		    "compact [OPTIONS]\n"
		    "stats [OPTIONS]",
	.summary = "merged symbol files: make them, list them, ask them",
	.options = symbols_options,
	.details =
		"The verbs:\n"
		"  merge     makes a merged symbol file from files, folders, a process\n"
		"  add       adds the same to a merged symbol file that is there, or makes it\n"
		"  remove    removes images: by id, the unique beginning of an id, or path\n"
		"  list      the images; NAME is a base name or a pattern\n"
		"  show      identity, sections, sources and notes of an image\n"
		"  resolve   function, inline chain, file and line of addresses\n"
		"  verify    which symbols each module of a trace gets, and why\n"
		"  diff      two merged symbol files, or two images\n"
		"  compact   gives back the room of what was removed or replaced\n"
		"  stats     sizes and counts\n"
		"ADDR is hexadecimal; with --trace PID:ADDR or PID:ADDR@TIME (time after the start);\n"
		"'-' takes addresses from standard input. TRACE is trace.weir unless given.\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something was refused,\n"
		"unresolved or not verified.\n",
	.run = run,
};
