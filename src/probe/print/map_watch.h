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
#include "record/perf_set.h"

struct map_watch {
	struct perf_event_attr attr;
	int epoll_fd; /* readable when a ring has filled up enough to be worth emptying */
	VEC(struct perf_ring) rings;
	VEC(struct collected *) waiting;
	uint64_t n_lost; /* records that a full ring lost, as it says itself */
	uint8_t scratch[PERF_RECORD_BYTES_MAX]; /* a record that wraps around the ring's end */
};
int map_watch_open(struct map_watch **out, struct err *err);
void map_watch_close(struct map_watch *w);

/* Hands out what has come and is not of later than `until`, by time; a record is the callee's only during
 * the call. Records are complete up to the moment of the call; what is later waits for the next one. */
void map_watch_work(struct map_watch *w, uint64_t until,
	void (*each)(void *ctx, const struct collected *r), void *ctx);

/* Records that full rings have lost up to now. */
uint64_t map_watch_n_lost(const struct map_watch *w);

#endif
