/* SPDX-License-Identifier: MIT */
/*
 * A file that gets its name when it is whole: others see all of it or nothing, and a writer that is
 * killed leaves nothing behind.
 */
#ifndef WEIR_BASE_STAGED_FILE_H
#define WEIR_BASE_STAGED_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct staged_file {
	int fd;		 /* write here */
	char *temporary; /* a name for want of anonymous files; NULL = it has none; owned */
};

/* In the folder of `path`, the name that it is meant for. */
int staged_file_open(struct staged_file *f, const char *path, mode_t mode, struct err *err);
/* Gives it the name: in place of the regular file that has it, or only when nothing is there. */
int staged_file_put(struct staged_file *f, const char *path, bool replaces, struct err *err);
/* Closes it; without a name it is gone. */
void staged_file_close(struct staged_file *f);

#endif
