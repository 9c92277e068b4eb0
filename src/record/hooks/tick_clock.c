/* SPDX-License-Identifier: MIT */
#include "record/hooks/tick_clock.h"

#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/search.h"

#define READINGS	  9
#define FIRST_SPAN_NS	  3000000u
#define POINT_DISTANCE_NS 50000000u
#define CPUINFO_BYTES_MAX ((size_t)16 << 20)

/* The counter before and after the clock: the narrowest of some readings has the least error. */
static struct tick_point read_point(uint64_t *width)
{
	struct tick_point best = {0, 0};

	*width = UINT64_MAX;
	for (int i = 0; i < READINGS; i++) {
		uint64_t before = tick_clock_read(), ns = clock_mono_ns(),
			 after = tick_clock_read();

		if (after - before < *width) {
			*width = after - before;
			best = (struct tick_point){before + (after - before) / 2, ns};
		}
	}
	return best;
}

static void note_error(struct tick_clock *c, uint64_t width)
{
	double hz = tick_clock_hz(c);
	uint64_t ns = hz > 0 ? (uint64_t)((double)width / 2 / hz * 1e9) + 1 : 0;

	if (ns > c->error_ns)
		c->error_ns = ns;
}

void tick_clock_add(struct tick_clock *c, uint64_t ticks, uint64_t ns)
{
	const struct tick_point *last = c->n ? &c->points[c->n - 1] : NULL;

	if (last && (ticks <= last->ticks || ns < last->ns))
		return;
	/* The one before the last must be well behind: slopes over short distances are noise. */
	if (c->n >= 3 && ns - c->points[c->n - 2].ns < POINT_DISTANCE_NS) {
		c->points[c->n - 1] = (struct tick_point){ticks, ns};
	} else {
		if (c->n == TICK_POINTS_MAX) /* the first stays: tick_clock_hz */
			memmove(&c->points[1], &c->points[2], (--c->n - 1) * sizeof(*c->points));
		c->points[c->n++] = (struct tick_point){ticks, ns};
	}
	c->start = c->end = 0;
}

void tick_clock_refine(struct tick_clock *c)
{
	uint64_t width;
	struct tick_point p = read_point(&width);

	tick_clock_add(c, p.ticks, p.ns);
	note_error(c, width);
}

void tick_clock_init(struct tick_clock *c)
{
	uint64_t began;

	memset(c, 0, sizeof(*c));
	tick_clock_refine(c);
	began = clock_mono_ns();
	while (clock_mono_ns() - began < FIRST_SPAN_NS)
		nanosleep(&(struct timespec){0, FIRST_SPAN_NS / 3}, NULL);
	tick_clock_refine(c);
}

void tick_clock_seek(struct tick_clock *c, uint64_t ticks)
{
	const struct tick_point *a, *b;

	if (c->n < 2) {
		c->start = c->end = c->scale = 0;
		c->start_ns = c->n ? c->points[0].ns : 0;
		return;
	}
	/* The last stretch that begins at or before the ticks; the outer ones go on for ever. */
	b = &c->points[SEARCH(1, c->n - 1, i, c->points[i].ticks <= ticks)];
	a = b - 1;
	c->start = a->ticks;
	c->end = b->ticks;
	c->start_ns = a->ns;
	c->scale = (uint64_t)(((unsigned __int128)(b->ns - a->ns) << 32) / (b->ticks - a->ticks));
}

double tick_clock_hz(const struct tick_clock *c)
{
	const struct tick_point *a = &c->points[0], *b = c->n ? &c->points[c->n - 1] : a;

	if (b->ns <= a->ns)
		return 0;
	return (double)(b->ticks - a->ticks) * 1e9 / (double)(b->ns - a->ns);
}

const char *tick_clock_doubt_of(const char *cpuinfo, const char *clocksource)
{
	if (!strstr(cpuinfo, "constant_tsc"))
		return "the time stamp counter of this processor changes its rate with the clock "
		       "frequency (no constant_tsc): times of function events may be wrong";
	if (!strstr(cpuinfo, "nonstop_tsc"))
		return "the time stamp counter of this processor stops in deep sleep (no "
		       "nonstop_tsc): times of function events may be wrong";
	if (strncmp(clocksource, "tsc", 3) && strncmp(clocksource, "kvm-clock", 9) &&
		strncmp(clocksource, "hyperv", 6))
		return "the kernel does not use the time stamp counter as its clock: counters of "
		       "the CPUs may differ, and times of function events be wrong";
	return NULL;
}

const char *tick_clock_doubt(void)
{
	struct buf cpu = {0}, source = {0};
	const char *doubt = NULL;

	if (file_read(&cpu, "/proc/cpuinfo", CPUINFO_BYTES_MAX, NULL) == 0 &&
		file_read(&source,
			"/sys/devices/system/clocksource/clocksource0/current_clocksource", 256,
			NULL) == 0)
		doubt = tick_clock_doubt_of(buf_text(&cpu), buf_text(&source));
	buf_release(&cpu);
	buf_release(&source);
	return doubt;
}
