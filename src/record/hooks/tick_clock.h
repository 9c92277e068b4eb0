/* SPDX-License-Identifier: MIT */
/*
 * From ticks of the processor's time stamp counter, which hooks read, to CLOCK_MONOTONIC, in which
 * a trace counts. Both are read together now and then; between two such points the conversion is
 * linear, so it never goes back, and it follows a clock that is being steered. What is converted
 * must be older than the latest point, or it is extrapolated.
 */
#ifndef WEIR_RECORD_HOOKS_TICK_CLOCK_H
#define WEIR_RECORD_HOOKS_TICK_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct tick_point {
	uint64_t ticks, ns;
};

#define TICK_POINTS_MAX 256

struct tick_clock {
	struct tick_point points[TICK_POINTS_MAX]; /* ascending; the oldest are forgotten */
	size_t n;
	/* The stretch that was used last: from start up to end. */
	uint64_t start, end, start_ns;
	uint64_t scale;	   /* ns for a tick, times 2^32 */
	uint64_t error_ns; /* the widest reading of a point so far, halved */
};

/* Takes the first two points, some ms apart. */
void tick_clock_init(struct tick_clock *c);
/* Reads both clocks, best of several. Points closer together than 50 ms replace the last one. */
void tick_clock_refine(struct tick_clock *c);
/* For tests, and for points that came from elsewhere. */
void tick_clock_add(struct tick_clock *c, uint64_t ticks, uint64_t ns);

/* Finds the stretch; tick_clock_ns uses it. */
void tick_clock_seek(struct tick_clock *c, uint64_t ticks);

static inline uint64_t tick_clock_ns(struct tick_clock *c, uint64_t ticks)
{
	if (ticks - c->start >= c->end - c->start)
		tick_clock_seek(c, ticks);
	return c->start_ns +
	       (uint64_t)(((__int128)(int64_t)(ticks - c->start) * (__int128)c->scale) >> 32);
}

/* A processor may read its counter before it has what stands in front of that, and counters of
 * processors may differ: neither by as much as this. */
#define TICK_AHEAD_MAX ((uint64_t)1 << 32)

static inline uint64_t tick_clock_read(void)
{
	return __builtin_ia32_rdtsc();
}

/* A time stamp of which only the lower `bits` are known, which was found by `latest`: it may seem to
 * be a little later than that all the same. */
static inline uint64_t tick_clock_complete(uint64_t latest, uint64_t low, unsigned bits)
{
	uint64_t mask = ((uint64_t)1 << bits) - 1, limit = latest + TICK_AHEAD_MAX;

	return limit - ((limit - low) & mask);
}

/* Why the counter cannot be trusted on this machine, a sentence; NULL when it can. */
const char *tick_clock_doubt(void);
/* As the texts of /proc/cpuinfo and of current_clocksource say it; for tests. */
const char *tick_clock_doubt_of(const char *cpuinfo, const char *clocksource);

/* The counter's frequency, from the first and the latest point. */
double tick_clock_hz(const struct tick_clock *c);

#endif
