/* SPDX-License-Identifier: MIT */
/*
 * The thread that empties the rings. It does nothing that could make it late: it decodes, copies
 * and hands over; unwinding and writing happen on the caller's thread.
 */
#ifndef WEIR_RECORD_COLLECTOR_H
#define WEIR_RECORD_COLLECTOR_H

#include "base/err.h"
#include "base/mem.h"
#include "record/collected.h"
#include "record/perf_set.h"

struct collector;

struct collected_list {
	VEC(struct collected *) items;
	/* Every record older than this has been handed over. */
	uint64_t complete_until;
};

int collector_start(struct collector **out, struct perf_set *set, struct err *err);
/* A descriptor that becomes readable when there is something to take. */
int collector_fd(const struct collector *c);
/* Fills *list with what has come (the caller owns it and the records) and clears the descriptor. */
void collector_take(struct collector *c, struct collected_list *list);
/* Empties the rings a last time and ends the thread; take once more, then free. */
void collector_stop(struct collector *c);
void collector_free(struct collector *c);

/* How many stacks were longer than a copy by the kernel would be. */
uint64_t collector_n_completed(const struct collector *c);

#endif
