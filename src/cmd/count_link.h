/* SPDX-License-Identifier: MIT */
/* What `weir count` and the linker that it puts in place of the real one have in common. */
#ifndef WEIR_CMD_COUNT_LINK_H
#define WEIR_CMD_COUNT_LINK_H

#include "cmd/insert_options.h"
#include "insert/link_command.h"

/* Environment of the command, read by the linker within it. */
#define COUNT_ENV_OPTIONS "WEIR_COUNT_OPTIONS" /* options of `weir count`, one a line */
#define COUNT_ENV_NOTES	  "WEIR_COUNT_NOTES"   /* a file that gets a line for each link */
#define COUNT_ENV_LINKER  "WEIR_COUNT_LINKER"  /* the linker named by --ld-path */
#define COUNT_ENV_PATH	  "WEIR_COUNT_PATH"    /* folders of the driver's -B options */
/* Environment of the linker, read by what runs in the place of lto-wrapper (count_lto.h). */
#define COUNT_ENV_LTO_WRAPPER "WEIR_COUNT_LTO_WRAPPER" /* the true one */
#define COUNT_ENV_LTO_NAMES   "WEIR_COUNT_LTO_NAMES"   /* files of struct lto_link */
#define COUNT_ENV_LTO_REPORT  "WEIR_COUNT_LTO_REPORT"

/* Links the program with counting code: `args` are the linker's, without its name. Returns the
 * linker's status. */
int count_link(const char *linker, char **args, size_t n, const struct insert_arguments *a);

/* The options of the `weir count` around us; they refer to the words. False: they are wrong, which has
 * been said. */
bool count_options_from_environment(struct insert_arguments *a, struct link_words *words);

/* Runs it and waits; its exit status, or the same death. */
int count_run_child(const char *file, char *const *argv);

/* The first file of this name in the folders that is not this program itself. */
char *count_find_program(const char *folders, const char *name);

#endif
