/* SPDX-License-Identifier: MIT */
#include "cmd/commands.h"

static const struct option_spec help_options[] = {{0}};

static void print_overview(FILE *out)
{
	fputs("weir: measures where a program's time goes and shows why\n\n"
	      "  weir -- CMD ARGS...        record CMD, then print the summary (on stderr)\n",
		out);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(out, "  weir %-21s %s\n", (*c)->name, (*c)->summary);
	fputs("\n'weir help COMMAND' or 'weir COMMAND -h' tells more; the manual: man weir.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but with losses;\n"
	      "'weir -- CMD', 'weir record -- CMD' and 'weir steps -- CMD' give CMD's own.\n",
		out);
}

static int run(const struct command *command, int argc, char **argv)
{
	const struct command *topic;
	char unused;
	int status;

	if (!options_begin(command, &unused, &argc, &argv, &status))
		return status;
	if (argc == 0) {
		print_overview(stdout);
		return STATUS_DONE;
	}
	topic = command_find(argv[0]);
	if (!topic)
		return options_usage_error(command, "'%s' is not a command", argv[0]);
	options_print_help(topic, stdout);
	return STATUS_DONE;
}

const struct command command_help = {
	.name = "help",
	.synopsis = "[COMMAND]",
	.summary = "the commands, or one of them in detail",
	.options = help_options,
	.run = run,
};
