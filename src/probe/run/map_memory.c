/* SPDX-License-Identifier: MIT */
/*
 * What the kernel takes for a map of the script: for a hash a table of buckets at once, as many as
 * entries, and each entry when it is added; for one that forgets (lruhash) all entries at once.
 */
#include "bpf/kernel_map.h"
#include "probe/run/run.h"

#define ENTRIES_DEFAULT 16384
#define BUCKET_BYTES	16 /* a list and a lock */
#define ENTRY_BYTES	48 /* links, hash, size of allocation */

static uint64_t buckets_of(uint64_t n_entries)
{
	uint64_t n = 1;

	while (n < n_entries)
		n *= 2;
	return n;
}

struct map_memory map_memory_of(const struct stream_map_def *def, uint32_t max_entries)
{
	bool is_per_cpu = shape_is_aggregation(def->value);
	uint64_t value = def->value->size * (is_per_cpu ? (uint64_t)bpf_possible_cpus() : 1);
	struct map_memory m = {.n_entries = def->max_entries ? def->max_entries : max_entries};

	if (!m.n_entries)
		m.n_entries = ENTRIES_DEFAULT;
	if (def->key->kind == SHAPE_NONE)
		m.n_entries = 1;
	m.at_once_bytes = buckets_of(m.n_entries) * BUCKET_BYTES;
	m.full_bytes = m.at_once_bytes + m.n_entries * (ENTRY_BYTES + def->key->size + value);
	if (def->is_lru)
		m.at_once_bytes = m.full_bytes;
	return m;
}

int map_memory_check(const struct stream_map_def *def, uint32_t max_entries, struct err *err)
{
	struct map_memory m = map_memory_of(def, max_entries), fits = m;

	if (m.at_once_bytes <= MAP_AT_ONCE_MAX)
		return 0;
	/* In place of many entries half of them, until they fit. */
	while (fits.at_once_bytes > MAP_AT_ONCE_MAX && fits.n_entries > 1) {
		struct stream_map_def half = *def;

		half.max_entries = fits.n_entries / 2;
		fits = map_memory_of(&half, 0);
	}
	return err_set(err, ERR_LIMIT,
		"%s: %u entries take %llu MiB of memory before the first one is there, more than %llu MiB; %u entries fit",
		def->name, m.n_entries, (unsigned long long)(m.at_once_bytes >> 20),
		(unsigned long long)(MAP_AT_ONCE_MAX >> 20), fits.n_entries);
}
