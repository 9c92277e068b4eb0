/* SPDX-License-Identifier: MIT */
/* Runs a recording of steps for a command line: in a process of its own, with notes and progress on
 * stderr. */
#ifndef WEIR_CMD_STEPS_RUN_H
#define WEIR_CMD_STEPS_RUN_H

#include "cmd/record_run.h"
#include "steps/record/step_session.h"

/* `options` without what is said meanwhile (parent_fd, progress, note, ctx). Returns weir's exit
 * status; a command that died of a signal makes weir die of the same one. */
int steps_run(const struct step_options *options, enum record_talk talk);

#endif
