/* SPDX-License-Identifier: MIT */
/* Maps of a running stream as the printer wants them: one value for each key. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "bpf/kernel_map.h"
#include "probe/run/run.h"

struct reading {
	const struct shape *value;
	uint32_t key_bytes;
	size_t n_cpus; /* values behind each key */
	uint64_t *sum; /* of one key */
	void (*each)(void *ctx, struct span key, struct span value);
	void *ctx;
	bool skips_zeros; /* an array: nothing was seen yet */
	struct buf keys;  /* for clearing */
};

static void merge(const struct reading *r, const uint8_t *values)
{
	memset(r->sum, 0, r->value->size);
	for (size_t cpu = 0; cpu < r->n_cpus; cpu++)
		shape_add_value(r->value, r->sum, (const void *)(values + cpu * r->value->size));
}

static bool is_all_zero(const struct reading *r)
{
	for (size_t i = 0; i < r->value->size / 8; i++)
		if (r->sum[i])
			return false;
	return true;
}

static void read_entry(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;
	struct span one = {value, r->value->size};

	if (shape_is_aggregation(r->value)) {
		merge(r, value);
		one.p = (const uint8_t *)r->sum;
		if (r->skips_zeros && is_all_zero(r))
			return;
	}
	r->each(r->ctx, (struct span){key, r->key_bytes}, one);
}

/* -1 when no loaded code uses the map: then it is empty. */
static int open_reading(const struct probe_session *s, uint32_t map_i, struct reading *r)
{
	const struct stream_map_def *def;

	if (map_i >= s->stream->maps.n)
		return -1;
	def = &s->stream->maps.v[map_i];
	r->value = def->value;
	r->key_bytes = s->is_array[map_i]	      ? sizeof(uint32_t)
		       : def->key->kind == SHAPE_NONE ? 8
						      : def->key->size;
	r->skips_zeros = s->is_array[map_i] && !s->is_zeroed[map_i];
	r->n_cpus = shape_is_aggregation(def->value) ? bpf_possible_cpus() : 1;
	return s->maps[STREAM_MAP_FIRST_OF_SCRIPT + map_i];
}

int probe_session_map_each(struct probe_session *s, uint32_t map_i,
	void (*each)(void *ctx, struct span key, struct span value), void *ctx, struct err *err)
{
	struct reading r = {.each = each, .ctx = ctx};
	int fd = open_reading(s, map_i, &r), rc;

	if (fd < 0)
		return 0;
	r.sum = mem_zalloc(r.value->size);
	rc = bpf_map_each(fd, r.key_bytes, r.n_cpus * r.value->size, read_entry, &r);
	free(r.sum);
	return rc < 0 ? err_sys(err, -rc, "%s: cannot be read", s->stream->maps.v[map_i].name) : 0;
}

static void keep_key(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;

	(void)value;
	buf_put(&r->keys, key, r->key_bytes);
}

int probe_session_map_clear(struct probe_session *s, uint32_t map_i, bool keep_keys)
{
	struct reading r = {0};
	int fd = open_reading(s, map_i, &r), rc;
	void *zeros;

	if (fd < 0)
		return 0;
	rc = bpf_map_each(fd, r.key_bytes, r.n_cpus * r.value->size, keep_key, &r);
	zeros = mem_zalloc(r.n_cpus * r.value->size);
	for (size_t i = 0; i < r.keys.n; i += r.key_bytes) {
		if (keep_keys || s->is_array[map_i])
			bpf_map_update(fd, r.keys.p + i, zeros);
		else
			bpf_map_delete(fd, r.keys.p + i);
	}
	s->is_zeroed[map_i] = keep_keys;
	free(zeros);
	buf_release(&r.keys);
	return rc < 0 ? ERR_FAILED : 0;
}

size_t probe_session_stack(
	struct probe_session *s, uint64_t stack_id, uint64_t *addresses, size_t max)
{
	uint64_t value[1 + STREAM_STACK_FRAMES];
	size_t n;

	if (s->maps[STREAM_MAP_STACKS] < 0 ||
		bpf_map_find(s->maps[STREAM_MAP_STACKS], &stack_id, value) < 0)
		return 0;
	n = value[0] < STREAM_STACK_FRAMES ? value[0] : STREAM_STACK_FRAMES;
	n = n < max ? n : max;
	memcpy(addresses, value + 1, n * sizeof(*addresses));
	return n;
}

static bool has_uprobe(const struct probe_session *s, uint32_t clause_i)
{
	for (size_t i = 0; i < s->stream->points.n; i++) {
		const struct stream_point *sp = &s->stream->points.v[i];

		if (sp->clause_i == clause_i && point_has(sp->spec.kind, POINT_IN_FILES))
			return true;
	}
	return false;
}

static bool is_filtered(const struct probe_session *s, uint32_t clause_i)
{
	for (size_t i = 0; i < s->stream->points.n; i++) {
		const struct stream_point *sp = &s->stream->points.v[i];

		if (sp->clause_i == clause_i && !point_has(sp->spec.kind, POINT_IS_OURS))
			return s->filters;
	}
	return false;
}

/* By the programs that the clause is part of. */
static void add_missed(const struct probe_session *s, uint32_t clause_i, struct clause_loss *out)
{
	for (size_t i = 0; i < s->programs.n; i++) {
		const struct run_program *p = &s->programs.v[i];
		bool has_clause = false;

		for (size_t j = 0; j < p->points.n && !has_clause; j++)
			has_clause = p->points.v[j]->clause_i == clause_i;
		if (!has_clause)
			continue;
		out->missed += missed_hits(s, p);
		out->late_ticks += p->n_late;
	}
}

void probe_session_loss(const struct probe_session *s, uint32_t clause_i, struct clause_loss *out)
{
	size_t n_cpus = bpf_possible_cpus(), n = sizeof(*out) / sizeof(uint64_t);
	uint64_t *values, *sum = (uint64_t *)out;

	memset(out, 0, sizeof(*out));
	if (clause_i >= s->stream->clauses.n)
		return;
	values = mem_zalloc(n_cpus * sizeof(*out));
	if (s->maps[STREAM_MAP_LOSS] >= 0 &&
		bpf_map_find(s->maps[STREAM_MAP_LOSS], &clause_i, values) == 0)
		for (size_t i = 0; i < n_cpus * n; i++)
			sum[i % n] += values[i];
	free(values);
	out->unseen = has_uprobe(s, clause_i) ? named_uprobes_unseen(s) : 0;
	out->left_out = is_filtered(s, clause_i) ? followed_n_left_out(&s->followed) : 0;
	add_missed(s, clause_i, out);
}
