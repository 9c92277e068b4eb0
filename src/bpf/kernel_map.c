/* SPDX-License-Identifier: MIT */
#include "bpf/kernel_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "bpf/sys.h"

#define BATCH_ENTRIES	  512
#define BATCH_ENTRIES_MAX (1u << 20)
#define BATCH_BYTES_MAX	  ((size_t)64 << 20)
#define CPUS_MAX	  8192
#define POSSIBLE_BYTES	  4096

static int create(const struct bpf_map_spec *spec, const int *btf)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = spec->type;
	attr.key_size = spec->key_bytes;
	attr.value_size = spec->value_bytes;
	attr.max_entries = spec->n_entries;
	attr.map_flags = spec->flags;
	if (btf) {
		attr.btf_fd = (uint32_t)btf[0];
		attr.btf_key_type_id = (uint32_t)btf[1];
		attr.btf_value_type_id = (uint32_t)btf[2];
	}
	bpf_name_set(attr.map_name, spec->name);
	return bpf_sys(BPF_MAP_CREATE, &attr);
}

int bpf_map_open(const struct bpf_map_spec *spec)
{
	static const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	struct rlimit old;
	int fd = create(spec, NULL);

	if (fd != -EPERM || prlimit(0, RLIMIT_MEMLOCK, &all, &old) < 0)
		return fd;
	fd = create(spec, NULL);
	if (fd < 0)
		setrlimit(RLIMIT_MEMLOCK, &old); /* it is not; programs that we start inherit it */
	return fd;
}

/* Three types: int, unsigned long, unsigned long[n]. */
static int storage_btf(uint32_t n_words)
{
	static const char strings[] = "\0int\0u64";
	uint32_t types[] = {
		1, 1u << 24, 4, 1u << 24 | 32, /* [1] int: kind 1, 4 bytes, signed, 32 bits */
		5, 1u << 24, 8, 64,	       /* [2] u64 */
		0, 3u << 24, 0, 2, 1, n_words  /* [3] array of [2], index [1] */
	};

	return bpf_btf_open((struct span){(const uint8_t *)types, sizeof(types)},
		(struct span){(const uint8_t *)strings, sizeof(strings)});
}

int bpf_task_storage_open(uint32_t n_words)
{
	struct bpf_map_spec spec = {.type = BPF_MAP_TYPE_TASK_STORAGE,
		.key_bytes = 4,
		.value_bytes = n_words * 8,
		.flags = BPF_F_NO_PREALLOC,
		.name = "self"};
	FD_AUTO btf_fd = storage_btf(n_words);
	int btf[3] = {btf_fd, 1, 3};

	return btf_fd < 0 ? btf_fd : create(&spec, btf);
}

static int element(int command, int fd, const void *key, const void *value)
{
	union bpf_attr attr;
	int rc;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = (uintptr_t)key;
	attr.value = (uintptr_t)value; /* also next_key */
	rc = bpf_sys(command, &attr);
	return rc < 0 ? rc : 0;
}

int bpf_map_find(int fd, const void *key, void *value)
{
	return element(BPF_MAP_LOOKUP_ELEM, fd, key, value);
}

int bpf_map_update(int fd, const void *key, const void *value)
{
	return element(BPF_MAP_UPDATE_ELEM, fd, key, value);
}

int bpf_map_delete(int fd, const void *key)
{
	return element(BPF_MAP_DELETE_ELEM, fd, key, NULL);
}

int bpf_map_next_key(int fd, const void *key, void *next)
{
	return element(BPF_MAP_GET_NEXT_KEY, fd, key, next);
}

struct batch {
	int fd;
	uint32_t key_bytes;
	size_t value_bytes;
	uint8_t *keys, *values;
	uint32_t room, n;
	uint32_t cursor; /* of the kernel: a bucket's number */
	bool has_cursor;
};

/* Fills the batch: 0 when there is more, -ENOENT at the end, another -errno. */
static int batch_read(struct batch *b)
{
	union bpf_attr attr;
	uint32_t next = 0;
	int rc;

	memset(&attr, 0, sizeof(attr));
	attr.batch.map_fd = (uint32_t)b->fd;
	attr.batch.in_batch = b->has_cursor ? (uintptr_t)&b->cursor : 0;
	attr.batch.out_batch = (uintptr_t)&next;
	attr.batch.keys = (uintptr_t)b->keys;
	attr.batch.values = (uintptr_t)b->values;
	attr.batch.count = b->room;
	rc = bpf_sys(BPF_MAP_LOOKUP_BATCH, &attr);
	b->n = rc >= 0 || rc == -ENOENT ? attr.batch.count : 0;
	b->n = b->n > b->room ? b->room : b->n;
	if (rc >= 0) {
		b->cursor = next;
		b->has_cursor = true;
	}
	return rc < 0 ? rc : 0;
}

static void batch_room(struct batch *b, uint32_t room)
{
	free(b->keys);
	free(b->values);
	b->room = room;
	b->keys = mem_alloc((size_t)room * b->key_bytes);
	b->values = mem_alloc((size_t)room * b->value_bytes);
}

/* -ENOSPC means that a bucket has more entries than the batch. */
static int each_by_batch(
	struct batch *b, void (*each)(void *ctx, const void *key, const void *value), void *ctx)
{
	int rc;

	do {
		rc = batch_read(b);
		if (rc == -ENOSPC && b->room < BATCH_ENTRIES_MAX &&
			b->room * b->value_bytes < BATCH_BYTES_MAX) {
			batch_room(b, b->room * 2);
			rc = 0;
			continue;
		}
		for (uint32_t i = 0; i < b->n; i++)
			each(ctx, b->keys + (size_t)i * b->key_bytes,
				b->values + i * b->value_bytes);
	} while (rc == 0);
	return rc == -ENOENT ? 0 : rc;
}

static int each_by_key(
	struct batch *b, void (*each)(void *ctx, const void *key, const void *value), void *ctx)
{
	uint8_t *key = b->keys, *next = b->keys + b->key_bytes;
	int rc = bpf_map_next_key(b->fd, NULL, key);

	/* A key that is deleted meanwhile starts the walk again; an end is needed all the same. */
	for (uint32_t i = 0; rc == 0 && i < UINT32_MAX; i++) {
		if (bpf_map_find(b->fd, key, b->values) == 0)
			each(ctx, key, b->values);
		rc = bpf_map_next_key(b->fd, key, next);
		memcpy(key, next, b->key_bytes);
	}
	return rc == -ENOENT ? 0 : rc;
}

int bpf_map_each(int fd, uint32_t key_bytes, size_t value_bytes,
	void (*each)(void *ctx, const void *key, const void *value), void *ctx)
{
	struct batch b = {.fd = fd, .key_bytes = key_bytes, .value_bytes = value_bytes};
	uint32_t room = BATCH_ENTRIES;
	int rc;

	while (room > 16 && room * value_bytes > BATCH_BYTES_MAX / 64)
		room /= 2;
	batch_room(&b, room);
	rc = each_by_batch(&b, each, ctx);
	if (rc && !b.has_cursor) /* before Linux 5.6 */
		rc = each_by_key(&b, each, ctx);
	free(b.keys);
	free(b.values);
	return rc;
}

/* "0-7" or "0,2-3": one more than the last number, as the kernel counts for its maps. */
size_t bpf_possible_cpus(void)
{
	static size_t n_cpus; /* set once, to the same value whoever does it */
	struct buf b = {0};
	unsigned long last = 0;

	if (n_cpus)
		return n_cpus;
	if (file_read(&b, "/sys/devices/system/cpu/possible", POSSIBLE_BYTES, NULL) == 0) {
		for (const char *p = buf_text(&b); *p;) {
			char *end;

			last = strtoul(p, &end, 10);
			p = end + (end == p || *end != 0);
		}
	} else {
		last = (unsigned long)sysconf(_SC_NPROCESSORS_CONF) - 1;
	}
	buf_release(&b);
	n_cpus = last < CPUS_MAX ? last + 1 : CPUS_MAX;
	return n_cpus;
}
