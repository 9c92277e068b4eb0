/* SPDX-License-Identifier: MIT */
/* Linker scripts, read as far as they name files. */
#ifndef WEIR_INSERT_LINK_SCRIPT_H
#define WEIR_INSERT_LINK_SCRIPT_H

#include <stdbool.h>

#include "base/span.h"

/* What a script names a word for. */
enum link_script_use {
	LINK_SCRIPT_INPUT,   /* INPUT, GROUP, STARTUP: a file to be linked */
	LINK_SCRIPT_INCLUDE, /* another script, read in its place */
	LINK_SCRIPT_FOLDER,  /* SEARCH_DIR */
};
typedef void link_script_each(void *context, enum link_script_use use, struct span word);

/* The words as the script has them: in quotes, as -lNAME, relative to something. False when it names nothing,
 * or is no text. `each` may be NULL. What stands between braces (SECTIONS) names no files. */
bool link_script_read(struct span text, link_script_each *each, void *context);
/* Such a word without its quotes. The caller frees it. */
char *link_script_name(struct span word);

#endif
