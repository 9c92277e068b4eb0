/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/nearest_names.h"
#include "cmd/commands.h"

static void out_of_memory(size_t bytes)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "weir: out of memory (%zu bytes asked for)\n", bytes);

	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(STATUS_FAILED);
	_exit(STATUS_FAILED);
}

/* Output that did not reach its place is a failure, whatever the command thought. */
static int finish_stdout(int status)
{
	if ((fflush(stdout) || ferror(stdout)) && status == STATUS_DONE) {
		perror("weir: standard output");
		return STATUS_FAILED;
	}
	return status;
}

static int unknown_command(const char *name)
{
	struct nearest_names near = {.wanted = name};
	char is_it[OPTIONS_IS_IT_BYTES];

	for (const struct command *const *c = commands; *c; c++)
		nearest_names_add(&near, (*c)->name);
	fprintf(stderr, "weir: '%s' is not a command%s ('weir help' lists them)\n", name,
		options_is_it(&near, is_it));
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	mem_set_failure_hook(out_of_memory);
	if (argc > 0 && is_linker_name(argv[0]))
		return finish_stdout(count_link_main(argc, argv));
	if (argc > 0 && is_driver_name(argv[0]))
		return count_driver_main(argv);
	if (argc > 0 && is_lto_wrapper_name(argv[0]))
		return finish_stdout(count_lto_main(argv));
	if (argc > 0 && is_agent_name(argv[0]))
		return agent_main();
	if (argc < 2) {
		fputs("weir: no command given ('weir -- CMD' records CMD and reports; 'weir help' "
		      "lists the commands)\n",
			stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("weir %s\n", WEIR_VERSION);
		return finish_stdout(STATUS_DONE);
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		argv[1] = (char *)"help";
	if (!strcmp(argv[1], "--"))
		return run_and_report(argc - 1, argv + 1);
	command = command_find(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	return finish_stdout(command->run(command, argc - 1, argv + 1));
}
