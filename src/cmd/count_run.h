/* SPDX-License-Identifier: MIT */
/* `weir count -- CMD` and `weir count -p PID`: counts of programs as they are, by the translator inside them. */
#ifndef WEIR_CMD_COUNT_RUN_H
#define WEIR_CMD_COUNT_RUN_H

#include "cmd/record_run.h"
#include "translate/translate_session.h"

/* `options` without translator, parent_fd, note and ctx. Returns weir's exit status; a command that died of a
 * signal makes weir die of the same one. */
int count_run(const struct translate_options *options, enum record_talk talk);
/* NULL when programs can be counted on this machine, else why not, a phrase. */
const char *count_run_hindrance(void);

#endif
