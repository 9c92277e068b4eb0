/* SPDX-License-Identifier: MIT */
/*
 * What Linux does with a uprobe at an instruction: refuses it, replaces it, emulates it, or runs a
 * copy of it under single-step. The rules are those of arch/x86/kernel/uprobes.c as of Linux 6.18;
 * older kernels emulate fewer nops, newer ones more.
 */
#ifndef WEIR_PROBE_POINTS_SITE_COST_H
#define WEIR_PROBE_POINTS_SITE_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"
#include "probe/points/point.h"

/* Of the instruction at the start of `code`, which lies at `offset` in its file. On refusal
 * SITE_UNKNOWN and *why, a text that lives for ever. */
enum site_cost site_cost(struct span code, struct foff offset, enum mode mode, const char **why);

/* For a function whose first instruction is single-stepped: how many bytes behind it the nearest
 * instruction lies that is not, with every argument, the stack pointer and the frame pointer as
 * they were, and that the function never jumps back to. 0 = there is none. `function` is all of
 * its code; at most SITE_CHEAPER_SCAN_MAX bytes are searched for jumps, longer ones give 0. */
#define SITE_CHEAPER_SCAN_MAX 16384
uint32_t site_cheaper(struct span function, struct foff offset, enum mode mode);

/* Is `into` the start of an instruction, counted from the function's first one? */
bool site_is_boundary(struct span function, uint64_t into, enum mode mode);

#endif
