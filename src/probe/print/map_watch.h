/* SPDX-License-Identifier: MIT */
/*
 * Tells of executable mappings, forks, execs and exits of all processes as they happen, so that
 * addresses of processes that are gone by the time of printing still have names. One dummy perf
 * event with a small ring on each CPU.
 */
#ifndef WEIR_PROBE_PRINT_MAP_WATCH_H
#define WEIR_PROBE_PRINT_MAP_WATCH_H

#include "base/err.h"
#include "record/collected.h"

struct map_watch;
int map_watch_open(struct map_watch **out, struct err *err);
void map_watch_close(struct map_watch *w);

/* Readable when a ring has filled up enough to be worth emptying. */
int map_watch_fd(const struct map_watch *w);
/* Hands out what has come, by time; a record is the callee's only during the call. Records are
 * complete up to the moment of the call; what comes during it may wait for the next one. */
void map_watch_work(
	struct map_watch *w, void (*each)(void *ctx, const struct collected *r), void *ctx);
/* Records that a full ring lost. */
uint64_t map_watch_n_lost(const struct map_watch *w);

#endif
