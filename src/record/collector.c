/* SPDX-License-Identifier: MIT */
#include "record/collector.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map_guard.h"
#include "record/deep_stacks.h"

#define ROUND_MS	10
#define QUEUE_BYTES_MAX ((size_t)256 << 20)

struct collector {
	struct perf_set *set;
	pthread_t thread;
	bool thread_runs;
	int event_fd;
	atomic_bool stop; /* set by collector_stop, read by the thread each round */

	pthread_mutex_t lock; /* guards the next three */
	struct collected_list ready;
	atomic_size_t
		queued_bytes; /* of ready; written under the lock, read without it as a hint */
	pthread_cond_t taken; /* signalled when the queue was emptied */

	uint64_t round_began;	   /* of the round before, thread only */
	atomic_ullong n_completed; /* statistics: written by the thread, read by anyone, relaxed */
	uint8_t scratch[PERF_RECORD_BYTES_MAX]; /* a record that wraps around the ring's end */
};

/* False: not an event of the kernel. The map is complete before the thread starts, but for the events of
 * perf_set_watch_unmaps(). */
static bool find_kernel_event(const struct perf_set *set, uint64_t id, enum kernel_event *event)
{
	const uint64_t *event_i = map_find(&set->event_of_id, id);

	*event = KERNEL_EVENT_MUNMAP;
	if (event_i && *event_i >= PERF_EVENT_KERNEL)
		*event = (enum kernel_event)(*event_i - PERF_EVENT_KERNEL);
	return !event_i || *event_i >= PERF_EVENT_KERNEL;
}

static struct collected *decode(const struct perf_set *set, struct span bytes)
{
	enum kernel_event event;
	uint64_t id;

	if (!collected_sample_event(bytes, &id) || !find_kernel_event(set, id, &event))
		return collected_decode(&set->attrs[0], bytes);
	return collected_decode_kernel(event, &set->kernel[event].point, bytes);
}

struct round {
	struct perf_set *set;
	struct collected_list fresh;
	size_t bytes;
};

static void take_record(void *ctx, struct span bytes)
{
	struct round *round = ctx;
	struct collected *r = decode(round->set, bytes);

	if (!r)
		return;
	vec_push(&round->fresh.items, r);
	round->bytes += r->bytes;
}

/* What the ring of stacks had no room for was not sampled at all. Told once, at the end. */
static void tell_lost(struct collector *c, struct collected_list *list)
{
	uint64_t n = deep_stacks_n_lost(c->set->deep);
	struct collected *r = n ? mem_zalloc(sizeof(*r)) : NULL;

	if (!r)
		return;
	*r = (struct collected){
		.kind = COLLECTED_LOST, .time = clock_mono_ns(), .bytes = sizeof(*r), .lost.n = n};
	vec_push(&list->items, r);
}

/* When the taker is late, outer frames are given up before whole samples are. */
static struct deep_stack *take_stack(struct collector *c, struct collected *r, size_t added)
{
	struct deep_stack *stack = deep_stacks_take(c->set->deep,
		&(struct deep_key){.time = r->time,
			.sp = r->sample.regs.r[CPU_REG_RSP],
			.ip = r->sample.regs.r[CPU_REG_RIP],
			.cpu = r->cpu},
		r->sample.below, &r->sample.n_below);

	if (stack && atomic_load_explicit(&c->queued_bytes, memory_order_relaxed) + added >
			     QUEUE_BYTES_MAX / 4)
		stack = deep_stack_cut(stack, c->set->stack_bytes);
	return stack;
}

/* Gives samples the stacks that the BPF program copied. */
static size_t complete_stacks(struct collector *c, struct collected_list *list)
{
	size_t added = 0;

	deep_stacks_collect(c->set->deep);
	for (size_t i = 0; i < list->items.n; i++) {
		struct collected *r = list->items.v[i];

		if (r->kind != COLLECTED_SAMPLE || !r->sample.has_regs)
			continue;
		r->sample.deep = take_stack(c, r, added);
		if (!r->sample.deep)
			continue;
		r->sample.stack = r->sample.deep->bytes;
		added += r->sample.deep->n_bytes;
		if (r->sample.stack.n > c->set->stack_bytes)
			atomic_fetch_add_explicit(&c->n_completed, 1, memory_order_relaxed);
	}
	if (atomic_load(&c->stop))
		tell_lost(c, list);
	/* What was not asked for in this round may belong to a sample of the next. */
	deep_stacks_forget(c->set->deep, c->round_began);
	return added;
}

/*
 * A record is time-stamped a little before it becomes visible, and CPUs do so independently. What
 * was stamped before the previous round began has certainly become visible by now.
 */
static void run_round(struct collector *c)
{
	struct round round = {.set = c->set};
	uint64_t began = clock_mono_ns(), one = 1;

	for (size_t i = 0; i < c->set->n_rings; i++)
		if (c->set->rings[i].page)
			perf_ring_drain(&c->set->rings[i], c->scratch, take_record, &round);
	if (c->set->deep)
		round.bytes += complete_stacks(c, &round.fresh);
	pthread_mutex_lock(&c->lock);
	while (c->queued_bytes > QUEUE_BYTES_MAX && !atomic_load(&c->stop))
		pthread_cond_wait(&c->taken, &c->lock);
	for (size_t i = 0; i < round.fresh.items.n; i++)
		vec_push(&c->ready.items, round.fresh.items.v[i]);
	c->queued_bytes += round.bytes;
	c->ready.complete_until = c->round_began;
	pthread_mutex_unlock(&c->lock);
	c->round_began = began;
	if (round.fresh.items.n && write(c->event_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		atomic_store(&c->stop, true);
	vec_release(&round.fresh.items);
}

/* Among a thousand busy threads a fair share would come too late; it needs little, but on time.
 * Root may; others run without it. */
static void hurry(void)
{
	struct sched_param first = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) < 0)
		setpriority(PRIO_PROCESS, (id_t)gettid(), -20);
}

static void *collector_main(void *arg)
{
	struct collector *c = arg;
	struct pollfd *fds = mem_calloc(c->set->n_rings + 2, sizeof(*fds));
	nfds_t n = 0;

	hurry();
	for (size_t i = 0; i < c->set->n_rings; i++)
		if (c->set->rings[i].page)
			fds[n++] = (struct pollfd){.fd = c->set->rings[i].fd, .events = POLLIN};
	if (c->set->deep)
		fds[n++] = (struct pollfd){.fd = deep_stacks_fd(c->set->deep), .events = POLLIN};
	while (!atomic_load(&c->stop)) {
		poll(fds, n, ROUND_MS);
		/* A task that ended reports POLLHUP for ever: leave it to the timer. */
		for (nfds_t i = 0; i < n; i++)
			if (fds[i].revents & (POLLHUP | POLLERR))
				fds[i].fd = -1;
		run_round(c);
	}
	free(fds);
	return NULL;
}

int collector_start(struct collector **out, struct perf_set *set, struct err *err)
{
	struct collector *c = mem_zalloc(sizeof(*c));
	sigset_t all, old;
	int rc;

	c->set = set;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->taken, NULL);
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0) {
		rc = err_sys(err, errno, "cannot make an eventfd");
		free(c);
		return rc;
	}
	map_guard_fill_mask(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&c->thread, NULL, collector_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		rc = err_sys(err, rc, "cannot start the collecting thread");
		collector_free(c);
		return rc;
	}
	c->thread_runs = true;
	*out = c;
	return 0;
}

int collector_fd(const struct collector *c)
{
	return c->event_fd;
}

void collector_take(struct collector *c, struct collected_list *list)
{
	uint64_t count;

	if (read(c->event_fd, &count, sizeof(count)) < 0)
		count = 0; /* nothing was announced; take what there is all the same */
	pthread_mutex_lock(&c->lock);
	*list = c->ready;
	c->ready = (struct collected_list){.complete_until = list->complete_until};
	c->queued_bytes = 0;
	pthread_cond_signal(&c->taken);
	pthread_mutex_unlock(&c->lock);
}

void collector_stop(struct collector *c)
{
	if (!c->thread_runs)
		return;
	atomic_store(&c->stop, true);
	pthread_mutex_lock(&c->lock);
	pthread_cond_signal(&c->taken);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	c->thread_runs = false;
	run_round(c);
	c->ready.complete_until = UINT64_MAX;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	collector_stop(c);
	for (size_t i = 0; i < c->ready.items.n; i++)
		collected_free(c->ready.items.v[i]);
	vec_release(&c->ready.items);
	close(c->event_fd);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->taken);
	free(c);
}

uint64_t collector_n_completed(const struct collector *c)
{
	return atomic_load_explicit(&c->n_completed, memory_order_relaxed);
}
