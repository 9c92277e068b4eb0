/* SPDX-License-Identifier: MIT */
/*
 * Programs with rights of their own (set-user-ID, set-group-ID, file capabilities) run without them when a process
 * traces them that may not trace everybody's.
 */
#ifndef WEIR_PROCESS_LOST_RIGHTS_H
#define WEIR_PROCESS_LOST_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

/* To be asked at the exec of each traced process: a sentence, owned, when the kernel has taken rights from its program
 * and that was not told yet, of this one or another; else NULL. */
char *process_lost_rights(pid_t pid, bool *is_told);

#endif
