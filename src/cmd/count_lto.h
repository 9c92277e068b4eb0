/* SPDX-License-Identifier: MIT */
/*
 * Link-time optimisation with gcc: the linker's plug-in takes objects that hold gcc's own form of the
 * program, runs the program lto-wrapper and links the objects that this one names on its output.
 * `weir count` puts itself in the place of lto-wrapper: it runs the true one and puts counting code
 * into those objects, where they are. The linker's side is here:
 *
 *	lto_link_way	who makes the code
 *	lto_link_begin	before the linker runs: the other program in the place of lto-wrapper
 *	lto_link_end	afterwards: what it did
 */
#ifndef WEIR_CMD_COUNT_LTO_H
#define WEIR_CMD_COUNT_LTO_H

#include "cmd/counted_files.h"
#include "insert/link_command.h"

struct lto_link {
	int names;  /* of functions with counting code, for the one in between; a line each */
	int report; /* its own, as insert_report_put writes it */
};

enum link_lto lto_link_way(const struct link_command *command, const char *linker);
/* All files have been inserted. */
int lto_link_begin(struct lto_link *lto, struct counted_files *c, struct link_command *command,
	struct err *err);
void lto_link_end(struct lto_link *lto, struct counted_files *c, const char *output);

#endif
