/* SPDX-License-Identifier: MIT */
/* The list of commands; the order is that of `weir help`. */
#include "cmd/commands.h"

#include <string.h>

const struct command *const commands[] = {
	&command_record,
	&command_report,
	&command_view,
	&command_diff,
	&command_import,
	&command_export,
	&command_symbols,
	&command_count,
	&command_insert,
	&command_probe,
	&command_steps,
	&command_doctor,
	&command_help,
	NULL,
};

const struct command *command_find(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}
