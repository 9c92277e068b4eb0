/* SPDX-License-Identifier: MIT */
/* Maps of BPF programs: making, reading, changing. Results are 0 or -errno unless said otherwise.
 */
#ifndef WEIR_BPF_KERNEL_MAP_H
#define WEIR_BPF_KERNEL_MAP_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_map_spec {
	enum bpf_map_type type;
	uint32_t key_bytes, value_bytes, n_entries;
	uint32_t flags;
	const char *name; /* cut to 15 characters; what is no letter or digit becomes _ */
};

/* A descriptor or -errno. On kernels that count maps against RLIMIT_MEMLOCK (before 5.11) the limit
 * is raised when that is what is in the way. */
int bpf_map_open(const struct bpf_map_spec *spec);
/* Task storage of n_words 8-byte words for each thread: a descriptor or -errno. */
int bpf_task_storage_open(uint32_t n_words);

/* Values of per-CPU maps are one after the other for each possible CPU, each padded to 8 bytes. */
int bpf_map_find(int fd, const void *key, void *value);
int bpf_map_update(int fd, const void *key, const void *value);
int bpf_map_delete(int fd, const void *key);
/* The key behind `key`, or the first one when that is NULL; -ENOENT at the end. */
int bpf_map_next_key(int fd, const void *key, void *next);

/* Calls `each` for every entry of a hash map; many at a time where the kernel can. Entries that
 * change meanwhile may be missing or come twice. value_bytes: all CPUs' together. */
int bpf_map_each(int fd, uint32_t key_bytes, size_t value_bytes,
	void (*each)(void *ctx, const void *key, const void *value), void *ctx);

/* CPUs that per-CPU maps have values for. */
size_t bpf_possible_cpus(void);

#endif
