/* SPDX-License-Identifier: MIT */
/*
 * Linker scripts of a counted link: the files that they name are files of the link, and a script that names one
 * with a copy gets a copy itself that names it.
 */
#ifndef WEIR_CMD_COUNTED_SCRIPTS_H
#define WEIR_CMD_COUNTED_SCRIPTS_H

#include "cmd/counted_files.h"
#include "insert/link_command.h"

struct counted_scripts {
	struct counted_files *all;
	struct link_command *command;
	/* Gives the command the folders that the linker searches by itself, where it has not got them. */
	void (*need_folders)(void *context);
	void *context;
};

/* Opens what scripts name. True: the command knows of more folders now, and files may be found in them. */
bool counted_scripts_open(struct counted_scripts *s);
/* Says which names were not found for sure. */
void counted_scripts_tell(struct counted_scripts *s);
/* Copies of scripts, when the other files have theirs. */
void counted_scripts_insert(struct counted_scripts *s);

#endif
