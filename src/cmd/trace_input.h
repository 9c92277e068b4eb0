/* SPDX-License-Identifier: MIT */
/*
 * What the user names as a trace, as a file that can be mapped: "-" is standard input, which is kept in a file
 * without a name.
 */
#ifndef WEIR_CMD_TRACE_INPUT_H
#define WEIR_CMD_TRACE_INPUT_H

#include "base/err.h"

struct trace_input {
	const char *path; /* to be opened; borrowed, or `name` */
	char name[32];
	int fd; /* -1: it is no standard input */
};

/* Fails when standard input is a terminal, does not begin as a trace or count file does (nothing more of it is
 * read then), or cannot be kept. A first Ctrl-C while it is read is left to who writes it: it ends recordings. */
int trace_input_open(struct trace_input *in, const char *path, struct err *err);
/* The file is gone once nobody has it mapped. */
void trace_input_close(struct trace_input *in);

#endif
