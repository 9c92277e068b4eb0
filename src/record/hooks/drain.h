/* SPDX-License-Identifier: MIT */
/*
 * Emptying rings. A ring's records are taken in order up to the first that is not written yet, and
 * given back to the thread as zeros; a thread that waits for room is woken. Nothing that a program
 * writes into its area can lead outside of it.
 */
#ifndef WEIR_RECORD_HOOKS_DRAIN_H
#define WEIR_RECORD_HOOKS_DRAIN_H

#include "record/hooks/hooks_internal.h"

/* One look at every ring of every process; returns how many records were taken. With
 * `looks_for_ends` threads and processes that have ended are noticed. */
uint64_t hook_drain_round(struct hooks *h, bool looks_for_ends);

#endif
