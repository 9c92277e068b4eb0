/* SPDX-License-Identifier: MIT */
/*
 * The maps of a stream. Only those that loaded code refers to are made: a ring is megabytes.
 * Script maps without a key are hash maps with a key of zeros, so that "not set yet" exists; but
 * those of aggregations whose zeros say that nothing was seen are arrays, which are found faster.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bpf/kernel_map.h"
#include "probe/run/run.h"

#define RING_BYTES_DEFAULT (8u << 20)
#define RING_BYTES_MIN	   4096u
#define RING_BYTES_MAX	   (1u << 30)
#define WINDOW_BYTES	   (256u << 10) /* of a ring, mapped at a time */
#define CONTROL_BYTES	   (64u << 10)
#define STACK_ENTRIES	   16384
#define COPIES_BYTES	   (16u << 20)
#define PROCESS_ENTRIES	   16384 /* at a time; a table four times as big takes 0.5 ms to make */
/* A per-CPU value must fit into a unit of the kernel's per-CPU memory. */
#define PERCPU_VALUE_MAX 32768
#define VALUE_MAX	 (1u << 20)
#define KEY_MAX		 16384

static bool is_map_load(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_DW | BPF_IMM) && insn->src_reg == BPF_PSEUDO_MAP_FD;
}

static void mark_used(struct probe_session *s, enum mode mode, uint32_t at, uint32_t n, bool *used)
{
	int32_t first_argument = 0; /* the map that was last loaded into r1 */

	for (uint32_t i = at; i < at + n && i < s->stream->code[mode].n; i++) {
		const struct bpf_insn *insn = &s->stream->code[mode].v[i];

		if (is_map_load(insn) && insn->imm >= 0 && insn->imm < RUN_MAPS) {
			used[insn->imm] = true;
			if (insn->dst_reg == BPF_REG_1)
				first_argument = insn->imm;
		}
		if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg)
			continue;
		s->reads_percpu |= insn->imm == BPF_FUNC_map_lookup_percpu_elem;
		/* Nothing can be deleted from an array. */
		if (insn->imm == BPF_FUNC_map_delete_elem &&
			first_argument >= STREAM_MAP_FIRST_OF_SCRIPT)
			s->is_array[first_argument - STREAM_MAP_FIRST_OF_SCRIPT] = false;
	}
}

/* The key of zeros is the index 0 of the array. A sum may be 0 and yet have been seen. */
static bool may_be_array(const struct stream_map_def *def)
{
	return def->key->kind == SHAPE_NONE && shape_is_aggregation(def->value) &&
	       def->value->kind != SHAPE_SUM;
}

static void find_used(struct probe_session *s, bool *used)
{
	for (size_t i = 0; i < s->stream->maps.n && i < STREAM_MAPS_MAX; i++)
		s->is_array[i] = may_be_array(&s->stream->maps.v[i]);
	for (size_t i = 0; i < s->programs.n; i++) {
		const struct run_program *p = &s->programs.v[i];

		for (size_t j = 0; j < p->points.n; j++) {
			for (enum mode m = 0; m < N_MODES; m++) {
				const struct stream_piece *piece = run_piece(p, j, m);

				if (!piece)
					continue;
				mark_used(s, m, piece->predicate_at, piece->predicate_n, used);
				mark_used(s, m, piece->action_at, piece->action_n, used);
			}
		}
		used[STREAM_MAP_SCRATCH] |= p->scratch_bytes != 0;
		used[STREAM_MAP_LOSS] |= p->scratch_bytes != 0;
	}
	used[STREAM_MAP_PROCESSES] |= s->filters;
}

static uint32_t hash_flags(const struct probe_session *s)
{
	return s->features.needs_prealloc ? 0 : BPF_F_NO_PREALLOC;
}

static int open_map(
	int *fd, const struct bpf_map_spec *spec, const char *shown_name, struct err *err)
{
	char what[160];

	*fd = bpf_map_open(spec);
	if (*fd >= 0)
		return 0;
	snprintf(what, sizeof(what), "%s: the map cannot be made", shown_name);
	return kernel_refusal(err, -*fd, what);
}

static int open_script_map(struct probe_session *s, uint32_t number, struct err *err)
{
	static const enum bpf_map_type types[2][2] = {{BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_PERCPU_HASH},
		{BPF_MAP_TYPE_LRU_HASH, BPF_MAP_TYPE_LRU_PERCPU_HASH}};
	const struct stream_map_def *def = &s->stream->maps.v[number - STREAM_MAP_FIRST_OF_SCRIPT];
	bool is_per_cpu = shape_is_aggregation(def->value);
	struct bpf_map_spec spec = {.type = types[def->is_lru][is_per_cpu],
		.key_bytes = def->key->kind == SHAPE_NONE ? 8 : def->key->size,
		.value_bytes = def->value->size,
		.n_entries = map_memory_of(def, s->options.max_entries).n_entries,
		.flags = def->is_lru ? 0 : hash_flags(s),
		.name = def->name[0] == '@' && def->name[1] ? def->name + 1 : "map"};

	if (s->is_array[number - STREAM_MAP_FIRST_OF_SCRIPT]) {
		spec.type = BPF_MAP_TYPE_PERCPU_ARRAY;
		spec.key_bytes = sizeof(uint32_t);
		spec.flags = 0;
	}
	if (spec.key_bytes > KEY_MAX)
		return err_set(err, ERR_LIMIT, "%s: a key of %u bytes is too long (at most %d)",
			def->name, spec.key_bytes, KEY_MAX);
	if (!spec.value_bytes || spec.value_bytes > (is_per_cpu ? PERCPU_VALUE_MAX : VALUE_MAX))
		return err_set(err, ERR_LIMIT,
			"%s: a value of %u bytes is not possible (at most %u)", def->name,
			spec.value_bytes, is_per_cpu ? PERCPU_VALUE_MAX : VALUE_MAX);
	if (map_memory_check(def, s->options.max_entries, err) < 0)
		return ERR_LIMIT;
	return open_map(&s->maps[number], &spec, def->name, err);
}

static int open_self(struct probe_session *s, struct err *err)
{
	int fd;

	if (!s->features.has_task_storage)
		return err_set(err, ERR_UNSUPPORTED,
			"self->: thread-locals need task storage and the kernel's BTF (Linux 5.11, CONFIG_DEBUG_INFO_BTF), which are not there; @x[tid] does the same");
	fd = bpf_task_storage_open(s->stream->self_bytes ? s->stream->self_bytes / 8 : 1);
	if (fd < 0)
		return kernel_refusal(err, -fd, "self->: the storage of thread-locals");
	s->maps[STREAM_MAP_SELF] = fd;
	return 0;
}

static int open_ring(struct probe_session *s, enum stream_map number, struct err *err)
{
	struct bpf_ring *ring = number == STREAM_MAP_RECORDS  ? &s->records
				: number == STREAM_MAP_COPIES ? &s->copies
							      : &s->control;
	uint32_t want = number == STREAM_MAP_CONTROL  ? CONTROL_BYTES
			: number == STREAM_MAP_COPIES ? COPIES_BYTES
						      : s->options.ring_bytes;
	uint32_t bytes = RING_BYTES_MIN;
	int rc;

	want = want ? want : RING_BYTES_DEFAULT;
	while (bytes < want && bytes < RING_BYTES_MAX)
		bytes *= 2;
	rc = bpf_ring_open_window(ring, bytes, WINDOW_BYTES, err);
	if (rc == 0)
		s->maps[number] = ring->fd;
	return rc;
}

/* The loader's maps that are nothing but sizes. */
static int open_loader_map(struct probe_session *s, enum stream_map number, struct err *err)
{
	uint32_t n_clauses = (uint32_t)s->stream->clauses.n;
	uint32_t n_sites = (uint32_t)s->sites.n;
	struct bpf_map_spec specs[STREAM_MAP_FIRST_OF_SCRIPT] = {
		[STREAM_MAP_LOSS] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct clause_loss),
			n_clauses ? n_clauses : 1, 0, "loss"},
		[STREAM_MAP_SCRATCH] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8 + s->scratch_bytes,
			s->scratch_areas, 0, "scratch"},
		[STREAM_MAP_ZERO] = {BPF_MAP_TYPE_ARRAY, 4,
			s->stream->zero_bytes ? s->stream->zero_bytes : 8, 1, 0, "zero"},
		[STREAM_MAP_STACKS] = {BPF_MAP_TYPE_HASH, 8, 8 + 8 * STREAM_STACK_FRAMES,
			STACK_ENTRIES, hash_flags(s), "stacks"},
		[STREAM_MAP_PROCESSES] = {BPF_MAP_TYPE_HASH, 4, 4, PROCESS_ENTRIES, hash_flags(s),
			"processes"},
		[STREAM_MAP_SITES] = {BPF_MAP_TYPE_ARRAY, 4, 8, n_sites ? n_sites : 1, 0, "sites"},
		[STREAM_MAP_FACTS] = {BPF_MAP_TYPE_ARRAY, 4, 8, N_RUN_FACTS, 0, "facts"},
		[STREAM_MAP_RULES] = {BPF_MAP_TYPE_HASH, sizeof(struct stack_rule_key),
			sizeof(struct stack_rule), STACK_RULES_MAX, hash_flags(s), "rules"},
	};

	return open_map(&s->maps[number], &specs[number], specs[number].name, err);
}

static int open_enabled(struct probe_session *s, struct err *err)
{
	uint32_t n = (uint32_t)s->stream->clauses.n;
	struct bpf_map_spec spec = {BPF_MAP_TYPE_ARRAY, 4, (n + 8) & ~7u, 1, 0, "enabled"};

	if (!s->enabled) {
		s->enabled = mem_zalloc((n + 8) & ~7u);
		memset(s->enabled, 1, n);
	}
	return open_map(&s->enabled_map, &spec, "switches of clauses", err);
}

static int open_one(struct probe_session *s, uint32_t number, struct err *err)
{
	if (number >= STREAM_MAP_FIRST_OF_SCRIPT) {
		if (number - STREAM_MAP_FIRST_OF_SCRIPT >= s->stream->maps.n)
			return err_set(err, ERR_FORMAT,
				"the stream's code uses map %u, which it does not have", number);
		return open_script_map(s, number, err);
	}
	if (number == STREAM_MAP_RECORDS || number == STREAM_MAP_CONTROL ||
		number == STREAM_MAP_COPIES)
		return open_ring(s, number, err);
	if (number == STREAM_MAP_SELF)
		return open_self(s, err);
	if (number > STREAM_MAP_COPIES)
		return err_set(err, ERR_FORMAT,
			"the stream's code uses map %u, which does not exist", number);
	return open_loader_map(s, number, err);
}

int run_maps_open(struct probe_session *s, struct err *err)
{
	bool *used = mem_calloc(RUN_MAPS, sizeof(*used));
	int rc = 0;

	s->scratch_areas = SCRATCH_AREAS;
	for (size_t i = 0; i < s->programs.n; i++) {
		const struct run_program *p = &s->programs.v[i];

		if (p->scratch_bytes > s->scratch_bytes)
			s->scratch_bytes = (p->scratch_bytes + 7) & ~7u;
		if (p->can_sleep)
			s->scratch_areas = SCRATCH_AREAS_SLEEP;
	}
	find_used(s, used);
	if (s->reads_percpu)
		rc = kernel_reads_percpu(&s->options, err);
	for (uint32_t i = 0; i < RUN_MAPS && rc == 0; i++)
		if (used[i])
			rc = open_one(s, i, err);
	if (rc == 0)
		rc = open_enabled(s, err);
	free(used);
	return rc;
}

void run_maps_close(struct probe_session *s)
{
	bpf_ring_close(&s->records);
	bpf_ring_close(&s->control);
	bpf_ring_close(&s->copies);
	s->maps[STREAM_MAP_RECORDS] = s->maps[STREAM_MAP_CONTROL] = -1;
	s->maps[STREAM_MAP_COPIES] = -1;
	for (size_t i = 0; i < RUN_MAPS; i++)
		fd_cleanup(&s->maps[i]);
	fd_cleanup(&s->enabled_map);
}

int run_sites_fill(struct probe_session *s, struct err *err)
{
	if (s->maps[STREAM_MAP_SITES] < 0)
		return 0;
	for (uint32_t i = 0; i < s->sites.n; i++) {
		const struct site *site = s->sites.v[i].site;
		uint64_t addr = site ? site->addr.v : 0;
		int rc = addr ? bpf_map_update(s->maps[STREAM_MAP_SITES], &i, &addr) : 0;

		if (rc < 0)
			return kernel_refusal(err, -rc, "addresses of the sites");
	}
	return 0;
}
