/* SPDX-License-Identifier: MIT */
/* Maps, rings and programs of BPF through the calls that a probe session uses. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "bpf/code.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "bpf/ring.h"
#include "check.h"

#define RING_BYTES   65536
#define WINDOW_BYTES 8192

static int open_code(struct bpf_code *c)
{
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.name = "test:program",
		.insns = c->insns.v,
		.n_insns = c->insns.n};
	int fd = bpf_program_open(&spec, NULL, 0);

	bpf_code_release(c);
	return fd;
}

/* A program that sends a number from a map, and counts it up: a record of `bytes`. */
static int open_sender(int ring_fd, int counter_fd, int bytes, bool discards)
{
	struct bpf_code c = {0};
	int leave = bpf_label(&c);

	bpf_load_map(&c, BPF_REG_1, ring_fd);
	bpf_mov_imm(&c, BPF_REG_2, bytes);
	bpf_mov_imm(&c, BPF_REG_3, 0);
	bpf_call(&c, BPF_FUNC_ringbuf_reserve);
	bpf_jump_imm(&c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_load_map_value(&c, BPF_REG_1, counter_fd, 8);
	bpf_load(&c, BPF_DW, BPF_REG_2, BPF_REG_1, 0);
	bpf_store(&c, BPF_DW, BPF_REG_0, 0, BPF_REG_2);
	bpf_store(&c, BPF_DW, BPF_REG_0, (int16_t)(bytes - 8), BPF_REG_2);
	bpf_alu_imm(&c, BPF_ADD, BPF_REG_2, 1);
	bpf_store(&c, BPF_DW, BPF_REG_1, 0, BPF_REG_2);
	bpf_mov(&c, BPF_REG_1, BPF_REG_0);
	bpf_mov_imm(&c, BPF_REG_2, 0);
	bpf_call(&c, discards ? BPF_FUNC_ringbuf_discard : BPF_FUNC_ringbuf_submit);
	bpf_place(&c, leave);
	bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_exit(&c);
	return open_code(&c);
}

struct seen {
	uint64_t n, next, n_wrong;
};

static void see(void *ctx, const uint8_t *record, size_t n)
{
	struct seen *s = ctx;
	uint64_t first, last;

	memcpy(&first, record, 8);
	memcpy(&last, record + n - 8, 8);
	s->n_wrong += first != s->next || last != s->next;
	s->next++;
	s->n++;
}

/* Sends a few and reads them, round and round, so that every place in the ring is used. */
static void check_ring(size_t window, int bytes)
{
	struct bpf_map_spec counter = {BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0, "counter"};
	int counter_fd = bpf_map_open(&counter), program;
	struct seen s = {0};
	struct bpf_ring ring;
	struct err err;
	uint64_t n_sent = 0;

	CHECK_EQ(bpf_ring_open_window(&ring, RING_BYTES, window, &err), 0);
	program = open_sender(ring.fd, counter_fd, bytes, false);
	CHECK(program >= 0);
	while (program >= 0 && n_sent < 4u * RING_BYTES / (unsigned)bytes) {
		for (int i = 0; i < 3 && (i + 1) * (bytes + 16) < RING_BYTES; i++, n_sent++)
			CHECK_EQ(bpf_program_run(program), 0);
		bpf_ring_drain(&ring, see, &s);
		CHECK_EQ(s.n, n_sent);
	}
	/* And many at once: more than a window holds. */
	for (int i = 0; i < RING_BYTES / (bytes + 16) - 1; i++, n_sent++)
		bpf_program_run(program);
	bpf_ring_drain(&ring, see, &s);
	CHECK_EQ(s.n, n_sent);
	CHECK_EQ(s.n_wrong, 0);
	close(program);
	close(counter_fd);
	bpf_ring_close(&ring);
}

static void test_ring(void)
{
	check_ring(2 * RING_BYTES, 48);
	check_ring(WINDOW_BYTES, 48);
	check_ring(WINDOW_BYTES, 1000);
	check_ring(WINDOW_BYTES, 20000); /* longer than a window */
}

static void test_discarded(void)
{
	struct bpf_map_spec counter = {BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0, "counter"};
	int counter_fd = bpf_map_open(&counter), discards, sends;
	struct seen s = {0};
	struct bpf_ring ring;

	CHECK_EQ(bpf_ring_open_window(&ring, RING_BYTES, WINDOW_BYTES, NULL), 0);
	discards = open_sender(ring.fd, counter_fd, 1000, true);
	sends = open_sender(ring.fd, counter_fd, 1000, false);
	for (int i = 0; i < 30; i++) /* over several windows */
		bpf_program_run(discards);
	bpf_program_run(sends);
	s.next = 30;
	bpf_ring_drain(&ring, see, &s);
	CHECK_EQ(s.n, 1);
	CHECK_EQ(s.n_wrong, 0);
	CHECK_EQ(*ring.consumer, *ring.producer);
	close(discards);
	close(sends);
	close(counter_fd);
	bpf_ring_close(&ring);
}

struct sums {
	uint64_t n, keys, values;
};

static void add(void *ctx, const void *key, const void *value)
{
	struct sums *s = ctx;
	uint32_t k;
	uint64_t v;

	memcpy(&k, key, 4);
	memcpy(&v, value, 8);
	s->n++;
	s->keys += k;
	s->values += v;
}

static void check_each(uint32_t n)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_HASH, 4, 8, 4096, BPF_F_NO_PREALLOC, "@each"};
	int fd = bpf_map_open(&spec);
	struct sums s = {0};

	CHECK(fd >= 0);
	for (uint32_t i = 1; i <= n; i++) {
		uint64_t v = 3 * i;

		CHECK_EQ(bpf_map_update(fd, &i, &v), 0);
	}
	CHECK_EQ(bpf_map_each(fd, 4, 8, add, &s), 0);
	CHECK_EQ(s.n, n);
	CHECK_EQ(s.keys, (uint64_t)n * (n + 1) / 2);
	CHECK_EQ(s.values, 3 * s.keys);
	close(fd);
}

static void test_each(void)
{
	check_each(0);
	check_each(1);
	check_each(4000); /* several batches */
}

static void test_elements(void)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_HASH, 4, 8, 1, 0, "one"};
	int fd = bpf_map_open(&spec);
	uint32_t key = 1, other = 2;
	uint64_t value = 7, got = 0;

	CHECK_EQ(bpf_map_find(fd, &key, &got), -ENOENT);
	CHECK_EQ(bpf_map_update(fd, &key, &value), 0);
	CHECK_EQ(bpf_map_update(fd, &other, &value), -E2BIG);
	CHECK_EQ(bpf_map_find(fd, &key, &got), 0);
	CHECK_EQ(got, 7);
	CHECK_EQ(bpf_map_next_key(fd, NULL, &other), 0);
	CHECK_EQ(other, 1);
	CHECK_EQ(bpf_map_next_key(fd, &other, &other), -ENOENT);
	CHECK_EQ(bpf_map_delete(fd, &key), 0);
	CHECK_EQ(bpf_map_delete(fd, &key), -ENOENT);
	close(fd);
}

static void test_storage(void)
{
	int fd = bpf_task_storage_open(5);

	CHECK(fd >= 0);
	if (fd >= 0)
		close(fd);
	CHECK(bpf_task_storage_open(1u << 28) < 0);
}

static void test_log(void)
{
	static char log[4096];
	struct bpf_code c = {0};
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_RAW_TRACEPOINT, .name = "bad"};

	bpf_load(&c, BPF_DW, BPF_REG_0, BPF_REG_2, 0);
	bpf_exit(&c);
	spec.insns = c.insns.v;
	spec.n_insns = c.insns.n;
	CHECK_EQ(bpf_program_open(&spec, log, sizeof(log)), -EACCES);
	CHECK(strstr(log, "R2 !read_ok"));
	bpf_code_release(&c);
}

static void test_far_jump(void)
{
	struct bpf_code c = {0};
	int far = bpf_label(&c);

	bpf_jump(&c, far);
	for (int i = 0; i < INT16_MAX; i++)
		bpf_mov_imm(&c, BPF_REG_0, 0);
	CHECK(!c.is_too_long);
	bpf_place(&c, far);
	CHECK(!c.is_too_long);
	bpf_code_release(&c);
	c = (struct bpf_code){0};
	far = bpf_label(&c);
	bpf_jump(&c, far);
	for (int i = 0; i <= INT16_MAX; i++)
		bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_place(&c, far);
	CHECK(c.is_too_long);
	bpf_code_release(&c);
}

static const struct test tests[] = {
	{"a jump that is too long is noticed", test_far_jump},
};

static const struct test with_rights[] = {
	{"records come out of a ring that is mapped in windows", test_ring},
	{"discarded records give their room back", test_discarded},
	{"every entry of a map is handed out once", test_each},
	{"elements of maps are set, found, listed and deleted", test_elements},
	{"task storage has a size", test_storage},
	{"the verifier's log comes back", test_log},
};

int main(void)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0, "try"};
	int fd = bpf_map_open(&spec), rc = RUN_TESTS(tests);

	if (fd < 0) {
		for (size_t i = 0; i < sizeof(with_rights) / sizeof(with_rights[0]); i++)
			printf("skip %s: BPF is not permitted: %s\n", with_rights[i].sentence,
				strerror(-fd));
		return rc;
	}
	close(fd);
	return RUN_TESTS(with_rights) | rc;
}
