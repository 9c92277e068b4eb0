/* SPDX-License-Identifier: MIT */
/* Hooking what is recorded: whether a command can be, processes that run already, and the end. */
#ifndef WEIR_RECORD_HOOKS_TARGETS_H
#define WEIR_RECORD_HOOKS_TARGETS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "record/hooks/hooks.h"

/* Why the command itself cannot be hooked, a sentence that the caller frees; NULL when it can, as
 * far as its file tells. What it starts may be another matter. */
char *hook_targets_doubt(const char *command);

/* Why LD_PRELOAD has no effect on the program in that file, a phrase; NULL when it should have. */
const char *hook_targets_hindrance(const char *path);

/* Hooks running processes; all or none. */
int hook_targets_attach(struct hooks *h, const pid_t *pids, size_t n, struct err *err);
/* Every process that is still hooked gets its code back. `note` (may be NULL) is called with a
 * sentence for each where that failed. */
void hook_targets_detach(struct hooks *h, void (*note)(void *ctx, const char *sentence), void *ctx);

#endif
