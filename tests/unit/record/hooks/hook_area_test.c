/* SPDX-License-Identifier: MIT */
/* The shared memory, and emptying its rings: the test is both the program and the recorder. */
#include "record/hooks/area.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "record/hooks/hooks_internal.h"
#include "record/hooks/transcript_internal.h"

#define RING_BYTES 65536u
#define RING_N	   (RING_BYTES / (uint32_t)sizeof(struct hook_record))

/* --- the area ------------------------------------------------------------------------------ */

static void it_has_room_for_its_threads(void)
{
	struct hook_area a;
	struct err err;

	CHECK_EQ(hook_area_open(&a, &(struct hook_area_options){.is_64 = true}, &err), 0);
	CHECK_EQ(a.control->magic, HOOK_ABI_MAGIC);
	CHECK_EQ(a.control->version, HOOK_ABI_VERSION);
	CHECK_EQ(a.control->mode, HOOK_MODE_EVENTS);
	CHECK_EQ(a.n_threads, 8192);
	CHECK_EQ(a.control->n_threads, 8192);
	CHECK_EQ(a.control->ring_bytes, 512 << 10);
	CHECK_EQ(a.control->part_bytes, (512 << 10) / 16);
	CHECK_EQ(a.control->area_bytes, a.bytes);
	CHECK_EQ(a.control->rings_offset % 4096, 0);
	CHECK_EQ(a.rings_offset + a.n_threads * a.ring_bytes, a.bytes);
	CHECK((uint8_t *)(a.threads + a.n_threads) <= a.base + a.rings_offset);
	hook_area_ring(&a, 8191)[a.ring_mask].head = 1; /* it is there */
	hook_area_close(&a);
	CHECK_EQ(a.fd, -1);
}

static uint64_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return (uint64_t)pages * 4096;
}

/* The rings are those of the file, wherever they are mapped, and only some are. */
static void rings_are_mapped_when_asked_for(void)
{
	struct hook_area a;
	struct err err;
	uint64_t before = address_space(), record[2] = {0};
	const uint32_t some[] = {0, 1, 600, 511, 512, 8191};

	CHECK_EQ(hook_area_open(&a, &(struct hook_area_options){.is_64 = true}, &err), 0);
	CHECK(address_space() - before < 64u << 20);
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		hook_area_ring(&a, some[i])[3].data = 1000 + some[i];
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		CHECK_EQ(pread(a.fd, record, sizeof(record),
				 (off_t)(a.rings_offset + some[i] * a.ring_bytes +
					 3 * sizeof(record))),
			sizeof(record));
		CHECK_EQ(record[1], 1000 + some[i]);
	}
	CHECK_EQ(hook_area_n_used(&a), 0);
	a.control->n_used = UINT32_MAX; /* the program may write anything */
	CHECK_EQ(hook_area_n_used(&a), 8192);
	hook_area_close(&a);
	CHECK(address_space() - before < 64u << 20);
}

/* What it says it takes of a program's address space is all: below 32 MiB, for trees as well. */
static void a_program_maps_little_of_it(void)
{
	for (int i = 0; i < 4; i++) {
		struct hook_area_options o = {.is_64 = i & 1, .tree = i & 2};
		struct hook_area a;
		struct err err;

		CHECK_EQ(hook_area_open(&a, &o, &err), 0);
		CHECK(a.control->slab_threads > 0);
		CHECK_EQ(a.head_bytes, a.rings_offset + a.control->slab_threads * a.ring_bytes);
		CHECK(a.head_bytes <= (o.is_64 ? 20u << 20 : 5u << 20));
		CHECK((a.n_threads - 1) / a.control->slab_threads < HOOK_SLABS_MAX);
		hook_area_close(&a);
	}
}

static void a_32_bit_program_gets_less(void)
{
	struct hook_area a;
	struct err err;

	CHECK_EQ(hook_area_open(
			 &a, &(struct hook_area_options){.tree = true, .prune_permille = 50}, &err),
		0);
	CHECK_EQ(a.control->mode, HOOK_MODE_TREE);
	CHECK_EQ(a.control->prune_permille, 50);
	hook_area_close(&a);
	CHECK_EQ(hook_area_open(&a, &(struct hook_area_options){0}, &err), 0);
	CHECK(a.head_bytes < 64u << 20);
	hook_area_close(&a);
}

static void the_program_cannot_take_it_away(void)
{
	struct hook_area a;
	struct err err;

	CHECK_EQ(hook_area_open(&a, &(struct hook_area_options){.is_64 = true}, &err), 0);
	CHECK(ftruncate(a.fd, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(a.fd, (off_t)a.bytes * 2) < 0 && errno == EPERM);
	a.control->ring_bytes = 1u << 30; /* it may write nonsense: we do not read it */
	a.control->n_threads = 1u << 30;
	CHECK_EQ(hook_area_ring(&a, 1) - hook_area_ring(&a, 0), (512 << 10) / 16);
	hook_area_close(&a);
}

static void a_list_of_functions_to_unhook_ends(void)
{
	struct hook_area a;
	struct err err;

	CHECK_EQ(hook_area_open(&a, &(struct hook_area_options){.is_64 = true}, &err), 0);
	for (uint32_t i = 0; i < HOOK_OFF_MAX; i++)
		CHECK(hook_area_turn_off(&a, i + 7));
	CHECK(!hook_area_turn_off(&a, 1));
	CHECK_EQ(a.control->n_off, HOOK_OFF_MAX);
	CHECK_EQ(a.control->off[3], 10);
	hook_area_close(&a);
}

/* --- emptying rings ------------------------------------------------------------------------ */

struct world {
	struct hooks *h;
	struct hook_process *p;
	pid_t child; /* the process, as far as the kernel knows; -1 = it has ended */
	struct hook_source *source, *second;
	struct hook_chunk *used;
};

static void open_world(struct world *w)
{
	struct err err;

	memset(w, 0, sizeof(*w));
	w->h = mem_zalloc(sizeof(*w->h));
	w->h->options.ring_bytes = RING_BYTES;
	w->h->event_fd = w->h->wake_fd = w->h->family_fd = w->h->listener.path_fd = -1;
	pthread_mutex_init(&w->h->lock, NULL);
	pthread_mutex_init(&w->h->planner_lock, NULL);
	pthread_cond_init(&w->h->changed, NULL);
	w->child = fork();
	if (!w->child) {
		pause();
		_exit(0);
	}
	w->p = mem_zalloc(sizeof(*w->p));
	w->p->n_refs = 1;
	w->p->pid = (uint32_t)w->child;
	w->p->is_64 = true;
	w->p->pid_fd = (int)syscall(SYS_pidfd_open, w->child, 0);
	CHECK_EQ(
		hook_area_open(&w->p->area,
			&(struct hook_area_options){.is_64 = true, .ring_bytes = RING_BYTES}, &err),
		0);
	w->p->rings = mem_calloc(w->p->area.n_threads, sizeof(*w->p->rings));
	w->p->layout = hook_layout_new(NULL);
	hooks_add_process(w->h, w->p);
}

static void end_child(struct world *w)
{
	if (w->child > 0) {
		kill(w->child, SIGKILL);
		waitpid(w->child, NULL, 0);
	}
	w->child = -1;
}

static void close_world(struct world *w)
{
	end_child(w);
	if (w->source)
		hook_source_free(w->h, w->source);
	if (w->second)
		hook_source_free(w->h, w->second);
	while (w->used) {
		struct hook_chunk *next = w->used->next;

		free(w->used);
		w->used = next;
	}
	hooks_close(w->h);
}

/* As the library does when a thread calls its first hooked function. */
static void take_entry(struct world *w, uint32_t i)
{
	struct hook_thread *t = &w->p->area.threads[i];

	CHECK_EQ(t->state, HOOK_THREAD_FREE);
	CHECK_EQ(t->consumed, 0);
	t->tid = (uint32_t)w->child;
	if (w->p->area.control->n_used <= i)
		w->p->area.control->n_used = i + 1;
	__atomic_store_n(&t->state, HOOK_THREAD_LIVE, __ATOMIC_RELEASE);
}

static void put(struct world *w, uint32_t i, uint64_t at, uint64_t head, uint64_t data)
{
	struct hook_record *r = &hook_area_ring(&w->p->area, i)[at % RING_N];

	CHECK_EQ(r->head, 0); /* nothing that was not taken is written over */
	r->data = data;
	__atomic_store_n(&r->head, head, __ATOMIC_RELEASE);
}

static void note_source(void *ctx, struct hook_source *s)
{
	struct world *w = ctx;

	if (w->source)
		w->second = s;
	else
		w->source = s;
}

static uint64_t enter(uint64_t id)
{
	return HOOK_HEAD(HOOK_RECORD_ENTER, id, 5);
}

/* The data of all records that are there, in order; returns how many. */
static size_t take_all(struct world *w, uint64_t *data, size_t max)
{
	size_t n = 0;

	hooks_take(w->h, &w->used, note_source, w);
	while (w->source && w->source->mine) {
		struct hook_chunk *c = w->source->mine;

		for (uint32_t i = 0; i < c->n && n < max; i++)
			data[n++] = c->records[i].data;
		w->source->mine = c->next;
		c->next = w->used;
		w->used = c;
	}
	return n;
}

static void records_are_taken_in_order_once(void)
{
	uint64_t data[100];
	struct world w;

	open_world(&w);
	CHECK_EQ(hook_drain_round(w.h, false), 0);
	take_entry(&w, 0);
	for (uint64_t i = 0; i < 40; i++)
		put(&w, 0, i, enter(1), 100 + i);
	CHECK_EQ(hook_drain_round(w.h, false), 40);
	CHECK_EQ(w.p->area.threads[0].consumed, 40);
	CHECK_EQ(hook_area_ring(&w.p->area, 0)[7].head, 0);
	CHECK_EQ(hook_drain_round(w.h, false), 0);
	put(&w, 0, 40, enter(1), 140);
	CHECK_EQ(hook_drain_round(w.h, false), 1);
	CHECK_EQ(take_all(&w, data, 100), 41);
	for (uint64_t i = 0; i < 41; i++)
		CHECK_EQ(data[i], 100 + i);
	CHECK_EQ(w.source->tid, (uint64_t)w.child);
	CHECK_EQ(take_all(&w, data, 100), 0);
	close_world(&w);
}

/* A signal handler came between taking a record and writing it. */
static void a_record_that_is_not_written_yet_holds_up_those_behind_it(void)
{
	uint64_t data[10];
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	put(&w, 0, 0, enter(1), 1);
	put(&w, 0, 2, enter(1), 3);
	CHECK_EQ(hook_drain_round(w.h, false), 1);
	put(&w, 0, 1, enter(1), 2);
	CHECK_EQ(hook_drain_round(w.h, false), 2);
	CHECK_EQ(take_all(&w, data, 10), 3);
	CHECK_EQ(data[1], 2);
	CHECK_EQ(data[2], 3);
	close_world(&w);
}

static void a_ring_is_used_around_and_around(void)
{
	uint64_t *data = calloc(RING_N * 5, sizeof(*data)), at = 0, seen = 0;
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	for (int round = 0; round < 7; round++) {
		for (uint32_t i = 0; i < RING_N - 100; i++, at++)
			put(&w, 0, at, enter(1), at);
		CHECK_EQ(hook_drain_round(w.h, false), RING_N - 100);
		CHECK_EQ(w.p->area.threads[0].consumed, at);
		for (size_t i = take_all(&w, data, RING_N * 5), k = 0; k < i; k++)
			CHECK_EQ(data[k], seen++);
	}
	CHECK_EQ(seen, at);
	close_world(&w);
	free(data);
}

static void stacks_and_padding_are_taken_as_a_whole(void)
{
	uint64_t data[20];
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	/* 40 bytes: three records, whatever their first word is. */
	put(&w, 0, 1, 0x1111, 0xa1);
	put(&w, 0, 3, 0x3333, 0xa3);
	hook_area_ring(&w.p->area, 0)[2].data = 0xa2; /* its first word is zero */
	put(&w, 0, 0, HOOK_HEAD(HOOK_RECORD_MORE, HOOK_MORE_STACK, 5), 40);
	put(&w, 0, 4, HOOK_HEAD(HOOK_RECORD_MORE, HOOK_MORE_PAD, 5), 10);
	put(&w, 0, 15, enter(2), 0xb0);
	CHECK_EQ(hook_drain_round(w.h, false), 16);
	CHECK_EQ(take_all(&w, data, 20), 5);
	CHECK_EQ(data[1], 0xa1);
	CHECK_EQ(data[2], 0xa2);
	CHECK_EQ(data[4], 0xb0);
	for (uint32_t i = 0; i < 20; i++)
		CHECK_EQ(hook_area_ring(&w.p->area, 0)[i].head, 0);
	close_world(&w);
}

static void nonsense_stops_the_program_from_writing(void)
{
	uint64_t data[10];
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	put(&w, 0, 0, enter(1), 1);
	put(&w, 0, 1, HOOK_HEAD(HOOK_RECORD_MORE, HOOK_MORE_STACK, 5), UINT64_MAX);
	put(&w, 0, 2, enter(1), 2);
	CHECK_EQ(hook_drain_round(w.h, false), 1);
	CHECK_EQ(w.p->area.control->is_off, 1);
	CHECK_EQ(hook_drain_round(w.h, false), 0);
	CHECK_EQ(take_all(&w, data, 10), 1);
	end_child(&w);
	hook_drain_round(w.h, true);
	take_all(&w, data, 10);
	CHECK(w.source->mine_is_over);
	CHECK(w.source->n_unread > 0);
	close_world(&w);
}

static void a_waiting_thread_is_told(void)
{
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	put(&w, 0, 0, enter(1), 1);
	w.p->area.threads[0].is_waiting = 1;
	hook_drain_round(w.h, false);
	CHECK_EQ(w.p->area.threads[0].is_waiting, 0);
	CHECK(w.p->area.control->heartbeat > 0);
	hooks_take(w.h, &w.used, note_source, &w);
	close_world(&w);
}

static void what_a_killed_process_wrote_is_there(void)
{
	uint64_t data[10];
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	take_entry(&w, 3);
	for (uint64_t i = 0; i < 5; i++)
		put(&w, 0, i, enter(1), i);
	put(&w, 0, 6, enter(1), 6); /* it was killed before it wrote the fifth */
	w.p->area.threads[0].n_dropped = 12;
	end_child(&w);
	CHECK_EQ(hook_drain_round(w.h, false), 5);
	CHECK(!w.p->has_ended);
	hook_drain_round(w.h, true);
	CHECK(w.p->has_ended);
	CHECK(!w.p->area.base);
	CHECK_EQ(w.h->dirty.n, 2); /* the other thread is over, too */
	CHECK_EQ(take_all(&w, data, 10), 6);
	CHECK_EQ(data[5], 6); /* behind the one that was never written */
	CHECK_EQ(w.source->counts.n_dropped, 12);
	CHECK_EQ(w.source->n_unread, 1);
	CHECK_EQ(w.second->thread_i, 3);
	CHECK(w.source->mine_is_over && w.second->mine_is_over);
	close_world(&w);
}

static void an_entry_goes_to_the_next_thread(void)
{
	uint64_t data[10];
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	put(&w, 0, 0, enter(1), 11);
	put(&w, 0, 1, enter(1), 12);
	w.p->area.threads[0].n_stalls = 3;
	w.p->area.threads[0].state = HOOK_THREAD_GONE;
	CHECK_EQ(hook_drain_round(w.h, false), 2);
	CHECK_EQ(take_all(&w, data, 10), 2);
	CHECK(w.source->mine_is_over);
	CHECK_EQ(w.source->counts.n_stalls, 3);
	hook_source_free(w.h, w.source);
	w.source = NULL;
	take_entry(&w, 0); /* checks that it is as new */
	put(&w, 0, 0, enter(1), 21);
	CHECK_EQ(hook_drain_round(w.h, false), 1);
	CHECK_EQ(take_all(&w, data, 10), 1);
	CHECK_EQ(data[0], 21);
	close_world(&w);
}

/* Entries far behind those in use are looked at now and then, and in any case at the end. */
static void the_last_thread_of_a_program_is_found_wherever_it_is(void)
{
	uint64_t data[10];
	struct world w;

	open_world(&w);
	take_entry(&w, 0);
	CHECK_EQ(hook_drain_round(w.h, false), 0);
	take_entry(&w, 40);
	put(&w, 40, 0, enter(1), 7);
	CHECK_EQ(hook_drain_round(w.h, false), 0);
	w.p->is_superseded = true; /* by exec */
	CHECK_EQ(hook_drain_round(w.h, false), 1);
	CHECK(w.p->has_ended);
	CHECK_EQ(take_all(&w, data, 10), 1);
	CHECK_EQ(data[0], 7);
	close_world(&w);
}

/*
 * The recorder reads its counter before the last record is there, as processors may do, and the machine
 * has just begun: there is no earlier time that ends in the same bits.
 */
static void an_event_that_seems_younger_than_its_reading_is_kept(void)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct trace_writer *writer;
	struct processes *processes;
	struct transcript *t;
	struct world w;
	struct err err;

	open_world(&w);
	w.h->planner = hook_planner_new();
	CHECK_EQ(trace_writer_open_fd(&writer, fd, "trace", &err), 0);
	processes = processes_new(writer, trace_writer_stream(writer, STREAM_KIND_LIFE, 0));
	t = transcript_new(w.h, &(struct transcript_world){.w = writer, .processes = processes});
	t->clock = (struct tick_clock){0};
	tick_clock_add(&t->clock, 0, 0);
	tick_clock_add(&t->clock, 1000000, 500000);
	take_entry(&w, 0);
	for (uint64_t i = 0; i < 3; i++)
		put(&w, 0, i, HOOK_HEAD(HOOK_RECORD_ENTER, 1, 1000 + 100 * i), 1);
	CHECK_EQ(hook_drain_round(w.h, false), 3);
	w.p->rings[0].source->last->ticks = 1150;
	w.h->stop_ticks = 2000;
	transcript_take(t);
	transcript_advance_all(t, 580); /* ns: not yet the last */
	CHECK_EQ(t->n_events, 2);
	transcript_advance_all(t, UINT64_MAX);
	CHECK_EQ(t->n_events, 3);
	CHECK_EQ(t->threads.v[0]->last_ns, 600);
	transcript_free(t);
	processes_free(processes);
	CHECK_EQ(trace_writer_close(writer, &err), 0);
	close_world(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"an area has room for its threads and their rings", it_has_room_for_its_threads},
		{"rings are mapped when they are asked for", rings_are_mapped_when_asked_for},
		{"a program maps little of it at first", a_program_maps_little_of_it},
		{"a 32-bit program gets a smaller one", a_32_bit_program_gets_less},
		{"the program can neither shrink it nor mislead us by its numbers",
			the_program_cannot_take_it_away},
		{"the list of functions to unhook ends", a_list_of_functions_to_unhook_ends},
		{"records are taken in order, once", records_are_taken_in_order_once},
		{"a record that is not written yet holds up those behind it",
			a_record_that_is_not_written_yet_holds_up_those_behind_it},
		{"a ring is used around and around", a_ring_is_used_around_and_around},
		{"stacks and padding are taken as a whole",
			stacks_and_padding_are_taken_as_a_whole},
		{"a record that makes no sense ends the recording of its thread",
			nonsense_stops_the_program_from_writing},
		{"a thread that waits for room is told", a_waiting_thread_is_told},
		{"what a killed process wrote is taken", what_a_killed_process_wrote_is_there},
		{"the entry of a thread that has ended goes to the next",
			an_entry_goes_to_the_next_thread},
		{"the last thread of a program is found wherever it is",
			the_last_thread_of_a_program_is_found_wherever_it_is},
		{"an event that seems to be younger than its reading is kept, and in its place",
			an_event_that_seems_younger_than_its_reading_is_kept},
	};

	return RUN_TESTS(tests);
}
