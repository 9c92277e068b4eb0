/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/* Trees read out of shared memory: at rest, while a thread works on them, and out of nonsense. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "check.h"
#include "record/hooks/area.h"
#include "record/hooks/tree_snapshot.h"
#include "rt/hook/tree.c" /* the writer; it is in no library of ours */
#include "trace/reader.h"

#define TREE_BYTES (256u << 10)

static struct hook_tree *tree_new(uint32_t permille)
{
	struct hook_tree *t = aligned_alloc(64, TREE_BYTES);

	memset(t, 0, TREE_BYTES);
	CHECK(hook_tree_init(t, TREE_BYTES, permille, 1000));
	return t;
}

static uint32_t enter(struct hook_tree *t, uint32_t current, uint32_t id, uint64_t now)
{
	struct hook_entry e[2] = {{.node = current}};
	uint32_t i = hook_tree_enter(t, &e[1], id, now);

	return i ? i : hook_tree_enter_late(t, current, id, now);
}

static const struct tree_node *find(const struct tree_copy *c, uint32_t parent, uint32_t id)
{
	for (size_t i = 0; i < c->nodes.n; i++)
		if (c->nodes.v[i].parent == parent && c->nodes.v[i].id == id)
			return &c->nodes.v[i];
	return NULL;
}

/* main (open since 2000) calls f twice (100 and 300) and is in g since 3000. */
static struct hook_tree *small_tree(void)
{
	struct hook_tree *t = tree_new(100);
	uint32_t m = enter(t, HOOK_TREE_ROOT, 1, 2000);

	hook_tree_leave_late(t, enter(t, m, 2, 2100), 2100, 2200);
	hook_tree_leave_late(t, enter(t, m, 2, 2300), 2300, 2600);
	enter(t, m, 3, 3000);
	return t;
}

static void test_copy(void)
{
	struct hook_tree *t = small_tree();
	struct tree_copy c = {0};
	const struct tree_node *m, *f, *g;

	CHECK(tree_copy_read(&c, t, TREE_BYTES, 3500, false));
	CHECK_EQ(c.nodes.n, 4); /* the branch of folded calls is always there */
	m = find(&c, 0, 1);
	CHECK(m && m->is_open);
	f = find(&c, m->number, 2);
	g = find(&c, m->number, 3);
	CHECK(f && g);
	CHECK_EQ(m->elapsed, 1500);
	CHECK_EQ(m->calls, 1);
	CHECK_EQ(m->max, 1500);
	CHECK_EQ(f->elapsed, 400);
	CHECK_EQ(f->calls, 2);
	CHECK_EQ(f->min, 100);
	CHECK_EQ(f->max, 300);
	CHECK(!f->is_open && g->is_open);
	CHECK_EQ(g->elapsed, 500);
	/* A thread that ended did so after its last entry or exit, nobody knows when. */
	CHECK(tree_copy_read(&c, t, TREE_BYTES, 9999999, true));
	CHECK_EQ(find(&c, 0, 1)->elapsed, 1000);
	/* What was entered after the moment of the snapshot has no time. */
	CHECK(tree_copy_read(&c, t, TREE_BYTES, 2900, false));
	CHECK_EQ(find(&c, find(&c, 0, 1)->number, 3)->elapsed, 0);
	CHECK_EQ(find(&c, find(&c, 0, 1)->number, 3)->calls, 1);
	tree_copy_release(&c);
	free(t);
}

static void test_half_done(void)
{
	struct hook_tree *t = small_tree();
	struct hook_node *f =
		&hook_tree_nodes(t)[hook_tree_find(t, HOOK_TREE_KEY(HOOK_TREE_FOLDED + 1, 2))];
	struct hook_node at_rest = *f;
	struct tree_copy c = {0};

	/* Killed between the instructions of an entry at 4000, and of its exit at 4100. */
	for (int step = 0; step < 6; step++) {
		static const uint64_t expected[] = {400, 400 + 500, 400 + 500, 400 + 500, 500, 500};
		const struct tree_node *n;

		*f = at_rest;
		f->n_open += 1;
		if (step >= 1)
			f->ticks -= 4000 + HOOK_TREE_BIAS;
		if (step >= 2)
			f->calls++;
		if (step >= 3)
			f->n_left++;
		if (step >= 4)
			f->ticks += 4100 + HOOK_TREE_BIAS;
		if (step >= 5)
			f->max = 777;
		CHECK(tree_copy_read(&c, t, TREE_BYTES, 4500, false));
		n = find(&c, find(&c, 0, 1)->number, 2);
		CHECK_EQ(n->elapsed, expected[step]);
		CHECK(n->calls == 2 || n->calls == 3);
	}
	tree_copy_release(&c);
	free(t);
}

static void test_no_tree(void)
{
	struct hook_tree *t = tree_new(100);
	struct tree_copy c = {0};

	CHECK(!tree_copy_read(&c, t, 100, 1, false));
	CHECK(tree_copy_read(&c, t, TREE_BYTES, 1, false));
	t->magic = 0;
	CHECK(!tree_copy_read(&c, t, TREE_BYTES, 1, false));
	CHECK_EQ(c.nodes.n, 0);
	tree_copy_release(&c);
	free(t);
}

/* --- hostile ------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 11) % n;
}

static void check_order(const struct tree_copy *c)
{
	struct map seen = {0};

	for (size_t i = 0; i < c->nodes.n; i++) {
		const struct tree_node *n = &c->nodes.v[i];

		CHECK(!n->parent || map_find(&seen, n->parent));
		CHECK(!map_find(&seen, n->number));
		CHECK(n->id <= HOOK_ID_MAX);
		*map_ensure(&seen, n->number, NULL) = 1;
	}
	map_release(&seen);
}

static void test_nonsense(void)
{
	struct tree_copy c = {0};

	for (int round = 0; round < 50; round++) {
		struct hook_tree *t = tree_new(100);
		uint32_t current = HOOK_TREE_ROOT;

		for (uint32_t i = 0; i < 500; i++)
			current = random_below(9) ? enter(t, current, 1 + random_below(9), 2000 + i)
						  : HOOK_TREE_ROOT;
		for (uint32_t i = random_below(200); i; i--) {
			uint32_t at = random_below(i & 1 ? 64 * 500 : sizeof(*t)) & ~3u;

			if (at)
				((uint32_t *)(void *)t)[at / 4] =
					random_below(2) ? random_below(600)
							: random_below(1u << 31) * 3;
		}
		if (tree_copy_read(&c, t, TREE_BYTES, 5000, random_below(2))) {
			check_order(&c);
			tree_copy_prune(&c, random_below(1200));
			check_order(&c);
		}
		free(t);
	}
	tree_copy_release(&c);
}

static void test_cycle(void)
{
	struct hook_tree *t = small_tree();
	struct hook_node *nodes = hook_tree_nodes(t);
	struct tree_copy c = {0};

	nodes[3].key = HOOK_TREE_KEY(4, 1);
	nodes[4].key = HOOK_TREE_KEY(3, 1);
	nodes[5].key = HOOK_TREE_KEY(5, 1);
	t->n_used = UINT32_MAX;
	CHECK(tree_copy_read(&c, t, TREE_BYTES, 5000, false));
	CHECK_EQ(c.nodes.n, 1);
	CHECK_EQ(c.n_torn, 3);
	tree_copy_release(&c);
	free(t);
}

/* --- pruning ------------------------------------------------------------------------------- */

static uint64_t calls_of(const struct tree_copy *c, uint32_t id)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->nodes.n; i++)
		if (c->nodes.v[i].id == id)
			n += c->nodes.v[i].calls;
	return n;
}

static void test_prune(void)
{
	struct hook_tree *t = tree_new(100);
	uint32_t m = enter(t, HOOK_TREE_ROOT, 1, 1000);
	struct tree_copy c = {0};
	const struct tree_node *n;

	/* Of 10000 ticks of 1: 2 has 500 (3 all of it), 4 has 5000, 5 is open. */
	uint32_t f = enter(t, m, 2, 1000);
	hook_tree_leave_late(t, enter(t, f, 3, 1000), 1000, 1500);
	hook_tree_leave_late(t, f, 1000, 1500);
	hook_tree_leave_late(t, enter(t, m, 4, 2000), 2000, 7000);
	enter(t, m, 5, 10999);
	CHECK(tree_copy_read(&c, t, TREE_BYTES, 11000, false));
	tree_copy_prune(&c, 100);
	n = find(&c, 0, 1);
	CHECK_EQ(n->elapsed, 10000);
	CHECK(find(&c, n->number, 4) && find(&c, n->number, 5));
	CHECK(!find(&c, n->number, 2));
	CHECK_EQ(c.n_pruned, 2);
	CHECK_EQ(c.pruned_calls, 2);
	for (uint32_t id = 1; id <= 5; id++)
		CHECK_EQ(calls_of(&c, id), 1);
	CHECK_EQ(find(&c, HOOK_TREE_FOLDED - HOOK_TREE_ROOT, 3)->elapsed, 0);
	CHECK_EQ(find(&c, HOOK_TREE_FOLDED - HOOK_TREE_ROOT, 3)->max, 500);
	check_order(&c);
	tree_copy_release(&c);
	free(t);
}

/* --- a writer at work ------------------------------------------------------------------------ */

struct worker {
	struct hook_tree *t;
	atomic_bool stop;
	uint64_t n_calls; /* at the end */
};

#define WORK_TICKS 64 /* of every call, but those of function 1 */

static void *work(void *ctx)
{
	struct worker *w = ctx;
	uint64_t now = 1u << 20;

	while (!atomic_load(&w->stop)) {
		uint32_t m = enter(w->t, HOOK_TREE_ROOT, 1, now), f = m;
		uint64_t began = now;
		/* Many paths, so that nodes are pruned all the time, and one that is always hot. */
		uint32_t path = random_below(2) ? 0 : random_below(1u << 20);
		uint32_t nodes[4];

		for (int i = 0; i < 4; i++, path >>= 5)
			f = nodes[i] = enter(w->t, f, 2 + path % 40, now);
		now += WORK_TICKS;
		for (int i = 3; i >= 0; i--)
			hook_tree_leave_late(w->t, nodes[i], now - WORK_TICKS, now);
		now += 100;
		hook_tree_leave_late(w->t, m, began, now);
		w->n_calls += 5;
	}
	return NULL;
}

static void test_concurrent(void)
{
	struct worker w = {.t = tree_new(900)};
	struct tree_copy c = {0};
	uint64_t last_calls = 0, total = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, work, &w);
	for (int round = 0; round < 200 || (c.n_pruned == 0 && round < 50000); round++) {
		const struct tree_node *m;

		usleep(200);
		CHECK(tree_copy_read(&c, w.t, TREE_BYTES, 0, true));
		check_order(&c);
		m = find(&c, 0, 1);
		if (!m)
			continue;
		CHECK(m->calls >= last_calls);
		last_calls = m->calls;
		for (size_t i = 0; i < c.nodes.n; i++) {
			const struct tree_node *n = &c.nodes.v[i];

			if (n->is_folded || n == m)
				continue;
			if (n->is_open)
				CHECK(n->elapsed + WORK_TICKS >= n->calls * WORK_TICKS &&
					n->elapsed < __atomic_load_n(
							     &w.t->last_ticks, __ATOMIC_RELAXED));
			else
				CHECK_EQ(n->elapsed, n->calls * WORK_TICKS);
			if (n->calls && !n->is_open) /* 0: just made, not yet entered */
				CHECK(n->max == WORK_TICKS && n->min == WORK_TICKS);
		}
	}
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	CHECK(tree_copy_read(&c, w.t, TREE_BYTES, 0, true));
	for (size_t i = 0; i < c.nodes.n; i++)
		total += c.nodes.v[i].calls;
	CHECK_EQ(total, w.n_calls);
	CHECK_EQ(c.n_torn, 0);
	CHECK(c.n_pruned > 0);
	tree_copy_release(&c);
	free(w.t);
}

/* --- records --------------------------------------------------------------------------------- */

struct sink_world {
	struct trace_writer *w;
};

static uint32_t thread_of(void *ctx, uint32_t tid)
{
	struct sink_world *s = ctx;
	struct trace_thread thread = {.pid = 7, .tid = tid};

	return tid == 666 ? 0 : trace_writer_thread(s->w, &thread);
}

static uint32_t frame_of(void *ctx, uint32_t id)
{
	struct sink_world *s = ctx;
	char name[32];
	struct trace_frame frame = {.kind = id ? FRAME_KIND_NATIVE : FRAME_KIND_MARKER};

	snprintf(name, sizeof(name), "f%u", id);
	frame.name = trace_writer_string(s->w, name);
	return trace_writer_frame(s->w, &frame);
}

static uint64_t ns_of(void *ctx, uint64_t ticks)
{
	(void)ctx;
	return ticks * 2;
}

static void check_records(const char *path)
{
	struct trace_reader *r;
	struct trace_cursor *cursor;
	struct trace_record record;
	struct err err;
	uint32_t n_nodes = 0, n_pruned = 0;
	uint64_t n_calls = 0;

	CHECK_EQ(trace_reader_open(&r, path, &err), 0);
	CHECK_EQ(trace_cursor_open(&cursor, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err), 0);
	while (trace_cursor_next(cursor, &record, &err) > 0) {
		uint64_t n[8];

		CHECK_EQ(record.major, RECORD_MAJOR_TREE);
		CHECK_EQ(record.time, 12345);
		n_pruned += record.minor == RECORD_TREE_PRUNED;
		if (record.minor != RECORD_TREE_NODE)
			continue;
		n_nodes++;
		CHECK_EQ(trace_record_numbers(r, &record, n, 8, &err), 0);
		n_calls += n[4];
		CHECK_EQ(trace_reader_thread(r, (uint32_t)n[0])->tid, 40);
		if (strcmp(trace_reader_string(r, trace_reader_frame(r, (uint32_t)n[3])->name),
			    "f2"))
			continue;
		CHECK_EQ(n[4], 2);
		CHECK_EQ(n[5], 800);
		CHECK_EQ(n[6], 200);
		CHECK_EQ(n[7], 600);
	}
	CHECK_EQ(n_nodes, 3); /* nothing was folded: no such branch */
	CHECK_EQ(n_calls, 4);
	CHECK_EQ(n_pruned, 0);
	trace_cursor_close(cursor);
	trace_reader_close(r);
}

static void test_records(void)
{
	struct hook_tree *t = small_tree();
	uint8_t *base = mem_zalloc(3 * TREE_BYTES);
	struct hook_thread threads[3] = {{.state = HOOK_THREAD_LIVE, .tid = 40},
		{.state = HOOK_THREAD_TAKEN, .tid = 41}, {.state = HOOK_THREAD_GONE, .tid = 666}};
	struct hook_area area = {.n_threads = 3,
		.ring_bytes = TREE_BYTES,
		.threads = threads,
		.window_threads = 3,
		.windows = &base};
	struct sink_world world;
	struct tree_sink sink = {.time = 12345,
		.thread = thread_of,
		.frame = frame_of,
		.ns = ns_of,
		.ctx = &world};
	char path[64];
	struct err err;

	for (int i = 0; i < 3; i++)
		memcpy(base + i * TREE_BYTES, t, TREE_BYTES);
	snprintf(path, sizeof(path), "/tmp/tree_snapshot_test.%d", getpid());
	CHECK_EQ(trace_writer_open(&world.w, path, &err), 0);
	sink.w = world.w;
	for (uint32_t i = 0; i < area.n_threads; i++) {
		struct tree_copy c = {0};

		if (hook_area_has_thread(&area, i) &&
			tree_copy_read(&c, hook_area_ring(&area, i), TREE_BYTES, 3500,
				threads[i].state == HOOK_THREAD_GONE))
			tree_copy_write(&c, &sink, threads[i].tid);
		tree_copy_release(&c);
	}
	CHECK_EQ(trace_writer_close(world.w, &err), 0);
	check_records(path); /* one entry is being filled, one thread is not wanted */
	unlink(path);
	free(base);
	free(t);
}

/* Records of a complete trace, and how many of them say `reason`. */
static uint32_t count_records(const char *path, const char *reason, uint32_t *n_reason)
{
	struct trace_reader *r;
	struct trace_cursor *cursor;
	struct trace_record record;
	struct err err;
	uint32_t n = 0;

	*n_reason = 0;
	CHECK_EQ(trace_reader_open(&r, path, &err), 0);
	CHECK(!trace_reader_is_recovered(r, NULL));
	CHECK_EQ(trace_cursor_open(&cursor, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err), 0);
	while (trace_cursor_next(cursor, &record, &err) > 0) {
		uint64_t numbers[2];

		n++;
		CHECK_EQ(trace_record_numbers(r, &record, numbers, 2, &err), 0);
		*n_reason += !strcmp(trace_reader_string(r, (uint32_t)numbers[1]), reason);
	}
	trace_cursor_close(cursor);
	trace_reader_close(r);
	return n;
}

struct addition {
	struct trace_writer *w;
	uint32_t i;
};

/* A stream, a string and a kind of record that the trace has not had; its time is far ahead. */
static void add_record(void *ctx)
{
	struct addition *a = ctx;
	char reason[32];

	snprintf(reason, sizeof(reason), "added %u", a->i);
	trace_writer_loss(a->w, trace_writer_stream(a->w, STREAM_KIND_CPU, a->i), 1u << 30,
		RECORD_LOSS_RECORDS, 1, reason);
	trace_writer_loss(a->w, trace_writer_stream(a->w, STREAM_KIND_LIFE, 0), 1u << 30,
		RECORD_LOSS_EVENTS, 1, reason);
}

/* What a snapshot of a recording is: the trace so far, complete, while its writer goes on. */
static void test_trace_copy(void)
{
	struct addition a = {0};
	char path[64], copy[80], reason[32];
	struct err err;
	uint32_t stream, n;

	snprintf(path, sizeof(path), "/tmp/tree_snapshot_test.%d", getpid());
	snprintf(copy, sizeof(copy), "%s.copy", path);
	CHECK_EQ(trace_writer_open(&a.w, path, &err), 0);
	stream = trace_writer_stream(a.w, STREAM_KIND_LIFE, 0);
	for (a.i = 1; a.i <= 3; a.i++) {
		trace_writer_loss(a.w, stream, a.i, RECORD_LOSS_NOTE, a.i, "tested");
		CHECK_EQ(trace_writer_copy(a.w, copy, add_record, &a, &err), 0);
		snprintf(reason, sizeof(reason), "added %u", a.i);
		CHECK_EQ(count_records(copy, reason, &n), a.i + 2);
		CHECK_EQ(n, 2);
		unlink(copy);
	}
	/* What was defined for a copy is defined when the trace itself needs it. */
	trace_writer_loss(a.w, trace_writer_stream(a.w, STREAM_KIND_CPU, 1), 4, RECORD_LOSS_RECORDS,
		1, "added 2");
	CHECK_EQ(trace_writer_close(a.w, &err), 0);
	CHECK_EQ(count_records(path, "added 2", &n), 4);
	CHECK_EQ(n, 1);
	CHECK_EQ(count_records(path, "tested", &n), 4);
	CHECK_EQ(n, 3); /* and no note that times went back */
	unlink(path);
}

static void test_no_trace_copy(void)
{
	struct trace_writer *w;
	struct stat st;
	char path[64];
	struct err err;

	snprintf(path, sizeof(path), "/tmp/tree_snapshot_test.%d", getpid());
	CHECK_EQ(trace_writer_open(&w, path, &err), 0);
	CHECK(trace_writer_copy(w, "/tmp/there/is/no/such/folder", NULL, NULL, &err) < 0);
	CHECK(strstr(err.text, "/tmp/there/is/no/such/folder") != NULL);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	unlink(path);
	CHECK_EQ(trace_writer_open(&w, "/dev/null", &err), 0);
	CHECK_EQ(trace_writer_copy(w, path, NULL, NULL, &err), ERR_UNSUPPORTED);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK(stat(path, &st) < 0);
}

int main(void)
{
	static const struct test tests[] = {
		{"a copy has calls, times and the open calls up to now", test_copy},
		{"an entry or exit that is half done does not spoil the time", test_half_done},
		{"memory without a tree gives none", test_no_tree},
		{"any nonsense gives nodes behind their parents", test_nonsense},
		{"parents in a circle are left out", test_cycle},
		{"pruning a copy folds calls by function", test_prune},
		{"a tree is read while its thread works and prunes", test_concurrent},
		{"the trees of an area become records", test_records},
		{"a trace that is being written has complete copies", test_trace_copy},
		{"a copy that cannot be made leaves nothing behind", test_no_trace_copy},
	};

	return RUN_TESTS(tests);
}
