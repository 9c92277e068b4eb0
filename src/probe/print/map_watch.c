/* SPDX-License-Identifier: MIT */
#include "probe/print/map_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/order.h"

#define CPUS_MAX       4096
#define RING_BYTES     ((size_t)256 << 10) /* about 2,000 mappings */
#define RING_BYTES_MIN ((size_t)16 << 10)
#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1u << 4) /* Linux 6.0 */
#endif

static const struct perf_event_attr watched = {.size = sizeof(watched),
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_DUMMY,
	/* What collected_decode expects at the end of every record. */
	.sample_type =
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
	.sample_id_all = 1,
	.read_format = PERF_FORMAT_LOST,
	.use_clockid = 1,
	.clockid = CLOCK_MONOTONIC,
	.mmap = 1,
	.mmap2 = 1,
	.comm = 1,
	.comm_exec = 1,
	.task = 1,
	.build_id = 1,
	.exclude_kernel = 1,
	.watermark = 1,
	.wakeup_watermark = RING_BYTES / 8};

static int try_event(const struct map_watch *w, unsigned cpu)
{
	return (int)syscall(SYS_perf_event_open, &w->attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_event(struct map_watch *w, unsigned cpu)
{
	int fd = try_event(w, cpu);

	if (fd < 0 && errno == EINVAL && w->attr.read_format) { /* before 6.0 */
		w->attr.read_format = 0;
		fd = try_event(w, cpu);
	}
	if (fd < 0 && errno == EINVAL && w->attr.build_id) { /* before 5.12 */
		w->attr.build_id = 0;
		fd = try_event(w, cpu);
	}
	return fd;
}

static int open_ring(struct map_watch *w, unsigned cpu, struct err *err)
{
	struct epoll_event wanted = {.events = EPOLLIN};
	struct perf_ring ring = {.fd = open_event(w, cpu)};
	size_t bytes = RING_BYTES;

	if (ring.fd < 0)
		return err_sys(err, errno,
			"user stacks: mappings of processes cannot be watched on CPU %u", cpu);
	while (!perf_ring_map(&ring, ring.fd, bytes) && bytes > RING_BYTES_MIN)
		bytes /= 2;
	if (!ring.page || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, ring.fd, &wanted) < 0) {
		int errnum = errno;

		perf_ring_unmap(&ring);
		close(ring.fd);
		return err_sys(err, errnum,
			"user stacks: no ring for the mappings of processes on CPU %u", cpu);
	}
	vec_push(&w->rings, ring);
	return 0;
}

int map_watch_open(struct map_watch **out, struct err *err)
{
	struct map_watch *w = mem_zalloc(sizeof(*w));
	unsigned cpus[CPUS_MAX];
	size_t n = perf_online_cpus(cpus, CPUS_MAX);
	int rc = 0;

	w->attr = watched;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll_fd < 0)
		rc = err_sys(err, errno, "user stacks: no descriptor for mappings of processes");
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = open_ring(w, cpus[i], err);
	if (rc < 0) {
		map_watch_close(w);
		return rc;
	}
	*out = w;
	return 0;
}

void map_watch_close(struct map_watch *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->rings.n; i++) {
		perf_ring_unmap(&w->rings.v[i]);
		close(w->rings.v[i].fd);
	}
	for (size_t i = 0; i < w->waiting.n; i++)
		collected_free(w->waiting.v[i]);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	vec_release(&w->rings);
	vec_release(&w->waiting);
	free(w);
}

static void take_record(void *ctx, struct span bytes)
{
	struct map_watch *w = ctx;
	struct collected *r = collected_decode(&w->attr, bytes);

	if (r && r->kind == COLLECTED_LOST) {
		w->n_lost += r->lost.n;
		collected_free(r);
	} else if (r) {
		vec_push(&w->waiting, r);
	}
}

static int compare_times(const void *left, const void *right)
{
	const struct collected *const *a = left, *const *b = right;

	return ORDER((*a)->time, (*b)->time);
}

void map_watch_work(struct map_watch *w, uint64_t until,
	void (*each)(void *ctx, const struct collected *r), void *ctx)
{
	uint64_t now = clock_mono_ns();
	size_t n = 0;

	until = until < now ? until : now;

	for (size_t i = 0; i < w->rings.n; i++)
		perf_ring_drain(&w->rings.v[i], w->scratch, take_record, w);
	vec_sort(&w->waiting, compare_times);
	/* A ring that was emptied early may hold older ones than those behind `until`. */
	for (; n < w->waiting.n && w->waiting.v[n]->time <= until; n++) {
		each(ctx, w->waiting.v[n]);
		collected_free(w->waiting.v[n]);
	}
	if (n)
		memmove(w->waiting.v, w->waiting.v + n, (w->waiting.n - n) * sizeof(*w->waiting.v));
	w->waiting.n -= n;
}

/* The kernel says how many were lost in front of the next record, which may never come: it is asked, where it
 * can be. */
uint64_t map_watch_n_lost(const struct map_watch *w)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w->rings.n && w->attr.read_format; i++) {
		uint64_t values[2]; /* the count of a dummy event, and the records lost */

		if (read(w->rings.v[i].fd, values, sizeof(values)) == (ssize_t)sizeof(values))
			n += values[1];
	}
	return n > w->n_lost ? n : w->n_lost;
}
