/* SPDX-License-Identifier: MIT */
/*
 * Records of the program wait here for their samples. Those of a CPU are linked in their order,
 * which is that of its samples, so that the one that is asked for is near the first. Not those of a thread: its
 * number in the sample may be that of a pid namespace.
 */
#include "record/deep_stacks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "record/deep_program.h"

#define RING_BYTES_MIN	 ((size_t)32 << 20)
#define RING_BYTES_MAX	 ((size_t)256 << 20)
#define RING_BYTES_A_CPU ((size_t)4 << 20)
#define TOPS_MAX	 16384
/* Both are stamped in the same interrupt: which comes first differs between kernels. */
#define MATCH_WINDOW_NS 50000000u

struct kept {
	struct deep_key key;
	bool is_taken;
	uint8_t n_below;
	uint8_t below[DEEP_BELOW_BYTES];
	struct deep_stack *stack; /* owned until it is taken; NULL = nothing could be read */
	uint32_t next;		  /* of the same CPU: index + 1, 0 = none */
};

/* The records of one CPU that wait: indices + 1. A value of the map. */
union kept_list {
	uint64_t both;
	struct {
		uint32_t first, last;
	};
};

struct deep_stacks {
	struct bpf_ring ring;
	int program_fd;
	int tops_fd; /* tid -> end of its stack */
	int lost_fd; /* samples without room in the ring */
	VEC(struct kept) kept;
	struct map by_cpu; /* union kept_list */
};

static int open_maps(struct deep_stacks *d, struct err *err)
{
	/* Where stacks end, by thread; the oldest are forgotten when there are too many. */
	static const struct bpf_map_spec tops = {
		BPF_MAP_TYPE_LRU_HASH, sizeof(uint32_t), sizeof(uint64_t), TOPS_MAX, 0, ""};
	static const struct bpf_map_spec lost = {
		BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint64_t), 1, 0, ""};

	d->tops_fd = bpf_map_open(&tops);
	if (d->tops_fd < 0)
		return err_sys(err, -d->tops_fd, "BPF map: cannot be made");
	d->lost_fd = bpf_map_open(&lost);
	return d->lost_fd < 0 ? err_sys(err, -d->lost_fd, "BPF map: cannot be made") : 0;
}

int deep_stacks_open(
	struct deep_stacks **out, size_t n_cpus, const struct task_filter *filter, struct err *err)
{
	struct deep_stacks *d = mem_zalloc(sizeof(*d));
	struct bpf_code code = {0};
	size_t ring_bytes = RING_BYTES_MIN;
	int rc;

	while (ring_bytes < n_cpus * RING_BYTES_A_CPU && ring_bytes < RING_BYTES_MAX)
		ring_bytes *= 2;
	d->program_fd = d->tops_fd = d->lost_fd = -1;
	rc = bpf_ring_open(&d->ring, ring_bytes, err);
	if (rc == 0)
		rc = open_maps(d, err);
	if (rc == 0) {
		deep_program_make(
			&code, &(struct deep_maps){&d->ring, d->tops_fd, d->lost_fd}, filter);
		rc = d->program_fd =
			bpf_program_load(BPF_PROG_TYPE_PERF_EVENT, "weir_stack", &code, err);
		bpf_code_release(&code);
	}
	if (rc < 0) {
		deep_stacks_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void deep_stacks_close(struct deep_stacks *d)
{
	if (!d)
		return;
	deep_stacks_forget(d, UINT64_MAX);
	vec_release(&d->kept);
	map_release(&d->by_cpu);
	fd_cleanup(&d->program_fd);
	fd_cleanup(&d->tops_fd);
	fd_cleanup(&d->lost_fd);
	bpf_ring_close(&d->ring);
	free(d);
}

int deep_stacks_attach(struct deep_stacks *d, int perf_fd, struct err *err)
{
	if (ioctl(perf_fd, PERF_EVENT_IOC_SET_BPF, d->program_fd) < 0)
		return err_sys(err, errno, "BPF program 'weir_stack': cannot be attached");
	return 0;
}

int deep_stacks_fd(const struct deep_stacks *d)
{
	return d->ring.fd;
}

void deep_stacks_set_top(struct deep_stacks *d, uint32_t tid, uint64_t top)
{
	bpf_map_update(d->tops_fd, &tid, &top);
}

uint64_t deep_stacks_n_lost(const struct deep_stacks *d)
{
	uint64_t n = 0;
	uint32_t key = 0;

	return bpf_map_find(d->lost_fd, &key, &n) == 0 ? n : 0;
}

/* Puts the last record that was kept, or moved, behind those of its CPU. */
static void link_kept(struct deep_stacks *d, size_t i)
{
	uint64_t *value = map_ensure(&d->by_cpu, d->kept.v[i].key.cpu, NULL);
	union kept_list list = {*value};

	d->kept.v[i].next = 0;
	if (list.last)
		d->kept.v[list.last - 1].next = (uint32_t)i + 1;
	else
		list.first = (uint32_t)i + 1;
	list.last = (uint32_t)i + 1;
	*value = list.both;
}

/* The first `skip` bytes are below the stack pointer. */
static struct deep_stack *new_stack(const struct deep_record *r, size_t skip, bool has_tail)
{
	size_t n = r->n - skip,
	       n_bytes = sizeof(struct deep_stack) + n + (has_tail ? DEEP_TAIL_BYTES : 0);
	struct deep_stack *stack = mem_alloc(n_bytes);
	uint8_t *to = (uint8_t *)(stack + 1);

	memcpy(to, r->bytes + skip, n);
	*stack = (struct deep_stack){.bytes = {to, n}, .n_bytes = n_bytes};
	if (has_tail) {
		memcpy(to + n, r->bytes + DEEP_LARGE_BYTES, DEEP_TAIL_BYTES);
		stack->tail_start = r->tail_start;
		stack->tail = (struct span){to + n, DEEP_TAIL_BYTES};
	}
	return stack;
}

static void keep(void *ctx, const uint8_t *record, size_t n)
{
	const struct deep_record *r = (const void *)record;
	struct deep_stacks *d = ctx;
	struct kept k = {
		.key = {.time = r->time, .sp = r->sp, .ip = r->ip, .cpu = (uint32_t)r->cpu}};
	bool has_tail = n >= sizeof(*r) + DEEP_STACK_BYTES_MAX && r->tail_start;

	if (n < sizeof(*r) || r->n > n - sizeof(*r) || r->n_below > DEEP_BELOW_BYTES)
		return;
	k.n_below = (uint8_t)r->n_below;
	memcpy(k.below, r->below, sizeof(k.below));
	if (r->n > r->sp - r->start)
		k.stack = new_stack(r, r->sp - r->start, has_tail);
	vec_push(&d->kept, k);
	link_kept(d, d->kept.n - 1);
}

void deep_stacks_collect(struct deep_stacks *d)
{
	bpf_ring_drain(&d->ring, keep, d);
}

static struct kept *find_kept(struct deep_stacks *d, const struct deep_key *key)
{
	uint64_t *value = map_find(&d->by_cpu, key->cpu), best_distance = MATCH_WINDOW_NS;
	union kept_list list = {value ? *value : 0};
	struct kept *best = NULL, *k;

	while (list.first && d->kept.v[list.first - 1].is_taken)
		list.first = d->kept.v[list.first - 1].next;
	if (!list.first)
		list.last = 0;
	if (value)
		*value = list.both;
	for (uint32_t i = list.first; i; i = k->next) {
		uint64_t distance;

		k = &d->kept.v[i - 1];
		if (k->key.time > key->time + MATCH_WINDOW_NS)
			break;
		distance =
			k->key.time > key->time ? k->key.time - key->time : key->time - k->key.time;
		if (k->is_taken || k->key.sp != key->sp || k->key.ip != key->ip ||
			distance >= best_distance)
			continue;
		best = k;
		best_distance = distance;
	}
	return best;
}

struct deep_stack *deep_stacks_take(
	struct deep_stacks *d, const struct deep_key *key, uint8_t *below, uint8_t *n_below)
{
	struct kept *k = find_kept(d, key);

	*n_below = 0;
	if (!k)
		return NULL;
	k->is_taken = true;
	*n_below = k->n_below;
	memcpy(below, k->below, sizeof(k->below));
	return k->stack;
}

struct deep_stack *deep_stack_cut(struct deep_stack *stack, size_t n_bytes)
{
	size_t n = stack->bytes.n < n_bytes ? stack->bytes.n : n_bytes;

	stack = mem_realloc(stack, sizeof(*stack) + n);
	*stack = (struct deep_stack){
		.bytes = {(uint8_t *)(stack + 1), n}, .n_bytes = sizeof(*stack) + n};
	return stack;
}

void deep_stacks_forget(struct deep_stacks *d, uint64_t time)
{
	size_t n = 0;

	map_reset(&d->by_cpu);
	for (size_t i = 0; i < d->kept.n; i++) {
		struct kept *k = &d->kept.v[i];

		if (k->is_taken)
			continue;
		if (k->key.time < time) {
			free(k->stack);
			continue;
		}
		d->kept.v[n] = *k;
		link_kept(d, n++);
	}
	d->kept.n = n;
}
